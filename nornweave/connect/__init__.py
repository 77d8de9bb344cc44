"""Where documents come from: one module per kind of source."""
