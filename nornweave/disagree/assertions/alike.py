"""Find sentences of two domains that say the same in other words, with another value.

The question's words are not needed: the two sentences are compared with each other. Words choose a few pairs, the
vectors of their sentences decide whether both are about one thing and about what was asked, and the words that a pair
shares tell what it is about (docs/decisions/0033-assertions.md).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.assertions import forms
from nornweave.disagree.assertions.asked import SETTING
from nornweave.disagree.assertions.passage import AssertingPassage, stems_of_name
from nornweave.disagree.assertions.reading import NO_PROSE, stems
from nornweave.disagree.facts.names import words_of

SentenceEncoder: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""Returns the unit vectors of sentences, one row each."""

PAIRS = 6
"""Pairs that are compared by their vectors: of 31 disagreements their words chose 26."""
ALIKE, WHOLLY_ALIKE = 0.47, 0.54
"""Cosine from which two sentences are about one thing; from which a phrase of one side alone does not narrow it."""
ASKED_ABOUT, AS_NEAR = 0.28, 0.5
"""Cosine of a sentence and the question, and its share of the cosine of the sentence that is closest to it."""
LEAST_STEMS = 2
_SECTION = lazy_pattern(r"^[ \t]*\[+([^\]\n]+)\]|^([ \t]*)([\w.-]+):[ \t]*$", re.MULTILINE)


class Statement(NamedTuple):
    """A sentence, or a line that sets something.

    Attributes:
        number: the index of its passage.
        words: its stems and those of its passage's topic.
        told: what is encoded: the text, behind what it refers to.
    """

    number: int
    text: str
    start: int
    before: str
    words: frozenset[str]
    told: str
    is_setting: bool


class AlikePair(NamedTuple):
    """Two statements of two domains, and what they are about: the stems that both have."""

    one: Statement
    other: Statement
    shared: frozenset[str]


def statements_of(number: int, passage: AssertingPassage) -> Iterator[Statement]:
    """Yield the sentences of a passage that may answer something; of a program its settings too."""
    before = ""
    for said in passage.sentences:
        if len(said.stems) >= LEAST_STEMS and not NO_PROSE.search(said.text):
            refers = said.text.split(maxsplit=1)[0].lower() in forms.PRONOUNS
            told = f"{before} {said.text}" if refers else said.text
            yield Statement(
                number, said.text, said.start, before, said.stems | passage.topic, " ".join(told.split()), False
            )
        before = said.text
    if passage.sets_values:
        topic = passage.topic | stems_of_name(passage.path.replace("/", " "))
        for found in SETTING.finditer(passage.text):
            begin = passage.text.rfind("\n", 0, found.start()) + 1
            line = passage.text[begin:].partition("\n")[0]
            owner = _section_of(passage.text, begin)
            words = stems(" ".join(words_of(f"{owner} {found['name']}"))) | topic
            yield Statement(number, line, begin, owner, words, " ".join(f"{owner} {line}".split()), True)


def _section_of(text: str, at: int) -> str:
    """Return the section or the parent key of a line in a configuration file; empty if it has none."""
    indent = len(text[at:]) - len(text[at:].lstrip(" \t"))
    found = [each for each in _SECTION.finditer(text, 0, at) if each[1] or len(each[2]) < indent]
    return (found[-1][1] or found[-1][3]).replace("_", " ") if found else ""


def choose_pairs(question: str, passages: Sequence[AssertingPassage]) -> list[AlikePair]:
    """Return the pairs of statements of two domains that most likely are about one thing, and about the question.

    Rare words that both have count most, then how high their passages rank, then the question's words.
    """
    held = [each for number, passage in enumerate(passages) if not passage.is_history
            for each in statements_of(number, passage)]  # fmt: skip
    holders = Counter(stem for each in held for stem in each.words)
    weights = {stem: math.log(1 + len(held) / count) * (0.3 if stem in forms.COMMON else 1.0)
               for stem, count in holders.items()}  # fmt: skip
    asked = stems(question)
    weighed: list[tuple[float, AlikePair]] = []
    for one, other in combinations(held, 2):
        shared = one.words & other.words
        if passages[one.number].domain == passages[other.number].domain or not shared - forms.COMMON:
            continue
        sides = (one, other)
        whole = math.prod(_weigh(each.words, weights) for each in sides) ** 0.5
        rank = sum(1 / (2 + int(passages[each.number].place)) for each in sides)
        said = sum(len(each.words & asked) for each in sides) / (2 * max(1, len(asked)))
        weighed.append((_weigh(shared, weights) / whole + 0.8 * rank + 0.5 * said, AlikePair(one, other, shared)))
    weighed.sort(key=lambda each: -each[0])
    return [pair for _, pair in weighed[:PAIRS]]


def _weigh(words: Iterable[str], weights: Mapping[str, float]) -> float:
    return sum(weights[each] for each in words)


def weigh_pairs(question: str, pairs: Sequence[AlikePair], encode: SentenceEncoder) -> list[tuple[AlikePair, float]]:
    """Return the pairs whose sentences are alike and are about what was asked, with their cosine, the closest first."""
    told = list(dict.fromkeys(each.told for pair in pairs for each in (pair.one, pair.other)))
    vectors = encode([question, *told])
    row = {text: vectors[number] for number, text in enumerate(told, start=1)}
    asked_about = {text: float(vector @ vectors[0]) for text, vector in row.items()}
    least = max(ASKED_ABOUT, AS_NEAR * max(asked_about.values(), default=0.0))
    alike = [(float(row[pair.one.told] @ row[pair.other.told]), pair) for pair in pairs]
    return [
        (pair, cosine)
        for cosine, pair in sorted(alike, key=lambda each: -each[0])
        if cosine >= ALIKE and min(asked_about[pair.one.told], asked_about[pair.other.told]) >= least
    ]
