"""The Dagster edge: when things happen, what depends on what, and what must hold."""
