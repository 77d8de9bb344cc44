"""Storage: a working file that only ingestion writes, and immutable generations that serving reads.

Only this package and the history of evaluations import DuckDB. ``port`` is what the rest of the system sees.
"""
