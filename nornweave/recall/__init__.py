"""Query → one domain's candidates."""
