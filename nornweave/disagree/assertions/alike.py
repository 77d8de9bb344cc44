"""Find sentences of two domains that say the same in other words, with another value.

The question's words are not needed: the two sentences are compared with each other. Words choose a few pairs, the
vectors of their sentences decide whether both are about one thing and about what was asked, and the words that a pair
shares tell what it is about (docs/decisions/0033-assertions.md).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.assertions import forms
from nornweave.disagree.assertions.answers import Setting, settings_of
from nornweave.disagree.assertions.passage import AssertingPassage
from nornweave.disagree.assertions.reading import NO_PROSE, stems

SentenceEncoder: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""Returns the unit vectors of sentences, one row each."""

PAIRS = 6
"""Pairs that are compared by their vectors: of 31 disagreements their words chose 26."""
ALIKE, ALIKE_IN_CORPORA = 0.47, 0.55
"""Cosine from which two sentences are about one thing; where no question was asked, every sentence meets thousands."""
PAIRS_OF_CORPORA, MOST_HOLDERS = 2_500, 25
"""Pairs of corpora that are compared; statements that share a word: a word of more tells too little."""
ASKED_ABOUT, AS_NEAR, ANSWERING = 0.28, 0.55, 0.5
"""Cosine of a sentence and the question, and its share of the cosine of the sentence that is closest to it; cosine from
which two sentences that answer the question need not be alike."""
ELSEWHERE = 0.625
"""Share of the cosine of two sentences that their cosine with the question has at least, if they say words of it."""
LEAST_STEMS = 2
_HEADING = lazy_pattern(r"\s*\d+(?:\.\d+)*\.? [A-Z][^.!?:]{0,60}")


class Statement(NamedTuple):
    """A sentence, or a line that sets something.

    Attributes:
        number: the index of its passage.
        before: the sentence before it.
        own: its stems.
        words: its stems and those of its passage's topic.
        told: the text to encode.
        setting: the setting in the line; ``None`` for a sentence.
    """

    number: int
    text: str
    start: int
    before: str
    own: frozenset[str]
    words: frozenset[str]
    told: str
    setting: Setting | None = None


class AlikePair(NamedTuple):
    """Two statements that are from different domains."""

    one: Statement
    other: Statement

    @property
    def shared(self) -> frozenset[str]:
        """The stems that both statements have."""
        return self.one.words & self.other.words


def _statements(passages: Sequence[AssertingPassage]) -> Iterator[Statement]:
    """Yield the statements of all passages, except for changelogs and sections of releases."""
    for number, passage in enumerate(passages):
        if not passage.is_history:
            yield from statements_of(number, passage)


def statements_of(number: int, passage: AssertingPassage) -> Iterator[Statement]:
    """Yield the sentences of a passage that are long enough to state something, and the settings of a program."""
    before = ""
    for said in passage.sentences:
        is_prose = not NO_PROSE.search(said.text) and not _HEADING.fullmatch(said.text)
        if is_prose and len(said.stems) >= LEAST_STEMS and said.text.count(" ") >= LEAST_STEMS:
            told = " ".join(said.text.split())
            yield Statement(number, said.text, said.start, before, said.stems, said.stems | passage.topic, told)
        before = said.text
    if passage.sets_values:
        topic = passage.topic_of_settings
        for setting in settings_of(passage.text, with_words=passage.is_configuration):
            own = stems(" ".join(setting.words))
            told = " ".join(f"{setting.section} {setting.above} {setting.line}".split())
            yield Statement(number, setting.line, setting.start, "", own, own | topic, told, setting)


