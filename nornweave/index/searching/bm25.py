"""BM25 over weighted fields.

Sources: Robertson & Zaragoza 2009, eq. 3.15; fields as in Robertson, Zaragoza & Taylor 2004: occurrences and lengths
are weighted before they saturate, as if a field was written that many times over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nornweave.config import Bm25Settings, FieldWeights
from nornweave.index.port import Scores


def saturations(lengths: NDArray[np.int32], average: float, bm25: Bm25Settings) -> Scores:
    """Return ``k1 · (1 - b + b · length / average)`` of chunks: the occurrences at which a term counts for half.

    Args:
        lengths: terms of each chunk by field, of shape ``(chunks, fields)``.
        average: weighted length of the chunks of the corpus.
        bm25: ``k1``, ``b`` and what a term counts for in each field.
    """
    weighted = weighted_lengths(lengths, bm25.fields)
    return (bm25.k1 * (1 - bm25.b + bm25.b * weighted / (average or 1.0))).astype(np.float32)


def weighted_lengths(lengths: NDArray[np.int32], fields: FieldWeights) -> NDArray[np.float64]:
    """Return the length of each chunk as if its fields were written so many times."""
    return np.asarray(lengths @ np.array(fields.values), np.float64)


def saturated(frequencies: Scores, half: Scores, bm25: Bm25Settings) -> Scores:
    """Return what terms count for before idf, in [0, k1 + 1): ``f · (k1 + 1) / (f + half)``.

    Args:
        frequencies: weighted occurrences of a term in a chunk, ≥ 0.
        half: ``saturations`` of these chunks, > 0.
    """
    return (frequencies * np.float32(bm25.bound) / (frequencies + half)).astype(np.float32)
