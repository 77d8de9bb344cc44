"""Logs of messages, one a line."""
