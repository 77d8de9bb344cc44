"""Leases of domains, for several machines that write."""
