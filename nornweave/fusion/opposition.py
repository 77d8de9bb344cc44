"""Contradictions between sentences: one denies what the other says, or they take opposite sides of one thing.

PIPELINE calls two items opposed when their cosine is below 0.3 though both match the query. Measured on the labelled
pairs that alone is worth nothing (``evals/labelled/README-conflicts.md``): such pairs mostly speak of two things. So
words decide here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nornweave.claims.moods import mood_of
from nornweave.claims.passage import Passage
from nornweave.fusion.agreement import apart_by_words
from nornweave.fusion.assertions import Assertion, assertions_of, marks_of, says_something
from nornweave.fusion.records import Detector

MAX_EXTRA = 4
"""Words that the longer of two opposed clauses may have beyond the shorter one's."""


@dataclass(frozen=True, slots=True)
class Opposition:
    """Two sentences of which at most one is true.

    Attributes:
        subject: stems that both share, sorted.
        confidence: in [0, 1].
    """

    detector: Detector
    subject: tuple[str, ...]
    texts: tuple[str, str]
    confidence: float


def oppositions(passages: Mapping[int, Passage]) -> Iterator[tuple[int, int, Opposition]]:
    """Find contradictions between the sentences of passages of different domains.

    Args:
        passages: by place.

    Returns:
        First place, second place, the surest contradiction of that pair; each pair once, in order.
    """
    domains = {passage.domain for passage in passages.values()}
    if len(domains) < 2 or not any(marks_of(passage.text) for passage in passages.values()):
        return
    said = {place: assertions_of(passage.text, passage.domain == "code") for place, passage in passages.items()}
    holders = _holders(said)
    best: dict[tuple[int, int], Opposition] = {}
    for place, one in ((at, one) for at in sorted(said) for one in said[at] if one.is_marked):
        for other_place, other in _about_the_same(one, holders):
            first, second = sorted((place, other_place))
            if passages[first].domain == passages[second].domain:
                continue
            a, b = (one, other) if first == place else (other, one)
            found = _compare(a, b)
            known = best.get((first, second))
            if found is None or (known and _rank(known) >= _rank(found)) or _agreed(a, b, said[first], said[second]):
                continue
            if _both_stated(found, passages[first], passages[second]):
                best[first, second] = found
    yield from ((*pair, best[pair]) for pair in sorted(best))


def _rank(one: Opposition) -> tuple[float, tuple[str, str]]:
    return one.confidence, one.texts


def _holders(said: Mapping[int, Sequence[Assertion]]) -> Mapping[str, Sequence[tuple[int, Assertion]]]:
    holders: dict[str, list[tuple[int, Assertion]]] = defaultdict(list)
    for place, assertions in said.items():
        for one in assertions:
            for stem in one.specific:
                holders[stem].append((place, one))
    return holders


def _about_the_same(
    one: Assertion, holders: Mapping[str, Sequence[tuple[int, Assertion]]]
) -> Iterator[tuple[int, Assertion]]:
    """Yield the assertions that share a stem of weight, once."""
    seen: set[int] = set()
    for stem in sorted(one.specific):
        for place, other in holders[stem]:
            if id(other) not in seen:
                seen.add(id(other))
                yield place, other


def _compare(a: Assertion, b: Assertion) -> Opposition | None:
    shared = a.stems & b.stems
    if not says_something(shared) and not (a.stems == b.stems and a.sides == b.sides != () and a.specific):
        return None
    missing_a, missing_b = b.stems - a.stems, a.stems - b.stems
    if missing_a and missing_b:  # each has something of its own: two things
        return None
    extra = len(missing_a) + len(missing_b)
    if extra > MAX_EXTRA or a.condition != b.condition or apart_by_words(a.clause, b.clause):
        return None
    detector = _contradiction(a, b)
    if detector is None:
        return None
    specific = len(shared & a.specific)
    confidence = 0.5 + 0.1 * min(specific, 3) + 0.05 * min(len(shared), 4) - 0.06 * extra
    return Opposition(detector, tuple(sorted(shared)), (a.clause, b.clause), round(min(confidence, 0.95), 3))


def _contradiction(a: Assertion, b: Assertion) -> Detector | None:
    """Say how two clauses about one thing contradict each other; two denials of opposites do not."""
    left, right = dict(a.sides), dict(b.sides)
    opposed = [at for at in left.keys() & right.keys() if left[at] != right[at]]
    if opposed:
        return Detector.SEMANTIC_OPPOSITION if a.denies == b.denies and len(opposed) == 1 else None
    if a.denies != b.denies and left == right:
        return Detector.NEGATION
    return None


def _agreed(a: Assertion, b: Assertion, left: Sequence[Assertion], right: Sequence[Assertion]) -> bool:
    """Tell whether another sentence of either side says what the opposite one says."""
    return _repeats(b, left, a) or _repeats(a, right, b)


def _repeats(said: Assertion, among: Sequence[Assertion], apart_from: Assertion) -> bool:
    shared = said.stems & apart_from.stems
    return any(
        one is not apart_from
        and one.denies == said.denies
        and one.sides == said.sides
        and len(one.stems & said.stems) >= len(shared)
        for one in among
    )


def _both_stated(found: Opposition, a: Passage, b: Passage) -> bool:
    return all(_is_stated(text, passage) for text, passage in zip(found.texts, (a, b), strict=True))


def _is_stated(text: str, passage: Passage) -> bool:
    # "no longer" tells of the past by what holds now.
    return mood_of(text.replace("no longer", "not"), passage) == "stated"
