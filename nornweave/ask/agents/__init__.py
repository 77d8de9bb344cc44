"""Agents on other machines: who has joined, and asking them as if they were here."""
