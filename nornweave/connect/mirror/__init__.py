"""Sources that are read over the network, a page at a time, into a mirror on this disk."""
