"""Cut documents into chunks, purely: one module per strategy; ``chunker`` chooses."""
