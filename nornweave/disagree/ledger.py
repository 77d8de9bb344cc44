"""Compare the conflicts of a corpus with the ledger to find new, open and settled ones.

Pure. ``ingest/ledger.py`` reads the facts of the published generations and ``carry/ledger_file.py`` keeps the result.

How likely its conflicts are is said without a question: a pair alone is not enough evidence then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TypeAlias

from nornweave.core.types import digest
from nornweave.disagree.conflicts import MIN_CONFIDENCE, FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.conflicts.comparable import OF_FILES
from nornweave.disagree.conflicts.decision import rivals_of
from nornweave.disagree.conflicts.records import KnownLine, Origins, detector_of, key_of, pair_id, with_origin
from nornweave.disagree.drift.ranking import CANDIDATES_FROM, SHOWN_FROM, Affinity, confidence_in

Place: TypeAlias = tuple[str, str]
"""A document of a domain: source id and path."""

# Settled entries are kept this long, as history.
KEEP_SETTLED = 500

LIKELY = SHOWN_FROM
UNSUPPORTED = 0.18
"""What is left of the confidence in a pair whose files agree about nothing else: of 181 such pairs in 241 repositories
some 26 were right (docs/figures-archive.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """Two facts that disagree.

    Attributes:
        entry_id: its id, which stays the same as long as the same documents say the same values.
        sides: both facts. The fact that probably describes the running system comes first.
        also: other places that state the same as the second side.
        suggested: the domain whose value probably holds; ``None`` if nothing decides.
        confidence: the probability that it is a contradiction, in [0, 1].
        first_seen: when the ledger first had this entry.
        settled: when it was settled; ``None`` while it is open.
    """

    entry_id: str
    entity: str
    attribute: str
    detector: str
    sides: tuple[LocatedFact, LocatedFact]
    also: tuple[LocatedFact, ...] = ()
    suggested: str | None
    reason: str
    explanation: str
    confidence: float
    first_seen: datetime
    settled: datetime | None = None

    @property
    def pair_id(self) -> str:
        """The id of the two statements, independent of their places."""
        return pair_id(*(side.fact for side in self.sides))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Open and settled conflicts, grouped by entity, newest group first.

    Attributes:
        generations: domain → the published generation that was read.
        lines: the authors of the open entries' lines, if git knows them.
        dismissed: the pairs of statements of which somebody said that they do not conflict, newest last. Their entries
            stay in the ledger.
    """

    made_at: datetime
    generations: Mapping[str, str]
    open: tuple[LedgerEntry, ...]
    settled: tuple[LedgerEntry, ...] = ()
    lines: tuple[KnownLine, ...] = ()
    dismissed: tuple[str, ...] = ()


def entries_of(conflicts: Sequence[FactConflict], now: datetime) -> tuple[LedgerEntry, ...]:
    """Convert conflicts into ledger entries.

    Args:
        conflicts: the result of ``find_conflicts``, the most confident first.
        now: becomes ``first_seen``.

    Returns:
        One entry for each combination of two documents, name and values, the most confident first.
    """
    entries: dict[str, LedgerEntry] = {}
    for conflict in conflicts:
        entry = _entry(conflict, now)
        entries.setdefault(entry.entry_id, entry)
    return tuple(entries.values())


def _entry(conflict: FactConflict, now: datetime) -> LedgerEntry:
    sides = (conflict.first, conflict.second)
    return LedgerEntry(
        entry_id=_identity(conflict),
        entity=conflict.name,
        attribute=conflict.attribute,
        detector=detector_of(conflict).value,
        sides=sides,
        also=conflict.also,
        suggested=_suggest(*sides),
        reason=reason_of(*sides),
        explanation=conflict.explanation,
        confidence=round(conflict.confidence, 3),
        first_seen=now,
    )


def _identity(conflict: FactConflict) -> str:
    parts = [
        part
        for side in (conflict.first, conflict.second)
        for part in (*side.place, side.fact.value, side.fact.unit or "")
    ]
    return digest(conflict.name, conflict.attribute, *parts)[:16]


def _suggest(one: LocatedFact, other: LocatedFact) -> str | None:
    """Return the domain of the first side; ``None`` if people wrote both sides and the other side is newer.

    A program does what its code says. An old page is no authority over what somebody wrote later.
    """
    is_newer = "" < _day(one) < _day(other)
    return None if is_newer and "code" not in {one.domain, other.domain} else one.domain


def _day(side: LocatedFact) -> str:
    return side.updated_at.astimezone(UTC).date().isoformat() if side.updated_at else ""


def reason_of(one: LocatedFact, other: LocatedFact) -> str:
    """Return why the first side probably holds and, if both dates are known, which side is newer."""
    reason = f"authority: {one.fact.side} before {other.fact.side}"
    if one.updated_at is None or other.updated_at is None:
        return reason
    days = (_day(one), _day(other))
    if days[0] == days[1]:  # files of one checkout differ by moments that say nothing
        return f"{reason}; both sides are of {days[0]}"
    if days[0] > days[1]:
        return f"{reason}; it is also the newer side ({days[0]} against {days[1]})"
    return f"{reason}; but the other side is newer ({days[1]} against {days[0]})"


def with_lines(entry: LedgerEntry, origins: Origins) -> LedgerEntry:
    """Return an entry with the authors and dates that git knows. Its reason compares dates if git knows both lines."""
    one, other = (with_origin(side, origins) for side in entry.sides)
    both_known = all(key_of(side.place, side.fact) in origins for side in entry.sides)
    reason = reason_of(one, other) if both_known else entry.reason
    suggested = _suggest(one, other) if both_known else entry.suggested
    also = tuple(with_origin(side, origins) for side in entry.also)
    return replace(entry, sides=(one, other), also=also, reason=reason, suggested=suggested)


def update(
    old: Ledger | None,
    found: Sequence[LedgerEntry],
    generations: Mapping[str, str],
    now: datetime,
    unread: Collection[str] = (),
    lines: Sequence[KnownLine] = (),
) -> Ledger:
    """Return a ledger with the present conflicts. Known conflicts keep their first date. Missing conflicts are settled.

    Args:
        old: the ledger so far; ``None`` if there is no ledger yet.
        found: the present conflicts.
        generations: domain → the generation that was read.
        now: the time of this reading.
        unread: the domains that could not be read. Their conflicts stay open.
        lines: the authors of the lines of ``found``.
    """
    known = {entry.entry_id: entry for entry in old.open} if old else {}
    standing = {entry.entry_id: replace(entry, first_seen=known[entry.entry_id].first_seen)
                if entry.entry_id in known else entry for entry in found}  # fmt: skip
    gone = [entry for entry in known.values() if entry.entry_id not in standing]
    kept = [entry for entry in gone if any(side.domain in unread for side in entry.sides)]
    settled = [replace(entry, settled=now) for entry in gone if entry not in kept]
    history = [*settled, *(old.settled if old else ())]
    return Ledger(
        made_at=now,
        generations=generations,
        open=tuple(_grouped([*standing.values(), *kept])),
        settled=tuple(history[:KEEP_SETTLED]),
        lines=(*lines, *_lines_of(kept, old)),
        dismissed=old.dismissed if old else (),
    )


def seen_ledger(ledger: Ledger, seen: Callable[[str, Collection[Place]], Collection[Place]]) -> Ledger:
    """Return a ledger of only the entries whose two sides the viewer may see; hidden entries do not change the order.

    Args:
        ledger: the complete ledger.
        seen: a function that returns which of some documents of a domain the viewer may see. Some may not exist any
            more.
    """
    entries = [*ledger.open, *ledger.settled]
    places: dict[str, set[Place]] = {}
    for side in (side for entry in entries for side in (*entry.sides, *entry.also)):
        places.setdefault(side.domain, set()).add((side.source_id, side.path))
    visible = {domain: frozenset(seen(domain, some)) for domain, some in places.items()}

    def is_seen(side: LocatedFact) -> bool:
        return (side.source_id, side.path) in visible[side.domain]

    def of(some: Iterable[LedgerEntry]) -> list[LedgerEntry]:
        kept = (entry for entry in some if all(map(is_seen, entry.sides)))
        return [replace(entry, also=tuple(filter(is_seen, entry.also))) for entry in kept]

    return replace(ledger, open=tuple(_grouped(of(ledger.open))), settled=tuple(of(ledger.settled)), lines=())


def _lines_of(kept: Sequence[LedgerEntry], old: Ledger | None) -> list[KnownLine]:
    """Return the old ledger's known lines that belong to entries which could not be read again."""
    keys = {key_of(side.place, side.fact) for entry in kept for side in entry.sides}
    return [line for line in (old.lines if old else ()) if line.key in keys]


def _grouped(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Return entries by entity. Entities with a likely conflict come first, then those with the newest entry."""
    newest: dict[str, datetime] = {}
    likely = {entry.entity for entry in entries if entry.confidence >= LIKELY}
    for entry in entries:
        newest[entry.entity] = max(newest.get(entry.entity, entry.first_seen), entry.first_seen)
    return sorted(
        entries,
        key=lambda entry: (
            entry.entity not in likely,
            -newest[entry.entity].timestamp(),
            entry.entity,
            -entry.first_seen.timestamp(),
            entry.entry_id,
        ),
    )


def likely_conflicts(facts: Sequence[LocatedFact], joined: Sequence[tuple[int, int]]) -> list[FactConflict]:
    """Return the conflicts of a corpus, most confident first.

    A conflict of code and documentation is judged by its section and class, as in ``nornweave drift``, but without
    learned templates. A conflict that drift would not show is kept if the pair alone is convincing, with the usual
    confidence of such pairs. A conflict with statements of people or papers is judged by the pair alone.

    Args:
        facts: the facts of all documents.
        joined: the indices of each two facts that share a name.
    """
    rivals = rivals_of(facts, joined=joined)
    affinity = Affinity(chain.from_iterable(rivals.values()))
    files = len({fact.place for fact in facts if fact.domain in OF_FILES})
    found = find_conflicts(facts, rivals=rivals, min_confidence=CANDIDATES_FROM)
    weighed = ((one, _likelihood(one, affinity, files)) for one in found)
    kept = [
        replace(one, confidence=likely)
        for one, likely in weighed
        if one.confidence >= MIN_CONFIDENCE or likely >= LIKELY
    ]
    return sorted(kept, key=lambda one: -one.confidence)


def _likelihood(one: FactConflict, affinity: Affinity, files: int) -> float:
    if not {one.first.domain, one.second.domain} <= OF_FILES:
        return one.confidence
    supported = confidence_in(one, affinity, files)
    return supported if supported >= LIKELY else max(supported, UNSUPPORTED * one.confidence)
