"""The records of fusion, which each stage passes to the next. Every record is frozen; no stage changes its input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from nornweave.ask.fuse.answerable import Answerable
from nornweave.ask.search.question import ConflictStrategy, Question
from nornweave.ask.search.records import Citation, CoverageGap, RecallItem, RecallResponse
from nornweave.core.types import ChunkId, Fact, Origin, Span
from nornweave.disagree.conflicts.records import Detector
from nornweave.disagree.facts.expressions import as_written

LoserPolicy: TypeAlias = Literal["demote", "drop"]
Scale: TypeAlias = Literal["calibrated", "minmax", "mixed"]
SideRole: TypeAlias = Literal["holds", "agrees", "differs", "says"]
MergeReason: TypeAlias = Literal["same_chunk", "same_text", "contained", "same_meaning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedItem:
    """An agent's item during fusion. Each stage returns copies with its own fields filled in.

    Attributes:
        item: the agent's item, with its own score.
        relevance: first the agent's score. From stage 2 on it is in [0, 1] and comparable between agents. A lost
            conflict lowers it.
        calibrated: whether the agent declares that its scores compare with those of other calibrated agents.
        encoder: the encoder of ``item.vector``.
        corroborated_by: citations of the items that were merged into this one.
        lost: how much a lost conflict lowered ``relevance``, ≥ 0.
        score: weighted sum of the signals, in [0, 1]; the order of the ranking.
        signals: signal → its part of the score.
        penalty: how much a lost conflict lowered ``score``, ≥ 0.
        conflict: the index of its first conflict among the answer's conflicts; ``None`` without a conflict.
        shown: the part of the content that is shown; ``None`` shows the whole.
    """

    item: RecallItem
    agent: str
    domain: str
    relevance: float
    calibrated: bool = False
    encoder: str | None = None
    facts: tuple[Fact, ...] = ()
    corroborated_by: tuple[Citation, ...] = ()
    demoted: bool = False
    lost: float = 0.0
    score: float = 0.0
    signals: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    penalty: float = 0.0
    conflict: int | None = None
    shown: str | None = None

    @property
    def chunk_id(self) -> ChunkId:
        """Return the item's chunk id."""
        return self.item.chunk_id

    @property
    def citation(self) -> Citation:
        """Return the item's citation."""
        return self.item.citation

    @property
    def content(self) -> str:
        """Return the shown text."""
        return self.item.content if self.shown is None else self.shown

    @property
    def shortened(self) -> bool:
        """Tell whether only a part of the content is shown."""
        return self.shown is not None

    @property
    def is_corroborated(self) -> bool:
        """Tell whether an item of another domain says the same."""
        return any(citation.domain_id != self.domain for citation in self.corroborated_by)


@dataclass(frozen=True, slots=True)
class Merge:
    """Two items that say the same: the one that stayed, the other one, the reason, and their similarity in [0, 1]."""

    kept: ChunkId
    dropped: ChunkId
    reason: MergeReason
    similarity: float


