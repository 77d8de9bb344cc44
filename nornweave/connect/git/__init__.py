"""Git repositories as sources, and ``git blame``."""
