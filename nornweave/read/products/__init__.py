"""Parsers of records that one product writes."""
