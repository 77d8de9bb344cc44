"""Slack: export folders and the API."""
