"""Storage: a working file that only ingestion writes, and immutable generations that serving reads.

The only package that imports DuckDB. ``port`` is what the rest of the system sees.
"""
