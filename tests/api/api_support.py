"""Settings, corpora, and clients that drive the real app in process."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from pydantic import TypeAdapter
from waiting import until_async

from api.app import create_app
from nornweave.ask.search.question import Question
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

CLIENT = "http://nornweave"


HASHED = "{embedding: {model: 'hash:64', dimensions: 64}, reranking: {model: null}}"
CORPUS = {
    "code/ledger.py": 'def post_entry(entry):\n    """Post an entry to the ledger."""\n    return entry\n',
    "code/refund.py": "def refund(payment):\n    return payment.amount\n",
    "code/größe #1/0.py": "SIZE = 1\n",
    "docs/guide.md": "# Guide\n\nPayments settle in two days.\n",
    "docs/faq.md": "# FAQ\n\nRefunds take a week.\n",
}


def write_corpus(folder: Path) -> Settings:
    """Write documents of two domains and a configuration whose encoder needs no model."""
    for path, text in CORPUS.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    lines = [
        "data_dir: var",
        "sources:",
        "  - {id: ledger, domain: code, type: files, path: code}",
        "  - {id: handbook, domain: documentation, type: files, path: docs}",
        f"domains: {{code: {HASHED}, documentation: {HASHED}}}",
    ]
    file = folder / "nornweave.yaml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return load_settings(file, {})


def publish(settings: Settings) -> None:
    """Sync every domain."""
    for domain in settings.served_domains:
        run(domain_parts(settings, domain), SyncOptions(run_id="test", wait_s=0))


@asynccontextmanager
async def client_of(settings: Settings, engine: Any, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Run the app, lifespan included, and talk to it in process."""
    app = create_app(settings, engine, **{"environment": {}, **options})
    async with app.router.lifespan_context(app):
        agents = app.state.serving.engine.agents.values()
        await until_async(lambda: all(agent._started for agent in agents))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=CLIENT) as client:
            client.app = app  # type: ignore[attr-defined]
            yield client


Ask = Callable[..., httpx.Response]


def as_asked(asked: Question, text: str, **options: Any) -> Question:
    """Return the question that was meant, with what the request was given when it arrived."""
    arrival = {name: getattr(asked, name) for name in ("now", "query_id", "trace_id", "deadline", "viewer")}
    return Question(text=text, **{**arrival, **options})


def conforms(kind: type, document: object) -> None:
    """Check a document against its declaration: nothing missing, nothing of another type, nothing besides."""
    declared = TypeAdapter(kind)
    assert declared.dump_python(declared.validate_python(document), mode="json") == document


def is_problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """Check that a response is a problem document and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert document["title"] and document["detail"] and document["type"]
    assert "Traceback" not in response.text
    return document


def declared_routes(routes: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every route with its path, those of included routers too."""
    for route in routes:
        if hasattr(route, "original_router"):
            yield from declared_routes(route.original_router.routes, prefix + route.include_context.prefix)
        else:
            yield re.sub("^/web/.*", "/web/{file}", prefix + route.path), route


def routes_of(routes: Iterable[Any]) -> Iterator[str]:
    """Yield method and path of every route."""
    for path, route in declared_routes(routes):
        yield from (f"{method} {path}" for method in sorted(route.methods - {"HEAD"}))
