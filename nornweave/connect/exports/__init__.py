"""Conversations in files: transcripts, message logs."""
