"""Sentences of the same words that deny the same thing, answer or date it differently."""
