"""The path of a query: route, retrieve in every domain, fuse, fit the budget, synthesise or render.

``pipeline`` is the recipe.
"""
