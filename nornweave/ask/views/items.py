"""Answers of agents and their coverage, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.fuse.records import Recalled
from nornweave.ask.search.records import Citation, CoverageGap, RecallItem, RecallResponse, SourceFreshness, SourceState
from nornweave.ask.views.shaping import LEFT_OUT, in_shape


class ScoreDocument(TypedDict):
    """A score in [0, 1], comparable between domains, with its parts if they were asked for."""

    value: float
    signals: dict[str, float]


class CitationDocument(TypedDict):
    """The place of an item."""

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
    agent_id: Annotated[str | None, Field(description="who says so on another machine; null for what is served here")]
    verified_at: Annotated[
        str | None, Field(description="when the source last confirmed that the document exists as it is; RFC 3339")
    ]


class SourceScoreDocument(TypedDict):
    """The rank (from 1) and score (higher is better) that one retriever gave an item."""

    rank: int
    score: float


class ExplanationDocument(TypedDict):
    """The parts of a score: each retriever's contribution, and the bonuses."""

    weights: dict[str, float]
    contributions: dict[str, float]
    combined: float
    bonuses: dict[str, float]
    model_score: float | None
    query_map: Annotated[bool, Field(description="dense retrieval searched with what was learnt from commits")]


class ItemDocument(TypedDict):
    """A chunk that answers."""

    chunk_id: str
    content: str
    score: ScoreDocument
    citation: CitationDocument
    sources: dict[str, SourceScoreDocument]
    rerank_score: float | None
    metadata: dict[str, Any]
    folded: NotRequired[
        Annotated[
            list[CitationDocument],
            Field(description="what is like it and shares its place: tests of one file, other versions, translations"),
        ]
    ]
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
    notices: Annotated[list[str], Field(description="what could not be done as requested, and why")]
    expansions: Annotated[list[str], Field(description="variants of the query that were searched beside it")]
    calibrated: Annotated[bool, Field(description="the scores compare with those of other agents that say so")]


def recall_document(response: RecallResponse) -> RecallDocument:
    """Return one agent's answer as JSON."""
    return in_shape(
        RecallDocument,
        response,
        items=[item_document(item) for item in response.items],
        latency_ms=round(response.latency_ms, 3),
    )


def item_document(item: RecallItem) -> ItemDocument:
    """Return an item of one agent as JSON."""
    explained = item.explanation
    signals = {**explained.contributions, **explained.bonuses} if explained else {}
    return in_shape(
        ItemDocument,
        item,
        score={"value": item.score, "signals": signals},
        citation=citation_document(item.citation),
        sources={name: {"rank": source.rank, "score": source.score} for name, source in item.sources.items()},
        folded=[citation_document(each) for each in item.folded] or LEFT_OUT,
        explanation=in_shape(ExplanationDocument, explained) if explained else LEFT_OUT,
    )


def citation_document(citation: Citation) -> CitationDocument:
    """Return a citation as JSON."""
    return in_shape(CitationDocument, citation, message_ids=list(citation.message_ids or ()) or None)


class SourceFreshnessDocument(TypedDict):
    """The freshness of a source."""

    listed_at: Annotated[str | None, Field(description="when it last named all of its documents; RFC 3339")]
    bound: Annotated[str | None, Field(description="how soon a change or deletion there counts")]
    commits_behind: NotRequired[
        Annotated[int, Field(description="that its repository is ahead of what was read, along first parents")]
    ]
    uncommitted: NotRequired[Annotated[bool, Field(description="files of its work tree are changed and not committed")]]


def source_freshness_document(source: SourceFreshness) -> SourceFreshnessDocument:
    """Return the freshness of a source as JSON. The keys about git are left out if git said nothing."""
    known = (source.commits_behind, source.uncommitted)
    behind, uncommitted = (LEFT_OUT if each is None else each for each in known)
    return in_shape(SourceFreshnessDocument, source, commits_behind=behind, uncommitted=uncommitted)


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
    sources: NotRequired[
        Annotated[
            dict[str, SourceFreshnessDocument],
            Field(description="of the sources whose documents the asker may see, and to others of those of the items"),
        ]
    ]
    others: NotRequired[
        Annotated[list[CoverageDocument], Field(description="what other agents of the domain searched")]
    ]


class GapDocument(TypedDict):
    """A domain that was not searched."""

    domain_id: str
    agent_id: str
    reason: str
    elsewhere: NotRequired[Annotated[bool, Field(description="the agent is on another machine")]]


def coverage_document(recalled: Recalled) -> dict[str, CoverageDocument]:
    """Return domain → how it was searched, for all domains that were asked."""
    responses: dict[str, list[RecallResponse]] = {}
    for response in recalled.responses:
        responses.setdefault(response.domain_id, []).append(response)
    reasons = {gap.domain_id: gap.reason for gap in reversed(recalled.coverage_gaps)}
    return {
        domain: _domain_coverage(responses[domain])
        if domain in responses
        else {"searched": False, "reason": reasons.get(domain, "gave no answer")}
        for domain in dict.fromkeys((*recalled.asked, *reasons))
    }


def gap_document(gap: CoverageGap) -> GapDocument:
    """Return a domain that was not searched, with the reason."""
    document: GapDocument = {"domain_id": gap.domain_id, "agent_id": gap.agent_id, "reason": gap.reason}
    return {**document, "elsewhere": True} if gap.elsewhere else document


def _domain_coverage(responses: Sequence[RecallResponse]) -> CoverageDocument:
    """Return the coverage of a domain's first agent, with that of its other agents."""
    document = _agent_coverage(responses[0])
    if len(responses) > 1:
        document["others"] = [_agent_coverage(response) for response in responses[1:]]
    return document


def _agent_coverage(response: RecallResponse) -> CoverageDocument:
    freshness = {name: source_freshness_document(each) for name, each in response.sources.items()}
    return in_shape(CoverageDocument, response, searched=True, sources=freshness, reason=LEFT_OUT, others=LEFT_OUT)
