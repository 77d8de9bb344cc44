"""Find the assertions of two domains that are about the same and differ in exactly one thing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import combinations, product

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact, Side, Span, ValueKind
from nornweave.disagree.assertions.reading import THERE, Assertion, read, remembered_text
from nornweave.disagree.conflicts.records import PLACE_WORDS, FactConflict, LocatedFact
from nornweave.disagree.facts.names import singular, words_of

CONFIDENCE = 0.7
"""Of every such conflict: it is shown and listed, and settles nothing (docs/decisions/0033-assertions.md)."""
LEAST_WORDS, LEAST_UNNAMED = 2, 5
"""Words that two assertions have in common: if one of them is a name, and if none is."""
MAX_ALIKE = 200
"""Assertions of the same words, or of one name: more are boilerplate."""
MOST_MORE = 2
"""Words that one statement of a thing's presence may have beside those of the other: ``the gateway supports OAuth``."""
_WORD = lazy_pattern(r"\w{3,}")
HEAD = 5
"""Letters by which a sentence is looked up before it is read: stems differ in their ends."""
_SIDES: Mapping[str, Side] = {
    "code": "code",
    "documentation": "documentation",
    "conversations": "conversation",
    "research": "research",
}
_ORDER = tuple(_SIDES)


@dataclass(frozen=True, kw_only=True)
class AssertingPassage:
    """A passage whose sentences are compared with those of other domains.

    Attributes:
        place: tells the passage from others: of an answer its number, of a corpus its chunk.
        start: character of its document where ``text`` begins; ``line`` its line there, from 0, where it has lines.
    """

    text: str
    domain: str
    source_id: str
    path: str
    place: str
    start: int = 0
    line: int | None = None
    section: str | None = None
    title: str | None = None
    updated_at: datetime | None = None
    revision: str | None = None

    @cached_property
    def file(self) -> frozenset[str]:
        """The words of its file's name that tell it from others."""
        return frozenset(map(singular, words_of(self.path.rpartition("/")[2].partition(".")[0]))) - PLACE_WORDS

    @cached_property
    def topic(self) -> frozenset[str]:
        """The words of its symbol or last heading."""
        return frozenset(map(singular, words_of(self.title or (self.section or "").rpartition(">")[2]))) - PLACE_WORDS

    def is_about(self, other: AssertingPassage) -> bool:
        """Tell whether both are about one file or one symbol of a program, which the other has as its heading."""
        if self.file and self.file == other.file:
            return True
        return bool(self.topic) and self.topic == other.topic and "code" in {self.domain, other.domain}


def find_contradictions(passages: Sequence[AssertingPassage]) -> list[FactConflict]:
    """Return the sentences of two domains that differ in nothing but a denial, a status or a date.

    They are about the same thing: they name it, or their passages have one symbol, heading or file name.

    Returns:
        At most one for each sentence and other passage, in order.
    """
    if len({passage.domain for passage in passages}) < 2:
        return []
    groups: dict[frozenset[str], list[tuple[int, Assertion]]] = defaultdict(list)
    for place, assertion in _read_all(passages):
        groups[assertion.about].append((place, assertion))
        if THERE in assertion.about:
            for name in assertion.names:
                groups[frozenset((name, THERE))].append((place, assertion))
    conflicts: dict[tuple[int, int, int], FactConflict] = {}
    for alike in groups.values():
        said: dict[int, list[Assertion]] = defaultdict(list)
        for place, assertion in alike:
            said[place].append(assertion)
        if 1 < len(said) <= MAX_ALIKE:
            for one, other in combinations(sorted(said), 2):
                conflict = _contradiction(passages[one], said[one], passages[other], said[other])
                if conflict is not None:
                    conflicts.setdefault((one, other, conflict.first.fact.span.start), conflict)
    return [conflicts[key] for key in sorted(conflicts)]


def _read_all(passages: Sequence[AssertingPassage]) -> Iterator[tuple[int, Assertion]]:
    """Read the sentences that may contradict others: those that deny, answer or date, then those that one may deny."""
    plain: list[tuple[int, int, str]] = []
    denied: dict[str, set[str]] = defaultdict(set)
    for place, passage in enumerate(passages):
        asserted, others = remembered_text(passage.text, code=passage.domain == "code")
        plain += [(place, start, sentence) for start, sentence in others]
        for assertion in asserted:
            if _is_told(assertion, passage):
                yield place, assertion
                if assertion.denied and THERE not in assertion.about:
                    longest = sorted(assertion.about, key=len)[-2:]
                    denied[longest[-1][:HEAD]].add(longest[0][:HEAD])
    for place, start, sentence in plain if denied else ():
        heads = {word[:HEAD] for word in _WORD.findall(sentence.lower())}
        if any(not heads.isdisjoint(denied[head]) for head in heads & denied.keys()):
            positive = read(sentence, start)
            if positive is not None and _is_told(positive, passages[place]):
                yield place, positive


