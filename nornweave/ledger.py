"""The conflict ledger: claims of two domains that disagree, over the whole corpus; new and settled since the last time.

Pure. ``ledger_book.py`` reads the claims of the published generations and keeps the result.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations

from nornweave.claims.located import LocatedClaim
from nornweave.fusion.detect import disagree
from nornweave.routing import QueryType, authority_order
from nornweave.types import Claim, digest

# A topic that more claims of one attribute have says nothing of what they are about; it finds no pair by itself.
COMMON_TOPIC = 200
# A claim that contradicts more documents than this is about something more general than it says.
MAX_RIVALS = 4
# Documents that a corpus is taken to have besides its own.
SMALL_CORPUS = 50
# Settled entries are kept this long, as history.
KEEP_SETTLED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSide:
    """What one domain says, and where."""

    domain: str
    located: LocatedClaim

    @property
    def claim(self) -> Claim:
        """The claim itself."""
        return self.located.claim


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """Two claims that disagree.

    Attributes:
        entry_id: the same as long as the same documents say the same values.
        sides: of two domains, the suggested one first.
        suggested: the domain that probably holds.
        confidence: that both speak of one thing, in [0, 1].
        first_seen: when the ledger first had it.
        settled: when it was gone; ``None`` while it stands.
    """

    entry_id: str
    entity: str
    attribute: str
    detector: str
    sides: tuple[LedgerSide, LedgerSide]
    suggested: str
    reason: str
    explanation: str
    confidence: float
    first_seen: datetime
    settled: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What stands and what was settled, grouped by entity, the newest group first.

    Attributes:
        generations: domain → the published generation that was read.
    """

    made_at: datetime
    generations: Mapping[str, str]
    open: tuple[LedgerEntry, ...]
    settled: tuple[LedgerEntry, ...] = ()


def find_entries(claims: Mapping[str, Iterable[LocatedClaim]], now: datetime) -> tuple[LedgerEntry, ...]:
    """Compare the claims of every two domains.

    Args:
        claims: by domain.
        now: becomes ``first_seen``.

    Returns:
        One entry for each attribute and pair of chunks: the most confident, which goes first, then by id. What the
        other chunk states as well is no contradiction: a function may answer 200 and 201.
    """
    sides = [
        LedgerSide(domain=domain, located=located)
        for domain in sorted(claims)
        for located in claims[domain]
        if located.claim.mood == "stated"
    ]
    rarity = _rarity(sides)
    stated = {(side.located.chunk_id, side.claim.attribute, side.claim.value) for side in sides}
    found: dict[str, LedgerEntry] = {}
    for first, second in _candidates(sides):
        if _states(stated, first, second) or _states(stated, second, first):
            continue
        entry = _entry(first, second, rarity, now)
        if entry and (entry.entry_id not in found or entry.confidence > found[entry.entry_id].confidence):
            found[entry.entry_id] = entry
    ordered = sorted(found.values(), key=lambda entry: (-entry.confidence, entry.entry_id))
    return tuple(_without_generalities(_one_a_pair(ordered)))


def update(
    old: Ledger | None,
    found: Sequence[LedgerEntry],
    generations: Mapping[str, str],
    now: datetime,
    unread: Collection[str] = (),
) -> Ledger:
    """Bring a ledger up to date: what was there keeps its first time, what is gone is settled now.

    Args:
        old: the ledger so far, if any.
        found: what disagrees now.
        generations: domain → generation that was read.
        now: the time of this reading.
        unread: domains that could not be read: what they said stays open.
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
    )


def _grouped(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Order by entity, the entity with the newest entry first; within one the newest first."""
    newest: dict[str, datetime] = {}
    for entry in entries:
        newest[entry.entity] = max(newest.get(entry.entity, entry.first_seen), entry.first_seen)
    return sorted(
        entries,
        key=lambda entry: (
            -newest[entry.entity].timestamp(),
            entry.entity,
            -entry.first_seen.timestamp(),
            entry.entry_id,
        ),
    )


