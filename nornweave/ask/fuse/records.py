"""The nouns of fusion: what each stage hands to the next. Every record is frozen; no stage changes what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from nornweave.ask.search.question import ConflictStrategy, Question
from nornweave.ask.search.records import Citation, RecallItem, RecallResponse
from nornweave.core.types import ChunkId, Fact, Origin
from nornweave.disagree.conflicts.detectors import Detector

LoserPolicy: TypeAlias = Literal["demote", "drop"]
Normalization: TypeAlias = Literal["auto", "calibrated", "minmax"]
SideRole: TypeAlias = Literal["holds", "agrees", "differs", "says"]
MergeReason: TypeAlias = Literal["same_chunk", "same_text", "contained", "same_meaning"]


@dataclass(frozen=True, slots=True)
class CoverageGap:
    """An agent that gave no answer, and why."""

    domain_id: str
    agent_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedItem:
    """An item with where it came from.

    Attributes:
        score: comparable between agents, in [0, 1]: the agent's own until stage 2, normalised from then on, lowered
            by a lost conflict in stage 4. ``item.score`` stays the agent's.
        facts: what the item states.
        corroborated_by: citations of the items that were merged into this one.
        demoted: whether it lost a conflict.
        penalty: what that took off ``score``, ≥ 0.
        encoder: what made ``item.vector``.
    """

    item: RecallItem
    source_agent: str
    source_domain: str
    agent_latency_ms: float
    score: float
    calibrated: bool = False
    encoder: str | None = None
    facts: tuple[Fact, ...] = ()
    corroborated_by: tuple[Citation, ...] = ()
    demoted: bool = False
    penalty: float = 0.0

    @property
    def is_corroborated(self) -> bool:
        """Tell whether another domain says the same."""
        return any(citation.domain_id != self.source_domain for citation in self.corroborated_by)


@dataclass(frozen=True, slots=True)
class CollectedItems:
    """Stage 1: everything that arrived, agent by agent, best first within each."""

    items: tuple[TaggedItem, ...]


@dataclass(frozen=True, slots=True)
class NormalizedItems:
    """Stage 2: the same items, their scores on one scale; which one was used."""

    items: tuple[TaggedItem, ...]
    normalization: Literal["calibrated", "minmax"]


@dataclass(frozen=True, slots=True)
class Merge:
    """Two items that say the same: which stayed, which went, why, and how alike they are, in [0, 1]."""

    kept: ChunkId
    dropped: ChunkId
    reason: MergeReason
    similarity: float


@dataclass(frozen=True, slots=True)
class DedupedItems:
    """Stage 3: items of which no two say the same, in the order in which their first version came."""

    items: tuple[TaggedItem, ...]
    merges: tuple[Merge, ...] = ()

    @property
    def duplicates_removed(self) -> int:
        """Count the items that went."""
        return len(self.merges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two items that contradict each other.

    Attributes:
        first, second: places among the items that were looked at, ``first < second``.
        detector: what noticed it.
        entity, attribute: about what; words for people.
        facts: the contradicting statement of each, in the order of ``first`` and ``second``.
        explanation: one sentence that names both values.
        confidence: in [0, 1].
    """

    first: int
    second: int
    detector: Detector
    entity: str
    attribute: str
    facts: tuple[Fact, Fact]
    explanation: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictSide:
    """What one item of a conflict says, where, and what became of it; ``says`` where nothing was settled.

    Attributes:
        origin: who wrote the line that says it; ``None`` where that is not known.
    """

    chunk_id: ChunkId
    citation: Citation
    fact: Fact | None
    role: SideRole
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRecord:
    """One conflict with its resolution; explains itself.

    Attributes:
        items: the chunks that take part, best first.
        sides: what each says, in the order of ``items``.
        resolved_to: the item that holds; ``None`` for a flagged conflict.
        reason: why that one holds, or why none does.
        explanation: what disagrees, with both values.
        confidence: the probability that it is a contradiction, in [0, 1].
    """

    items: tuple[ChunkId, ...]
    sides: tuple[ConflictSide, ...]
    detector: Detector
    entity: str
    attribute: str
    resolution: ConflictStrategy
    resolved_to: ChunkId | None
    reason: str
    explanation: str
    confidence: float


