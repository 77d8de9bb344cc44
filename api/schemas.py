"""Shapes of requests and answers. Names and shapes are fixed; fields may be added.

Bodies are checked strictly, without conversions: ``"10"`` and ``true`` are not numbers. Answers are ``TypedDict``s; the
type checker compares them with ``/openapi.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal, NotRequired

from fastapi.responses import Response
from pydantic import Field
from typing_extensions import TypedDict

from api.requests import Body
from api.requests.query import MAX_TIMEOUT_MS, MAX_TOP_K
from nornweave.ask.agents.registry import RemoteState
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import AgentState, Switch
from nornweave.core.text.checked_values import Moment, PlainJson, QuestionText
from nornweave.core.types import Domain

EVENTS, HTML, JSON = "text/event-stream", "text/html", "application/json"


def prefers_html(accept: str, *, otherwise: bool) -> bool:
    """Tell whether a client prefers HTML to JSON; ``otherwise`` if it prefers neither."""
    html, json = _quality(accept, HTML), _quality(accept, JSON)
    return otherwise if html == json else html > json


def prefers_events(accept: str) -> bool:
    """Tell whether a client accepts events by name and prefers them to JSON."""
    return EVENTS in accept.lower() and _quality(accept, EVENTS) > _quality(accept, JSON)


def _quality(accept: str, kind: str) -> float:
    """Return how much a client wants a media type: the weight of the most specific range that covers it."""
    best = (-1, 0.0)
    for entry in accept.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        rank = {"*/*": 0, f"{kind.partition('/')[0]}/*": 1, kind: 2}.get(name, -1)
        if rank >= 0:
            best = max(best, (rank, _weight(parameters)))
    return best[1]


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


class RecallBody(Body):
    """A question to one agent."""

    query_text: Annotated[
        QuestionText, Field(description="In your own words, an identifier or an error line; not blank.")
    ]
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K, description="Items wanted.")] = 10
    filters: Annotated[
        PlainJson,
        Field(description="Declared filter → value; `/agents/{domain}/describe` lists them. All of them must hold."),
    ] = {}
    expand: Annotated[Switch, Field(description="Search variants of the query beside it.")] = "auto"
    rerank: Annotated[Switch, Field(description="Use a cross-encoder.")] = "auto"
    timeout_ms: Annotated[
        int | None, Field(ge=1, le=MAX_TIMEOUT_MS, description="After this, what has been found is the answer.")
    ] = 5000
    explain: Annotated[bool, Field(description="Say how each score came about.")] = False
    now: Annotated[Moment | None, Field(description="What recency is counted from; null is the present.")] = None

    def question(self, domain: Domain, arrived: Question) -> Question:
        """Return ``arrived`` with the fields of this body, as a question to ``domain``."""
        return replace(
            arrived,
            text=self.query_text,
            now=self.now or arrived.now,
            domains=(domain,),
            top_k=self.top_k,
            filters={domain: self.filters},
            expand=self.expand,
            rerank=self.rerank,
            explain=self.explain,
        )


class AgentDocument(TypedDict):
    """An agent in the registry."""

    agent_id: str
    domain_id: Domain
    name: str
    description: str
    state: AgentState | RemoteState
    generation: str | None
    remote: Annotated[bool, Field(description="on another machine; the fields below are of such an agent")]
    url: NotRequired[Annotated[str, Field(description="for who operates the service")]]
    registered_at: NotRequired[str]
    seen_at: NotRequired[Annotated[str, Field(description="the last sign of life")]]
    lease_expires_at: NotRequired[str]
    lease_expired: NotRequired[bool]


class RegistryDocument(TypedDict):
    """All agents."""

    agents: list[AgentDocument]


class LivenessDocument(TypedDict):
    """The process answers."""

    status: Literal["ok"]


class DomainReadiness(TypedDict):
    """Whether a domain answers, and from which generation. ``reason`` says why it does not answer or is degraded.

    ``generation`` is the generation that answers, and ``published`` the one that should. ``age_s`` is the age of
    ``generation``. ``behind_s`` is 0 if ``published`` answers, else the seconds since its publication. On a replica it
    may also be the seconds since the store last named a generation.
    """

    ready: bool
    state: AgentState
    generation: str | None
    published: str | None
    indexed_at: str | None
    age_s: float | None
    behind_s: float
    store_unreached_s: NotRequired[Annotated[float | None, Field(description="of a replica; null: never reached")]]
    reason: str | None


class ReadinessDocument(TypedDict):
    """Whether every served domain answers from a published generation. Without a token ``domains`` are left out."""

    ready: bool
    domains: NotRequired[dict[str, DomainReadiness]]


def json_response(document: object, status: int = 200) -> Response:
    """Return a document of this module as a response."""
    return Response(to_json(document).encode(), status_code=status, media_type="application/json")


def to_json(document: object) -> str:
    """Return a document as JSON, on one line."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    """Return a read-only mapping as a ``dict``, for ``json``."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no place in a JSON document")
