"""Exact evidence: the query names what a chunk defines, or quotes a run of words that hardly another chunk holds.

The four retrieval sources vote; this is evidence of another kin. A vote of three sources for a test that calls
``Table.upsert`` five times must not outweigh the one chunk that defines it. So it is no weight among others:

    score = 1 − (1 − combined) · (1 − evidence)

Evidence is in [0, 1] on theoretical bounds, and comparable between domains: how rare the name or the run of words is
in the domain times how much of the query it accounts for. There is no list of query types: a sentence that happens to
hold a common name has next to no evidence, whatever it looks like.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from nornweave.core.text.analyzer import FUNCTION_TERMS, FUNCTION_WORDS, pair_key, sequence
from nornweave.core.text.index_fields import ASIDE, IMPORTS, folded
from nornweave.index.index import Index
from nornweave.index.port import Mask, Numbers, Scores

# What stands further back in a long query is pasted text: no name is asked for there, and a run of words that is rare
# shows before.
MAX_WORDS, MAX_TERMS = 32, 64

import os
def _p(name, default):
    return float(os.environ.get(name, default))

DEFINED = _p("X_DEF", 0.9)
SAID = _p("X_SAID", 0.8)
FUNCTION_SHARE = _p("X_FW", 0.15)
UNKNOWN_SHARE = _p("X_UNK", 0.25)
NAME_POWER = _p("X_NP", 1.5)
RUN_POWER = _p("X_RP", 2.0)
PAIR_BASE = _p("X_PB", 0.5)
RARE_POWER = _p("X_RARE", 1.0)
ASIDE_SHARE = _p("X_ASIDE", 0.3)
OTHER_SPELLING = _p("X_OTHER", 0.9)
PAIR_POWER = _p("X_PP", 0.6)
BESIDE_PAIR = _p("X_BP", 0.6)
TYPO = _p("X_TYPO", 0.8)
MIN_TYPO = 5
PLAIN = _p("X_PLAIN", 0.6)
PLAIN_WORDS = 3
NATS = _p("X_NATS", 8)
VALUE_SHARE = _p("X_VALUE", 0.15)
LEAST = _p("X_LEAST", 0.2)
IMPORT_SHARE = _p("X_IMP", 0.5)

_WORD = re.compile(r"[\w$]+(?:-[\w$]+)*")
_TEST_WORDS = re.compile(r"\b(?:tests?|tested|testing|specs?|examples?|benchmarks?|fixtures?|mocks?)\b", re.I)


@dataclass(frozen=True, slots=True)
class Named:
    """What a query may name: its words, whole and as spellings are compared."""

    written: tuple[str, ...]
    whole: tuple[str, ...]
    spelled: tuple[str, ...]
    terms: tuple[str, ...]
    values: frozenset[str]
    as_name: frozenset[str]
    wants_tests: bool


_JOINED = re.compile(r"([\w$]+)(?:\.|::|->|#)(?=([\w$]+))")


def _is_name(word: str) -> bool:
    return re.search(r"[a-z0-9$][A-Z]|[\w$]_|^_|[A-Z][a-z]|\d", word) is not None


@lru_cache(maxsize=256)
def read_names(text: str) -> Named:
    """Read the words and the terms of a query, once for all domains."""
    words = [word for word in _WORD.findall(text)[:MAX_WORDS] if folded(word)]
    as_name = {folded(word) for word in words if len(words) <= PLAIN_WORDS or _is_name(word) }
    as_name |= {folded(w) for match in _JOINED.finditer(text) for w in match.groups()}
    return Named(
        as_name=frozenset(as_name),
        written=tuple(words),
        whole=tuple(word.lower() for word in words),
        spelled=tuple(map(folded, words)),
        terms=(terms := tuple(sequence(text)[:MAX_TERMS])),
        values=frozenset(
            {term for term in terms if len(term) == 1 or not term.isalpha()}
            | {term for token in text.split() if "/" in token for term in sequence(token)}
        ),
        wants_tests=_TEST_WORDS.search(text) is not None,
    )


def exact_evidence(text: str, generation: Index, within: Mask | None = None):
    named = read_names(text)
    reach = math.log(generation.chunk_count + 1) or 1.0
    names = _name_evidence(named, generation, reach)
    evidence = np.maximum(names, _run_evidence(named, generation, reach))
    evidence = np.maximum(0, evidence - LEAST) / (1 - LEAST)
    if within is not None:
        evidence *= within
    places = generation.named((ASIDE, IMPORTS))
    factor = np.ones(generation.size, np.float32)
    if not named.wants_tests and ASIDE in places:
        factor[places[ASIDE]] -= ASIDE_SHARE * float(evidence.max(initial=0))
    if IMPORTS in places:
        factor[places[IMPORTS]] *= IMPORT_SHARE
    return evidence, factor


def _pair(first: str, second: str) -> int | None:
    return None if first in FUNCTION_TERMS and second in FUNCTION_TERMS else pair_key((first, second))


def _idf(frequency: int, count: int) -> float:
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


def _name_evidence(named: Named, generation: Index, reach: float) -> Scores:
    scores = np.zeros(generation.size, np.float32)
    wanted = [word for whole, word in zip(named.whole, named.spelled) if whole not in FUNCTION_WORDS]
    known = generation.named([f"{field}:{word}" for word in set(wanted) for field in ("defines", "owner")])
    frequencies = generation.document_frequencies(set(named.whole))
    count = generation.chunk_count
    weight = {}
    for whole, word in zip(named.whole, named.spelled):
        w = _idf(frequencies[whole], count)
        if whole in FUNCTION_WORDS:
            w *= FUNCTION_SHARE
        elif not frequencies[whole] and f"defines:{word}" not in known and f"owner:{word}" not in known:
            w *= UNKNOWN_SHARE
        weight[word] = w
    total = math.fsum(weight.values())
    written = dict(zip(named.spelled, named.written))
    exactly = generation.named([f"spelled:{written[word]}" for word in set(wanted) if f"defines:{word}" in known])
    qualified = np.zeros(generation.size, np.float32)
    for word in set(wanted):
        chunks, share = known.get(f"defines:{word}"), 1.0
        if chunks is None and len(word) >= MIN_TYPO and not frequencies[written[word].lower()]:
            chunks, share = generation.named_nearly("defines", word), TYPO
        if chunks is None or not len(chunks):
            continue
        if share != 1.0:
            weight[word] /= UNKNOWN_SHARE
            total += weight[word] * (1 - UNKNOWN_SHARE)
        plain = 1.0 if word in named.as_name else PLAIN
        _raise(scores, chunks, DEFINED * share * plain, weight[word] / total, reach, NAME_POWER)
        for owner in set(wanted):
            owned = known.get(f"owner:{owner}") if owner != word else None
            if owned is not None and len(both := np.intersect1d(chunks, owned, assume_unique=True)):
                plain = 1.0 if word in named.as_name or owner in named.as_name else PLAIN
                _raise(qualified, both, DEFINED * share * plain, (weight[word] + weight[owner]) / total, reach, PAIR_POWER)
        other = np.setdiff1d(chunks, exactly.get(f"spelled:{written[word]}", chunks[:0]), assume_unique=True)
        scores[other] *= OTHER_SPELLING
        qualified[other] *= OTHER_SPELLING
    if qualified.any():
        scores *= BESIDE_PAIR
    return np.maximum(scores, qualified)


def _raise(scores: Scores, chunks: Numbers, most: float, coverage: float, reach: float, power: float) -> None:
    rarity = 1 - math.log(len(chunks)) / reach
    scores[chunks] = np.maximum(scores[chunks], most * rarity**RARE_POWER * min(coverage, 1.0)**power)


def _run_evidence(named: Named, generation: Index, reach: float) -> Scores:
    """Weigh the runs of neighbouring words that each chunk holds too."""
    size, terms = generation.size, named.terms
    covered = np.zeros(size, np.float32)
    if len(terms) < 2:
        return covered
    count = generation.chunk_count
    frequencies = generation.document_frequencies(set(terms))
    weights = [
        _idf(frequencies[term], count)
        * (FUNCTION_SHARE if term in FUNCTION_TERMS else VALUE_SHARE if term in named.values or not frequencies[term] else 1.0)
        for term in terms
    ]
    total = math.fsum(weights)
    pairs = [_pair(first, second) for first, second in pairwise(terms)]
    held = generation.paired({pair for pair in pairs if pair is not None})
    length, mass = np.zeros(size, np.float32), np.zeros(size, np.float32)
    longest = np.zeros(size, np.float32)
    reached = np.full(size, -1, np.int32)
    step = 0
    for place, pair in enumerate(pairs):
        if pair is None:  # "of the" is in every text: a run goes on over it
            continue
        step += 1
        chunks = held.get(pair)
        if chunks is None:
            continue
        broken = chunks[reached[chunks] != step - 1]
        covered[broken] += mass[broken] * (1 - PAIR_BASE ** length[broken])
        longest[broken] = np.maximum(longest[broken], mass[broken])
        length[broken], mass[broken] = 0, weights[place]
        length[chunks] += 1
        mass[chunks] += weights[place + 1]
        reached[chunks] = step
    whole = length == step
    covered += mass * (1 - PAIR_BASE ** (length + whole))
    longest = np.maximum(longest, mass)
    best = float(covered.max(initial=0))
    if not best or not total:
        return covered
    alike = int(np.count_nonzero(covered >= 0.9 * best))
    rarity = 1 - math.log(alike) / reach
    power = RUN_POWER / np.maximum(1, longest / NATS)
    return (SAID * rarity**RARE_POWER * np.minimum(covered / total, 1) ** power).astype(np.float32)
