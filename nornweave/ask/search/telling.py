"""Find the setting that a question describes: who does not know what it is called asks with other words than its name.

A chunk states many settings, and its vector is of all of them. Here each setting of the nearest chunks is compared
alone: its name, what it belongs to, and the words that describe it, by their meaning and by the words of the question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from nornweave.ask.search.exact import ASKS_FOR_VALUE, ASKS_VALUE, ASKS_WHERE, LEAST, MEANS_DEFAULT, kinds_asked
from nornweave.ask.search.query import FLAG, Query, TermStatistics
from nornweave.core.text.analyzer import FUNCTION_TERMS, sequence
from nornweave.core.text.index_fields import is_aside, is_identifier, release_of
from nornweave.core.types import Fact
from nornweave.disagree.facts.statement import described
from nornweave.index.index import Index
from nornweave.index.port import Numbers, Scores
from nornweave.models.encoders.tokens import EncodedQuery

NEAR = 16
"""Chunks of each retriever whose settings are looked at."""
MOST, BY_WORDS = 5, 3
"""Settings that are encoded, some milliseconds each; so many of them because they share most words with the question.

The others are the first of the nearest chunks. Where 24 were encoded, no question found more.
"""
OTHER_UNIT = 0.85
"""Share for a time where something is counted, and for what says no time where one asks how long."""
WORDS_SHARE = 0.5
"""What the words of the question count that a setting is described with, beside its meaning."""
WORDS_POWER = 2.5
"""How fast what words alone tell falls with the share of the question that they are."""
CHANCE, CERTAIN = 0.2, 0.9
"""Both together: what any setting has, and what leaves no doubt."""
_DESCRIPTION = 300
_TIMED = re.compile(
    r"\bhow (?:long|often|soon|late|old|frequently)\b|\b(?:milli)?seconds?\b|\b(?:minute|hour|day|week|month|year)s?\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\bhow (?:big|deep|far|few|high|large|many|much|small|wide)\b|\bwhat (?:port|size)\b", re.IGNORECASE
)
_MARKS = re.compile(r"[^\w'-]+|(?<=[a-z])(?=[A-Z])|_+")
_ASKS = frozenset(sequence(" ".join((*ASKS_FOR_VALUE, "long many much often use used"))))


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """How well a setting of each chunk fits the question.

    Attributes:
        scores: one per chunk, in [0, 1].
        facts: chunk → the fact that fits best.
    """

    scores: Scores
    facts: Mapping[int, Fact]


def tell(
    query: Query,
    encoded: EncodedQuery,
    statistics: TermStatistics,
    generation: Index,
    near: Sequence[Numbers],
    encode: Callable[[str], Future[EncodedQuery]],
    left_s: float | None = None,
) -> Told | None:
    """Weigh the settings of chunks by how well they are what a question asks the value of.

    Meaning is compared where the encoder is that of this process, which has the vectors of tokens: another machine's is
    not asked so often.

    Args:
        near: what each retriever found, best first.
        left_s: how long is waited for the encoder.

    Returns:
        ``None`` where the question asks for no value, or calls a thing by a name.

    Raises:
        EncoderError: the encoder fails.
        TimeoutError: it has not answered in time.
    """
    is_named = any(is_identifier(word.written) or word.whole in ASKS_WHERE for word in query.words)
    if is_named or not ASKS_VALUE.search(query.text) or FLAG.search(query.text):
        return None
    words = dict.fromkeys(sequence(MEANS_DEFAULT.sub("", query.text)))
    weights = {term: statistics.idf[term] for term in words if term in statistics.idf}
    weights = {term: weight for term, weight in weights.items() if term not in FUNCTION_TERMS | _ASKS}
    whole, kinds = math.fsum(weights.values()) or 1.0, kinds_asked(query.text)
    is_timed, is_counted = (bool(asks.search(query.text)) for asks in (_TIMED, _COUNTED))
    numbers = dict.fromkeys(number for found in near for number in found[:NEAR].tolist())
    settings: dict[str, tuple[float, float, list[tuple[int, Fact]]]] = {}
    for number, chunk in generation.chunks(np.array([*numbers], np.int32)).items():
        if is_aside(chunk.path) or release_of(chunk.path, chunk.title, chunk.section):
            continue
        for fact, (first, last) in described(chunk.facts, chunk.content, chunk.char_range[0]):
            if fact.kind in kinds:
                said = f"{fact.name} {fact.owner} {chunk.content[first:last]}"[:_DESCRIPTION]
                text = " ".join(_MARKS.sub(" ", said).split())
                held = math.fsum(weights[term] for term in weights.keys() & {*sequence(text)}) / whole
                is_time = fact.unit == "s" or _TIMED.search(said) is not None
                share = OTHER_UNIT if is_time != is_timed and (is_timed or is_counted) else 1.0
                settings.setdefault(text, (held, share, []))[2].append((number, fact))
    saying = sorted((text for text in settings if settings[text][0]), key=lambda text: -settings[text][0])
    chosen = [*dict.fromkeys((*saying[:BY_WORDS], *settings))][:MOST]
    scores, facts = np.zeros(generation.size, np.float32), dict[int, Fact]()
    begun = [(text, None if encoded.tokens is None else encode(text)) for text in chosen]
    for text, future in begun:
        held, share, places = settings[text]
        if future is None:
            score = share * held**WORDS_POWER
        else:
            like = share * (float(np.dot(encoded.vector, future.result(left_s).vector)) + WORDS_SHARE * held)
            score = min(max((like - CHANCE) / (CERTAIN - CHANCE), 0.0), 1.0)
        for number, fact in places:
            if score > max(scores[number], LEAST):
                scores[number], facts[number] = score, fact
    return Told(scores, facts) if facts else None
