"""One answer from several domains, as JSON: ``FusionResult``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.answer.context_budget import estimate_tokens
from nornweave.ask.fuse.answerable import Answerable
from nornweave.ask.fuse.rank import query_type
from nornweave.ask.fuse.records import (
    Answer,
    ConflictRecord,
    ConflictSide,
    ExtractedSentence,
    FusedItem,
    MergeReason,
    Synthesis,
)
from nornweave.ask.search.records import Citation
from nornweave.ask.views.items import (
    CitationDocument,
    CoverageDocument,
    GapDocument,
    ItemDocument,
    citation_document,
    coverage_document,
    gap_document,
    item_document,
)
from nornweave.ask.views.shaping import in_shape, moment_text
from nornweave.core.types import Fact
from nornweave.disagree.facts.expressions import as_written
from nornweave.disagree.facts.values import stated


class ClaimDocument(TypedDict):
    """A fact that a chunk states."""

    chunk_id: str
    domain_id: str
    source_path: str
    agent_id: Annotated[str | None, Field(description="who says so on another machine; null for what is served here")]
    timestamp: str | None
    kind: str | None
    name: Annotated[str | None, Field(description="of the thing, words in lower case")]
    owner: Annotated[str | None, Field(description="what the thing belongs to: class, function, headings")]
    attribute: str | None
    value: str | None
    unit: str | None
    qualifiers: Annotated[list[str], Field(description="why it may not be meant as a fact about now")]
    statement: Annotated[str | None, Field(description="the sentence or line that says it")]
    char_range: Annotated[list[int] | None, Field(description="[start, end) in the document's text")]


_NOTHING_SAID: Mapping[str, object] = {
    **dict.fromkeys(("kind", "name", "owner", "attribute", "value", "unit", "statement", "char_range")),
    "qualifiers": [],
}


class SideDocument(ClaimDocument):
    """One side of a conflict: its statement and its role."""

    role: Annotated[str, Field(description="`holds`, `agrees` with it, `differs`, or `says` where nothing is settled")]
    written: Annotated[str | None, Field(description="the value as the statement writes it")]
    updated_at: Annotated[str | None, Field(description="of the line where git knows it, else of the document")]
    revision: Annotated[str | None, Field(description="of the line where git knows it, else of the document")]
    author: Annotated[str | None, Field(description="of the line; null where it is not known")]


class ItemConflictDocument(TypedDict):
    """An item's part in a conflict."""

    index: Annotated[int, Field(description="place in the answer's `conflicts`, from 0")]
    role: Annotated[str, Field(description="`holds`, `agrees` with what holds, `demoted` or `flagged`")]


class FusedItemDocument(ItemDocument):
    """A chunk that answers, in its final place."""

    corroborated_by: Annotated[list[CitationDocument], Field(description="who says the same")]
    conflict: ItemConflictDocument | None
    shortened: Annotated[bool, Field(description="the content was cut to its most relevant sentences")]


class SinceDocument(TypedDict):
    """The commit that wrote the newer line of a conflict."""

    commit: str
    author: str | None
    date: str
    subject: Annotated[str | None, Field(description="the first line of its message; null where it is not known")]


class ConflictDocument(TypedDict):
    """Chunks that contradict each other, and how that was resolved."""

    id: Annotated[str, Field(description="of both statements; `POST /conflicts/{id}/dismiss` says that it is none")]
    items: list[str]
    detector: str
    entity: str
    attribute: str
    asked_about: Annotated[bool, Field(description="always true: other conflicts are in `GET /conflicts` alone")]
    since: Annotated[
        SinceDocument | None, Field(description="the commit after which they disagree; null where git is not known")
    ]
    values: Annotated[list[str | None], Field(description="what each says, as it writes it, in the order of `items`")]
    claims: Annotated[list[SideDocument], Field(description="what each says, in the order of `items`")]
    resolution: str
    resolved_to: Annotated[str | None, Field(description="the chunk that holds; null for a flagged conflict")]
    reason: str
    explanation: str
    confidence: Annotated[float, Field(description="the probability that it is a contradiction, in [0, 1]")]


