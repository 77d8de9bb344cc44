"""The nouns of fusion: what each stage hands to the next. Every record is frozen; no stage changes what it is given."""

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
    """An item of an agent, with what fusion knows of it: each stage hands on copies in which it has filled in its part.

    Attributes:
        item: as the agent answered it, its own score included.
        relevance: the agent's score, from stage 2 on comparable between agents, in [0, 1]; a lost conflict lowers it.
        calibrated: whether the agent's scores compare with those of other agents that say the same.
        encoder: what made ``item.vector``.
        corroborated_by: citations of the items that were merged into this one.
        lost: what that took off ``relevance``, ≥ 0.
        score: weighted sum of the signals, in [0, 1]; the order of the ranking.
        signals: signal → its part of the score.
        penalty: what a lost conflict took off ``score``, ≥ 0.
        conflict: place among the answer's conflicts of the first one it takes part in, if any.
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
        """Return the chunk that it is."""
        return self.item.chunk_id

    @property
    def citation(self) -> Citation:
        """Return where it stands."""
        return self.item.citation

    @property
    def content(self) -> str:
        """Return the text that is shown."""
        return self.item.content if self.shown is None else self.shown

    @property
    def shortened(self) -> bool:
        """Tell whether only a part of the content is shown."""
        return self.shown is not None

    @property
    def is_corroborated(self) -> bool:
        """Tell whether another domain says the same."""
        return any(citation.domain_id != self.domain for citation in self.corroborated_by)


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

    items: tuple[FusedItem, ...]
    merges: tuple[Merge, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two items that contradict each other.

    Attributes:
        first, second: places among the items that were looked at, ``first < second``.
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
        id: of the two statements that disagree most surely (``pair_id``).
        items: the chunks that take part, best first.
        sides: what each says, in the order of ``items``.
        resolved_to: the item that holds; ``None`` for a flagged conflict.
        reason: why that one holds, or why none does.
        confidence: the probability that it is a contradiction, in [0, 1].
        asked_about: the question names what it is about; others change no order.
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
        """What each side says, as it writes it, in the order of ``sides``."""
        return tuple(as_written(side.fact) if side.fact else None for side in self.sides)


@dataclass(frozen=True, slots=True)
class ResolvedItems:
    """Stage 4: items with the losers of conflicts demoted or gone, and the record of each conflict."""

    items: tuple[FusedItem, ...]
    conflicts: tuple[ConflictRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """Stage 6: what the model made of the items.

    Attributes:
        text: the answer with its citations, quoted as ``check_written`` does; ``None`` when there is none.
        reason: why there is none, or what to know of the text.
        cited: chunks that the text cites and that it was given.
        unknown_citations: citations in the text that name nothing it was given; they are taken out of the text.
        links_left_out: addresses of nothing that it was given; they are taken out of the text.
    """

    text: str | None
    reason: str | None = None
    model: str | None = None
    cited: tuple[str, ...] = ()
    unknown_citations: tuple[str, ...] = ()
    links_left_out: int = 0


@dataclass(frozen=True, slots=True)
class ExtractedSentence:
    """A sentence of an item, word for word; ``span`` is where it stands in the content of the chunk."""

    chunk_id: ChunkId
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What agents answered to a question: those of an engine, or any that a program asked by itself.

    Attributes:
        asked: domain → agent: of all that were asked, in their order; of given answers, those that answered.
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
        conflicts: all of them; ``FusedItem.conflict`` is a place among them.
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
    """One answer out of those of several agents; ``views`` makes JSON of it, ``answer/text_renderer.py`` text.

    Attributes:
        items: those that are shown, in reading order.
        extract: the sentences of the items that answer, the best first.
        conflicts: those of which a side is shown; ``FusedItem.conflict`` is a place among them.
        answerable: how probable it is that one of them answers.
        synthesis: what a model made of the items; ``None`` when none was asked for.
        stage_latency_ms: stage → time that it took.
    """

    question: Question
    recalled: Recalled
    fused: Fused
    items: tuple[FusedItem, ...]
    extract: tuple[ExtractedSentence, ...]
    conflicts: tuple[ConflictRecord, ...]
    answerable: Answerable = field(default_factory=Answerable)
    synthesis: Synthesis | None
    stage_latency_ms: Mapping[str, float]
    total_latency_ms: float
