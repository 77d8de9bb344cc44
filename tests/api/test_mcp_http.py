"""``/mcp`` over HTTP: who may ask, what is refused, what becomes of a call whose client hangs up, and a real server."""

import asyncio
import json
import threading
from typing import Any

import httpx
import httpx2
import pytest
from api_support import CLIENT, Ask, is_problem
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_client import REVISIONS, WITHIN_S, problem, result, tools_of, until_loaded
from processes import SERVE, Started
from scripted_engine import ScriptedEngine

from api.app import create_app
from api.server.limits import MAX_BODY_BYTES, Admission
from nornweave.config import Settings
from nornweave.core.types import Domain

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "pay"}}}
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def test_without_the_token_nothing_is_read(ask: Ask) -> None:
    app = {"environment": {"NORNWEAVE_SERVICE_TOKEN": "s3cret"}}
    is_problem(ask("POST", "/mcp", json=CALL, headers=HEADERS, app=app), 401)
    answer = ask("POST", "/mcp", json=CALL, headers={**HEADERS, "authorization": "Bearer s3cret"}, app=app)
    assert answer.json()["result"]["structuredContent"]["results"]


def test_one_guard_decides_about_the_host(ask: Ask) -> None:
    local = {"names": {"127.0.0.1", "localhost", "[::1]"}}
    assert ask("POST", "/mcp", json=CALL, headers={**HEADERS, "host": "localhost:1"}, app=local).status_code == 200
    is_problem(ask("POST", "/mcp", json=CALL, headers={**HEADERS, "host": "evil.example"}, app=local), 421)
    proxied = {"names": None, "environment": {"NORNWEAVE_URL": "https://search.example.org"}}
    for app, base in (({"names": None}, CLIENT), (proxied, "https://search.example.org")):
        elsewhere = ask("POST", "/mcp", json=CALL, headers={**HEADERS, "host": "search.example.org"}, app=app)
        result = elsewhere.json()["result"]["structuredContent"]["results"][0]
        assert result["url"] == f"{base}/passages/{result['id']}"


def test_what_is_no_message_is_refused(ask: Ask) -> None:
    for method in ("GET", "DELETE", "PUT"):
        refused = ask(method, "/mcp", headers=HEADERS)
        is_problem(refused, 405)
        assert refused.headers["allow"] == "POST"
    is_problem(ask("POST", "/mcp", content=b"x", headers={"content-type": "text/plain"}), 415)
    is_problem(ask("POST", "/mcp", content=b"{}", headers={**HEADERS, "content-length": str(MAX_BODY_BYTES + 1)}), 413)
    for body in (b"", b"{", b"[]", b"{}", b'{"jsonrpc":"2.0","id":1}', b"\xff", b"[" * 5000):
        answer = ask("POST", "/mcp", content=body, headers=HEADERS)
        assert answer.status_code == 400, body
        assert answer.json()["error"]["code"] in {-32700, -32600, -32602}
        modern = ask("POST", "/mcp", content=body, headers={**HEADERS, "mcp-protocol-version": "2026-07-28"})
        assert modern.status_code == 400, body
    is_problem(ask("POST", "/mcp/", json=CALL, headers=HEADERS), 404)


@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_trace_is_the_callers(settings: Settings, engine: ScriptedEngine, mode: str) -> None:
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    async with tools_of(
        settings, engine, mode=mode, headers={"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
    ) as client:
        await result(client, "search", query="pay")
    (asked,) = engine.questions
    assert asked.trace_id == trace_id
    assert asked.query_id and asked.deadline


@pytest.mark.parametrize("mode", REVISIONS)
def test_a_client_that_hangs_up_frees_its_place(settings: Settings, engine: ScriptedEngine, mode: str) -> None:
    agent = engine.agent(Domain.CODE)
    agent.seconds, agent.released = WITHIN_S, threading.Event()
    app = create_app(settings, engine, environment={})
    gate: Admission = app.state.serving.questions
    modern = {**CALL["params"], "_meta": ENVELOPE}  # type: ignore[dict-item]
    message = CALL if mode == "legacy" else {**CALL, "params": modern}
    version = (
        {} if mode == "legacy" else {"mcp-protocol-version": mode, "mcp-method": "tools/call", "mcp-name": "search"}
    )

    async def main() -> None:
        async with app.router.lifespan_context(app):
            hung_up = asyncio.Event()
            call = asyncio.create_task(post(hung_up))
            while not agent.asked:
                await asyncio.sleep(0.01)
            assert gate.admitted == 1
            hung_up.set()
            async with asyncio.timeout(WITHIN_S):
                await call
                while gate.admitted:
                    await asyncio.sleep(0.01)
            assert agent.released
            assert not agent.released.is_set(), "the agent still works; nobody waits for it"
            agent.released.set()

    async def post(hung_up: asyncio.Event) -> None:
        sent: list[dict[str, Any]] = []
        messages = [{"type": "http.request", "body": json.dumps(message).encode()}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            await hung_up.wait()
            return {"type": "http.disconnect"}

        async def send(part: dict[str, Any]) -> None:
            sent.append(part)

        headers = [(name.encode(), value.encode()) for name, value in {**HEADERS, **version, "host": "x"}.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers}
        await app({**scope, "http_version": "1.1", "scheme": "http"}, receive, send)  # type: ignore[arg-type]
        assert not any(part.get("body") for part in sent)

    asyncio.run(main())


@pytest.mark.slow
def test_eight_agents_at_once_ask_several_processes(started: Started, published: Settings) -> None:
    """Over sockets, both revisions: any process answers any call, and every agent gets the same."""
    _, url = started(SERVE, published.file, 2, FUSION_TIMEOUT_SECONDS=str(WITHIN_S), NORNWEAVE_SERVICE_TOKEN="s3cret")
    headers = {"authorization": "Bearer s3cret"}
    assert httpx.post(f"{url}/mcp", json=CALL, headers=HEADERS, trust_env=False).status_code == 401

    async def agent(mode: str) -> str:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=WITHIN_S, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            await until_loaded(client)
            seen = []
            for _ in range(3):
                found = await result(client, "search", query="post_entry")
                fetched = await result(client, "fetch", id=found["results"][0]["id"])
                answered = await result(client, "answer", query="refund payments", max_tokens=1000)
                seen.append(json.dumps([found, fetched, answered]))
                assert fetched["url"] == f"{url}/passages/{fetched['id']}"
                assert "is missing" in await problem(client, "search")
            assert len(set(seen)) == 1
            return seen[0]

    async def main() -> list[str]:
        return await asyncio.gather(*(agent(mode) for mode in REVISIONS for _ in range(4)))

    assert len(set(asyncio.run(main()))) == 1
