"""The world → documents: one module per kind of source."""
