"""Who asks: tokens of a file, tokens of an identity provider, sessions of people."""
