"""Write down what the worked requests answer: ``python -m lab.record_examples CONFIG [NAME…]``.

``CONFIG`` is that of a synced example corpus. With names only these examples are recorded anew, the others stay. Two of
them hand documents in; one of these the workspace's inbox keeps.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from api.app import create_app
from api.examples import FILE, Worked, worked_examples
from nornweave.config import Settings
from nornweave.config.agents import AgentsSettings, AllowedAgent
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain, JsonValue

MAX_CHARACTERS, MAX_ITEMS, MAX_LINES = 400, 8, 40
QUESTION = "what is the current API version of payments"
IN_PAYMENTS: JsonValue = {"path_glob": "src/payments/**", "language": "python"}
TWO_DOMAINS: Mapping[str, JsonValue] = {
    "query": QUESTION,
    "domains": ["code", "documentation"],
    "top_k": 4,
}
START_S = 60
AGENTS = AgentsSettings(allow=(AllowedAgent(url="https://agents.example.org"),))
NOTHING: Mapping[str, JsonValue] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request that is worked."""

    name: str
    summary: str
    path: str
    method: str = "get"
    parameters: Mapping[str, JsonValue] = field(default_factory=lambda: NOTHING)
    body: JsonValue = None

    @property
    def url(self) -> str:
        """Return the path with its parameters, the rest of them behind a question mark."""
        rest = dict(self.parameters)
        places = {name: quote(str(rest.pop(name))) for name in self.parameters if f"{{{name}}}" in self.path}
        return str(httpx.URL(self.path.format(**places), params={name: str(value) for name, value in rest.items()}))


