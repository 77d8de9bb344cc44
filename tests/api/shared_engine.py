"""Requests to an app in process, and one engine for all requests that change nothing."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from api_support import CLIENT, Ask
from fastapi import FastAPI
from scripted_engine import ScriptedEngine

from api.app import create_app
from nornweave.config import Settings


async def sent(asgi: FastAPI, method: str, path: str, **request: Any) -> httpx.Response:
    if "json_of" in request:
        body = json.dumps(request.pop("json_of")).encode()
        request |= {"content": body, "headers": {"content-type": "application/json"}}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url=CLIENT) as client:
        return await client.request(method, path, **request)


@contextmanager
def sharing(settings: Settings) -> Iterator[tuple[ScriptedEngine, Ask]]:
    """Give an engine and what asks it, as ``ask`` does: making both takes ten times as long as asking.

    Tools need an app that runs, so these have none.
    """
    apps: dict[str, FastAPI] = {}
    with ScriptedEngine(settings, watch=False) as engine, asyncio.Runner() as runner:

        def send(method: str, path: str, *, app: dict[str, Any] | None = None, **request: Any) -> httpx.Response:
            options = {"environment": {}, **(app or {})}
            if repr(options) not in apps:
                apps[repr(options)] = create_app(settings, engine, **options)
            return runner.run(sent(apps[repr(options)], method, path, **request))

        yield engine, send
