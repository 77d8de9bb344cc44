"""The nouns of one domain's answer: its items, and where each of them comes from. ``question.py`` has what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from nornweave.core.types import NO_METADATA, ChunkId, Domain, Fact, JsonValue, Metadata

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nornweave.index.searching.finding import LinePattern

Switch: TypeAlias = Literal["auto", "on", "off"]
SourceState: TypeAlias = Literal["ok", "empty", "timeout", "failed", "off"]
Filters: TypeAlias = Mapping[str, JsonValue]


class RetrievalSource(StrEnum):
    """The four ways in which a domain is searched."""

    DENSE = "dense"
    SPARSE = "sparse"
    FULLTEXT = "fulltext"
    STRUCTURED = "structured"


class AgentState(StrEnum):
    """The lifecycle of an agent: ``STARTING → READY ⇄ DEGRADED → DRAINING → OFFLINE``."""

    STARTING = "STARTING"
    READY = "READY"
    DEGRADED = "DEGRADED"
    DRAINING = "DRAINING"
    OFFLINE = "OFFLINE"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindQuery:
    """Which lines are looked for.

    Attributes:
        domains: where; all that are served when empty.
        filters: declared filter key → value, for each of these domains.
        document: the path of the only document that is read, as citations print it.
    """

    pattern: LinePattern
    limit: int
    domains: tuple[Domain, ...] = ()
    filters: Filters = field(default_factory=lambda: MappingProxyType({}))
    document: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Where an item stands.

    Attributes:
        agent_id: the agent on another machine that says so, which ``source_id`` begins with; ``None`` for what is
            served here.
        verified_at: when the source last confirmed that the document exists as it is; ``None`` where nobody knows.
    """

    domain_id: str
    source_id: str
    source_path: str
    timestamp: datetime | None
    line_range: tuple[int, int] | None
    char_range: tuple[int, int]
    page: int | None
    section: str | None
    message_ids: tuple[str, ...] | None
    url: str | None
    title: str | None
    revision: str | None
    stale: bool
    agent_id: str | None = None
    verified_at: datetime | None = None

    @property
    def shown_path(self) -> str:
        """Return the path, with the agent that it belongs to where that is not here: ``vault:docs/a.md``."""
        return f"{self.agent_id}:{self.source_path}" if self.agent_id else self.source_path


@dataclass(frozen=True, slots=True)
class SourceScore:
    """What one retrieval source gave an item: its rank, from 1, and its score, higher is better."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class DomainRank:
    """Where a domain ranks a document.

    Attributes:
        rank: of its best chunk, from 1.
        margin: what that lacks to the last one that is wanted; below 0 where it is among them.
        retrievers: retriever → rank there, from 1.
    """

    rank: int
    margin: float
    retrievers: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How an item's score came about.

    Attributes:
        weights: retrieval source → its share, together 1.
        contributions: retrieval source → its part of ``combined``.
        combined: what the domain orders by before reranking, in [0, 1]. The item's score is what its place in that
            order is worth beside other domains, by weights that all of them share.
        bonuses: heuristic (``symbol_match``, ``recency``, …) → bonus.
        model_score: of the cross-encoder, in [0, 1], if one ran.
        query_map: whether dense retrieval searched with the query as the domain's map says.
    """

    weights: Mapping[str, float]
    contributions: Mapping[str, float]
    combined: float
    bonuses: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    model_score: float | None = None
    query_map: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallItem:
    """A chunk that answers, with its citation.

    Attributes:
        score: calibrated, in [0, 1]: comparable between the domains of one engine.
        sources: retrieval source → rank and score, for those that found it.
        rerank_score: the cross-encoder's, in [0, 1]; ``None`` when none ran.
        facts: what it states; ``None`` when nobody has looked.
        vector: its embedding, normalised, of shape ``(dimensions,)``; ``None`` when the agent does not say.
        folded: what is like it and shares its place, best first: tests of one file, other versions, translations.
        told: which of its facts the question describes, if it asks for a value.
    """

    chunk_id: ChunkId
    content: str
    score: float
    citation: Citation
    sources: Mapping[str, SourceScore]
    rerank_score: float | None = None
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)
    explanation: Explanation | None = None
    facts: tuple[Fact, ...] | None = None
    vector: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    folded: tuple[Citation, ...] = ()
    told: Fact | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a stage found something, and the score that it gave."""

    score: float
    citation: Citation


@dataclass(frozen=True, slots=True)
class SearchSignals:
    """What the search of a domain says of whether something in it answers.

    Attributes:
        known: those of the question's words that stand somewhere in the domain, as far as the viewer may see it.
        values: by name (``search/signals.py``).
    """

    known: frozenset[str]
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResponse:
    """One domain's answer.

    Attributes:
        items: best first, ties by chunk number; at most ``top_k``.
        retrieval: retrieval source → how it went.
        notices: what the asker should know (a source failed and why, no cross-encoder, an older generation answers).
        expansions: variants of the query that were searched beside it.
        total_searched: chunks that were searched, after filters.
        stages: of a traced request: each retrieval source and ``combined`` → what it found, best first, at most
            ``top_k``; the scores of one stage compare between domains.
        calibrated: whether the scores compare with those of other agents that say the same.
        encoder: what made the items' vectors; only vectors of one encoder compare.
        signals: what the search says of whether something answers; ``None`` of agents elsewhere.
        left_out: words that the question leaves out → chunks that hold them, and were not searched.
        sources: by source id, as far as the viewer may know of it, when it was last listed, and its bound.
    """

    agent_id: str
    domain_id: str
    generation: str
    indexed_at: str
    items: tuple[RecallItem, ...]
    retrieval: Mapping[str, SourceState]
    total_searched: int
    latency_ms: float
    notices: tuple[str, ...] = ()
    expansions: tuple[str, ...] = ()
    stages: Mapping[str, tuple[Placed, ...]] = field(default_factory=lambda: MappingProxyType({}))
    calibrated: bool = False
    encoder: str | None = None
    signals: SearchSignals | None = None
    left_out: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    sources: Mapping[str, SourceFreshness] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """How fresh what a source gave is.

    Attributes:
        listed_at: when it last named all of its documents, RFC 3339.
        bound: after which syncs, or how much time, what was changed or deleted there stops answering.
        commits_behind: that came since, along first parents; ``None`` where that is not known.
        uncommitted: files of its work tree were changed since the last commit; ``None`` where that is not known.
    """

    listed_at: str | None
    bound: str | None
    commits_behind: int | None = None
    uncommitted: bool | None = None


@dataclass(frozen=True, slots=True)
class CoverageGap:
    """An agent that gave no answer, and why; ``elsewhere`` for one on another machine."""

    domain_id: str
    agent_id: str
    reason: str
    elsewhere: bool = False

    @property
    def name(self) -> str:
        """Return what was not searched: the domain, of an agent elsewhere with its name."""
        return f"{self.domain_id} ({self.agent_id})" if self.elsewhere else self.domain_id
