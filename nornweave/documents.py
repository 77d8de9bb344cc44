"""Items and answers as JSON has them (contract §4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.fusion.records import ConflictRecord, ConflictSide, RankedItem, Synthesis
from nornweave.ingest.inbox import InboxDocument
from nornweave.recall.items import citation_of
from nornweave.recall.records import Citation, Explanation, RecallItem, RecallResponse, SourceState
from nornweave.store.generation import StoredChunk, StoredText
from nornweave.types import Claim, Domain


class ScoreDocument(TypedDict):
    """A score in [0, 1], comparable between domains, and its parts where they were asked for."""

    value: float
    signals: dict[str, float]


class CitationDocument(TypedDict):
    """Where an item stands."""

    domain_id: str
    source_id: str
    source_path: Annotated[str, Field(description="relative to the source's `path`")]
    timestamp: Annotated[str | None, Field(description="ISO 8601, UTC")]
    line_range: Annotated[list[int] | None, Field(description="first and last line, from 1")]
    char_range: Annotated[list[int], Field(description="[start, end) in the document's text")]
    page: int | None
    section: str | None
    message_ids: Annotated[list[str] | None, Field(description="the messages that the chunk itself holds")]
    url: str | None
    title: str | None
    revision: str | None
    stale: Annotated[bool, Field(description="a newer version of the document could not be ingested")]


class SourceScoreDocument(TypedDict):
    """What one retrieval source gave an item: its rank, from 1, and its score, higher is better."""

    rank: int
    score: float


class ExplanationDocument(TypedDict):
    """How a score came about: what each retrieval source contributed, and what came on top."""

    weights: dict[str, float]
    contributions: dict[str, float]
    combined: float
    bonuses: dict[str, float]
    model_score: float | None


class ItemDocument(TypedDict):
    """A chunk that answers."""

    chunk_id: str
    content: str
    score: ScoreDocument
    citation: CitationDocument
    sources: dict[str, SourceScoreDocument]
    rerank_score: float | None
    metadata: dict[str, Any]
    explanation: NotRequired[ExplanationDocument]


class RecallDocument(TypedDict):
    """One agent's answer; items best first."""

    agent_id: str
    domain_id: str
    items: list[ItemDocument]
    latency_ms: float
    total_searched: Annotated[int, Field(description="chunks that were searched, after filters")]
    retrieval: Annotated[dict[str, SourceState], Field(description="retrieval source → how it went")]
    generation: str
    indexed_at: str
    notices: Annotated[list[str], Field(description="what went otherwise than asked, and why")]
    expansions: Annotated[list[str], Field(description="variants of the query that were searched beside it")]
    calibrated: Annotated[bool, Field(description="the scores compare with those of other agents that say so")]


class ClaimDocument(TypedDict):
    """What a chunk states."""

    chunk_id: str
    domain_id: str
    source_path: str
    timestamp: str | None
    kind: str | None
    attribute: str | None
    value: str | None
    unit: str | None
    statement: Annotated[str | None, Field(description="the sentence or line that says it")]
    char_range: Annotated[list[int] | None, Field(description="[start, end) in the document's text")]


class SideDocument(ClaimDocument):
    """What one side of a conflict says, and what became of it."""

    role: Annotated[str, Field(description="`holds`, `agrees` with it, `differs`, or `says` where nothing is settled")]


class ItemConflictDocument(TypedDict):
    """That an item takes part in a conflict."""

    index: Annotated[int, Field(description="place in the answer's `conflicts`, from 0")]
    role: Annotated[str, Field(description="`holds`, `agrees` with what holds, `demoted` or `flagged`")]


class FusedItemDocument(ItemDocument):
    """A chunk that answers, in its final place."""

    corroborated_by: Annotated[list[CitationDocument], Field(description="who says the same")]
    conflict: ItemConflictDocument | None
    shortened: Annotated[bool, Field(description="the content was cut to its most relevant sentences")]


class ConflictDocument(TypedDict):
    """Chunks that contradict each other, and how that was resolved."""

    items: list[str]
    detector: str
    entity: str
    attribute: str
    claims: Annotated[list[SideDocument], Field(description="what each says, in the order of `items`")]
    resolution: str
    resolved_to: Annotated[str | None, Field(description="the chunk that holds; null for a flagged conflict")]
    reason: str
    explanation: str


class CoverageDocument(TypedDict):
    """How one domain was searched."""

    searched: bool
    reason: NotRequired[str]
    agent_id: NotRequired[str]
    generation: NotRequired[str]
    indexed_at: NotRequired[str]
    total_searched: NotRequired[int]
    retrieval: NotRequired[dict[str, SourceState]]
    latency_ms: NotRequired[float]
    notices: NotRequired[list[str]]


