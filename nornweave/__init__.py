"""Self-hosted knowledge retrieval over four domains; see ``docs/architecture.md`` for the two paths."""

__version__ = "0.1.0"
