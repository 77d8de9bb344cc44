"""Benchmarks: commands that print tables, never tests."""
