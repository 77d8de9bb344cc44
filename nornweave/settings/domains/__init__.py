"""The four domain files."""
