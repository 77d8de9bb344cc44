"""Any agents' answers: the body of ``POST /fuse``.

What stands around the answers is checked strictly. The answers themselves may come from agents that know less than
ours, or more: of an item only ``chunk_id``, ``content`` and ``score`` are needed; what else they say is passed over.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from api.arrival import Arrival
from api.query_body import (
    MAX_TIMEOUT_MS,
    DiversityField,
    ScoreField,
    StrategyField,
    SynthesizeField,
    TokensField,
)
from api.values import (
    Characters,
    DomainId,
    Line,
    Lines,
    Moment,
    Name,
    PlainJson,
    QuestionText,
    Score,
    Share,
    textual,
)
from nornweave.fusion.records import CoverageGap, Recalled
from nornweave.retrieval.question import ConflictStrategy, Question
from nornweave.retrieval.records import Citation, RecallItem, RecallResponse, SourceScore, SourceState
from nornweave.types import ChunkId, freeze

MAX_ITEMS = 10_000
MAX_RESPONSES = 1_000
MAX_CONTENT_CHARACTERS = 100_000

Count = Annotated[int, Field(ge=0, le=10**12)]


class _Foreign(BaseModel):
    """What an agent says: what we know no use for is passed over."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class CitationBody(_Foreign):
    """Where an item stands, as far as its agent knows."""

    domain_id: DomainId | None = None
    source_id: Line | None = None
    source_path: Annotated[Line | None, Field(description="without one the chunk's id stands in")] = None
    timestamp: Annotated[Moment | None, Field(description="ISO 8601, UTC unless it says otherwise")] = None
    line_range: Annotated[Lines | None, Field(description="first and last line, from 1")] = None
    char_range: Annotated[Characters | None, Field(description="[start, end) in the document's text")] = None
    page: Annotated[int | None, Field(ge=0, le=10**9)] = None
    section: Line | None = None
    message_ids: Annotated[list[Line] | None, Field(max_length=10_000)] = None
    url: Line | None = None
    title: Line | None = None
    revision: Line | None = None
    stale: bool | None = None

    def citation(self, domain_id: str, chunk_id: str, length: int) -> Citation:
        """Return it as fusion takes it; the content's ``length`` where no characters are named."""
        return Citation(
            domain_id=self.domain_id or domain_id,
            source_id=self.source_id or "",
            source_path=self.source_path or chunk_id,
            timestamp=self.timestamp,
            line_range=self.line_range,
            char_range=self.char_range or (0, length),
            page=self.page,
            section=self.section,
            message_ids=None if self.message_ids is None else tuple(self.message_ids),
            url=self.url,
            title=self.title,
            revision=self.revision,
            stale=bool(self.stale),
        )


class SourceScoreBody(_Foreign):
    """What one retrieval source gave an item."""

    rank: Annotated[int, Field(ge=1, le=10**9)]
    score: Annotated[float, Field(allow_inf_nan=False)]


class ItemBody(_Foreign):
    """One item of an agent."""

    chunk_id: Name
    content: Annotated[str, StringConstraints(max_length=MAX_CONTENT_CHARACTERS), AfterValidator(textual)]
    score: Annotated[Score, Field(description="higher is better; any scale unless the agent is `calibrated`")]
    citation: CitationBody | None = None
    sources: Annotated[dict[Name, SourceScoreBody] | None, Field(max_length=16)] = None
    rerank_score: Annotated[float | None, Field(allow_inf_nan=False)] = None
    metadata: PlainJson | None = None

    def item(self, domain_id: str) -> RecallItem:
        """Return it as fusion takes it."""
        sources = {name: SourceScore(source.rank, source.score) for name, source in (self.sources or {}).items()}
        return RecallItem(
            chunk_id=ChunkId(self.chunk_id),
            content=self.content,
            score=self.score,
            citation=(self.citation or _NOWHERE).citation(domain_id, self.chunk_id, len(self.content)),
            sources=MappingProxyType(sources),
            rerank_score=self.rerank_score,
            metadata=freeze(self.metadata or {}),
        )


_NOWHERE = CitationBody()


