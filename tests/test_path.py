"""The whole path with nothing in between: a file changes on disk, and the answer over HTTP is another one."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forked
import httpx
import pytest
from command_line import nornweave
from configurations import files, write_config

CODE = '''"""Deliver webhooks to merchants."""

WEBHOOK_TIMEOUT_SECONDS = 10


def deliver_webhook(endpoint: str, event: dict) -> int:
    """Post an event to the endpoint of a merchant and return the status of the answer."""
    return post(endpoint, event, timeout=WEBHOOK_TIMEOUT_SECONDS)
'''
PAGE = """# Webhooks

## Delivery

The webhook timeout is {seconds} seconds. An endpoint that takes longer is asked again later.
"""
QUESTION = {"query": "what is the webhook timeout", "domains": ["code", "documentation"]}
START_S = SWAP_S = 120.0


def run(workspace: Path, *arguments: str) -> dict[str, Any]:
    done = nornweave(workspace, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for path, text in (("code/webhooks.py", CODE), ("docs/webhooks.md", PAGE.format(seconds=30))):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text, encoding="utf-8")
    write_config(tmp_path, files("service", "code", "code"), files("handbook", path="docs"))
    return tmp_path


@pytest.fixture
def client(workspace: Path) -> Iterator[Callable[[], httpx.Client]]:
    """Serve when asked to, in a process of its own, and end it afterwards."""
    servers: list[forked.Popen] = []

    def serve() -> httpx.Client:
        out = workspace / "serve.out"
        with out.open("wb") as writing:
            variables = {name: value for name, value in os.environ.items() if name != "NORNWEAVE_SERVICE_TOKEN"}
            config = ("--config", str(workspace / "nornweave.yaml"))
            command = [sys.executable, "-m", "nornweave.cli", *config, "serve", "--port", "0", "--json"]
            servers.append(forked.Popen(command, stdout=writing, env=variables))
        deadline = time.monotonic() + START_S
        while not out.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        return httpx.Client(base_url=json.loads(out.read_text())["url"], timeout=START_S)

    yield serve
    for server in servers:
        server.terminate()
        server.wait(START_S)


def until(client: httpx.Client, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask until the answer is the expected one; a publication answers within a second or two."""
    deadline = time.monotonic() + SWAP_S
    while True:
        answer = dict(client.post("/query", json=QUESTION).raise_for_status().json())
        if holds(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.1)


@pytest.mark.slow
def test_from_a_changed_file_to_a_changed_answer(workspace: Path, client: Callable[[], httpx.Client]) -> None:
    run(workspace, "sync")
    ledger = run(workspace, "conflicts")
    assert [{side["value"] for side in entry["sides"]} for entry in ledger["open"]] == [{"10", "30"}]

    with client() as asking:
        first = until(asking, lambda answer: bool(answer["items"]))
        (conflict,) = first["conflicts"]
        assert sorted(claim["value"] for claim in conflict["claims"]) == ["10", "30"]
        assert {claim["source_path"] for claim in conflict["claims"]} == {"webhooks.py", "webhooks.md"}
        assert conflict["detector"] == "same_entity_divergence"
        assert asking.get("/conflicts").json()["open"][0]["sides"][0]["statement"]

        (workspace / "docs/webhooks.md").write_text(PAGE.format(seconds=10), encoding="utf-8")
        assert run(workspace, "sync")["documentation"]["changed"] == 1

        second = until(asking, lambda answer: not answer["conflicts"])
        assert second["conflicts"] == []
        page = next(item for item in second["items"] if item["citation"]["source_path"] == "webhooks.md")
        assert "10 seconds" in page["content"]
        assert "30 seconds" not in json.dumps(second)
        chunk = asking.get(f"/chunks/{page['chunk_id']}").json()
        start, end = chunk["citation"]["char_range"]
        document = asking.get("/documents/documentation/handbook/webhooks.md").json()
        assert document["text"][start:end].strip() == chunk["content"].strip()

        now = asking.get("/conflicts").json()
        assert now["open"] == []
        assert [entry["entry_id"] for entry in now["settled"]] == [ledger["open"][0]["entry_id"]]


def printed(workspace: Path, *arguments: str) -> tuple[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    # Nobody listens there: the fallback is refused at once.
    variables |= {"COLUMNS": "160", "OLLAMA_API_BASE": "http://127.0.0.1:9"}
    done = nornweave(workspace, *arguments, variables=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.slow
def test_what_the_command_line_is_told_about_a_conflict_it_heeds(workspace: Path) -> None:
    """What it prints of one is in the tutorial, which ``test_documented_output`` runs."""
    run(workspace, "sync")
    question = ("query", QUESTION["query"])
    text, _ = printed(workspace, *question, "--text")
    assert text.count("[CODE — ") == text.count("[DOCUMENTATION — ") == 1
    assert "\n---\n" in text
    assert "Conflicts:" in text

    flagged = run(workspace, *question, "--strategy", "FLAG", "--max-tokens", "60")
    assert flagged["conflicts"][0]["resolved_to"] is None
    assert flagged["stats"]["estimated_tokens"] <= 60

    _, said = printed(workspace, *question, "--synthesize")
    assert "no synthesis: " in said
    assert "SYNTHESIS_MODEL" in said
