"""Late interaction: how well a chunk matches each word of a query, in addition to the query as a whole.

The encoder returns a vector for each token before it pools them. For each token of the query the nearest token of
a chunk counts, weighted by how rare the token's word is:

    score(c) = Σ idf[t] · (max over d in c of (t · d) - 0.05 · ln(tokens of c + 1)) / Σ idf[t]

Only the best candidates of the four retrievers are scored; the others stay below them.

Source: Khattab & Zaharia, SIGIR 2020, arXiv:2004.12832, with the vectors of a model that was trained to pool them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nornweave.ask.search.combine import Leg, Ranking
from nornweave.core.text.analyzer import occurrences
from nornweave.index.index import Index
from nornweave.index.port import Numbers
from nornweave.models.encoders.port import VERSION, EncodedQuery

LATE = "late_interaction"
"""The name of the signal among contributions."""
RESCORED = 50
"""Candidates that are scored."""


def late_interaction(
    query: EncodedQuery, idf: Mapping[str, float], ranking: Ranking, candidates: Numbers, generation: Index
) -> Leg | None:
    """Score the best candidates by the words of a query.

    Args:
        query: encoded by the generation's encoder.
        ranking: the candidates in the order that the retrievers gave them; the first ``RESCORED`` are scored.
        candidates: the chunk numbers, ascending.

    Returns:
        The new scores and ranking; ``None`` if there are no token vectors, or no word can be weighed.
    """
    if query.tokens is None or generation.meta.get("token_vectors") != VERSION:
        return None
    weights = token_weights(query, idf)
    if not weights.any():
        return None
    best = ranking.numbers[:RESCORED]
    matches = generation.token_matches(query.tokens, best)
    scores = np.zeros(len(candidates), np.float32)
    scores[np.searchsorted(candidates, best)] = np.clip(matches @ (weights / weights.sum()), 0, 1)
    return Leg(LATE, scores, best)


def token_weights(query: EncodedQuery, idf: Mapping[str, float]) -> NDArray[np.float32]:
    """Return for each token the idf of its word; 0 for punctuation."""
    terms = list(occurrences(query.text))
    weights = [max((idf[term] for term, start, end in terms if start <= at < end), default=0.0) for at in query.starts]
    return np.array(weights, np.float32)
