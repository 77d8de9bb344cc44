"""What an answer says of the domains that were searched, and of those that were not, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.fuse.records import Recalled
from nornweave.ask.search.records import CoverageGap, RecallResponse, SourceState


class SourceFreshnessDocument(TypedDict):
    """How fresh what a source gave is."""

    listed_at: Annotated[str | None, Field(description="when it last named all of its documents; RFC 3339")]
    bound: Annotated[str | None, Field(description="how soon a change or deletion there counts")]


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
    """Return how each domain was searched, those that gave no answer included."""
    responses: dict[str, list[RecallResponse]] = {}
    for response in recalled.responses:
        responses.setdefault(response.domain_id, []).append(response)
    reasons = {gap.domain_id: gap.reason for gap in reversed(recalled.coverage_gaps)}
    return {
        domain: _covered_by(responses[domain])
        if domain in responses
        else {"searched": False, "reason": reasons.get(domain, "gave no answer")}
        for domain in dict.fromkeys((*recalled.asked, *reasons))
    }


def gap_document(gap: CoverageGap) -> GapDocument:
    """Return a domain that was not searched, with the reason."""
    document: GapDocument = {"domain_id": gap.domain_id, "agent_id": gap.agent_id, "reason": gap.reason}
    return {**document, "elsewhere": True} if gap.elsewhere else document


def _covered_by(responses: Sequence[RecallResponse]) -> CoverageDocument:
    """Return what the first agent of a domain searched, and with it what others did."""
    document = _covered(responses[0])
    if len(responses) > 1:
        document["others"] = [_covered(response) for response in responses[1:]]
    return document


def _covered(response: RecallResponse) -> CoverageDocument:
    return {
        "searched": True,
        "agent_id": response.agent_id,
        "generation": response.generation,
        "indexed_at": response.indexed_at,
        "total_searched": response.total_searched,
        "retrieval": dict(response.retrieval),
        "latency_ms": response.latency_ms,
        "notices": list(response.notices),
        "sources": {
            name: {"listed_at": each.listed_at, "bound": each.bound} for name, each in response.sources.items()
        },
    }