TWO_AGENTS: JsonValue = {
    "original_text": "what's the error handling behavior in the payment module",
    "responses": [
        {
            "agent_id": "code-memory",
            "domain_id": "code",
            "latency_ms": 280,
            "total_searched": 1200,
            "items": [
                {
                    "chunk_id": "c-001",
                    "content": "def handle_payment_error(e: PaymentError) → Response: "
                    "return JSONResponse(status_code=422, ...)",
                    "score": 0.91,
                    "citation": {"source_path": "src/payments/handlers.py", "timestamp": "2026-01-20"},
                },
                {
                    "chunk_id": "c-002",
                    "content": "class PaymentValidator: def validate(self, req): "
                    'if not req.amount: raise PaymentError("missing amount")',
                    "score": 0.84,
                    "citation": {"source_path": "src/payments/validator.py", "timestamp": "2026-01-18"},
                },
            ],
        },
        {
            "agent_id": "docs-memory",
            "domain_id": "documentation",
            "latency_ms": 190,
            "total_searched": 1170,
            "items": [
                {
                    "chunk_id": "d-001",
                    "content": "## Error Handling — The payment module returns HTTP 400 for malformed requests "
                    "and HTTP 500 for downstream failures.",
                    "score": 0.88,
                    "citation": {"source_path": "docs/api/payments.md", "timestamp": "2025-12-01"},
                }
            ],
        },
    ],
    "coverage_gaps": [{"domain_id": "conversations", "agent_id": "convo-memory", "reason": "timeout after 5000ms"}],
    "domain_signals": {"code": 0.85, "documentation": 0.55},
    "now": "2026-01-22T00:00:00Z",
}
RECALL: JsonValue = {
    "query_text": QUESTION,
    "top_k": 2,
    "filters": IN_PAYMENTS,
}
HANDED_IN: JsonValue = {
    "documents": [
        {
            "source_path": "runbooks/refunds.md",
            "content": "# Refunds\n\nA refund takes three days to arrive.\n",
            "metadata": {"author": "Ada"},
            "source_updated_at": "2026-01-20T10:00:00Z",
        },
        {"source_path": "../outside.md", "content": "never stored"},
    ]
}
RECEIPT = Asked(
    name="receipt",
    summary="A document that was removed",
    method="post",
    path="/receipts",
    body={"domain": "documentation", "source_id": "payments-docs", "source_path": "docs/former-limits.md"},
)
SIGNED = Asked(name="signed", summary="The same, as it was signed", path="/receipts/{receipt_id}")
ASKED = (
    Asked(
        name="question",
        summary="A question to two domains that disagree",
        method="post",
        path="/query",
        body=dict(TWO_DOMAINS),
    ),
    Asked(
        name="text",
        summary="The same as text, for a model's context",
        method="post",
        path="/query",
        body={**TWO_DOMAINS, "max_tokens": 300, "format": "text"},
    ),
    Asked(
        name="filters",
        summary="Filters, a budget and a deadline",
        method="post",
        path="/query",
        body={
            "query": "how long do refunds take",
            "top_k": 2,
            "domains": ["documentation"],
            "filters": {"documentation": {"path_glob": "docs/**"}},
            "conflict_strategy": "FLAG",
            "max_tokens": 500,
            "timeout_ms": 2000,
        },
    ),
    Asked(
        name="wrong",
        summary="Two wrong fields",
        method="post",
        path="/query",
        body={"query": "refunds", "top_k": 0, "domain": "code"},
    ),
    Asked(name="fuse", summary="What two agents said", method="post", path="/fuse", body=TWO_AGENTS),
    Asked(name="find", summary="Lines that hold a text", path="/find", parameters={"text": "API_VERSION", "limit": 3}),
    Asked(name="complete", summary="What goes on with what was typed", path="/complete", parameters={"prefix": "ref"}),
    Asked(
        name="why",
        summary="A document that is not among the first",
        method="post",
        path="/why",
        body={
            "query": QUESTION,
            "domain": "code",
            "source_id": "payments",
            "source_path": "src/payments/webhooks.py",
            "top_k": 3,
        },
    ),
    Asked(name="sources", summary="What is configured, and how it is", path="/sources"),
    Asked(
        name="add-source",
        summary="A site",
        method="post",
        path="/sources",
        body={"id": "manual", "domain": "documentation", "type": "web", "url": "https://docs.example.org/guide/"},
    ),
    Asked(
        name="source-outside",
        summary="A path outside of the workspace",
        method="post",
        path="/sources",
        body={"id": "logs", "domain": "documentation", "type": "files", "path": "/var/log"},
    ),
    Asked(
        name="remove-source",
        summary="The same site",
        method="delete",
        path="/sources/{source_id}",
        parameters={"source_id": "manual"},
    ),
    Asked(name="agents", summary="Who is there", path="/agents"),
    Asked(
        name="register",
        summary="A server of somebody else joins",
        method="post",
        path="/agents/register",
        body={
            "agent_id": "pg-articles",
            "domain_id": "documentation",
            "url": "https://agents.example.org/articles",
            "capabilities": {"accepts": ["timeout_ms"], "description": "Articles in PostgreSQL."},
        },
    ),
    Asked(
        name="heartbeat",
        summary="It is alive, and stops soon",
        method="post",
        path="/agents/{agent_id}/heartbeat",
        parameters={"agent_id": "pg-articles"},
        body={"state": "DRAINING"},
    ),
    Asked(
        name="deregister",
        summary="It leaves",
        method="delete",
        path="/agents/{agent_id}",
        parameters={"agent_id": "pg-articles"},
    ),
    Asked(
        name="recall",
        summary="One domain, with filters",
        method="post",
        path="/agents/{domain}/recall",
        parameters={"domain": "code"},
        body=RECALL,
    ),
    Asked(name="describe", summary="The code agent", path="/agents/{domain}/describe", parameters={"domain": "code"}),
    Asked(name="agent-health", summary="How it is", path="/agents/{domain}/health", parameters={"domain": "code"}),
    Asked(
        name="ingest",
        summary="Two documents, one of which cannot be",
        method="post",
        path="/agents/{domain}/ingest",
        parameters={"domain": "documentation"},
        body=HANDED_IN,
    ),
    Asked(
        name="documents",
        summary="What waits in the inbox",
        path="/agents/{domain}/documents",
        parameters={"domain": "documentation", "source": "inbox", "limit": 2},
    ),
    Asked(
        name="withdraw",
        summary="Taken out of the inbox",
        method="delete",
        path="/agents/{domain}/documents/{source_path}",
        parameters={"domain": "documentation", "source_path": "runbooks/refunds.md"},
    ),
    RECEIPT,
    Asked(name="ledger", summary="One open entry", path="/conflicts", parameters={"limit": 1, "settled": "false"}),
    Asked(
        name="evaluations",
        summary="The newest of the code domain",
        path="/evaluations",
        parameters={"domain": "code", "scope": "domain", "limit": 1},
    ),
    Asked(
        name="compared",
        summary="Two generations, and what got worse",
        path="/evaluations/compare",
        parameters={"domain": "code", "before": "gen-000001", "after": "gen-000002"},
    ),
    Asked(name="models", summary="All domains, and each alone", path="/v1/models"),
    Asked(
        name="chat",
        summary="A question from a chat client, without a model that writes",
        method="post",
        path="/v1/chat/completions",
        body={"model": "nornweave:documentation", "messages": [{"role": "user", "content": QUESTION}]},
    ),
    Asked(name="health", summary="It lives", path="/health"),
    Asked(name="metrics", summary="The first lines", path="/metrics"),
    Asked(name="ready", summary="It answers", path="/ready"),
)
ALONE = (
    Asked(name="recall-alone", summary="With filters", method="post", path="/recall", body=RECALL),
    Asked(name="describe-alone", summary="The code agent", path="/describe"),
    Asked(
        name="ingest-alone",
        summary="A document",
        method="post",
        path="/ingest",
        body={"documents": [{"source_path": "scripts/refund.py", "content": "def refund() -> None: ...\n"}]},
    ),
)


