"""Retrieve the candidates of one domain for a query."""