class GapDocument(TypedDict):
    """A domain that was not searched."""

    domain_id: str
    agent_id: str
    reason: str


class StatisticsDocument(TypedDict):
    """How many items came in, were left after deduplication, and are shown; tokens at four characters each."""

    total_items: int
    deduplicated_items: int
    final_items: int
    estimated_tokens: int


class SynthesisDocument(TypedDict):
    """How the synthesis went."""

    reason: Annotated[str | None, Field(description="why there is none")]
    model: str | None
    cited: list[str]
    unknown_citations: Annotated[list[str], Field(description="taken out of the text: they name nothing it was given")]


class FusionResult(TypedDict):
    """One answer out of all domains (contract §4)."""

    query_id: str
    query: str
    items: list[FusedItemDocument]
    synthesis: str | None
    synthesis_details: SynthesisDocument | None
    conflicts: list[ConflictDocument]
    coverage: dict[str, CoverageDocument]
    coverage_gaps: list[GapDocument]
    domains_queried: list[str]
    domain_signals: dict[str, float]
    query_type: str
    normalization: str
    duplicates_removed: int
    stats: StatisticsDocument
    stage_latency_ms: dict[str, float]
    total_latency_ms: float
    trace_id: str


class ChunkDocument(TypedDict):
    """The text behind a citation."""

    chunk_id: str
    domain_id: str
    content: str
    citation: CitationDocument
    metadata: dict[str, Any]
    claims: list[ClaimDocument]
    generation: str


class DocumentDocument(TypedDict):
    """A whole document as it was ingested."""

    domain_id: str
    source_id: str
    source_path: str
    title: str | None
    format: str
    timestamp: str | None
    revision: str | None
    url: str | None
    stale: bool
    metadata: dict[str, Any]
    text: str
    chunks: Annotated[list[str], Field(description="ids of its chunks, in order")]
    generation: str


class LedgerSideDocument(TypedDict):
    """What one domain says."""

    domain_id: str
    source_id: str
    source_path: str
    chunk_id: str
    value: str
    unit: str | None
    statement: str
    char_range: list[int]
    line_range: list[int] | None
    timestamp: str | None


class LedgerEntryDocument(TypedDict):
    """Claims of two domains that disagree."""

    entry_id: str
    entity: str
    attribute: str
    detector: str
    sides: list[LedgerSideDocument]
    suggested: Annotated[str | None, Field(description="the domain that probably holds")]
    reason: str
    explanation: str
    confidence: float
    first_seen: str
    settled: Annotated[str | None, Field(description="when it was gone; null while it stands")]


class LedgerDocument(TypedDict):
    """The conflict ledger: what disagrees in the whole corpus, newest first, grouped by entity."""

    made_at: str | None
    generations: dict[str, str]
    open: list[LedgerEntryDocument]
    settled: list[LedgerEntryDocument]
    notices: list[str]


Deposit: TypeAlias = InboxDocument
"""A document that is handed in, for whoever must not know of ingestion."""


class DepositDocument(TypedDict):
    """What became of a document that was handed in."""

    source_path: str
    status: Literal["ACCEPTED", "REJECTED"]
    reason: str | None


def recall_document(response: RecallResponse) -> RecallDocument:
    """Return an agent's answer as contract §4 has it."""
    return {
        "agent_id": response.agent_id,
        "domain_id": response.domain_id,
        "items": [item_document(item) for item in response.items],
        "latency_ms": round(response.latency_ms, 3),
        "total_searched": response.total_searched,
        "retrieval": dict(response.retrieval),
        "generation": response.generation,
        "indexed_at": response.indexed_at,
        "notices": list(response.notices),
        "expansions": list(response.expansions),
        "calibrated": response.calibrated,
    }


def item_document(item: RecallItem) -> ItemDocument:
    """Return an item as contract §4 has it."""
    document: ItemDocument = {
        "chunk_id": item.chunk_id,
        "content": item.content,
        "score": {"value": item.score, "signals": _signals(item.explanation)},
        "citation": citation_document(item.citation),
        "sources": {source: {"rank": one.rank, "score": one.score} for source, one in item.sources.items()},
        "rerank_score": item.rerank_score,
        "metadata": dict(item.metadata),
    }
    if item.explanation:
        document["explanation"] = _explanation(item.explanation)
    return document


