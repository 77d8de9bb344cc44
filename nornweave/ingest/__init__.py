"""The path of a document: list, compare, parse, chunk, store, embed, build, check, publish.

``pipeline`` is the recipe.
"""