@dataclass(frozen=True, slots=True)
class ResolvedItems:
    """Stage 4: items with the losers of conflicts demoted or gone, and the record of each conflict."""

    items: tuple[TaggedItem, ...]
    conflicts: tuple[ConflictRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedItem:
    """An item in its final place.

    Attributes:
        score: the sum of the signals, in [0, 1].
        signals: ``score``, ``corroboration``, ``recency``, ``domain``, ``length`` → weighted contribution.
        penalty: what a lost conflict took off ``score``, ≥ 0.
        conflict: place of its conflict among the result's conflicts; ``None`` without one.
        shortened: whether the budget cut its content, which then shows where.
        content: as it is shown.
    """

    tagged: TaggedItem
    score: float
    signals: Mapping[str, float]
    penalty: float = 0.0
    conflict: int | None = None
    content: str = ""
    shortened: bool = False


@dataclass(frozen=True, slots=True)
class RankedItems:
    """Stage 5: the final order."""

    items: tuple[RankedItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """Stage 6: what the model made of the items.

    Attributes:
        text: the answer with its citations; ``None`` when there is none.
        reason: why there is none, or what to know of the text.
        model: which answered.
        cited: chunks that the text cites and that it was given.
        unknown_citations: citations in the text that name nothing it was given; they are taken out of the text.
    """

    text: str | None
    reason: str | None = None
    model: str | None = None
    cited: tuple[str, ...] = ()
    unknown_citations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What agents answered to a question: those of an engine, or any that a program asked by itself.

    Attributes:
        asked: domain → agent: of all that were asked, in their order; of given answers, those that answered.
        responses: of those that answered.
        coverage_gaps: who gave no answer, and why.
        domain_signals: domain → how strongly the question is about it, in [0, 1]; 0.5 for one that is missing.
    """

    asked: Mapping[str, str]
    responses: tuple[RecallResponse, ...]
    coverage_gaps: tuple[CoverageGap, ...] = ()
    domain_signals: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """What the stages 1 to 5 made of the answers.

    Attributes:
        items: in their final order.
        conflicts: all of them; ``RankedItem.conflict`` is a place among them.
        merges: which items went into which others.
        normalization: how scores were made comparable.
        total_items, deduplicated_items: how many came in, and how many were left after merging.
    """

    items: tuple[RankedItem, ...]
    conflicts: tuple[ConflictRecord, ...]
    merges: tuple[Merge, ...]
    normalization: Literal["calibrated", "minmax"]
    total_items: int
    deduplicated_items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer out of those of several agents; ``views`` makes JSON of it, ``answer/text_renderer.py`` text.

    Attributes:
        question: what was asked.
        recalled: what it was made of.
        items: those that are shown, in reading order.
        conflicts: those of which a side is shown; ``RankedItem.conflict`` is a place among them.
        merges: which items went into which others, shown or not.
        normalization: how scores were made comparable.
        synthesis: what a model made of the items; ``None`` when none was asked for.
        total_items, deduplicated_items: how many items came in, and how many were left after merging.
        estimated_tokens: of all contents.
        stage_latency_ms: stage → time that it took.
        total_latency_ms: from the question to here.
    """

    question: Question
    recalled: Recalled
    items: tuple[RankedItem, ...]
    conflicts: tuple[ConflictRecord, ...]
    merges: tuple[Merge, ...]
    normalization: Literal["calibrated", "minmax"]
    synthesis: Synthesis | None
    total_items: int
    deduplicated_items: int
    estimated_tokens: int
    stage_latency_ms: Mapping[str, float]
    total_latency_ms: float