def fused_item_document(ranked: RankedItem, conflicts: Sequence[ConflictRecord]) -> FusedItemDocument:
    """Return an item of a fused answer."""
    document = item_document(ranked.tagged.item)
    return {
        **document,
        "content": ranked.content,
        "score": {
            "value": round(ranked.score, 6),
            "signals": {name: round(value, 6) for name, value in ranked.signals.items()},
        },
        "corroborated_by": [citation_document(citation) for citation in ranked.tagged.corroborated_by],
        "conflict": _role(ranked, conflicts),
        "shortened": ranked.shortened,
    }


def conflict_document(conflict: ConflictRecord) -> ConflictDocument:
    """Return a conflict with both sides."""
    return {
        "items": list(conflict.items),
        "detector": conflict.detector.value,
        "entity": conflict.entity,
        "attribute": conflict.attribute,
        "claims": [_side(side) for side in conflict.sides],
        "resolution": conflict.resolution.value,
        "resolved_to": conflict.resolved_to,
        "reason": conflict.reason,
        "explanation": conflict.explanation,
    }


def synthesis_document(synthesis: Synthesis) -> SynthesisDocument:
    """Return how a synthesis went."""
    return {
        "reason": synthesis.reason,
        "model": synthesis.model,
        "cited": list(synthesis.cited),
        "unknown_citations": list(synthesis.unknown_citations),
    }


def claim_document(claim: Claim | None, chunk_id: str, citation: Citation) -> ClaimDocument:
    """Return what a chunk states; without a claim where it stands."""
    return {
        "chunk_id": chunk_id,
        "domain_id": citation.domain_id,
        "source_path": citation.source_path,
        "timestamp": _utc(citation.timestamp),
        "kind": claim.kind if claim else None,
        "attribute": claim.attribute if claim else None,
        "value": claim.value if claim else None,
        "unit": claim.unit if claim else None,
        "statement": claim.statement if claim else None,
        "char_range": [claim.span.start, claim.span.end] if claim else None,
    }


def _side(side: ConflictSide) -> SideDocument:
    return {**claim_document(side.claim, side.chunk_id, side.citation), "role": side.role}


def _role(ranked: RankedItem, conflicts: Sequence[ConflictRecord]) -> ItemConflictDocument | None:
    if ranked.conflict is None:
        return None
    conflict = conflicts[ranked.conflict]
    if conflict.resolved_to is None:
        role = "flagged"
    elif conflict.resolved_to == ranked.tagged.item.chunk_id:
        role = "holds"
    else:
        role = "demoted" if ranked.tagged.demoted else "agrees"
    return {"index": ranked.conflict, "role": role}


def citation_document(citation: Citation) -> CitationDocument:
    """Return where something stands."""
    return {
        "domain_id": citation.domain_id,
        "source_id": citation.source_id,
        "source_path": citation.source_path,
        "timestamp": _utc(citation.timestamp),
        "line_range": list(citation.line_range) if citation.line_range else None,
        "char_range": list(citation.char_range),
        "page": citation.page,
        "section": citation.section,
        "message_ids": list(citation.message_ids) if citation.message_ids else None,
        "url": citation.url,
        "title": citation.title,
        "revision": citation.revision,
        "stale": citation.stale,
    }


def _signals(explanation: Explanation | None) -> dict[str, float]:
    return {**explanation.contributions, **explanation.bonuses} if explanation else {}


def _explanation(explanation: Explanation) -> ExplanationDocument:
    return {
        "weights": dict(explanation.weights),
        "contributions": dict(explanation.contributions),
        "combined": explanation.combined,
        "bonuses": dict(explanation.bonuses),
        "model_score": explanation.model_score,
    }


def _utc(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None


def chunk_document(domain: Domain, chunk: StoredChunk, generation: str) -> ChunkDocument:
    """Return the text behind a citation."""
    citation = citation_of(domain, chunk)
    return {
        "chunk_id": chunk.chunk_id,
        "domain_id": domain.value,
        "content": chunk.content,
        "citation": citation_document(citation),
        "metadata": dict(chunk.metadata),
        "claims": [claim_document(claim, chunk.chunk_id, citation) for claim in chunk.claims],
        "generation": generation,
    }


def document_document(
    domain: Domain, source_id: str, path: str, stored: StoredText, generation: str
) -> DocumentDocument:
    """Return a whole document."""
    return {
        "domain_id": domain.value,
        "source_id": source_id,
        "source_path": path,
        "title": stored.title,
        "format": stored.format,
        "timestamp": _utc(stored.updated_at),
        "revision": stored.revision,
        "url": stored.url,
        "stale": stored.stale,
        "metadata": dict(stored.metadata),
        "text": stored.text,
        "chunks": list(stored.chunk_ids),
        "generation": generation,
    }
