"""Merge items that say the same into one item that cites all of them."""
