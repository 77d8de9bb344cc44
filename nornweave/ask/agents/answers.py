"""What an agent answers, checked like any input: ours or somebody else's, in a body or over the network.

Agents may know less than ours, or more: of an item only ``chunk_id``, ``content`` and ``score`` are needed; what else
they say is passed over.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from nornweave.ask.search.records import Citation, RecallItem, RecallResponse, SourceScore, SourceState
from nornweave.core.text.checked_values import (
    Characters,
    DomainId,
    Line,
    Lines,
    Moment,
    Name,
    PlainJson,
    Score,
    textual,
)
from nornweave.core.types import ChunkId, freeze

MAX_ITEMS = 10_000
MAX_CONTENT_CHARACTERS = 100_000

Count = Annotated[int, Field(ge=0, le=10**12)]


class Foreign(BaseModel):
    """What an agent says: what we know no use for is passed over."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class CitationBody(Foreign):
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


class SourceScoreBody(Foreign):
    """What one retrieval source gave an item."""

    rank: Annotated[int, Field(ge=1, le=10**9)]
    score: Annotated[float, Field(allow_inf_nan=False)]


class ItemBody(Foreign):
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


class ResponseBody(Foreign):
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
