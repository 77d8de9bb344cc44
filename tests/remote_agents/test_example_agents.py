"""The servers of ``examples/agents``, over real engines: they join, and one answer is made of both and of ours."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest
from postgres_server import new_database
from recall_workspace import FILES, SOURCES, publish
from remote_hub import Hub

from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain

EXAMPLES = Path(__file__).parents[2] / "examples" / "agents"
TOKEN = "opens-the-examples"
TEXTS = [
    ("Chargebacks", "A chargeback is disputed within 45 days; the evidence goes to the acquirer.", "2026-02-01"),
    ("Refund limits", "Refunds above 500 EUR need a second approval by the payments team.", "2026-03-01"),
    ("Office plants", "The plants are watered on Fridays.", "2025-01-01"),
]
QUESTION = "refund approval of the payments team"
Serve = Callable[..., Hub]


@pytest.fixture
def running() -> Iterator[Callable[..., str]]:
    """Start an example, return its URL."""
    processes: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: str, **environment: str) -> str:
        command = [sys.executable, str(EXAMPLES / program), *arguments, "--port", "0"]
        variables = {**os.environ, "AGENT_TOKEN": TOKEN, **environment}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=variables)
        processes.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    yield start
    for process in processes:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@pytest.fixture
def sqlite(running: Callable[..., str], tmp_path: Path) -> str:
    file = tmp_path / "notes.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("create virtual table notes using fts5(title, body, url unindexed, updated_at unindexed)")
        rows = [(title, body, f"https://notes.example.org/{title}", at) for title, body, at in TEXTS]
        connection.executemany("insert into notes values (?, ?, ?, ?)", rows)
    return running("sqlite_fts5.py", str(file), "--domain", "conversations")


@pytest.fixture
def postgresql(running: Callable[..., str]) -> str:
    database = new_database()
    with psycopg.connect(database) as connection:
        connection.execute(
            "create table articles (id int primary key, title text, body text, url text, updated_at timestamptz)"
        )
        with connection.cursor() as cursor:
            rows = [(place, title, body, None, at) for place, (title, body, at) in enumerate(TEXTS)]
            cursor.executemany("insert into articles values (%s, %s, %s, %s, %s)", rows)
    return running("postgresql.py", DATABASE_URL=database)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_an_example_ranks_by_its_engine_and_refuses_who_has_no_token(
    engine: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(engine)
    body = {"query_text": f"{QUESTION}'; drop table notes; --", "top_k": 2, "filters": {}}
    headers = {"authorization": f"Bearer {TOKEN}"}
    answer = httpx.post(f"{url}/recall", json=body, headers=headers).json()
    assert answer["items"][0]["citation"]["title"] == "Refund limits"
    assert 1 <= len(answer["items"]) <= 2
    assert answer["total_searched"] >= 1
    assert httpx.post(f"{url}/recall", json=body).status_code == 401
    assert httpx.post(f"{url}/recall", json={**body, "filters": {"x": 1}}, headers=headers).status_code == 422
    assert httpx.post(f"{url}/recall", content=b"[", headers=headers).status_code == 422
    assert httpx.post(f"{url}/recall", json={"query_text": "!?"}, headers=headers).json()["items"] == []


def test_one_answer_is_made_of_postgresql_of_sqlite_and_of_ours(
    postgresql: str, sqlite: str, hub: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLES_TOKEN", TOKEN)
    for path, text in FILES.items():
        (tmp_path / "hub" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "hub" / path).write_text(text)
    allow = [{"url": url, "token_env": "EXAMPLES_TOKEN"} for url in (postgresql, sqlite)]
    served = hub(*allow, sources=[source for source in SOURCES if source["domain"] == "documentation"])
    publish(load_settings(tmp_path / "hub" / "nornweave.yaml", {}), Domain.DOCUMENTATION)
    served = hub(*allow, sources=[source for source in SOURCES if source["domain"] == "documentation"])
    assert served.register(postgresql, "pg-articles", "documentation").status_code == 201
    assert served.register(sqlite, "fts-notes", "conversations").status_code == 201
    answer = served.query(QUESTION, timeout_ms=60_000)
    assert answer["normalization"] == "mixed"
    assert [gap for gap in answer["coverage_gaps"] if gap["agent_id"] in {"pg-articles", "fts-notes"}] == []
    documentation = answer["coverage"]["documentation"]
    assert documentation["agent_id"] == "docs-memory"
    assert [other["agent_id"] for other in documentation["others"]] == ["pg-articles"]
    assert answer["coverage"]["conversations"]["agent_id"] == "fts-notes"
    sources = {item["citation"]["source_id"] for item in answer["items"]}
    assert "handbook" in sources
    # The text is in both engines: one of them is shown, the other one corroborates it.
    (refund,) = [item for item in answer["items"] if "second approval" in item["content"]]
    both = {refund["citation"]["domain_id"], *(place["domain_id"] for place in refund["corroborated_by"])}
    assert both == {"documentation", "conversations"}
