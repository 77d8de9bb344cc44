"""Document → chunks, pure: one module per strategy; ``chunker`` chooses."""
