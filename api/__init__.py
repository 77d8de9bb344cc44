"""The HTTP API: thin edges over the engine. Nothing here ranks, ingests or evaluates."""
