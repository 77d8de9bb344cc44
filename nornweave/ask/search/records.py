"""The records of one domain's answer: its items and their origins. ``question.py`` has the question."""

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
    """The lines to find.

    Attributes:
        domains: the domains to search; all served ones if empty.
        filters: declared filter key → value, for each of these domains.
        document: the path of the only document to search, as citations print it; ``None`` searches all.
    """

    pattern: LinePattern
    limit: int
    domains: tuple[Domain, ...] = ()
    filters: Filters = field(default_factory=lambda: MappingProxyType({}))
    document: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """The place of an item.

    Attributes:
        agent_id: the remote agent of the item, with which ``source_id`` begins; ``None`` for items
            served here.
        verified_at: when the source last confirmed this version of the document; ``None`` if not known.
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
        """Return the path; for a remote agent with its name in front: ``vault:docs/a.md``."""
        return f"{self.agent_id}:{self.source_path}" if self.agent_id else self.source_path


@dataclass(frozen=True, slots=True)
class SourceScore:
    """The rank (from 1) and score (higher is better) that one retriever gave an item."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class DomainRank:
    """The rank of a document in its domain.

    Attributes:
        rank: the rank of its best chunk, from 1.
        margin: how far its score is below that of the last wanted item; zero or less if it is wanted itself.
        retrievers: retriever → the document's rank in that retriever's result, from 1.
    """

    rank: int
    margin: float
    retrievers: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The parts of an item's score.

    Attributes:
        weights: retrieval source → its weight; the weights add up to 1.
        contributions: retrieval source → its part of ``combined``.
        combined: the score before reranking, in [0, 1]. It decides the item's place; the final score is the score of
            that place under the weights common to all domains.
        bonuses: heuristic (``symbol_match``, ``recency``, …) → bonus.
        model_score: the score of the cross-encoder, in [0, 1]; ``None`` if none ran.
        query_map: whether dense retrieval searched with the query changed by the domain's map.
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
        rerank_score: the cross-encoder's score, in [0, 1]; ``None`` if no cross-encoder ran.
        facts: its facts; ``None`` if they were not extracted.
        vector: its embedding, normalised, of shape ``(dimensions,)``; ``None`` if the agent does not send it.
        folded: similar items that share its place, best first: tests of one file, other versions, translations.
        told: the fact of the item that the question describes; ``None`` if there is none or no value is asked for.
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
    """The place and score of an item at one stage."""

    score: float
    citation: Citation


@dataclass(frozen=True, slots=True)
class SearchSignals:
    """Signals of a domain's search that tell whether it found an answer.

    Attributes:
        known: words of the question that occur in the domain, as far as the viewer may see it.
        values: the name of a signal (``search/signals.py``) → its value.
        older: a sentence if the question asks for a change that no commit which is read made, or for what came after a
            release that does not exist.
        last_changes: the first chunks of the commits that touch what the question asks the last change of.
    """

    known: frozenset[str]
    values: Mapping[str, float]
    older: str = ""
    last_changes: frozenset[ChunkId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResponse:
    """One domain's answer.

    Attributes:
        items: best first, ties by chunk number; at most ``top_k``.
        retrieval: retriever → its outcome.
        notices: notes for the asker (a retriever failed and why, no cross-encoder, an older generation answers).
        expansions: variants of the query that were searched beside it.
        total_searched: chunks that were searched, after filters.
        stages: of a traced request: each retriever and ``combined`` → its findings, best first, at most
            ``top_k``; the scores of one stage compare between domains.
        calibrated: whether the scores compare with those of other calibrated agents.
        encoder: the encoder of the items' vectors; only vectors of the same encoder compare.
        signals: signals that tell whether something answers; ``None`` for remote agents.
        left_out: excluded word of the question → the number of chunks that hold it, which were not searched.
        sources: source id → its freshness, for the sources that the viewer may know.
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
    """The freshness of a source.

    Attributes:
        listed_at: when all of its documents were last listed, RFC 3339.
        bound: after how many syncs or how much time a change or deletion takes effect.
        commits_behind: the number of newer commits, along first parents; ``None`` if not known.
        uncommitted: whether its work tree has uncommitted changes; ``None`` if not known.
    """

    listed_at: str | None
    bound: str | None
    commits_behind: int | None = None
    uncommitted: bool | None = None


@dataclass(frozen=True, slots=True)
class CoverageGap:
    """An agent that gave no answer, and the reason. ``elsewhere`` marks a remote agent."""

    domain_id: str
    agent_id: str
    reason: str
    elsewhere: bool = False

    @property
    def name(self) -> str:
        """Return the name of the domain that was not searched, and for a remote agent also the agent's name."""
        return f"{self.domain_id} ({self.agent_id})" if self.elsewhere else self.domain_id
