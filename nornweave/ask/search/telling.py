"""Find the setting that a question describes: who does not know what it is called asks with other words than its name.

A chunk states many settings, and its vector is of all of them. Here each setting of the nearest chunks is compared
alone: its name, what it belongs to, and the words that describe it, by their meaning and by the words of the question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nornweave.ask.search.exact import ASKS_FOR_VALUE, ASKS_VALUE, ASKS_WHERE, LEAST, MEANS_DEFAULT, kinds_asked
from nornweave.ask.search.query import FLAG, Query, TermStatistics
from nornweave.core.text.analyzer import FUNCTION_TERMS, sequence
from nornweave.core.text.index_fields import is_aside, is_data, is_identifier, release_of
from nornweave.core.types import Fact
from nornweave.disagree.facts.statement import settings_in
from nornweave.index.index import Index
from nornweave.index.port import Numbers, Scores
from nornweave.index.records import StoredChunk
from nornweave.models.encoders.port import EncodedQuery

NEAR = 16
"""Chunks of each retriever whose settings are looked at."""
MOST = 12
"""Settings whose words are compared, those that mean most nearly what is asked; reading words takes the time."""
OTHER_UNIT = 0.85
"""Share for a time where something is counted, and for what says no time where one asks how long."""
WORDS_SHARE = 0.5
"""What the words of the question count that a setting is described with, beside its meaning."""
WORDS_POWER = 2.5
"""How fast what words alone tell falls with the share of the question that they are."""
TEXT_SAID = 0.5
"""The share of the question that words of a text setting say, unless a default is asked for. A number is of the kind
that is asked for; a text may be anything."""
BY_WORDS = 3
"""Chunks that full text search finds, of which one may hold all words of the question."""
HOLDING, HELD_LESS = 0.7, 0.2
"""Share of the question's words that a chunk holds that is about what is asked; a chunk that holds so much less than
such a one states the setting of another thing."""
CHANCE, CERTAIN = 0.2, 0.9
"""Both together: what any setting has, and what leaves no doubt."""
PARTS = 20
"""A file of values in more passages than these holds records, and configures nothing."""
_TIMED = re.compile(
    r"\bhow (?:long|often|soon|late|old|frequently)\b|\b(?:milli)?seconds?\b|\b(?:minute|hour|day|week|month|year)s?\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\bhow (?:big|deep|far|few|high|large|many|much|small|wide)\b|\bwhat (?:port|size)\b", re.IGNORECASE
)
_ASKS = frozenset(sequence(" ".join((*ASKS_FOR_VALUE, "long many much often use used"))))


_MEASURED = frozenset(sequence("maximum minimum number amount size limit limits quota value per type"))
"""Terms that say which value of a thing is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """How well a setting of each chunk fits the question.

    Attributes:
        scores: one per chunk, in [0, 1].
        facts: chunk → the fact that fits best.
    """

    scores: Scores
    facts: Mapping[int, Fact]


def _terms_of(chunk: StoredChunk) -> frozenset[str]:
    return frozenset(sequence(f"{chunk.path} {chunk.title or ''} {chunk.section or ''} {chunk.content}"))


def tell(
    query: Query,
    encoded: EncodedQuery,
    statistics: TermStatistics,
    generation: Index,
    near: Sequence[Numbers],
    by_words: Numbers,
) -> Told | None:
    """Return how well each chunk's settings fit the setting whose value a question asks for.

    Meaning is compared if the generation has vectors of the descriptions of settings.

    Args:
        encoded: the query, encoded by the encoder of the generation.
        near: the chunks that each retriever found, best first.
        by_words: the best chunks of full text search.

    Returns:
        ``None`` if the question asks for no value, if it calls a thing by its name, or if no setting fits.
    """
    is_named = any(is_identifier(word.written) or word.whole in ASKS_WHERE for word in query.words)
    if is_named or not ASKS_VALUE.search(query.text) or FLAG.search(query.text):
        return None
    words = dict.fromkeys(sequence(MEANS_DEFAULT.sub("", query.text)))
    weights = {term: statistics.idf[term] for term in words if term in statistics.idf}
    weights = {term: weight for term, weight in weights.items() if term not in FUNCTION_TERMS | _ASKS}
    whole, kinds = math.fsum(weights.values()) or 1.0, kinds_asked(query.text)
    is_timed, is_counted = (bool(asks.search(query.text)) for asks in (_TIMED, _COUNTED))
    asks_default = bool(MEANS_DEFAULT.search(query.text)) or "default" in query.text.lower()
    numbers = dict.fromkeys(number for found in near for number in found[:NEAR].tolist())
    alike = generation.setting_similarities(encoded.vector, np.array([*numbers], np.int32))
    nearest = sorted((-like, number, place) for number, own in alike.items() for place, like in own.items())[:MOST]
    chosen = {(number, place): -like for like, number, place in nearest}
    read = np.unique(np.array([number for number, _ in chosen] or [*numbers], np.int32))
    told: dict[int, tuple[float, Fact]] = {}
    chunks = generation.chunks(np.union1d(read, by_words))
    things = weights.keys() - _MEASURED
    named = math.fsum(weights[term] for term in things) or 1.0

    def held_by(number: int) -> float:
        """Return the share of the things that a question names which a chunk holds."""
        return math.fsum(weights[term] for term in things & _terms_of(chunks[number])) / named

    most = max((held_by(number) for number in by_words.tolist() if number in chunks), default=0.0)
    for number in [number for number in read.tolist() if number in chunks]:  # others are hidden from who asks
        chunk = chunks[number]
        if most >= HOLDING and held_by(number) < most - HELD_LESS:
            continue
        is_records = is_data(chunk.path) and generation.named([key := f"path:{chunk.path.lower()}"])[key].size > PARTS
        if is_aside(chunk.path) or is_records or release_of(chunk.path, chunk.title, chunk.section, chunk.metadata):
            continue
        for place, said in settings_in(chunk.facts, chunk.content, chunk.char_range[0]):
            fact, like = chunk.facts[place], chosen.get((number, place))
            if fact.kind not in kinds or (chosen and like is None):
                continue
            held = math.fsum(weights[term] for term in weights.keys() & {*sequence(said)}) / whole
            is_meant = asks_default and fact.attribute == "default"
            if fact.kind == "string" and held < TEXT_SAID and not is_meant:
                continue
            is_time = fact.unit == "s" or _TIMED.search(said) is not None
            share = OTHER_UNIT if is_time != is_timed and (is_timed or is_counted) else 1.0
            if like is None:
                score = share * held**WORDS_POWER
            else:
                score = (share * (like + WORDS_SHARE * held) - CHANCE) / (CERTAIN - CHANCE)
            if score > max(LEAST, told.get(number, (0.0,))[0]):
                told[number] = min(score, 1.0), fact
    if not told:
        return None
    scores = np.zeros(generation.size, np.float32)
    scores[[*told]] = [score for score, _ in told.values()]
    return Told(scores, {number: fact for number, (_, fact) in told.items()})