def choose_pairs(question: str, passages: Sequence[AssertingPassage]) -> list[AlikePair]:
    """Return the pairs of statements of two domains that are most likely about the same thing and about the question.

    Rare words that both statements have count most, then the ranks of their passages, then words of the question.
    """
    held = list(_statements(passages))
    holders = Counter(stem for each in held for stem in each.words)
    column = {stem: number for number, stem in enumerate(sorted(holders))}  # sums depend on the order
    said = np.zeros((len(held), len(column)), np.float32)
    for row, each in zip(said, held, strict=True):
        row[[column[stem] for stem in each.words]] = 1
    rarity = np.log1p(len(held) / np.array([holders[stem] for stem in column], np.float32))
    is_common = np.array([stem in forms.COMMON for stem in column], bool)
    weights = np.where(is_common, forms.COMMON_WEIGHT, 1.0) * rarity
    weighed = said * weights @ said.T
    whole = np.sqrt(np.diag(weighed))
    asked = stems(question)
    near = np.array(
        [0.8 / (2 + each.number) + 0.25 * len(each.words & asked) / max(1, len(asked))
         for each in held], np.float32,
    )  # fmt: skip
    domains = np.array([passages[each.number].domain for each in held])
    share = weighed / np.maximum(np.outer(whole, whole), 1e-9) + near[:, None] + near
    is_pair = (domains[:, None] != domains) & (said * ~is_common @ said.T > 0)
    share[~np.triu(is_pair, 1)] = -1
    best = np.argsort(-share, axis=None, kind="stable")[:PAIRS]
    places = (np.unravel_index(each, share.shape) for each in best if share.flat[each] > 0)
    return [AlikePair(held[one], held[other]) for one, other in places]


def choose_pairs_of_corpora(passages: Sequence[AssertingPassage]) -> list[AlikePair]:
    """Return the pairs of statements of two domains that have the largest part of their rare words in common."""
    held = list(_statements(passages))
    holders: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(held):
        for stem in each.words - forms.COMMON:
            holders[stem].append(number)
    rarity = {stem: math.log1p(len(held) / len(numbers)) for stem, numbers in holders.items()}
    whole = [math.sqrt(math.fsum(rarity.get(stem, 0.0) for stem in each.words)) for each in held]
    shares: dict[tuple[int, int], float] = defaultdict(float)
    for stem, numbers in sorted(holders.items()):
        for one, other in combinations(numbers, 2) if len(numbers) <= MOST_HOLDERS else ():
            if passages[held[one].number].domain != passages[held[other].number].domain:
                shares[one, other] += rarity[stem] / (whole[one] * whole[other])
    return [
        AlikePair(held[one], held[other])
        for one, other in sorted(shares, key=lambda pair: (-shares[pair], pair))[:PAIRS_OF_CORPORA]
    ]


def cosines(texts: Sequence[tuple[str, str]], encode: SentenceEncoder) -> list[float]:
    """Return for each pair of texts how alike the two are, as the cosine of their vectors."""
    told = list(dict.fromkeys(chain.from_iterable(texts)))
    row = dict(zip(told, encode(told), strict=True)) if told else {}
    return [float(row[one] @ row[other]) for one, other in texts]


def alike_pairs(
    question: str, pairs: Sequence[AlikePair], encode: SentenceEncoder
) -> list[tuple[AlikePair, bool, bool]]:
    """Return the pairs that are near to the question, the most alike first.

    The second value of an item tells whether the two sentences are alike enough to be about the same thing, the third
    one whether this is what the question asks about, and not only a thing that the question names.
    """
    told = list(dict.fromkeys(each.told for pair in pairs for each in (pair.one, pair.other)))
    vectors = encode([question, *told])
    row = {text: vectors[number] for number, text in enumerate(told, start=1)}
    asked_about = {text: float(vector @ vectors[0]) for text, vector in row.items()}
    least = max(ASKED_ABOUT, AS_NEAR * max(asked_about.values(), default=0.0))
    alike = [(float(row[pair.one.told] @ row[pair.other.told]), pair) for pair in pairs]
    near = {pair: sorted((asked_about[pair.one.told], asked_about[pair.other.told])) for pair in pairs}
    asked = stems(question)
    return [
        (pair, cosine >= ALIKE, asked.isdisjoint(pair.shared) or sum(near[pair]) >= 2 * ELSEWHERE * cosine)
        for cosine, pair in sorted(alike, key=lambda each: -each[0])
        if near[pair][0] >= least and (cosine >= ALIKE or near[pair][0] >= ANSWERING)
    ]