class StatisticsDocument(TypedDict):
    """Numbers of items that came in, were left after deduplication, and are shown; estimated tokens."""

    total_items: int
    deduplicated_items: int
    final_items: int
    estimated_tokens: int


class ExtractDocument(TypedDict):
    """A sentence that answers, word for word."""

    text: str
    chunk_id: Annotated[str, Field(description="the item that it stands in")]
    char_range: Annotated[list[int], Field(description="[start, end) in the content of that chunk")]


class MergeDocument(TypedDict):
    """Two items that say the same. One of them was kept."""

    kept: Annotated[str, Field(description="the chunk that is shown")]
    dropped: Annotated[str, Field(description="the chunk that says the same; `corroborated_by` cites it")]
    reason: Annotated[
        MergeReason, Field(description="`same_chunk`, `same_text`, `contained` in the other, or `same_meaning`")
    ]
    similarity: Annotated[float, Field(description="in [0, 1]")]


class SynthesisDocument(TypedDict):
    """The outcome of the synthesis."""

    reason: Annotated[str | None, Field(description="why there is none")]
    model: str | None
    cited: list[str]
    unknown_citations: Annotated[list[str], Field(description="taken out of the text: they name nothing it was given")]
    links_left_out: Annotated[int, Field(description="taken out of the text: addresses of nothing it was given")]


class AnswerableDocument(TypedDict):
    """Whether something in an answer answers the question."""

    probability: Annotated[float | None, Field(description="in [0, 1]; null where agents elsewhere answered as well")]
    unknown_words: Annotated[list[str], Field(description="of the question, that no passage holds")]
    words: Annotated[str, Field(description="what a reader should know; empty where something probably answers")]


class FusionResult(TypedDict):
    """One answer out of all domains."""

    query_id: str
    query: str
    items: list[FusedItemDocument]
    extract: Annotated[list[ExtractDocument], Field(description="at most three that answer, the best first")]
    nearest: Annotated[list[ExtractDocument], Field(description="at most three that may answer, if that is doubtful")]
    answerable: AnswerableDocument
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
    merged: NotRequired[Annotated[list[MergeDocument], Field(description="with `explain`: what the duplicates were")]]
    stats: StatisticsDocument
    stage_latency_ms: dict[str, float]
    total_latency_ms: float
    trace_id: str


def answer_document(answer: Answer) -> FusionResult:
    """Return an answer as JSON: items, conflicts, gaps and details."""
    question, recalled = answer.question, answer.recalled
    document: FusionResult = {
        "query_id": question.query_id,
        "query": question.asked or question.text,
        "items": [fused_item_document(item, answer.conflicts) for item in answer.items],
        "extract": extract_document(answer.extract),
        "nearest": extract_document(answer.nearest),
        "answerable": answerable_document(answer.answerable),
        "synthesis": answer.synthesis.text if answer.synthesis else None,
        "synthesis_details": synthesis_document(answer.synthesis) if answer.synthesis else None,
        "conflicts": [conflict_document(conflict) for conflict in answer.conflicts],
        "coverage": coverage_document(recalled),
        "coverage_gaps": [gap_document(gap) for gap in recalled.coverage_gaps],
        "domains_queried": list(recalled.asked),
        "domain_signals": {domain: round(signal, 3) for domain, signal in recalled.domain_signals.items()},
        "query_type": query_type(question.text).value,
        "normalization": answer.fused.normalization,
        "duplicates_removed": len(answer.fused.merges),
        "stats": {
            "total_items": answer.fused.total_items,
            "deduplicated_items": answer.fused.deduplicated_items,
            "final_items": len(answer.items),
            "estimated_tokens": sum(estimate_tokens(item.content) for item in answer.items),
        },
        "stage_latency_ms": dict(answer.stage_latency_ms),
        "total_latency_ms": round(answer.total_latency_ms, 3),
        "trace_id": question.trace_id,
    }
    if question.explain:
        document["merged"] = [
            in_shape(MergeDocument, merge, similarity=round(merge.similarity, 6)) for merge in answer.fused.merges
        ]
    return document


