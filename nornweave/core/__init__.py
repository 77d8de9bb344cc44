"""Nouns, errors, text analysis, safe files, the sandbox, tracing, viewers and rules."""
