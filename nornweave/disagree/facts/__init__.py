"""Text → facts: checkable statements about named things, read from structure, pure."""
