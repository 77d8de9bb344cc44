"""Stage 4: find the items that contradict each other, by the facts that they state, and settle that by a strategy.

What contradicts what is decided by ``nornweave.disagree.conflicts``, for queries, the ledger and ``nornweave drift``.
Every resolution has a reason for readers. A conflict demotes an item only if it is nearly certain, the question asks
about what it is about, and the side that holds is the one that the ledger suggests. All others are shown and change no
order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from nornweave.ask.fuse.collect import MAX_COMPARED
from nornweave.ask.fuse.rank import QueryType, authority_order
from nornweave.ask.fuse.records import (
    ConflictRecord,
    ConflictSide,
    Disagreement,
    FusedItem,
    LoserPolicy,
    ResolvedItems,
    SideRole,
)
from nornweave.ask.search.question import ConflictStrategy
from nornweave.core.text.analyzer import distinct_terms
from nornweave.core.text.dates import aware
from nornweave.core.text.index_fields import is_aside
from nornweave.core.types import COMMIT, RELEASE, Domain, Fact, Origin
from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.disagree.assertions.pairing import find_contradictions
from nornweave.disagree.assertions.passage import AssertingPassage
from nornweave.disagree.conflicts import DEMOTE_FROM, POSSIBLE_FROM, FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.conflicts.comparable import SIDES, is_sample, outcome
from nornweave.disagree.conflicts.records import NO_NOTES, LedgerNotes, Origins, detector_of, key_of, pair_id
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.names import is_generic

# The files of a fresh clone are written within a minute: such an order says nothing about what is newer.
SAME_MOMENT = timedelta(minutes=1)
SAME_SCORE = 1e-6
READ = 12
"""Items whose sentences are compared: the most relevant ones. To read all of an answer takes 7 ms, these take 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRules:
    """How conflicts are settled.

    Attributes:
        penalty: how much a lost conflict lowers relevance. This number is subtracted from min-max normalised relevance.
            Calibrated relevance, which seldom reaches 0.6, loses this share of itself.
        policy: ``demote`` keeps losers with a lower relevance, ``drop`` removes them.
        tie_window_hours: under ``RECENCY_THEN_FLAG``, no side holds if their times differ by no more than this.
        query_type: decides the order of ``SOURCE_AUTHORITY``.
        stretched: whether relevance is min-max normalised.
        settle_from: the probability from which on a conflict is settled; a less certain one is only shown.
        question: what was asked; a conflict about something else is only shown.
        is_chosen: whether the asker chose the strategy. If not, the side that the strategy prefers holds only if it is
            also the closest to the running system.
    """

    strategy: ConflictStrategy = ConflictStrategy.RECENCY
    penalty: float = 0.30
    policy: LoserPolicy = "demote"
    tie_window_hours: float = 24
    query_type: QueryType = QueryType.AMBIGUOUS
    stretched: bool = True
    settle_from: float = DEMOTE_FROM
    question: str = ""
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The member of a group that holds (``None`` if no member holds), and the reason."""

    winner: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Group:
    """Disagreements about one property of one thing, which share items; ``members`` are item indexes, ascending."""

    members: tuple[int, ...]
    disagreements: tuple[Disagreement, ...]

    @property
    def confidence(self) -> float:
        """The highest confidence of its disagreements."""
        return max(disagreement.confidence for disagreement in self.disagreements)

    @property
    def facts(self) -> dict[int, Fact]:
        """Member → the fact that it states in its disagreement with the highest confidence."""
        facts: dict[int, Fact] = {}
        for disagreement in sorted(self.disagreements, key=lambda disagreement: -disagreement.confidence):
            facts.setdefault(disagreement.first, disagreement.facts[0])
            facts.setdefault(disagreement.second, disagreement.facts[1])
        return facts

    def against(self, member: int) -> set[int]:
        """Return the members that disagree with a member."""
        pairs = [(disagreement.first, disagreement.second) for disagreement in self.disagreements]
        return {other for pair in pairs if member in pair for other in pair if other != member}


def resolve_conflicts(
    items: Sequence[FusedItem],
    rules: ConflictRules,
    notes: LedgerNotes = NO_NOTES,
    encode: SentenceEncoder | None = None,
) -> ResolvedItems:
    """Find the items that contradict each other and settle each conflict.

    Recency compares the times at which the lines were written if they are known for all sides, else the times of the
    documents. A pair that somebody has dismissed is no conflict.

    Returns:
        The items in their order, and one record for each conflict that the question asks about, by confidence. An item
        that loses several conflicts is demoted once.
    """
    lines = _Lines(items, notes.origins)
    judge = _Judge(items, rules, lines)
    records: list[ConflictRecord] = []
    losers: set[int] = set()
    found = find_disagreements(items, rules.question, encode)
    for group in _groups(pair for pair in found if pair_id(*pair.facts) not in notes.dismissed):
        if not judge.is_asked_about(group):  # it is in the ledger
            continue
        verdict = judge.settle(group)
        if verdict.winner is not None:
            losers |= group.against(verdict.winner)
        records.append(_record(group, items, verdict, judge, lines))
    remaining = tuple(
        _demote(fused, rules) if place in losers else fused
        for place, fused in enumerate(items)
        if rules.policy == "demote" or place not in losers
    )
    return ResolvedItems(remaining, tuple(records))


@dataclass(frozen=True, slots=True)
class _Lines:
    """The authors and times of the lines in which items state their facts."""

    items: Sequence[FusedItem]
    origins: Origins

    def origin(self, member: int, fact: Fact | None) -> Origin | None:
        """Return who wrote the line in which an item states a fact; ``None`` if unknown."""
        citation = self.items[member].citation
        place = (self.items[member].domain, citation.source_id, citation.source_path)
        return self.origins.get(key_of(place, fact)) if fact else None

    def moments(self, group: _Group) -> dict[int, datetime]:
        """Return member → when its line was written, or, if one line's time is unknown, member → its document's time.

        A member whose document has no known time is left out.
        """
        facts = group.facts
        written = {member: self.origin(member, facts.get(member)) for member in group.members}
        known = {member: origin.written_at for member, origin in written.items() if origin and origin.written_at}
        if len(known) == len(group.members):
            return known
        dated = {member: _moment(self.items[member]) for member in group.members}
        return {member: moment for member, moment in dated.items() if moment is not None}


class _Judge:
    """Applies a strategy to the members of a group."""

    def __init__(self, items: Sequence[FusedItem], rules: ConflictRules, lines: _Lines) -> None:
        self._items = items
        self._rules = rules
        self._lines = lines
        self._asked = frozenset(distinct_terms(rules.question))
        self._authority = {domain.value: place for place, domain in enumerate(authority_order(rules.query_type))}
        window = max(timedelta(hours=rules.tie_window_hours), SAME_MOMENT)
        ways: Mapping[ConflictStrategy, Callable[[_Group], _Verdict]] = {
            ConflictStrategy.RECENCY: lambda group: self._newest(group, SAME_MOMENT),
            ConflictStrategy.RECENCY_THEN_FLAG: lambda group: self._newest(group, window),
            ConflictStrategy.SOURCE_AUTHORITY: self._most_authoritative,
            ConflictStrategy.CONFIDENCE: self._most_confident,
            ConflictStrategy.FLAG: lambda _: _Verdict(None, "flagged as asked: both sides are kept"),
        }
        self._decide = ways[rules.strategy]
        self.strategy = rules.strategy

    def settle(self, group: _Group) -> _Verdict:
        """Return which side holds; no side holds if a rule forbids the conflict to change the order."""
        verdict = self._decide(group)
        if group.confidence < self._rules.settle_from:
            kept = f"may disagree (confidence {group.confidence:.2f})"
        elif (
            verdict.winner is not None
            and not self._rules.is_chosen
            and not self._is_best_informed(group, verdict.winner)
        ):
            kept = "the side that is closer to what runs says otherwise"
        else:
            return verdict
        return _Verdict(None, f"{kept}: both sides are kept; {verdict.reason}")

    def is_asked_about(self, group: _Group) -> bool:
        """Tell whether the question asks for what a conflict is about, or names the setting of one of its sides."""
        if any(pair.is_asked for pair in group.disagreements):
            return True
        return any(_is_named(fact, self._asked) for pair in group.disagreements for fact in pair.facts)

    def _is_best_informed(self, group: _Group, winner: int) -> bool:
        ranks = {member: SIDES.index(fact.side) for member, fact in group.facts.items()}
        return ranks[winner] == min(ranks.values())

    def _newest(self, group: _Group, tie: timedelta) -> _Verdict:
        dated = self._lines.moments(group)
        if not dated:
            return _Verdict(None, "flagged: no side says when it was written")
        winner = max(dated, key=lambda member: (dated[member], self._items[member].relevance, -member))
        rivals = [dated[rival] for rival in sorted(group.against(winner)) if rival in dated]
        if any(dated[winner] - rival <= tie for rival in rivals):
            return _Verdict(None, f"flagged: the sides are not more than {_hours(tie)} apart in time")
        if not rivals:
            return _Verdict(winner, f"written {_day(dated[winner])}; the other side does not say when")
        return _Verdict(winner, f"newer: {_day(dated[winner])} against {_day(max(rivals))}")

    def _most_authoritative(self, group: _Group) -> _Verdict:
        last = len(self._authority)

        def place(member: int) -> int:
            return self._authority.get(self._items[member].domain, last)

        winner = min(group.members, key=lambda member: (place(member), -self._items[member].relevance, member))
        rivals = group.against(winner)
        if any(place(rival) == place(winner) for rival in rivals):
            return _Verdict(None, "flagged: no side has more authority")
        others = ", ".join(sorted({self._items[rival].domain for rival in rivals}))
        kind = self._rules.query_type.value.replace("_", " ")
        return _Verdict(winner, f"authority: {self._items[winner].domain} before {others} ({kind} question)")

    def _most_confident(self, group: _Group) -> _Verdict:
        scores = {member: self._items[member].relevance for member in group.members}
        winner = max(group.members, key=lambda member: (scores[member], -member))
        best = max((scores[rival] for rival in group.against(winner)), default=0.0)
        if scores[winner] - best <= SAME_SCORE:
            return _Verdict(None, f"flagged: both score {best:.3f}")
        return _Verdict(winner, f"more relevant: {scores[winner]:.3f} against {best:.3f}")


def _groups(disagreements: Iterable[Disagreement]) -> list[_Group]:
    """Return groups of disagreements about one property of one thing that share items, the most confident first."""
    by_property: dict[tuple[str, str], list[Disagreement]] = defaultdict(list)
    for disagreement in disagreements:
        by_property[disagreement.entity, disagreement.attribute].append(disagreement)
    groups = [
        _Group(tuple(sorted(members)), tuple(edges))
        for alike in by_property.values()
        for members, edges in _components(alike)
    ]
    return sorted(groups, key=lambda group: (-group.confidence, group.members))


def _components(disagreements: Sequence[Disagreement]) -> list[tuple[set[int], list[Disagreement]]]:
    components: list[tuple[set[int], list[Disagreement]]] = []
    for disagreement in disagreements:
        joined, edges, apart = {disagreement.first, disagreement.second}, [disagreement], []
        for members, others in components:
            if members & joined:
                joined, edges = joined | members, [*others, *edges]
            else:
                apart.append((members, others))
        components = [*apart, (joined, edges)]
    return components


def _is_named(fact: Fact, asked: frozenset[str]) -> bool:
    """Tell whether the asked words name the setting of a fact.

    At least two words of the setting's name must be asked (one if the name has only one), and all its words that are
    not generic. ``timeout`` is generic. If all words of the name are, a word of the owner's name must be asked as well.
    """

    def is_asked(word: str) -> bool:
        return distinct_terms(word) <= asked

    words = fact.name.split()
    telling = [word for word in words if not is_generic(word)]
    is_named = sum(map(is_asked, words)) >= min(2, len(words)) and all(map(is_asked, telling))
    return is_named and (bool(telling) or not fact.owner or any(map(is_asked, fact.owner.split())))


def _record(
    group: _Group, items: Sequence[FusedItem], verdict: _Verdict, judge: _Judge, lines: _Lines
) -> ConflictRecord:
    leading = max(group.disagreements, key=lambda pair: (pair.confidence, -pair.first, -pair.second))
    facts = group.facts
    order = sorted(group.members, key=lambda member: (member != verdict.winner, -items[member].relevance, member))
    return ConflictRecord(
        id=pair_id(*leading.facts),
        items=tuple(items[member].chunk_id for member in order),
        sides=tuple(
            ConflictSide(
                chunk_id=items[member].chunk_id,
                citation=items[member].citation,
                fact=facts.get(member),
                role=_role(member, group, verdict.winner),
                origin=lines.origin(member, facts.get(member)),
            )
            for member in order
        ),
        detector=leading.detector,
        entity=leading.entity,
        attribute=leading.attribute,
        resolution=ConflictStrategy.FLAG if verdict.winner is None else judge.strategy,
        resolved_to=None if verdict.winner is None else items[verdict.winner].chunk_id,
        reason=verdict.reason,
        explanation=leading.explanation,
        confidence=leading.confidence,
    )


def _role(member: int, group: _Group, winner: int | None) -> SideRole:
    if winner is None:
        return "says"
    if member == winner:
        return "holds"
    if member in group.against(winner):
        return "differs"
    facts = group.facts  # a member that differs from another loser need not say what the winner says
    return "agrees" if outcome(facts[member], facts[winner]) is FactComparison.AGREE else "says"


def _demote(fused: FusedItem, rules: ConflictRules) -> FusedItem:
    left = max(0.0, fused.relevance - rules.penalty) if rules.stretched else fused.relevance * (1 - rules.penalty)
    return replace(fused, relevance=left, demoted=True, lost=fused.relevance - left)


def _moment(fused: FusedItem) -> datetime | None:
    """Return when an item was written; ``None`` if unknown or for a PDF file, whose date only tells of its printing."""
    moment = fused.citation.timestamp
    return None if moment is None or fused.citation.source_path.lower().endswith(".pdf") else aware(moment)


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:g} h" if span >= timedelta(hours=1) else "a minute"


def find_disagreements(
    items: Sequence[FusedItem], question: str = "", encode: SentenceEncoder | None = None
) -> tuple[Disagreement, ...]:
    """Return the pairs of items that contradict each other.

    Args:
        question: what was asked; contradictions between sentences are left out if they are about something else.
        encode: encodes sentences, to find those that say one thing in other words; ``None`` compares by words alone.

    Returns:
        The disagreements, ordered by ``first``, then ``second``. For each pair, thing and attribute, only the
        disagreement with the highest confidence is returned. If a pair disagrees on an attribute or a thing by its
        facts, a disagreement of its sentences on either is left out; facts of the same sentences are then asked about.
    """
    located = [fact for place, fused in enumerate(items) for fact in _locate_facts(place, fused)]
    best: dict[tuple[int, int, str, str], Disagreement] = {}
    for pair in map(_disagreement, find_conflicts(located, min_confidence=POSSIBLE_FROM)):
        if pair.first != pair.second:
            best.setdefault((pair.first, pair.second, pair.attribute, pair.entity), pair)
    known = tuple(best.items())
    present = [place for place, each in enumerate(items)
               if each.item.metadata.get("kind") not in {COMMIT, RELEASE} and not _is_aside(each)]  # fmt: skip
    read = sorted(present, key=lambda place: -items[place].relevance)[:READ]
    passages = [_passage(place, items[place]) for place in read]  # their order is their rank
    for pair in map(_disagreement, find_contradictions(passages, question=question or None, encode=encode)):
        key = (pair.first, pair.second, pair.attribute, pair.entity)
        same = [(held, of) for held, of in known if held[:2] == key[:2] and (held[2] == key[2] or held[3] == key[3])]
        for held, of in same or [(key, pair)]:
            if all(said.statement in fact.statement for said, fact in zip(pair.facts, of.facts, strict=True)):
                best[held] = replace(of, is_asked=bool(question))
    return tuple(sorted(best.values(), key=lambda pair: (pair.first, pair.second)))


def _locate_facts(place: int, fused: FusedItem) -> list[LocatedFact]:
    """Return the facts of an item; none for a test or an example."""
    citation = fused.citation
    if _is_aside(fused):
        return []
    return [
        LocatedFact(
            fact=fact,
            domain=fused.domain,
            source_id=citation.source_id,
            path=citation.source_path,
            section=citation.section,
            title=citation.title,
            updated_at=citation.timestamp,
            revision=citation.revision,
            chunk_id=str(place),
        )
        for fact in fused.facts
    ]


def _is_aside(fused: FusedItem) -> bool:
    """Tell whether an item is of a test or an example, which states nothing about the product."""
    path = fused.citation.source_path
    return fused.domain == Domain.CODE and (is_aside(path) or is_sample(path))


def _passage(place: int, fused: FusedItem) -> AssertingPassage:
    at = fused.citation
    return AssertingPassage(
        text=fused.item.content[:MAX_COMPARED], start=at.char_range[0],
        line=at.line_range[0] - 1 if at.line_range else None,
        domain=fused.domain, source_id=at.source_id, path=at.source_path, place=str(place), title=at.title,
        section=at.section, updated_at=at.timestamp, revision=at.revision,
    )  # fmt: skip


def _disagreement(conflict: FactConflict) -> Disagreement:
    sides = sorted((conflict.first, conflict.second), key=lambda side: int(side.chunk_id))
    return Disagreement(
        first=int(sides[0].chunk_id),
        second=int(sides[1].chunk_id),
        detector=detector_of(conflict),
        entity=conflict.name,
        attribute="http_status" if conflict.attribute == "status" else conflict.attribute,
        facts=(sides[0].fact, sides[1].fact),
        explanation=conflict.explanation,
        confidence=conflict.confidence,
    )
