"""The sentences of an answer's passages that answer, word for word: an answer without a language model.

A sentence counts by the words of the question that it holds, weighed by how rare they are among the sentences; words
that only its heading or a neighbour holds count a little. The score of its passage counts too.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nornweave.ask.answer.snippet import Unit, terms_of_units, units_of
from nornweave.ask.fuse.records import ExtractedSentence, FusedItem
from nornweave.core.text.analyzer import FUNCTION_TERMS, query_terms, sequence
from nornweave.core.types import ChunkId, Domain, Span

MOST_SENTENCES = 3
# Passages further down rarely answer, and each costs a quarter of a millisecond.
READ_PASSAGES = 8
# A sentence is divided above this, so that three of them are read at a glance.
LONGEST = 400
# What a word counts that stands beside the sentence: in the heading, or in the sentence before or after it.
CONTEXT_SHARE = 0.3
# Headings, underlines, fences and questions say what a passage is about, and answer nothing.
_NO_ANSWER = re.compile(r"\s*(?:#{1,6}\s[^\n]*|[=~^*+#-]{3,}|(?:```|~~~)[^\n]*)\s*|.*\?[\"')*_\s]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Candidate:
    item: FusedItem
    unit: Unit
    terms: frozenset[str]
    beside: frozenset[str]


def extract(items: Sequence[FusedItem], question: str) -> tuple[ExtractedSentence, ...]:
    """Choose up to three sentences that answer, the best first, each of another passage.

    A passage that another one contradicts, and that probably does not hold, is not quoted.

    Returns:
        Nothing when no sentence holds a word of the question.
    """
    wanted = frozenset(query_terms(question)) - FUNCTION_TERMS
    candidates = [each for item in items[:READ_PASSAGES] if not item.demoted for each in _candidates(item, wanted)]
    spread = Counter(term for candidate in candidates for term in candidate.terms)
    weights = {term: math.log(1 + len(candidates) / (spread[term] or 1)) for term in wanted}
    best: dict[ChunkId, tuple[float, _Candidate]] = {}
    for candidate in candidates:
        covered = math.fsum(weights[term] for term in candidate.terms)
        covered += CONTEXT_SHARE * math.fsum(weights[term] for term in candidate.beside)
        worth = candidate.item.score * covered
        known = best.get(candidate.item.chunk_id)
        if known is None or worth > known[0]:
            best[candidate.item.chunk_id] = worth, candidate
    ranked = sorted(best.values(), key=lambda each: -each[0])  # stable: equals stay in the order of their passages
    return tuple(_sentence(candidate) for _, candidate in ranked[:MOST_SENTENCES])


def _candidates(item: FusedItem, wanted: frozenset[str]) -> Iterator[_Candidate]:
    """Yield the sentences of a passage, of code the lines, that hold a word of the question."""
    text, citation = item.item.content, item.citation
    is_prose = item.domain != Domain.CODE
    units = units_of(text, LONGEST, is_code=not is_prose)
    terms = terms_of_units(text, units, wanted)
    heading = wanted.intersection(sequence(" ".join(filter(None, (citation.title, citation.section)))))
    around = [frozenset[str](), *terms, frozenset[str]()]
    for place, unit in enumerate(units):
        if terms[place] and not (is_prose and _NO_ANSWER.fullmatch(text, *unit)):
            beside = (heading | around[place] | around[place + 2]) - terms[place]
            yield _Candidate(item, unit, terms[place], beside)


def _sentence(candidate: _Candidate) -> ExtractedSentence:
    text = candidate.item.item.content
    start, end = candidate.unit
    stripped = text[start:end].strip()
    first = start + text[start:end].index(stripped)
    return ExtractedSentence(candidate.item.chunk_id, stripped, Span(first, first + len(stripped)))
