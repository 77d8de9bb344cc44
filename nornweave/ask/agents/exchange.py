"""What an agent is sent, and what it may answer: checked like any input, for it is somebody else's text."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from pydantic import ValidationError

from nornweave.ask.agents.answers import ResponseBody
from nornweave.ask.agents.records import Capabilities
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import RecallItem, RecallResponse
from nornweave.config.addresses import is_web_address
from nornweave.core.access.viewer import Viewer
from nornweave.core.errors import AgentError
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain

GROUPS_HEADER = "nornweave-viewer-groups"
"""The groups of whom a question is asked for, percent-encoded, between commas; an answer that has it heeded them."""
MAX_GROUPS = 200


def recall_body(question: Question, domain: Domain, capabilities: Capabilities, left_ms: int | None) -> bytes:
    """Return the body of a recall: fields beyond the first three only where the agent says that it takes them."""
    fields: dict[str, object] = {
        "query_text": question.text,
        "top_k": question.top_k,
        "filters": dict(question.filters.get(domain, {})),
    }
    more = {
        "expand": question.expand,
        "rerank": question.rerank,
        "explain": question.explain,
        "now": utc_text(question.now, "microseconds"),
        "timeout_ms": left_ms,
    }
    fields.update((name, value) for name, value in more.items() if name in capabilities.accepts)
    return json.dumps(fields, default=_plain).encode()


def recall_headers(question: Question, token: str | None, groups: str | None) -> dict[str, str]:
    """Return the headers of a recall: who asks, for whom, and of which trace."""
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    if groups is not None:
        headers[GROUPS_HEADER] = groups
    if question.trace_id:
        headers["traceparent"] = f"00-{question.trace_id}-{secrets.token_hex(8)}-01"
    return headers


def groups_text(viewer: Viewer) -> str:
    """Return a viewer's groups as a header holds them."""
    return ",".join(quote(group, safe="") for group in sorted(viewer.groups)[:MAX_GROUPS])


def read_answer(content: bytes, *, agent_id: str, domain: Domain, top_k: int) -> RecallResponse:
    """Read what an agent answered.

    Its name and domain are those that it registered with; items come best first, each chunk once, ``top_k`` at most.

    Raises:
        AgentError: it is not a recall of this domain.
    """
    try:
        response = ResponseBody.model_validate(json.loads(content)).response()
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise AgentError(
            f"answered with something else than a recall: {where or 'body'}: {first['msg'][:200]}"
        ) from None
    except (ValueError, RecursionError):
        raise AgentError("answered with something else than JSON") from None
    if response.domain_id != domain.value:
        raise AgentError(f"answered for {response.domain_id!r}, and is registered for {domain.value!r}")
    items = _best(response.items, top_k)
    return replace(response, agent_id=agent_id, items=tuple(_placed(item, domain) for item in items))


def _plain(value: object) -> object:
    """Return what ``json`` does not know as what it knows: filters may hold read-only mappings."""
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple | frozenset) else value


def _best(items: Sequence[RecallItem], top_k: int) -> list[RecallItem]:
    """Return the items in the order of their scores, each chunk once."""
    by_chunk: Mapping[str, RecallItem] = {
        item.chunk_id: item
        for item in sorted(items, key=lambda item: item.score)  # the best one stays
    }
    places = {item.chunk_id: place for place, item in reversed(list(enumerate(items)))}
    return sorted(by_chunk.values(), key=lambda item: (-item.score, places[item.chunk_id]))[:top_k]


def _placed(item: RecallItem, domain: Domain) -> RecallItem:
    """Return an item whose citation is of the agent's domain, and leads to the web or nowhere."""
    citation = item.citation
    url = citation.url if citation.url and is_web_address(citation.url) else None
    return replace(item, citation=replace(citation, domain_id=domain.value, url=url))
