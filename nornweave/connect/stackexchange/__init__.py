"""Stack Exchange: the API."""
