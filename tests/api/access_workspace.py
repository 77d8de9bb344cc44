"""A workspace of two teams: sources for groups, a file of tokens, and clients that each send their own token."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
from api_support import CLIENT
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from api.app import create_app
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import line_of
from nornweave.ingest.ledger import refresh_ledger
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

SERVICE = "service-token-of-the-operator"
STAFF, BOARD, OUTSIDER, CHIEF = ("nw_staff", "nw_board", "nw_outsider", "nw_chief")
TOKENS = {STAFF: ["staff"], BOARD: ["board"], OUTSIDER: ["guests"], CHIEF: ["chiefs"]}
# A word that stands in the documents of one group alone, and nowhere else.
SECRET, INNER = "zebracorn", "mooseberry"
HASHED = {"embedding": {"model": "hash:64", "dimensions": 64}, "reranking": {"model": None}}
FILES = {
    "open/guide.md": "# Guide\n\nPayments settle in two days. The retry limit is 3.\n",
    "board/plan.md": f"# Plan\n\nThe {SECRET} deal closes in May. The retry limit is 9.\n",
    "open/marked.md": f"---\naccess: [staff]\n---\n# Marked\n\nThe {INNER} key is with operations.\n",
    "code/limits.py": "RETRY_LIMIT = 5\n",
    "vault/keys.py": f'{SECRET.upper()}_LIMIT = 7\n\n\ndef open_{SECRET}():\n    """Open it."""\n',
}
SOURCES = [
    {"id": "guide", "domain": "documentation", "type": "files", "path": "open"},
    {"id": "board", "domain": "documentation", "type": "files", "path": "board", "access": ["board"]},
    {"id": "code", "domain": "code", "type": "files", "path": "code"},
    {"id": "vault", "domain": "code", "type": "files", "path": "vault", "access": ["board"]},
]


def write_access_workspace(folder: Path, access: Mapping[str, Any] | None = None) -> Settings:
    """Write documents, tokens and a configuration; ``access`` replaces the usual one."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    write_tokens(folder, TOKENS)
    return configure_access(folder, {"tokens": "tokens.yaml", "operators": ["chiefs"]} if access is None else access)


def write_tokens(folder: Path, tokens: Mapping[str, list[str]]) -> None:
    """Write the file of tokens anew."""
    lines = [line_of(token, groups, name=token[3:]) for token, groups in tokens.items()]
    (folder / "tokens.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def configure_access(folder: Path, access: Mapping[str, Any], sources: list[dict[str, Any]] = SOURCES) -> Settings:
    """Write the configuration alone, anew."""
    document: dict[str, Any] = {
        "data_dir": "var",
        "sources": sources,
        "domains": {"documentation": HASHED, "code": HASHED},
        **({"access": access} if access else {}),
    }
    file = folder / "nornweave.yaml"
    file.write_text(json.dumps(document), encoding="utf-8")
    return load_settings(file, {})


def publish_access(settings: Settings) -> None:
    """Sync every domain, and bring the ledger up to date."""
    for domain in settings.served_domains:
        report = run(domain_parts(settings, domain), SyncOptions(run_id="test", wait_s=0))
        assert not report.failed, report
    refresh_ledger(settings)


@asynccontextmanager
async def app_of(settings: Settings, **options: Any) -> AsyncIterator[Any]:
    """Run the app over the real engine, and wait until it answers."""
    app = create_app(settings, **{"environment": {"NORNWEAVE_SERVICE_TOKEN": SERVICE}, **options})
    async with app.router.lifespan_context(app):
        async with client_as(app, SERVICE) as operator:
            async with asyncio.timeout(120):
                while (await operator.get("/ready")).status_code != 200:
                    await asyncio.sleep(0.02)
        yield app


def client_as(app: Any, token: str | None, **headers: str) -> httpx.AsyncClient:
    """Return a client that sends a token with every request."""
    sent = {**headers, **({"authorization": f"Bearer {token}"} if token else {})}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=CLIENT, headers=sent)


@asynccontextmanager
async def tools_as(app: Any, token: str) -> AsyncIterator[Client]:
    """Connect the official client of the tools, with a token."""
    transport, headers = httpx2.ASGITransport(app), {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{CLIENT}/mcp", http_client=http)) as client,
    ):
        yield client
