"""Documents that were handed in over HTTP, kept until the next sync."""