@dataclass(frozen=True, slots=True)
class DedupedItems:
    """Result of stage 3: items without duplicates, in the order of their first versions."""

    items: tuple[FusedItem, ...]
    merges: tuple[Merge, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two items that contradict each other.

    Attributes:
        first, second: indices of the compared items, ``first < second``.
        entity, attribute: the subject, in words for people.
        facts: the contradicting statement of each, in the order of ``first`` and ``second``.
        explanation: one sentence that names both values.
        confidence: in [0, 1].
        is_asked: the sides were compared because the question asks for what they say.
    """

    first: int
    second: int
    detector: Detector
    entity: str
    attribute: str
    facts: tuple[Fact, Fact]
    explanation: str
    confidence: float
    is_asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictSide:
    """One side of a conflict: its statement, place and role. The role is ``says`` if nothing was settled.

    Attributes:
        origin: the author of the line that states it; ``None`` if not known.
    """

    chunk_id: ChunkId
    citation: Citation
    fact: Fact | None
    role: SideRole
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRecord:
    """One conflict with its resolution and the reason.

    Attributes:
        id: the ``pair_id`` of the two statements with the highest confidence.
        items: the chunks of its sides, best first.
        sides: one for each item, in the order of ``items``.
        resolved_to: the item that holds; ``None`` for a flagged conflict.
        reason: why ``resolved_to`` holds, or why no item does.
        confidence: the probability that it is a contradiction, in [0, 1].
        asked_about: always true, because other conflicts are only in the ledger; clients read it.
    """

    id: str
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
    asked_about: bool = True

    @property
    def values(self) -> tuple[str | None, ...]:
        """The value of each side as written, in the order of ``sides``."""
        return tuple(as_written(side.fact) if side.fact else None for side in self.sides)


@dataclass(frozen=True, slots=True)
class ResolvedItems:
    """Result of stage 4: items with the losers of conflicts demoted or removed, and all conflicts."""

    items: tuple[FusedItem, ...]
    conflicts: tuple[ConflictRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """Result of stage 6: a model's text about the items.

    Attributes:
        text: the answer as ``check_written`` returns it, with its citations; ``None`` if there is no text.
        reason: why there is no text, or a remark on the text; ``None`` if there is nothing to remark.
        cited: the items' chunks that the text cites.
        unknown_citations: citations of other chunks, which were removed from the text.
        links_left_out: how many addresses were removed from the text, because no item has them.
    """

    text: str | None
    reason: str | None = None
    model: str | None = None
    cited: tuple[str, ...] = ()
    unknown_citations: tuple[str, ...] = ()
    links_left_out: int = 0


@dataclass(frozen=True, slots=True)
class ExtractedSentence:
    """A sentence of an item, word for word. ``span`` is its place in the chunk's content."""

    chunk_id: ChunkId
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The agents' answers to a question, from an engine or collected by another program.

    Attributes:
        asked: domain → agent, in the order of asking; for answers collected elsewhere, the agents that answered.
        domain_signals: domain → how strongly the question is about it, in [0, 1]; a missing domain counts as 0.5.
    """

    asked: Mapping[str, str]
    responses: tuple[RecallResponse, ...]
    coverage_gaps: tuple[CoverageGap, ...] = ()
    domain_signals: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """Result of stages 1 to 5.

    Attributes:
        items: in their final order.
        conflicts: all conflicts; ``FusedItem.conflict`` is an index into them.
        merges: which items went into which others.
        total_items, deduplicated_items: how many came in, and how many were left after merging.
    """

    items: tuple[FusedItem, ...]
    conflicts: tuple[ConflictRecord, ...]
    merges: tuple[Merge, ...]
    normalization: Scale
    total_items: int
    deduplicated_items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer made from those of several agents. ``views`` makes JSON of it, ``answer/text_renderer.py`` text.

    Attributes:
        items: the shown items, in reading order.
        extract: the sentences of the items that answer, the best first; empty if it is doubtful that any item answers.
        nearest: the sentences that come nearest to an answer, the best first, if it is doubtful that any item answers
            but one may answer; otherwise empty.
        conflicts: conflicts with a shown side; ``FusedItem.conflict`` is an index into them.
        answerable: how probable it is that one of the items answers.
        synthesis: a model's text about the items; ``None`` if none was asked for.
        stage_latency_ms: stage → time that it took.
    """

    question: Question
    recalled: Recalled
    fused: Fused
    items: tuple[FusedItem, ...]
    extract: tuple[ExtractedSentence, ...]
    conflicts: tuple[ConflictRecord, ...]
    answerable: Answerable = field(default_factory=Answerable)
    nearest: tuple[ExtractedSentence, ...] = ()
    synthesis: Synthesis | None
    stage_latency_ms: Mapping[str, float]
    total_latency_ms: float