def _is_told(assertion: Assertion, passage: AssertingPassage) -> bool:
    """Tell whether it is known what an assertion is about."""
    return _is_telling(assertion, assertion) or (bool(assertion.about) and bool(passage.file or passage.topic))


def _is_telling(one: Assertion, other: Assertion) -> bool:
    """Tell whether the words that two assertions share say what they are about."""
    return len(one.about & other.about) >= (LEAST_WORDS if one.names & other.names else LEAST_UNNAMED)


def _contradiction(
    one: AssertingPassage, said: Sequence[Assertion], other: AssertingPassage, said_there: Sequence[Assertion]
) -> FactConflict | None:
    """Return the conflict of two passages that say something in the same words."""
    if one.domain == other.domain or {_sense(each) for each in said} & {_sense(each) for each in said_there}:
        return None
    for mine, theirs in product(said, said_there):
        attribute = _difference(mine, theirs)
        if attribute is not None and (_is_telling(mine, theirs) or one.is_about(other)):
            sides = sorted(((one, mine), (other, theirs)), key=lambda side: _ORDER.index(side[0].domain))
            first, second = (_located(passage, assertion, attribute) for passage, assertion in sides)
            said_by = "; ".join(f"{side.path} says “{side.fact.statement}”" for side in (second, first))
            name = first.fact.name
            return FactConflict(first=first, second=second, confidence=CONFIDENCE, name=name, attribute=attribute,
                                explanation=f"{name}: {said_by}")  # fmt: skip
    return None


def _sense(one: Assertion) -> tuple[object, ...]:
    return one.denied, one.statuses, one.figures, one.moments


def _difference(one: Assertion, other: Assertion) -> Attribute | None:
    """Return what two assertions about the same differ in, if it is one thing that both state."""
    more = one.about ^ other.about
    if one.figures != other.figures or (more and (len(more) > MOST_MORE or THERE not in one.about & other.about)):
        return None
    if not (one.about <= other.about or other.about <= one.about):
        return None
    found: list[Attribute] = []
    if one.denied != other.denied:
        found.append("holds")
    if one.statuses != other.statuses:
        if len(one.statuses) != 1 or len(other.statuses) != 1 or one.statuses[0][0] != other.statuses[0][0]:
            return None
        found.append("status")
    if one.moments != other.moments:
        if (
            len(one.moments) != 1
            or len(other.moments) != 1
            or not _other_time(dict(*one.moments), dict(*other.moments))
        ):
            return None
        found.append("date")
    return found[0] if len(found) == 1 else None


def _other_time(one: dict[str, str], other: dict[str, str]) -> bool:
    """Tell whether two dates differ in a part that both have."""
    return any(one[part] != other[part] for part in one.keys() & other.keys())


def _value(assertion: Assertion, attribute: Attribute) -> tuple[ValueKind, str]:
    if attribute == "holds":
        return "boolean", "true"
    if attribute == "status":
        return "status", assertion.statuses[0]
    return "string", " ".join(f"{part} {text}" for part, text in sorted(assertion.moments[0]))


def _located(passage: AssertingPassage, assertion: Assertion, attribute: Attribute) -> LocatedFact:
    start, end = assertion.span.start, assertion.span.end
    statement = " ".join(passage.text[start:end].split())
    line = (passage.line or 0) + passage.text.count("\n", 0, start)
    kind, value = _value(assertion, attribute)
    fact = Fact(
        name=assertion.subject.lower() or " ".join(sorted(passage.topic or passage.file)),
        owner="", attribute=attribute, kind=kind, value=value, side=_SIDES[passage.domain], form="sentence",
        negated=attribute == "holds" and assertion.denied,
        span=Span(passage.start + start, passage.start + end), line=line, statement=statement,
    )  # fmt: skip
    return LocatedFact(
        fact=fact, domain=passage.domain, source_id=passage.source_id, path=passage.path, section=passage.section,
        title=passage.title, updated_at=passage.updated_at, revision=passage.revision, chunk_id=passage.place,
        line_range=None if passage.line is None else (line + 1, line + 1),
    )  # fmt: skip
