"""The generations of a domain: which there are, which one is published, and readers that follow it."""
