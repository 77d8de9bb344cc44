"""Stage 4: settle the contradictions between domains by a strategy.

``conflict_detection.py`` finds them. Every resolution carries a reason for readers, and only a contradiction that is
nearly certain demotes an item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from nornweave.ask.fuse.conflict_detection import find_disagreements
from nornweave.ask.fuse.records import (
    ConflictRecord,
    ConflictSide,
    DedupedItems,
    Disagreement,
    LoserPolicy,
    ResolvedItems,
    SideRole,
    TaggedItem,
)
from nornweave.ask.route.router import QueryType, authority_order
from nornweave.ask.search.question import ConflictStrategy
from nornweave.core.types import Fact, Origin
from nornweave.disagree.conflicts import DEMOTE_FROM
from nornweave.disagree.conflicts.origins import NO_ORIGINS, Origins, key_of

# The files of a fresh clone are written within a minute: such an order says nothing about what is newer.
SAME_MOMENT = timedelta(minutes=1)
SAME_SCORE = 1e-6


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Which member holds, or ``None``; and why."""

    winner: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Group:
    """Disagreements about one property of one thing that share items; ``members`` by place, ascending."""

    members: tuple[int, ...]
    disagreements: tuple[Disagreement, ...]

    @property
    def confidence(self) -> float:
        """The probability of its surest disagreement."""
        return max(one.confidence for one in self.disagreements)

    @property
    def facts(self) -> dict[int, Fact]:
        """What each member says, of its surest disagreement."""
        said: dict[int, Fact] = {}
        for one in sorted(self.disagreements, key=lambda one: -one.confidence):
            for member, fact in zip((one.first, one.second), one.facts, strict=True):
                said.setdefault(member, fact)
        return said

    def against(self, member: int) -> set[int]:
        """Return who disagrees with a member."""
        pairs = [(one.first, one.second) for one in self.disagreements]
        return {other for pair in pairs if member in pair for other in pair if other != member}


def resolve_conflicts(
    deduped: DedupedItems,
    strategy: ConflictStrategy = ConflictStrategy.RECENCY,
    *,
    penalty: float = 0.30,
    policy: LoserPolicy = "demote",
    tie_window_hours: float = 24,
    query_type: QueryType = QueryType.AMBIGUOUS,
    stretched: bool = True,
    origins: Origins = NO_ORIGINS,
    settle_from: float = DEMOTE_FROM,
) -> ResolvedItems:
    """Find the items that contradict each other and settle each conflict.

    Args:
        deduped: of stage 3.
        strategy: which side holds.
        penalty: what a loser's score goes down by: of scores that min-max has stretched over [0, 1] this much, of
            calibrated ones, which seldom reach 0.6, this share.
        policy: ``demote`` keeps losers with a lower score, ``drop`` removes them.
        tie_window_hours: of ``RECENCY_THEN_FLAG``.
        query_type: decides the order of ``SOURCE_AUTHORITY``.
        stretched: whether scores are min-max normalised.
        settle_from: the probability from which on a conflict is settled; a less certain one is only shown.
        origins: who wrote which line when; recency compares lines where those of all sides are known, else documents.

    Returns:
        The items in their order and one record a conflict, the most confident disagreement first. An item that loses
        several conflicts is demoted once.
    """
    items = deduped.items
    lines = _Lines(items, origins)
    judge = _Judge(items, strategy, tie_window_hours, query_type, lines)
    records: list[ConflictRecord] = []
    losers: set[int] = set()
    for group in _groups(find_disagreements(items)):
        verdict = judge.settle(group)
        if group.confidence < settle_from:
            verdict = _Verdict(
                None, f"may disagree (confidence {group.confidence:.2f}): both sides are kept; {verdict.reason}"
            )
        if verdict.winner is not None:
            losers |= group.against(verdict.winner)
        records.append(_record(group, items, verdict, strategy, lines))
    kept = tuple(
        _demoted(tagged, penalty, stretched=stretched) if place in losers else tagged
        for place, tagged in enumerate(items)
        if policy == "demote" or place not in losers
    )
    return ResolvedItems(kept, tuple(records))


@dataclass(frozen=True, slots=True)
class _Lines:
    """Who wrote the lines that items state their facts in."""

    items: Sequence[TaggedItem]
    origins: Origins

    def origin(self, member: int, fact: Fact | None) -> Origin | None:
        """Return who wrote the line of a fact of an item; ``None`` if unknown."""
        tagged = self.items[member]
        citation = tagged.item.citation
        place = (tagged.source_domain, citation.source_id, citation.source_path)
        return self.origins.get(key_of(place, fact)) if fact else None

    def moments(self, group: _Group) -> dict[int, datetime]:
        """Return when each member was written: its line where that of every member is known, else its document."""
        facts = group.facts
        written = {member: self.origin(member, facts.get(member)) for member in group.members}
        known = {member: one.written_at for member, one in written.items() if one and one.written_at}
        if len(known) == len(group.members):
            return known
        dated = {member: _moment(self.items[member]) for member in group.members}
        return {member: moment for member, moment in dated.items() if moment is not None}


