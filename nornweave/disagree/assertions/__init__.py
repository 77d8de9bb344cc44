"""Sentences of the same words that deny, time or count the same thing differently."""
