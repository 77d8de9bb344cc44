"""One answer out of several domains, as JSON has it (contract §4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.documents.items import CitationDocument, ItemDocument, _utc, citation_document, item_document
from nornweave.fusion.records import ConflictRecord, ConflictSide, RankedItem, Synthesis
from nornweave.recall.records import Citation, SourceState
from nornweave.types import Claim


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
