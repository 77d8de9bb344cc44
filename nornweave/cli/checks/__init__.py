"""Look for what keeps NornWeave from working, and say what to do about it."""