class _Judge:
    """Applies a strategy to the members of a group."""

    def __init__(
        self,
        items: Sequence[TaggedItem],
        strategy: ConflictStrategy,
        tie_window_hours: float,
        query_type: QueryType,
        lines: _Lines,
    ) -> None:
        self._items = items
        self._lines = lines
        self._window = timedelta(hours=tie_window_hours)
        self._kind = query_type
        self._authority = {domain.value: place for place, domain in enumerate(authority_order(query_type))}
        ways: Mapping[ConflictStrategy, Callable[[_Group], _Verdict]] = MappingProxyType(
            {
                ConflictStrategy.RECENCY: lambda group: self._newest(group, SAME_MOMENT),
                ConflictStrategy.RECENCY_THEN_FLAG: lambda group: self._newest(group, max(self._window, SAME_MOMENT)),
                ConflictStrategy.SOURCE_AUTHORITY: self._most_authoritative,
                ConflictStrategy.CONFIDENCE: self._most_confident,
                ConflictStrategy.FLAG: lambda _: _Verdict(None, "flagged as asked: both sides are kept"),
            }
        )
        self.settle = ways[strategy]

    def _newest(self, group: _Group, tie: timedelta) -> _Verdict:
        dated = self._lines.moments(group)
        if not dated:
            return _Verdict(None, "flagged: no side says when it was written")
        winner = max(dated, key=lambda member: (dated[member], self._items[member].score, -member))
        rivals = [dated[rival] for rival in sorted(group.against(winner)) if rival in dated]
        if any(dated[winner] - rival <= tie for rival in rivals):
            return _Verdict(None, f"flagged: the sides are not more than {_hours(tie)} apart in time")
        if not rivals:
            return _Verdict(winner, f"written {_day(dated[winner])}; the other side does not say when")
        return _Verdict(winner, f"newer: {_day(dated[winner])} against {_day(max(rivals))}")

    def _most_authoritative(self, group: _Group) -> _Verdict:
        last = len(self._authority)

        def place(member: int) -> int:
            return self._authority.get(self._items[member].source_domain, last)

        winner = min(group.members, key=lambda member: (place(member), -self._items[member].score, member))
        rivals = group.against(winner)
        if any(place(rival) == place(winner) for rival in rivals):
            return _Verdict(None, "flagged: no side has more authority")
        others = ", ".join(sorted({self._items[rival].source_domain for rival in rivals}))
        kind = self._kind.value.replace("_", " ")
        return _Verdict(winner, f"authority: {self._items[winner].source_domain} before {others} ({kind} question)")

    def _most_confident(self, group: _Group) -> _Verdict:
        scores = {member: self._items[member].score for member in group.members}
        winner = max(group.members, key=lambda member: (scores[member], -member))
        best = max((scores[rival] for rival in group.against(winner)), default=0.0)
        if scores[winner] - best <= SAME_SCORE:
            return _Verdict(None, f"flagged: both score {best:.3f}")
        return _Verdict(winner, f"more relevant: {scores[winner]:.3f} against {best:.3f}")


def _groups(disagreements: Iterable[Disagreement]) -> list[_Group]:
    """Join disagreements about one property of one thing that share an item."""
    by_property: dict[tuple[str, str], list[Disagreement]] = defaultdict(list)
    for one in disagreements:
        by_property[one.entity, one.attribute].append(one)
    groups = [_Group(tuple(sorted(members)), tuple(edges))
              for alike in by_property.values() for members, edges in _components(alike)]  # fmt: skip
    return sorted(groups, key=lambda group: (-group.confidence, group.members))


def _components(disagreements: Sequence[Disagreement]) -> list[tuple[set[int], list[Disagreement]]]:
    components: list[tuple[set[int], list[Disagreement]]] = []
    for one in disagreements:
        joined, edges, apart = {one.first, one.second}, [one], []
        for members, others in components:
            if members & joined:
                joined, edges = joined | members, [*others, *edges]
            else:
                apart.append((members, others))
        components = [*apart, (joined, edges)]
    return components


def _record(
    group: _Group, items: Sequence[TaggedItem], verdict: _Verdict, strategy: ConflictStrategy, lines: _Lines
) -> ConflictRecord:
    leading = max(group.disagreements, key=lambda one: (one.confidence, -one.first, -one.second))
    facts = group.facts
    order = sorted(group.members, key=lambda member: (member != verdict.winner, -items[member].score, member))
    return ConflictRecord(
        items=tuple(items[member].item.chunk_id for member in order),
        sides=tuple(
            ConflictSide(
                chunk_id=items[member].item.chunk_id,
                citation=items[member].item.citation,
                fact=facts.get(member),
                role=_role(member, group, verdict.winner),
                origin=lines.origin(member, facts.get(member)),
            )
            for member in order
        ),
        detector=leading.detector,
        entity=leading.entity,
        attribute=leading.attribute,
        resolution=ConflictStrategy.FLAG if verdict.winner is None else strategy,
        resolved_to=None if verdict.winner is None else items[verdict.winner].item.chunk_id,
        reason=verdict.reason,
        explanation=leading.explanation,
        confidence=leading.confidence,
    )


def _role(member: int, group: _Group, winner: int | None) -> SideRole:
    if winner is None:
        return "says"
    if member == winner:
        return "holds"
    return "differs" if member in group.against(winner) else "agrees"


def _demoted(tagged: TaggedItem, penalty: float, *, stretched: bool) -> TaggedItem:
    score = max(0.0, tagged.score - penalty) if stretched else tagged.score * (1 - penalty)
    return replace(tagged, score=score, demoted=True, penalty=tagged.score - score)


def _moment(tagged: TaggedItem) -> datetime | None:
    moment = tagged.item.citation.timestamp
    return moment.replace(tzinfo=UTC) if moment and not moment.tzinfo else moment


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:g} h" if span >= timedelta(hours=1) else "a minute"
