"""Text → checkable statements, pure. ``extract.py`` is the door; one module per kind of text behind it."""
