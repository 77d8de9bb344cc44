"""Signals of one domain's search that tell whether its items answer; they compare between corpora.

``ask/fuse/answerable.py`` turns them into a probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from nornweave.ask.search.expand import other_spellings
from nornweave.ask.search.history import commits_in
from nornweave.ask.search.query import Query
from nornweave.ask.search.records import RecallItem, RetrievalSource, SearchSignals
from nornweave.ask.search.search import SearchContext, SearchOutcome
from nornweave.core.text.analyzer import analyze, distinct_terms
from nornweave.core.text.index_fields import asked_keys, versions_in
from nornweave.index.index import Index
from nornweave.index.searching.vectors import products

# Items that are compared with the first.
LOOKED_AT = 10


def signals_of(
    query: Query,
    outcome: SearchOutcome,
    items: Sequence[RecallItem],
    context: SearchContext,
    outcomes: Sequence[SearchOutcome],
) -> SearchSignals:
    """Return the signals of one search for a question. A word is known if any search in ``outcomes`` knows it.

    Args:
        outcomes: the searches for the unexpanded question, one in the present and perhaps another one in the past.
    """
    frequencies, idf = outcome.statistics.frequencies, outcome.statistics.idf
    terms = sorted({term for terms in query.meaning.values() for term in terms})
    held = [term for term in terms if frequencies[term]]
    whole = math.fsum(idf[term] for term in terms)
    return SearchSignals(
        known=_known_words(query, outcomes, context.generation),
        values={
            **_describe_ranking(outcome, items),
            "background": _background(outcome, context.generation),
            "lost": whole - _best_overlap({term: idf[term] for term in held}, outcome, context),
            "unknown": math.fsum(idf[term] for term in terms if not frequencies[term]) / whole if whole else 0.0,
        },
    )


def _known_words(query: Query, outcomes: Sequence[SearchOutcome], generation: Index) -> frozenset[str]:
    """Return the words of the query that the domain contains, also those that it contains only in another spelling."""
    searches = [outcome.statistics.frequencies for outcome in outcomes]
    known = {
        word
        for word, terms in query.meaning.items()
        if any(
            each[terms[0]] or (not word.isascii() and any(map(each.__getitem__, distinct_terms(word))))
            for each in searches
        )
    }
    known |= {
        word
        for word in query.meaning.keys() - known
        if any(len(generation.holding(analyze(other))) for other in other_spellings(word))
    }
    names = [
        word
        for word, terms in query.meaning.items()
        if word not in known and (len(terms) > 1 or versions_in(word) or word.isdigit())
    ]
    return frozenset(known.union(word for word in names if generation.named(asked_keys(word) | commits_in(word))))


def _describe_ranking(outcome: SearchOutcome, items: Sequence[RecallItem]) -> dict[str, float]:
    """Return the first item's score, its distance from the others, and the agreement of two retrievers."""
    scores = [item.score for item in items[:LOOKED_AT]] or [0.0]
    hits = [outcome.findings[name].hits for name in (_SPARSE, _DENSE) if name in outcome.findings]
    words = outcome.findings[_SPARSE].hits.scores[:LOOKED_AT] if _SPARSE in outcome.findings else np.zeros(0)
    first = [set(hit.numbers[:LOOKED_AT].tolist()) for hit in hits]
    return {
        "score": scores[0],
        "margin": scores[0] - math.fsum(scores[1:]) / max(1, len(scores) - 1),
        "sparse": float(words[0]) if len(words) else 0.0,
        "sparse_margin": float(words[0] - words.mean()) if len(words) else 0.0,
        "agreement": len(set.intersection(*first)) / LOOKED_AT if len(first) == 2 else 0.0,
    }


def _best_overlap(idf: Mapping[str, float], outcome: SearchOutcome, context: SearchContext) -> float:
    """Return the largest sum of the idf of those words of the question that one of the best items contains."""
    numbers, bm25 = np.sort(outcome.ranking.numbers[:LOOKED_AT]), context.plan.bm25
    held = np.zeros(len(numbers))
    has = context.generation.term_weights(list(idf), numbers, bm25) > 0
    for place, weight in enumerate(idf.values()):
        held += weight * has[:, place]
    return float(held.max(initial=0.0))


def _background(outcome: SearchOutcome, generation: Index) -> float:
    """Return the mean similarity of the question to an even sample of chunks."""
    finding = outcome.findings.get(_DENSE)
    if finding is None or finding.query is None or not generation.chunk_count:
        return 0.0
    vector = finding.query.vector if finding.unmapped is None else finding.unmapped
    return float(products(vector, generation.sample).mean())


_DENSE, _SPARSE = RetrievalSource.DENSE.value, RetrievalSource.SPARSE.value