async def record(settings: Settings) -> list[Worked]:
    """Ask everything, once of all domains and once of the code agent alone."""
    async with _client(settings, None) as client:
        worked = [await _worked(client, asked) for asked in ASKED]
        first: Any = worked[0].answer
        worked += [await _worked(client, asked) for asked in (*_judging(first), *_following(first["items"][0]))]
        receipt: Any = next(one for one in worked if one.name == RECEIPT.name).answer
        worked.append(await _worked(client, replace(SIGNED, parameters={"receipt_id": receipt["id"]})))
    async with _client(settings, Domain.CODE) as client:
        return worked + [await _worked(client, asked) for asked in ALONE]


def _judging(answer: Mapping[str, Any]) -> Iterator[Asked]:
    """Return what can be said of an answer, and what cannot."""
    judged: dict[str, JsonValue] = {
        "query_id": answer["query_id"],
        "chunk_id": answer["items"][0]["chunk_id"],
        "useful": True,
    }
    useful = Asked(name="useful", summary="An item was useful", method="post", path="/feedback", body=judged)
    yield useful
    yield replace(useful, name="changed", summary="It was not, after all", body={**judged, "useful": False})
    yield replace(useful, name="not-shown", summary="What was not shown", body={**judged, "chunk_id": "c-001"})
    yield replace(useful, name="forgotten", summary="An answer that is gone", body={**judged, "query_id": "gone"})


def _following(item: Mapping[str, Any]) -> Iterator[Asked]:
    """Return the requests that an answer leads to: to the text behind a citation."""
    citation, path = item["citation"], "/documents/{domain}/{source_id}/{path}"
    place = {"domain": citation["domain_id"], "source_id": citation["source_id"], "path": citation["source_path"]}
    chunk = Asked(name="chunk", summary="A chunk", path="/chunks/{chunk_id}", parameters={"chunk_id": item["chunk_id"]})
    yield chunk
    yield replace(chunk, name="gone", summary="A chunk that is not there", parameters={"chunk_id": "gone"})
    yield Asked(name="document", summary="The document that it is of", path=path, parameters=place)


@asynccontextmanager
async def _client(settings: Settings, agent: Domain | None) -> AsyncIterator[httpx.AsyncClient]:
    settings = settings.model_copy(update={"agents": AGENTS})
    app = create_app(settings, agent=agent, environment={})
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        for _ in range(START_S * 10):
            if (await client.get("/ready")).status_code == 200:
                break
            await asyncio.sleep(0.1)
        yield client


async def _worked(client: httpx.AsyncClient, asked: Asked) -> Worked:
    answer = await client.request(asked.method, asked.url, json=asked.body)
    media_type = answer.headers["content-type"].partition(";")[0]
    return Worked(
        name=asked.name,
        summary=asked.summary,
        method=asked.method,
        path=asked.path,
        parameters=asked.parameters,
        body=asked.body,
        status=answer.status_code,
        media_type=media_type,
        answer=shortened(answer.json())
        if media_type.endswith("json")
        else "".join(answer.text.splitlines(True)[:MAX_LINES]),
    )


def shortened(value: JsonValue) -> JsonValue:
    """Return a value whose long texts end in ``…`` and whose long lists end early."""
    if isinstance(value, str):
        return value if len(value) <= MAX_CHARACTERS else value[:MAX_CHARACTERS].rstrip() + " …"
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    return [shortened(one) for one in value[:MAX_ITEMS]] if isinstance(value, list) else value


def main(config: str, *names: str) -> None:
    """Write the file that ``api/examples.py`` reads."""
    recorded = {one.name: one for one in asyncio.run(record(load_settings(Path(config), {})))}
    if names:
        before = {one.name: one for one in worked_examples()}
        recorded = {name: one if name in names else before[name] for name, one in recorded.items()}
    written = json.dumps([asdict(one) for one in recorded.values()], ensure_ascii=False, indent=1)
    FILE.write_text(written + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
