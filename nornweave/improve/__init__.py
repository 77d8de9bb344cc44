"""Measured quality: the history of evaluations, and their comparison."""
