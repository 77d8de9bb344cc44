"""A small engine held in memory, and clients that drive the real app in process."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from api.app import create_app
from nornweave.errors import NoGenerationError, QueryError, StoreError
from nornweave.parts import domain_parts
from nornweave.recall.records import (
    AgentState,
    Citation,
    Explanation,
    RecallItem,
    RecallRequest,
    RecallResponse,
    SourceScore,
)
from nornweave.settings import Settings, load_settings
from nornweave.sync import SyncOptions, run
from nornweave.types import ChunkId, Domain, freeze

CLIENT = "http://nornweave"


@dataclass
class MemoryAgent:
    """Answers every request with as many items as it holds texts; some queries stand for what goes wrong."""

    domain: Domain
    texts: tuple[str, ...] = ("def pay(): ...", "def refund(): ...")
    state: AgentState = AgentState.READY
    generation: str | None = "gen-000001"
    seconds: float = 0.0
    asked: list[RecallRequest] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def agent_id(self) -> str:
        return f"{self.domain.value}-memory"

    def recall(self, request: RecallRequest) -> RecallResponse:
        with self._lock:
            self.asked.append(request)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            time.sleep(self.seconds)
            return self._answer(request)
        finally:
            with self._lock:
                self.at_once -= 1

    def _answer(self, request: RecallRequest) -> RecallResponse:
        if self.generation is None:
            raise NoGenerationError(f"{self.domain.value}: nothing is published yet; run `nornweave sync`")
        if request.text == "damaged":
            raise StoreError("gen-000001: cannot be read, roll back or sync again")
        if request.text == "defect":
            raise KeyError("secret detail of the implementation")
        if request.text == "wrong text":
            raise QueryError("query", "no words in it")
        for key in request.filters:
            if key != "language":
                raise QueryError(f"filters.{self.domain.value}.{key}", "unknown filter; allowed: language")
        items = tuple(self._item(number, request) for number in range(min(request.top_k, len(self.texts))))
        return RecallResponse(
            agent_id=self.agent_id,
            domain_id=self.domain,
            generation=self.generation,
            indexed_at="2026-01-20T10:00:00Z",
            items=items,
            retrieval=MappingProxyType({"dense": "ok", "sparse": "empty", "fulltext": "off", "structured": "failed"}),
            total_searched=len(self.texts),
            latency_ms=1.23456,
            notices=("structured: not built",),
            expansions=("pay money",) if request.expand == "on" else (),
        )

    def _item(self, number: int, request: RecallRequest) -> RecallItem:
        citation = Citation(
            domain_id=self.domain,
            source_id="payments",
            source_path=f"src/größe/{number}.py",
            timestamp=datetime(2026, 1, 20, 10, tzinfo=UTC),
            line_range=(1, 2),
            char_range=(0, 10),
            page=None,
            section=None,
            message_ids=("1.0", "2.0") if number else None,
            url=None,
            title="pay",
            revision="abc1234",
            stale=False,
        )
        return RecallItem(
            chunk_id=ChunkId(f"chunk-{number}"),
            content=self.texts[number],
            score=0.9 - number / 10,
            citation=citation,
            sources=MappingProxyType({"dense": SourceScore(number + 1, 0.71)}),
            rerank_score=0.5 if request.rerank == "on" else None,
            metadata=freeze({"language": "python", "nested": freeze({"a": ("b", 1)})}),
            explanation=Explanation(
                weights={"dense": 1.0}, contributions={"dense": 0.5}, combined=0.5, bonuses={"symbol_match": 0.15}
            )
            if request.explain
            else None,
        )

    def describe(self) -> dict[str, Any]:
        return {
            "agent_id": self.agent_id,
            "domain_id": self.domain,
            "name": self.domain.value.title(),
            "description": "Held in memory.",
            "filters": [{"key": "language", "type": "string"}],
            "generation": self.generation,
        }

    def health(self) -> dict[str, Any]:
        missing = "nothing is published yet; run `nornweave sync`"
        return {
            "state": self.state,
            "generation": self.generation,
            "checks": {"generation": "ok" if self.generation else missing},
            "statistics": {"requests": len(self.asked)},
            "notices": [] if self.generation else [missing],
        }


class MemoryEngine:
    """Agents in memory; started and closed like the real one."""

    def __init__(self, *agents: MemoryAgent) -> None:
        self.agents: Mapping[Domain, MemoryAgent] = {agent.domain: agent for agent in agents}
        self.calls: list[str] = []

    def start(self, *, wait: bool = True) -> None:
        self.calls.append(f"start wait={wait}")

    def close(self) -> None:
        self.calls.append("close")


def write_settings(folder: Path, *domains: str) -> Settings:
    """Write a configuration with a source per domain."""
    lines = ["data_dir: var", "sources:"]
    for domain in domains or ("code", "documentation"):
        (folder / domain).mkdir(exist_ok=True)
        lines.append(f"  - {{id: {domain}, domain: {domain}, type: files, path: {domain}}}")
    file = folder / "nornweave.yaml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return load_settings(file, {})


HASHED = "{embedding: {model: 'hash:64', dimensions: 64}, reranking: {model: null}}"
CORPUS = {
    "code/ledger.py": 'def post_entry(entry):\n    """Post an entry to the ledger."""\n    return entry\n',
    "code/refund.py": "def refund(payment):\n    return payment.amount\n",
    "docs/guide.md": "# Guide\n\nPayments settle in two days.\n",
    "docs/faq.md": "# FAQ\n\nRefunds take a week.\n",
}


def write_corpus(folder: Path) -> Settings:
    """Write documents of two domains and a configuration whose encoder needs no model."""
    for path, text in CORPUS.items():
        (folder / path).parent.mkdir(exist_ok=True)
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
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=CLIENT) as client:
            client.app = app  # type: ignore[attr-defined]
            yield client


Ask = Callable[..., httpx.Response]


def is_problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """Check that a response is a problem document and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert document["title"] and document["detail"] and document["type"]
    assert "Traceback" not in response.text
    return document
