"""The HTTP API (contract §4): thin edges over the engine. Nothing here ranks, ingests or evaluates."""
