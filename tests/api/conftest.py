"""Settings over two domains, and a function that drives the app with requests of one test."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_support import Ask, publish, write_corpus
from identity_provider import PEOPLE, Provider, jwk_of
from openai_server import ModelServer
from processes import started  # noqa: F401 - a fixture
from scripted_engine import ScriptedAgent, ScriptedEngine, copied
from shared_engine import sent, sharing

from api.app import create_app
from nornweave.config import Settings
from nornweave.core.types import Domain


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


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
def provider() -> Iterator[Provider]:
    """An identity provider that runs here."""
    with Provider(keys=[jwk_of(PEOPLE, "people")]) as provider:
        yield provider


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
        asgi = create_app(settings, engine, **{"environment": {}, **(app or {})})

        async def main() -> httpx.Response:
            async with asgi.state.tools.run():
                return await sent(asgi, method, path, **request)

        return asyncio.run(main())

    return send


@pytest.fixture(scope="session")
def shared(published: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ScriptedEngine, Ask]]:
    """An engine that nobody changes, and what asks it."""
    with sharing(copied(published, tmp_path_factory.mktemp("shared"))) as shared:
        yield shared


@pytest.fixture
def still_engine(shared: tuple[ScriptedEngine, Ask]) -> ScriptedEngine:
    """The engine that nobody changes; it has been asked nothing yet."""
    shared[0].forget()
    return shared[0]


@pytest.fixture
def still_code(still_engine: ScriptedEngine) -> ScriptedAgent:
    return still_engine.agent(Domain.CODE)


@pytest.fixture
def look(shared: tuple[ScriptedEngine, Ask]) -> Ask:
    """Send a request that changes nothing, as ``ask`` does."""
    return shared[1]
