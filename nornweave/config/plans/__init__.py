"""Plans: the weights that a domain answers with, configured or tuned."""