class ResponseBody(_Foreign):
    """One agent's answer, as `/agents/{domain}/recall` gives it or with less."""

    agent_id: Name
    domain_id: Annotated[DomainId, Field(description="any name; `docs` and `convo` are read as our domains")]
    items: Annotated[list[ItemBody], Field(max_length=MAX_ITEMS)]
    latency_ms: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0
    total_searched: Count = 0
    retrieval: Annotated[dict[Name, SourceState], Field(max_length=16)] = {}
    generation: Line = ""
    indexed_at: Line = ""
    notices: Annotated[list[Line], Field(max_length=100)] = []
    expansions: Annotated[list[Line], Field(max_length=100)] = []
    calibrated: Annotated[
        bool, Field(description="scores are in [0, 1] and compare with those of other agents that say so")
    ] = False

    @model_validator(mode="after")
    def _calibrated_scores(self) -> Self:
        if self.calibrated and not all(0 <= item.score <= 1 for item in self.items):
            raise ValueError("calibrated, but a score is not in [0, 1]")
        return self

    def response(self) -> RecallResponse:
        """Return it as fusion takes it."""
        return RecallResponse(
            agent_id=self.agent_id,
            domain_id=self.domain_id,
            generation=self.generation,
            indexed_at=self.indexed_at,
            items=tuple(item.item(self.domain_id) for item in self.items),
            retrieval=MappingProxyType(dict(self.retrieval)),
            total_searched=self.total_searched,
            latency_ms=self.latency_ms,
            notices=tuple(self.notices),
            expansions=tuple(self.expansions),
            calibrated=self.calibrated,
        )


class GapBody(_Foreign):
    """An agent that gave no answer, and why."""

    domain_id: DomainId
    agent_id: Line = ""
    reason: Line


class FuseBody(BaseModel):
    """Answers of any agents to one question; only `original_text` and `responses` are required."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    original_text: Annotated[QuestionText, Field(description="the question that they answer")]
    responses: Annotated[
        list[ResponseBody], Field(max_length=MAX_RESPONSES, description=f"together at most {MAX_ITEMS:,} items")
    ]
    coverage_gaps: Annotated[list[GapBody], Field(max_length=MAX_RESPONSES)] = []
    conflict_strategy: StrategyField = None
    domain_signals: Annotated[
        dict[DomainId, Share],
        Field(max_length=100, description="domain → how strongly the question is about it; 0.5 unless it is here"),
    ] = {}
    synthesize: SynthesizeField = False
    now: Annotated[Moment | None, Field(description="what recency is counted from; null is the present")] = None
    top_k: Annotated[int | None, Field(ge=1, le=MAX_ITEMS, description="items wanted; null keeps all")] = None
    max_tokens: TokensField = None
    min_score: ScoreField = None
    diversity: DiversityField = None
    timeout_ms: Annotated[
        int | None, Field(ge=1, le=MAX_TIMEOUT_MS, description="for waiting for a turn, and for the synthesis")
    ] = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self._items > MAX_ITEMS:
            raise ValueError(f"{self._items:,} items in all responses; allowed are {MAX_ITEMS:,}")
        return self

    @property
    def _items(self) -> int:
        return sum(len(response.items) for response in self.responses)

    def question(self, arrival: Arrival) -> Question:
        """Return the question that the agents answered, as fusion takes it."""
        return Question(
            text=self.original_text,
            now=self.now or arrival.now,
            viewer=arrival.viewer,
            query_id=arrival.query_id,
            trace_id=arrival.trace_id,
            top_k=max(1, self._items) if self.top_k is None else self.top_k,
            deadline=arrival.deadline,
            strategy=ConflictStrategy(self.conflict_strategy) if self.conflict_strategy else None,
            max_tokens=self.max_tokens,
            min_score=self.min_score,
            diversity=self.diversity,
            synthesize=self.synthesize,
        )

    def recalled(self) -> Recalled:
        """Return the answers as fusion takes them."""
        return Recalled(
            asked={response.domain_id: response.agent_id for response in self.responses},
            responses=tuple(response.response() for response in self.responses),
            coverage_gaps=tuple(CoverageGap(gap.domain_id, gap.agent_id, gap.reason) for gap in self.coverage_gaps),
            domain_signals=MappingProxyType(dict(self.domain_signals)),
        )
