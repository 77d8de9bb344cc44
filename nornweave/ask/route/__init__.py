"""Decide which domains a question is sent to."""
