"""The routes, one module per part of contract §4."""
