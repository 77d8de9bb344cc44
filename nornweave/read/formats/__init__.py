"""Read office documents, books, notebooks and e-mail: a module turns one format into Markdown; ``reader`` chooses."""