def _rarity(sides: Sequence[LedgerSide]) -> dict[str, float]:
    """Return topic → how much it says, in [0, 1]: its idf over documents, of that of a topic of two documents.

    Two documents is what a disagreement needs. ``SMALL_CORPUS`` keeps the topics of a handful of documents from being
    common for want of others.
    """
    documents = {(side.domain, side.located.source_id, side.located.path) for side in sides}
    holders: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for side in sides:
        for topic in side.claim.topics:
            holders[topic].add((side.domain, side.located.source_id, side.located.path))
    size = SMALL_CORPUS + len(documents)
    return {topic: min(1.0, math.log(size / len(held)) / math.log(size / 2)) for topic, held in holders.items()}


def _states(stated: Set[tuple[str, str, str]], side: LedgerSide, other: LedgerSide) -> bool:
    """Tell whether the chunk of ``side`` says, besides, what ``other`` says."""
    return (side.located.chunk_id, side.claim.attribute, other.claim.value) in stated


def _one_a_pair(entries: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
    """Keep the first entry of each attribute and pair of chunks: two lists of values are one disagreement."""
    seen: set[tuple[str, ...]] = set()
    for entry in entries:
        pair = (entry.attribute, *(side.located.chunk_id for side in entry.sides))
        if pair not in seen:
            seen.add(pair)
            yield entry


def _candidates(sides: Sequence[LedgerSide]) -> Iterator[tuple[LedgerSide, LedgerSide]]:
    """Yield the pairs of two domains that speak of the same attribute and share a topic that says something, once."""
    blocks: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, side in enumerate(sides):
        for topic in side.claim.topics:
            blocks[side.claim.attribute, topic].append(place)
    seen: set[tuple[int, int]] = set()
    for _, places in sorted(blocks.items()):
        if len(places) > COMMON_TOPIC:
            continue
        for pair in combinations(places, 2):
            first, second = sides[pair[0]], sides[pair[1]]
            if first.domain != second.domain and pair not in seen:
                seen.add(pair)
                yield first, second


def _entry(first: LedgerSide, second: LedgerSide, rarity: Mapping[str, float], now: datetime) -> LedgerEntry | None:
    difference = disagree(first.claim, second.claim, weights=rarity)
    if difference is None:
        return None
    order = [domain.value for domain in authority_order(QueryType.AMBIGUOUS)]
    one, other = sorted((first, second), key=lambda side: (order.index(side.domain), side.domain))
    return LedgerEntry(
        entry_id=_identity(difference.attribute, (one, other)),
        entity=difference.entity,
        attribute=difference.attribute,
        detector=difference.detector.value,
        sides=(one, other),
        suggested=one.domain,
        reason=_reason(one, other),
        explanation=difference.explanation,
        confidence=round(difference.confidence, 3),
        first_seen=now,
    )


def _identity(attribute: str, sides: tuple[LedgerSide, LedgerSide]) -> str:
    parts = [
        part
        for side in sides
        for part in (
            side.domain,
            side.located.source_id,
            side.located.path,
            side.claim.value,
            side.claim.unit or "",
        )
    ]
    return digest(attribute, *parts)[:16]


def _reason(one: LedgerSide, other: LedgerSide) -> str:
    reason = f"authority: {one.domain} before {other.domain}"
    mine, theirs = one.located.updated_at, other.located.updated_at
    if mine is None or theirs is None:
        return reason
    days = (mine.astimezone(UTC).date().isoformat(), theirs.astimezone(UTC).date().isoformat())
    if mine > theirs:
        return f"{reason}; it is also the newer side ({days[0]} against {days[1]})"
    return f"{reason}; but the other side is newer ({days[1]} against {days[0]})"


def _without_generalities(entries: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
    """Leave out what contradicts many documents: the surest of its contradictions stay, up to a few."""
    rivals: Counter[tuple[str, str, int]] = Counter()
    for entry in entries:
        keys = [(side.domain, side.located.chunk_id, side.claim.span.start) for side in entry.sides]
        if all(rivals[key] < MAX_RIVALS for key in keys):
            rivals.update(keys)
            yield entry
