"""Campaigns: what happens to an installation, many times over, and what must hold afterwards."""
