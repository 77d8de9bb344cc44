"""Several agents' answers → one: six pure stages, one module each; ``pipeline.py`` runs and times them."""
