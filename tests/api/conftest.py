"""Settings over two domains, and a function that drives the app with requests of one test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_support import CLIENT, publish, write_corpus
from openai_server import ModelServer
from processes import started  # noqa: F401 - a fixture
from scripted_engine import ScriptedAgent, ScriptedEngine, copied

from api.app import create_app
from nornweave.config import Settings
from nornweave.core.types import Domain


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A corpus that was synced; nobody may change it."""
    settings = write_corpus(tmp_path_factory.mktemp("published"))
    publish(settings)
    return settings


@pytest.fixture
def settings(published: Settings, tmp_path: Path) -> Settings:
    """A copy of the corpus, for one test."""
    return copied(published, tmp_path)


@pytest.fixture
def engine(settings: Settings) -> Iterator[ScriptedEngine]:
    """The real engine over the corpus, loaded."""
    with ScriptedEngine(settings, watch=False) as engine:
        yield engine


@pytest.fixture
def code(engine: ScriptedEngine) -> ScriptedAgent:
    return engine.agent(Domain.CODE)


@pytest.fixture
def documentation(engine: ScriptedEngine) -> ScriptedAgent:
    return engine.agent(Domain.DOCUMENTATION)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A language model's server, of which LiteLLM has been told."""
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"{server.address}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "xk_nornweave_0123456789abcdef")
        yield server


@pytest.fixture
def ask(settings: Settings, engine: ScriptedEngine) -> Callable[..., httpx.Response]:
    """Send one request to a fresh app over the engine: ``ask("POST", "/agents/code/recall", json=...)``.

    ``json_of`` is sent as Python writes JSON, which is more than JSON: NaN, and halves of characters.
    """

    def send(method: str, path: str, *, app: dict[str, Any] | None = None, **request: Any) -> httpx.Response:
        if "json_of" in request:
            body = json.dumps(request.pop("json_of")).encode()
            request |= {"content": body, "headers": {"content-type": "application/json"}}
        asgi = create_app(settings, engine, **{"environment": {}, **(app or {})})

        async def main() -> httpx.Response:
            transport = httpx.ASGITransport(asgi)
            async with httpx.AsyncClient(transport=transport, base_url=CLIENT) as client, asgi.state.tools.run():
                return await client.request(method, path, **request)

        return asyncio.run(main())

    return send
