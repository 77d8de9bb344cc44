"""Exact evidence: a query names what a chunk defines, or quotes a run of words that hardly another chunk holds.

The four retrieval sources vote. This is evidence of another kind: three sources that prefer a test which calls
``Table.upsert`` five times must not outvote the one chunk that defines it. It is therefore no weight beside theirs:

    score = 1 − (1 − combined) · (1 − evidence)

Evidence is in [0, 1] and comparable between domains: how rare the name or the run of words is in the domain, times how
much of the query it accounts for. There is no list of query types. A question that happens to contain a common name has
next to no evidence, however it is written, and an error message has much, whatever values it carries.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from nornweave.ask.search.combine import Evidence
from nornweave.core.text.analyzer import FUNCTION_TERMS, FUNCTION_WORDS, pair_key, sequence
from nornweave.core.text.index_fields import ASIDE, IMPORTS, folded, is_identifier
from nornweave.index.index import Index
from nornweave.index.port import Mask, Numbers, Scores

# What stands further back in a long query is pasted text, which shows before.
MAX_WORDS, MAX_TERMS = 32, 64

# Fitted on click, mux, commander.js, gson, got and xsv, and held against the judged sets (docs/recall.md).
DEFINED = 0.9
"""Of a chunk that defines a name which is all of the query and defined nowhere else."""
SAID = 0.8
"""Of a chunk that alone holds the words of the query side by side."""
OTHER_SPELLING = 0.9
"""Share for a name in another case or with other separators."""
MISSPELLED, MIN_MISSPELLED = 0.8, 5
"""Share for a name that one letter parts from the query's, and from how many letters on that is looked for."""
IN_SENTENCE, SENTENCE_WORDS = 0.6, 4
"""Share for a name that a sentence of so many words holds as an ordinary word ("set", "payments")."""
BESIDE_QUALIFIED = 0.6
"""Share for a class or another member of its name, where the query names a class and a member of it."""
FUNCTION_SHARE, UNKNOWN_SHARE, VALUE_SHARE = 0.15, 0.25, 0.15
"""What function words, words that the domain does not know, and values in a quoted text count of their rarity."""
NAME_POWER, QUALIFIED_POWER, RUN_POWER = 1.5, 0.6, 2.0
"""How fast evidence falls with the share of the query that is accounted for."""
LONG_RUN = 12.0
"""Summed idf of a run of words from which the rest of the query counts less and less."""
SHORT_RUN = 0.5
"""What each further pair of a run leaves of the chance that its words are neighbours by accident."""
ALIKE = 0.9
"""Chunks with this share of the best evidence hold the run too."""
LEAST = 0.25
"""Evidence up to this is chance; what is above is stretched to 1."""
ASIDE_SHARE, IMPORT_SHARE = 0.3, 0.5
"""What tests and examples lose where there is full evidence, and import blocks always."""

