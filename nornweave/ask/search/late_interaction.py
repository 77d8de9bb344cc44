"""Late interaction: how well each word of a query is matched by a chunk, beside how well all of it is.

The encoder gives a vector for each token in the pass that pools them. For each token of the query the nearest token of
a chunk counts, weighted by how rare the word is that the token is of:

    score(c) = Σ idf[t] · (max over d in c of (t · d) - 0.05 · ln(tokens of c + 1)) / Σ idf[t]

Only the best candidates of the four retrieval sources are scored: the others stay below them.

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
from nornweave.models.encoders.tokens import VERSION, EncodedQuery

LATE = "late_interaction"
"""The name of the signal among contributions."""
RESCORED = 50
"""Candidates that are scored."""


def late_interaction(
    query: EncodedQuery, idf: Mapping[str, float], ranking: Ranking, candidates: Numbers, generation: Index
) -> Leg | None:
    """Score the best candidates by the words of a query.

    Args:
        query: by the encoder of the generation.
        ranking: of the candidates by the retrieval sources.
        candidates: ascending.

    Returns:
        ``None`` where there are no token vectors, or no word can be weighed.
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
    """Return the idf of the word that each token is of; 0 for punctuation."""
    terms = list(occurrences(query.text))
    weights = [max((idf[term] for term, start, end in terms if start <= at < end), default=0.0) for at in query.starts]
    return np.array(weights, np.float32)
