"""Judged sets out of the corpus itself: what a document says about a place becomes the query that must find it."""

from evals.generated.sets import generate

__all__ = ["generate"]
