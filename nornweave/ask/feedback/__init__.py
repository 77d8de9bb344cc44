"""Feedback of users on answers, kept in SQLite."""
