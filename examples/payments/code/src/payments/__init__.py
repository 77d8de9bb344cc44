"""Heron Pay payments service.

Heron Pay takes card and bank payments for small shops. A merchant sends one request, and Heron Pay
validates it, asks the card network for authorization, books the money in the ledger and pays the
merchant out the next working day.

The package is small on purpose: ``handlers`` speaks HTTP, ``validator`` says no early, ``retry`` talks
to the card network through bad weather, and everything about money in motion lives in the ledger.
"""

API_VERSION = "v2.1"

__all__ = ["API_VERSION"]
