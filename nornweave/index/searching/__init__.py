"""What queries search: the arrays of a generation, its texts and counts, as far as a viewer may see them."""
