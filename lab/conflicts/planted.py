"""Planted drift: a documented value is altered, one at a time and in memory, to see whether an alarm comes up there."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lab.conflicts.documented import KINDS, Documented, canonical, documented
from lab.conflicts.repositories import Repository, all_facts, facts_of, manifests, texts
from lab.conflicts.shares import Share
from nornweave.disagree.conflicts import MIN_CONFIDENCE, FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.conflicts.comparable import outcome
from nornweave.disagree.conflicts.join import pairs
from nornweave.disagree.drift.files import SourceFile
from nornweave.disagree.drift.kinds import kind_of
from nornweave.disagree.facts.comparison import FactComparison

Reason = Literal[
    "found", "page not read", "code not read", "not joined", "value not told apart", "settled", "not confident"
]

_TIMES = (2.0, 0.5, 3.0, 10.0)
_SWITCHED = {"true": "false", "false": "true", "on": "off", "off": "on", "enabled": "disabled", "disabled": "enabled"}


@dataclass(frozen=True, slots=True)
class Planted:
    """A documented value that was altered.

    Attributes:
        altered: what stands there instead of ``documented.literal``.
        reason: ``found``, or where it was lost: no new fact at the place on the page, no fact at the place in the code,
            no common key or property, values that were not found to differ, another place that agrees, too little
            confidence.
    """

    repository: str
    documented: Documented
    altered: str
    reason: Reason
    confidence: float = 0.0

    @property
    def is_found(self) -> bool:
        """Tell whether there is an alarm that was not there before."""
        return self.reason == "found"


def plant(repository: Repository, *, seed: int, each: int) -> Iterator[Planted]:
    """Alter up to ``each`` documented values of a repository, one at a time, and look for the alarm."""
    files = list(texts(repository.root))
    contents = {path: text for path, _, text in files}
    chooser = random.Random(f"{seed} {repository.name}")  # noqa: S311
    values = list(documented(files, manifests(repository.root)))
    strings = sorted({one.literal[1:-1] for one in values if one.kind == "string"})
    facts = all_facts(repository)
    before = {_key(one) for one in find_conflicts(_all(facts), min_confidence=0.0)}
    for one in choose(values, each, chooser):
        literal = alter(one, chooser, strings)
        kind = kind_of(one.path)
        if literal is None:
            continue
        changed = replaced(contents[one.path], one, literal)
        read = facts_of(repository, SourceFile(one.path, kind), changed.encode()) if kind else ()
        yield _look(repository.name, one, literal, changed, {**facts, one.path: read}, facts, before)


def choose(values: Iterable[Documented], each: int, chooser: random.Random) -> list[Documented]:
    """Choose values of different names, by turns from each kind, at random within it."""
    by_kind: dict[str, list[Documented]] = defaultdict(list)
    for one in values:
        by_kind[one.kind].append(one)
    for kind in KINDS:
        chooser.shuffle(by_kind[kind])
    chosen: dict[str, Documented] = {}
    while len(chosen) < each and any(by_kind.values()):
        for kind in KINDS:
            while by_kind[kind] and by_kind[kind][-1].name in chosen:
                by_kind[kind].pop()
            if by_kind[kind] and len(chosen) < each:
                one = by_kind[kind].pop()
                chosen[one.name] = one
    return list(chosen.values())


def alter(one: Documented, chooser: random.Random, strings: Sequence[str] = ()) -> str | None:
    """Return another literal of the same kind and spelling that code gives to the name nowhere, or ``None``."""
    others = list(dict.fromkeys(_others(one, strings)))
    chooser.shuffle(others)
    return next((other for other in others if canonical(other) not in {*one.taken, canonical(one.literal)}), None)


def _others(one: Documented, strings: Sequence[str]) -> Iterator[str]:
    text = one.literal
    if one.kind == "boolean":
        other = _SWITCHED[text.lower()]
        yield other.capitalize() if text[0].isupper() else other
    elif one.kind == "string":
        shape = re.sub(r"\w+", "w", text[1:-1])
        alike = [other for other in strings if re.sub(r"\w+", "w", other) == shape]
        yield from (f"{text[0]}{other}{text[-1]}" for other in (*alike, text[1:-1] + "2"))
    elif one.kind == "list":
        items = text[1:-1].split(",")
        yield from (
            f"[{','.join((*items[:at], *items[at + 1 :])).strip()}]" for at in range(len(items)) if len(items) > 1
        )
    elif one.kind == "version":
        head, _, last = text.rpartition(".")
        yield from (f"{head}{'.' if head else ''}{int(last) + step}" for step in (-1, 1, 2) if int(last) + step > 0)
    else:
        yield from _numbers(text)


def _numbers(text: str) -> Iterator[str]:
    """Yield plausible other numbers in the same spelling: digit separators, decimals, exponent."""
    figure = re.match(r"(-?)([\d_,]+)(\.\d+)?(e\d+)?", text)
    if figure is None:
        return
    sign, digits, decimals, exponent = figure.groups()
    separator = "," if "," in digits else "_" if "_" in digits else ""
    number = float(digits.replace(",", "").replace("_", "") + (decimals or ""))
    for other in [number * times for times in _TIMES] if number and not sign else (1.0, 5.0, 30.0):
        if decimals:
            yield f"{other:.{len(decimals) - 1}f}" if round(other, len(decimals) - 1) else f"{other:g}"
        elif other == int(other):
            yield f"{int(other):{separator}}{exponent or ''}"


def replaced(text: str, one: Documented, literal: str) -> str:
    """Return a page with one value altered; the columns of a table stay where they are."""
    behind = text[one.end :]
    gap = len(behind) - len(behind.lstrip(" "))
    if gap > 1:
        behind = " " * max(1, gap + len(one.literal) - len(literal)) + behind[gap:]
    return text[: one.start] + literal + behind


def _all(facts: Mapping[str, Sequence[LocatedFact]]) -> list[LocatedFact]:
    return [fact for path in sorted(facts) for fact in facts[path]]


def _key(one: FactConflict) -> tuple[str, ...]:
    return (
        one.name,
        one.attribute,
        *(part for side in (one.first, one.second) for part in (side.path, side.fact.value)),
    )


Facts = Mapping[str, Sequence[LocatedFact]]


def _look(
    repository: str,
    one: Documented,
    literal: str,
    changed: str,
    now: Facts,
    earlier: Facts,
    known: set[tuple[str, ...]],
) -> Planted:
    start = changed.rfind("\n", 0, min(one.top, one.start)) + 1
    end = changed.find("\n", one.start + len(literal))
    end = end if end >= 0 else len(changed)

    def is_there(side: LocatedFact) -> bool:
        span = side.fact.span
        return side.path == one.path and side.fact.side == "documentation" and span.start < end and start <= span.end

    conflicts = [
        conflict
        for conflict in find_conflicts(_all(now), min_confidence=0.0)
        if _key(conflict) not in known and any(map(is_there, (conflict.first, conflict.second, *conflict.also)))
    ]
    confidence = max((conflict.confidence for conflict in conflicts), default=0.0)
    if conflicts:
        reason: Reason = "found" if confidence >= MIN_CONFIDENCE else "not confident"
    else:
        stated = {_statement(fact) for fact in earlier.get(one.path, ())}
        page = [fact for fact in now[one.path] if is_there(fact) and _statement(fact) not in stated]
        reason = _lost(page, _in_code(one, now))
    return Planted(repository, one, literal, reason, confidence)


def _statement(located: LocatedFact) -> tuple[str, ...]:
    return located.fact.name, located.fact.owner, located.fact.attribute, located.fact.kind, located.fact.value


def _in_code(one: Documented, facts: Facts) -> list[LocatedFact]:
    path, _, line = one.code.partition(":")
    return [
        fact
        for fact in facts.get(path, ())
        if fact.fact.side != "documentation" and (not line or abs(fact.fact.line + 1 - int(line)) <= 1)
    ]


def _lost(page: Sequence[LocatedFact], code: Sequence[LocatedFact]) -> Reason:
    if not page or not code:
        return "code not read" if page else "page not read"
    joined = [outcome(a.fact, b.fact) for a in page for b in code if any(True for _ in pairs((a, b)))]
    if not joined:
        return "not joined"
    return "settled" if FactComparison.DIFFER in joined else "value not told apart"


def summary(planted: Sequence[Planted]) -> Iterator[tuple[str, Share]]:
    """Yield the share found of all, by kind, by repository, and by repository's mean of shares."""
    yield "all", _share(planted)
    for kind in KINDS:
        yield kind, _share([one for one in planted if one.documented.kind == kind])
    for repository in dict.fromkeys(one.repository for one in planted):
        yield repository, _share([one for one in planted if one.repository == repository])


def _share(planted: Sequence[Planted]) -> Share:
    return Share(sum(one.is_found for one in planted), len(planted))


def reasons(planted: Iterable[Planted]) -> dict[str, int]:
    """Count where altered values were lost, the most frequent first."""
    return dict(Counter(one.reason for one in planted if not one.is_found).most_common())
