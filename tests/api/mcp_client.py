"""The official client against the app in process, and calls that expect a result or a tool error."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import httpx2
from api_support import CLIENT
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from api.app import create_app
from nornweave.config import Settings

REVISIONS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}
"""How the client opens a connection → the revision that is spoken then."""
WITHIN_S = 60


@asynccontextmanager
async def tools_of(
    settings: Settings,
    engine: Any = None,
    *,
    mode: str = "auto",
    headers: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> AsyncIterator[Client]:
    """Run the app, lifespan included, and connect the official client to it in process."""
    if engine is None:  # it is loaded on a machine that may be busy
        patient = settings.fusion.model_copy(update={"fusion_timeout_seconds": float(WITHIN_S)})
        settings = settings.model_copy(update={"fusion": patient})
    app = create_app(settings, engine, **{"environment": {}, **options})
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app)
        async with (
            httpx2.AsyncClient(transport=transport, headers=dict(headers), timeout=WITHIN_S) as http,
            Client(streamable_http_client(f"{CLIENT}/mcp", http_client=http), mode=mode) as client,
        ):
            client.app = app  # type: ignore[attr-defined]
            yield client


async def until_loaded(client: Client) -> None:
    """Wait until every domain answers."""
    for _ in range(WITHIN_S * 20):
        domains = (await result(client, "status"))["domains"]
        if all(domain["state"] in {"READY", "DEGRADED"} for domain in domains):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(domains)


async def result(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that succeeds: the structure and the text are the same JSON."""
    called = await client.call_tool(tool, arguments)
    assert not called.is_error, text_of(called)
    assert json.loads(text_of(called)) == called.structured_content
    structured: dict[str, Any] = called.structured_content
    return structured


async def problem(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that fails, and return what it says."""
    called = await client.call_tool(tool, arguments)
    assert called.is_error, called
    assert called.structured_content is None
    said = text_of(called)
    assert "Traceback" not in said
    return said


def text_of(called: CallToolResult) -> str:
    (content,) = called.content
    assert isinstance(content, TextContent)
    return content.text