_WORD = re.compile(r"[\w$]+(?:-[\w$]+)*")
_QUALIFIED = re.compile(r"([\w$]+)(?:\.|::|->|#)(?=([\w$]+))")
_CAPITALISED = re.compile(r"[A-Z][a-z]")
_ASIDE_TERMS = frozenset(sequence("test spec example benchmark fixture mock"))
_IMPORT_TERMS = frozenset(sequence("import"))


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query that may name something.

    Attributes:
        written: as it stands there.
        spelled: what spellings of it have in common.
        is_name: it is written as names are, or the query is no sentence.
    """

    written: str
    spelled: str
    is_name: bool

    @property
    def whole(self) -> str:
        """Return the word as the index holds it beside its parts."""
        return self.written.lower()

    @property
    def is_function_word(self) -> bool:
        """Tell whether the word shapes the sentence only."""
        return self.whole in FUNCTION_WORDS


@dataclass(frozen=True, slots=True)
class Wording:
    """What a query may name or quote.

    Attributes:
        words: distinct by spelling.
        terms: of the analyzer, in order.
        values: those that an error message may carry and its source does not have: numbers, paths.
    """

    words: tuple[Word, ...]
    terms: tuple[str, ...]
    values: frozenset[str]


@lru_cache(maxsize=256)
def read_wording(text: str) -> Wording:
    """Read a query for what it may name or quote, once for all domains."""
    found = _WORD.findall(text)[:MAX_WORDS]
    qualified = {folded(part) for match in _QUALIFIED.finditer(text) for part in match.groups()}
    words: dict[str, Word] = {}
    for place, word in enumerate(found):
        spelled = folded(word)
        name = len(found) < SENTENCE_WORDS or spelled in qualified or is_identifier(word)
        capitalised = place > 0 and _CAPITALISED.search(word) is not None
        if spelled:
            words.setdefault(spelled, Word(word, spelled, name or capitalised))
    terms = tuple(sequence(text)[:MAX_TERMS])
    in_paths = {term for token in text.split()[:MAX_TERMS] if "/" in token for term in sequence(token)}
    numbers = {term for term in terms if len(term) == 1 or not term.isalpha()}
    return Wording(tuple(words.values()), terms, frozenset(numbers | in_paths))


def exact_evidence(text: str, generation: Index, quoting: Numbers, within: Mask | None = None) -> Evidence:
    """Return the evidence for every chunk of a generation.

    Args:
        text: the query.
        generation: open.
        quoting: chunks that hold a phrase which the query has in quotation marks, word for word.
        within: which chunks may be found.
    """
    wording, reach = read_wording(text), math.log(generation.chunk_count + 1) or 1.0
    scores = np.maximum(_defining(wording, generation, reach), _saying(wording, generation, reach))
    _raise(scores, quoting, SAID, reach)
    scores = (np.maximum(scores - LEAST, 0) / (1 - LEAST)).astype(np.float32)
    places = generation.named((ASIDE, IMPORTS))
    kept = np.ones(generation.size, np.float32)
    if ASIDE in places and _ASIDE_TERMS.isdisjoint(wording.terms):
        kept[places[ASIDE]] -= ASIDE_SHARE * float(scores.max(initial=0))
    if IMPORTS in places and _IMPORT_TERMS.isdisjoint(wording.terms):
        kept[places[IMPORTS]] *= IMPORT_SHARE
    return Evidence(scores if within is None else scores * within, kept)


def _idf(frequency: int, count: int) -> float:
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


def _raise(scores: Scores, chunks: Numbers, most: float, reach: float, coverage: float = 1.0) -> None:
    """Raise the evidence of some chunks to ``most · rarity · coverage``; the fewer they are, the rarer."""
    if len(chunks):
        scores[chunks] = np.maximum(scores[chunks], most * (1 - math.log(len(chunks)) / reach) * coverage)


@dataclass(frozen=True, slots=True, eq=False)
class _Defined:
    """A word of the query with the chunks that define it, and what that counts for."""

    word: Word
    chunks: Numbers
    most: float


def _defining(wording: Wording, generation: Index, reach: float) -> Scores:
    """Weigh what each chunk defines of what the query names."""
    scores = np.zeros(generation.size, np.float32)
    asked = [word for word in wording.words if not word.is_function_word]
    known = generation.named([f"{field}:{word.spelled}" for word in asked for field in ("defines", "owner")])
    frequencies = generation.document_frequencies({word.whole for word in wording.words})
    unknown = {word for word in asked if not frequencies[word.whole]}
    defined = [each for word in asked if (each := _definers(word, known, word in unknown, generation)) is not None]
    if not defined:
        return scores
    explained = {each.word for each in defined} | {word for word in asked if f"owner:{word.spelled}" in known}
    shares = {
        word: FUNCTION_SHARE if word.is_function_word else UNKNOWN_SHARE if word in unknown - explained else 1.0
        for word in wording.words
    }
    weights = {word: share * _idf(frequencies[word.whole], generation.chunk_count) for word, share in shares.items()}
    return _weighed(defined, known, weights, generation, reach)


def _definers(word: Word, known: Mapping[str, Numbers], is_unknown: bool, generation: Index) -> _Defined | None:
    chunks = known.get(f"defines:{word.spelled}")
    if chunks is not None:
        return _Defined(word, chunks, DEFINED)
    if is_unknown and word.is_name and len(word.spelled) >= MIN_MISSPELLED:
        chunks = generation.named_nearly("defines", word.spelled)
    return _Defined(word, chunks, DEFINED * MISSPELLED) if chunks is not None and len(chunks) else None


def _weighed(
    defined: Sequence[_Defined],
    known: Mapping[str, Numbers],
    weights: Mapping[Word, float],
    generation: Index,
    reach: float,
) -> Scores:
    """Weigh names alone, and with the class, module or package that the query names as well."""
    alone, qualified = np.zeros(generation.size, np.float32), np.zeros(generation.size, np.float32)
    written = generation.named([f"spelled:{each.word.written}" for each in defined])
    whole = math.fsum(weights.values()) or 1.0
    for each in defined:
        word, most = each.word, each.most * (1.0 if each.word.is_name else IN_SENTENCE)
        _raise(alone, each.chunks, most, reach, (weights[word] / whole) ** NAME_POWER)
        for owner, weight in weights.items():
            owned = known.get(f"owner:{owner.spelled}") if owner != word else None
            if owned is not None:
                both = np.intersect1d(each.chunks, owned, assume_unique=True)
                most = each.most * (1.0 if word.is_name or owner.is_name else IN_SENTENCE)
                _raise(qualified, both, most, reach, min(1.0, (weights[word] + weight) / whole) ** QUALIFIED_POWER)
        exactly = written.get(f"spelled:{word.written}", each.chunks[:0])
        other = np.setdiff1d(each.chunks, exactly, assume_unique=True)
        alone[other] *= OTHER_SPELLING
        qualified[other] *= OTHER_SPELLING
    return np.maximum(alone * BESIDE_QUALIFIED if qualified.any() else alone, qualified)


def _saying(wording: Wording, generation: Index, reach: float) -> Scores:
    """Weigh the runs of neighbouring words that each chunk has in common with the query."""
    terms = wording.terms
    frequencies = generation.document_frequencies(set(terms))

    def weight(term: str) -> float:
        value = term in wording.values or not frequencies[term]
        share = FUNCTION_SHARE if term in FUNCTION_TERMS else VALUE_SHARE if value else 1.0
        return share * _idf(frequencies[term], generation.chunk_count)

    weights = [weight(term) for term in terms]
    covered, longest = _runs(terms, weights, generation)
    best, whole = float(covered.max(initial=0)), math.fsum(weights)
    if not best or not whole:
        return covered
    rarity = 1 - math.log(np.count_nonzero(covered >= ALIKE * best)) / reach
    power = RUN_POWER / np.maximum(1, longest / LONG_RUN)
    scores: Scores = (SAID * rarity * np.minimum(covered / whole, 1) ** power).astype(np.float32)
    return scores


def _runs(terms: Sequence[str], weights: Sequence[float], generation: Index) -> tuple[Scores, Scores]:
    """Return the weight of the words that stand in runs in each chunk, longer runs fuller, and of its heaviest run.

    Word pairs have no places in the index: neighbouring pairs that a chunk has are taken for a run, which they nearly
    always are. Between two function words there is no pair, and a run goes on.
    """
    covered, longest, mass, length = np.zeros((4, generation.size), np.float32)
    reached = np.full(generation.size, -1, np.int32)
    pairs = [
        (place, pair_key(pair))
        for place, pair in enumerate(pairwise(terms))
        if pair[0] not in FUNCTION_TERMS or pair[1] not in FUNCTION_TERMS
    ]
    held = generation.paired({key for _, key in pairs})
    for step, (place, key) in enumerate(pairs, 1):
        chunks = held.get(key)
        if chunks is None:
            continue
        broken = chunks[reached[chunks] != step - 1]
        covered[broken] += mass[broken] * (1 - SHORT_RUN ** length[broken])
        longest[broken] = np.maximum(longest[broken], mass[broken])
        length[broken], mass[broken] = 0, weights[place]
        length[chunks] += 1
        mass[chunks] += weights[place + 1]
        reached[chunks] = step
    complete = length == len(pairs)
    covered += mass * (1 - SHORT_RUN ** (length + complete))
    return covered, np.maximum(longest, mass)
