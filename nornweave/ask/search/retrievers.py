"""The four retrieval sources: dense, sparse, full text, structured.

Every retriever scores within its theoretical bounds, so that a score means the same for every query and domain:

* dense: cosine similarity, negative ones count 0;
* sparse: BM25 divided by ``(k1 + 1) · Σ idf``, its limit for a chunk that repeats every term of the query endlessly;
* fulltext: the share of the query's word pairs that stand side by side in the chunk too, by their idf; 1 for a quoted
  phrase that it holds word for word;
* structured: the rarity of the names that both the query and the chunk have (symbol, path, heading, person, …).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from nornweave.ask.search.query import Query, TermStatistics
from nornweave.config import PlanSettings
from nornweave.core.text.analyzer import FUNCTION_TERMS, pair_key, sequence, word_pairs
from nornweave.index.index import Index
from nornweave.index.manifest import QueryMap
from nornweave.index.port import NO_HITS, Hits, Mask, Numbers, Scores, Vectors, found
from nornweave.models.encoders.port import EncodedQuery

# Chunks that hold the words of a quoted phrase side by side and are read to see whether it stands there.
_READ_FOR_PHRASE = 200


@dataclass(frozen=True, slots=True, eq=False)
class RetrieverFinding:
    """The result of one retriever.

    Attributes:
        hits: its best chunks.
        scores: for every chunk, if the retriever has them; ``None`` for dense, which scores chunks on demand.
        query: the encoded query; dense scores chunks by its vector.
        unmapped: the query's vector before the domain's query map changed it; ``None`` if no map is in force.
    """

    hits: Hits
    scores: Scores | None = None
    query: EncodedQuery | None = None
    unmapped: Vectors | None = None


def term_weights(query: Query, statistics: TermStatistics, plan: PlanSettings) -> dict[str, float]:
    """Return the weight of each query term: its idf, reduced for function words."""
    return {
        term: statistics.idf[term] * (plan.function_words if term in FUNCTION_TERMS else 1.0) for term in query.terms
    }


def search_dense(
    query: EncodedQuery, generation: Index, k: int, within: Mask | None, query_map: QueryMap | None = None
) -> RetrieverFinding:
    """Find the ``k`` chunks whose vectors are most similar to the query's, which ``query_map`` first changes."""
    unmapped = query.vector if query_map else None
    if query_map:
        query = replace(query, vector=query_map.apply(query.vector))
    hits = generation.dense(query.vector, k, within)
    positive = hits.scores > 0
    return RetrieverFinding(Hits(hits.numbers[positive], hits.scores[positive]), query=query, unmapped=unmapped)


def search_sparse(
    weights: Mapping[str, float], generation: Index, plan: PlanSettings, k: int, within: Mask | None
) -> RetrieverFinding:
    """Find the ``k`` best chunks by BM25, which counts the words that a chunk shares with the query."""
    bound = plan.bound * math.fsum(weights.values())
    if not bound:
        return RetrieverFinding(NO_HITS, np.zeros(generation.size, np.float32))
    shares = {term: weight / bound for term, weight in weights.items()}
    scores = generation.sparse(shares, plan.document_share, plan.bm25)
    return _finding(scores, k, within)


def search_fulltext(
    query: Query, weights: Mapping[str, float], generation: Index, k: int, within: Mask | None
) -> RetrieverFinding:
    """Find chunks with the same neighbouring words, and quoted phrases."""
    pairs = {key: weights.get(pair[0], 0) + weights.get(pair[1], 0) for pair, key in query.pairs.items()}
    bound = math.fsum(pairs.values())
    scores = np.zeros(generation.size, np.float32)
    for pair, chunks in generation.paired(pairs if bound else ()).items():
        scores[chunks] += pairs[pair] / bound
    np.minimum(scores, 1, out=scores)
    reach = math.log(generation.chunk_count + 1)
    for phrase in query.phrases:
        holding = _holding_phrase(phrase, generation, within)
        # One word in quotation marks is often a value of an error message: the rarer, the more it tells.
        is_value = len(phrase.split()) == 1 and sequence(phrase)
        share = 1 - math.log(max(len(holding), 1)) / reach if is_value else 1
        scores[holding] = np.maximum(scores[holding], share)
    return _finding(scores, k, within)


def search_structured(query: Query, generation: Index, k: int, within: Mask | None) -> RetrieverFinding:
    """Find chunks by the names, paths, people and dates that the query mentions.

    ``1 - Π (1 - rarity(name))`` over the names that a chunk has, ``rarity(n) = 1 - ln n / ln (N + 1)``: a symbol that
    is defined once counts 1, a person who wrote every second message next to nothing.
    """
    misses = np.ones(generation.size, np.float32)
    reach = math.log(generation.chunk_count + 1)
    for chunks in generation.named(query.keys).values():
        misses[chunks] *= math.log(len(chunks)) / reach
    return _finding(1 - misses, k, within)


def is_said(text: str, generation: Index) -> bool:
    """Tell whether some chunk contains the words of ``text`` side by side."""
    terms = sequence(text)
    if len(terms) < 2:
        return all(generation.document_frequencies(terms).values()) and bool(terms)
    pairs = {pair_key(pair) for pair in word_pairs(terms)}
    return bool(pairs) and bool(len(_holding_pairs(pairs, generation)))


def _finding(scores: Scores, k: int, within: Mask | None) -> RetrieverFinding:
    if within is not None:
        scores *= within
    return RetrieverFinding(found(scores, k), scores)


def _holding_phrase(phrase: str, generation: Index, within: Mask | None) -> Numbers:
    """Return the chunks that hold a phrase, ignoring case and blank space between words.

    A number at its end must match as a whole: ``Python 3.1`` is not in ``Python 3.10``.
    """
    terms = sequence(phrase)
    if not terms:  # punctuation only: nothing but reading finds it
        if within is None:
            return generation.containing(phrase, _READ_FOR_PHRASE)
        holding = generation.containing(phrase, generation.size)
        return holding[within[holding]]
    candidates = generation.holding(set(terms))
    if pairs := {pair_key(pair) for pair in word_pairs(terms)}:
        candidates = np.intersect1d(candidates, _holding_pairs(pairs, generation), assume_unique=True)
    if within is not None:
        candidates = candidates[within[candidates]]
    wanted = re.compile(re.escape(_squeeze_blanks(phrase)) + (r"(?!\.?\d)" if phrase[-1].isdigit() else ""))
    texts = generation.contents(candidates[:_READ_FOR_PHRASE])
    return np.array([number for number, text in texts.items() if wanted.search(_squeeze_blanks(text))], np.int32)


def _holding_pairs(pairs: Collection[int], generation: Index) -> Numbers:
    """Return the chunks that hold all of some word pairs, ascending."""
    held = generation.paired(pairs)
    if len(held) < len(pairs):
        return NO_HITS.numbers
    return reduce(partial(np.intersect1d, assume_unique=True), sorted(held.values(), key=len))


def _squeeze_blanks(text: str) -> str:
    return " ".join(text.casefold().split())
