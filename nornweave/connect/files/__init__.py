"""Documents in folders."""
