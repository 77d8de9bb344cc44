"""A workspace with tokens, synced and served in this process, and requests to the whole application as somebody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from api.app import create_app
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import line_of
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

SERVICE = "service-token-of-the-operator"
"""The token of the operator."""
_HASHED = {"embedding": {"model": "hash:64", "dimensions": 64}, "reranking": {"model": None}}
_READY_S = 120
_ADDRESS = "http://127.0.0.1"


def write_workspace(
    folder: Path,
    documents: Mapping[str, str],
    sources: Sequence[Mapping[str, Any]],
    people: Mapping[str, Sequence[str]],
) -> Settings:
    """Write documents, tokens (token → groups) and a configuration of documentation alone."""
    write_documents(folder, documents)
    lines = [line_of(token, groups, name=token) for token, groups in people.items()]
    (folder / "tokens.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    configured = {
        "data_dir": "var",
        "sources": list(sources),
        "domains": {"documentation": {**_HASHED, "storage": {"keep_generations": 9}}},
        "access": {"tokens": "tokens.yaml"},
    }
    file = folder / "nornweave.yaml"
    file.write_text(json.dumps(configured), encoding="utf-8")
    return load_settings(file, {})


def write_documents(folder: Path, documents: Mapping[str, str]) -> None:
    """Write files as they are, their line ends too."""
    for path, text in documents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode("utf-8", "surrogatepass"))


def publish(settings: Settings) -> int:
    """Sync the documentation, deletions without confirmation; return how many documents have nothing to show."""
    options = SyncOptions(run_id="access", wait_s=0, confirm_deletes=True)
    report = run(domain_parts(settings, Domain.DOCUMENTATION), options)
    return len(report.failed)


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[ASGIApp]:
    """Run the application over the real engine, and wait until it answers."""
    app = create_app(settings, environment={"NORNWEAVE_SERVICE_TOKEN": SERVICE})
    async with app.router.lifespan_context(app):
        async with as_somebody(app, SERVICE) as operator, asyncio.timeout(_READY_S):
            while (await operator.get("/ready")).status_code != httpx.codes.OK:
                await asyncio.sleep(0.02)
        yield app


def as_somebody(app: ASGIApp, token: str) -> httpx.AsyncClient:
    """Return a client that sends a token with every request."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=_ADDRESS, headers={"authorization": f"Bearer {token}"}, timeout=60
    )


@dataclass(slots=True)
class Outcome:
    """What came of a campaign.

    Attributes:
        tried: how often each thing was tried.
        shown: what somebody saw who must not.
    """

    tried: dict[str, int] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)

    def count(self, name: str) -> None:
        """Count a try."""
        self.tried[name] = self.tried.get(name, 0) + 1