def extract_document(sentences: Sequence[ExtractedSentence]) -> list[ExtractDocument]:
    """Return sentences as JSON, each with its range of characters in its chunk."""
    return [
        {"text": each.text, "chunk_id": each.chunk_id, "char_range": [each.span.start, each.span.end]}
        for each in sentences
    ]


def answerable_document(answerable: Answerable) -> AnswerableDocument:
    """Return as JSON whether some item answers the question."""
    return in_shape(AnswerableDocument, answerable)


def fused_item_document(ranked: FusedItem, conflicts: Sequence[ConflictRecord]) -> FusedItemDocument:
    """Return an item of a fused answer as JSON."""
    document = item_document(ranked.item)
    return {
        **document,
        "content": ranked.content,
        "score": {
            "value": round(ranked.score, 6),
            "signals": {name: round(value, 6) for name, value in ranked.signals.items()},
        },
        "corroborated_by": [citation_document(citation) for citation in ranked.corroborated_by],
        "conflict": item_role(ranked, conflicts),
        "shortened": ranked.shortened,
    }


def conflict_document(conflict: ConflictRecord) -> ConflictDocument:
    """Return a conflict with all its sides as JSON."""
    sides = [_side(side) for side in conflict.sides]
    return in_shape(ConflictDocument, conflict, claims=sides, since=_since(conflict.sides))


def _since(sides: Sequence[ConflictSide]) -> SinceDocument | None:
    """Return the commit of the newest line; ``None`` unless the author of every side's line is known."""
    origins = [side.origin for side in sides]
    dated = [(origin.written_at, origin) for origin in origins if origin and origin.written_at]
    if len(dated) < len(origins) or not dated:
        return None
    moment, origin = max(dated, key=lambda each: each[0])
    return {
        "commit": origin.revision,
        "author": origin.author or None,
        "date": moment_text(moment) or "",
        "subject": origin.subject or None,
    }


def synthesis_document(synthesis: Synthesis) -> SynthesisDocument:
    """Return as JSON how a model's text was written, or why there is none."""
    return in_shape(SynthesisDocument, synthesis)


def claim_document(fact: Fact | None, chunk_id: str, citation: Citation) -> ClaimDocument:
    """Return the fact of a chunk with its citation as JSON. Without a fact, the keys of the fact are null."""
    said = {"value": stated(fact), "char_range": [fact.span.start, fact.span.end]} if fact else _NOTHING_SAID
    return in_shape(ClaimDocument, citation, fact, chunk_id=chunk_id, **said)


def _side(side: ConflictSide) -> SideDocument:
    origin = side.origin
    return {
        **claim_document(side.fact, side.chunk_id, side.citation),
        "role": side.role,
        "written": as_written(side.fact) if side.fact else None,
        "updated_at": moment_text(origin.written_at if origin else side.citation.timestamp),
        "revision": origin.revision if origin else side.citation.revision,
        "author": (origin.author or None) if origin else None,
    }


def item_role(ranked: FusedItem, conflicts: Sequence[ConflictRecord]) -> ItemConflictDocument | None:
    """Return an item's part in a conflict; ``None`` if it has none."""
    if ranked.conflict is None:
        return None
    conflict = conflicts[ranked.conflict]
    said = next(side.role for side in conflict.sides if side.chunk_id == ranked.chunk_id)
    role = "demoted" if ranked.demoted else "flagged" if said == "says" else said
    return {"index": ranked.conflict, "role": role}
