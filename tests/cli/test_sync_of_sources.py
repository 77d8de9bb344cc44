"""``nornweave sync --source`` and ``--dry-run``, with a source on this disk and one behind an API."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import nornweave
from configurations import files, write_config

from lab.apis.github import REPOSITORY, TOKEN, GithubServer
from lab.apis.server import serving


@pytest.fixture
def github() -> Iterator[GithubServer]:
    server = GithubServer(needs_token=True)
    with serving(server):
        server.comment(server.open("Refunds are slow", "They take a week."), "Which bank?")
        yield server


@pytest.fixture
def workspace(tmp_path: Path, github: GithubServer) -> Path:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# {name}\n\nThe {name} guide.\n")
    issues = {"domain": "conversations", "type": "github", "repository": REPOSITORY, "api_url": github.url}
    write_config(tmp_path, files("first"), files("second"), {"id": "issues", "token_env": "ISSUES_TOKEN", **issues})
    return tmp_path


def run(folder: Path, *arguments: str, code: int = 0, token: str = TOKEN) -> Any:
    done = nornweave(folder, *arguments, "--json", variables={**os.environ, "ISSUES_TOKEN": token})
    assert done.returncode == code, done.stderr
    assert token not in done.stdout + done.stderr
    return json.loads(done.stdout)


def places(listed: Sequence[dict[str, Any]]) -> list[str]:
    return [f"{each['source_id']}/{each['path']}" for each in listed]


def test_a_dry_run_says_what_a_sync_would_do_and_does_nothing(workspace: Path) -> None:
    said = run(workspace, "sync", "--dry-run")
    assert places(said["documentation"]["read"]) == ["first/a.md", "second/a.md"]
    assert said["conversations"]["read"] == [{"source_id": "issues", "path": "issues/1", "why": "new"}]
    assert run(workspace, "status")["documentation"]["generation"] is None
    run(workspace, "sync")
    (workspace / "first/a.md").write_text("# first\n\nOtherwise now.\n")
    (workspace / "second/a.md").unlink()
    (workspace / "second/b.md").write_text("# b\n\nNew.\n")
    said = run(workspace, "sync", "--dry-run", "--domain", "documentation")["documentation"]
    assert [(each["path"], each["why"]) for each in said["read"]] == [("a.md", "changed"), ("b.md", "new")]
    assert places(said["removed"]) == ["second/a.md"]
    shown = nornweave(workspace, "sync", "--dry-run", "--domain", "documentation").stdout
    assert "documentation: 2 to read, 1 to remove, 0 as they are" in shown
    assert "read    first/a.md (changed)" in shown
    run(workspace, "sync")
    config = json.loads((workspace / "nornweave.yaml").read_text())
    config["domains"]["documentation"] |= {"chunking": {"max_chunk_tokens": 100}}
    (workspace / "nornweave.yaml").write_text(json.dumps(config))
    warned = nornweave(workspace, "sync", "--dry-run", "--domain", "documentation").stderr
    assert "documentation: 2 documents are read again: another chunker than before" in warned


def test_one_source_is_synced_and_the_others_stay_as_they_are(workspace: Path, github: GithubServer) -> None:
    run(workspace, "sync")
    (workspace / "first/a.md").unlink()
    (workspace / "first/b.md").write_text("# b\n\nNew.\n")
    (workspace / "second/a.md").unlink()
    github.requests.clear()
    report = run(workspace, "sync", "--source", "first")
    assert set(report) == {"documentation"}
    report = report["documentation"]
    assert (report["added"], report["removed"], report["unchanged"], report["unavailable"]) == (1, 1, 1, {})
    assert github.requests == []
    assert set(run(workspace, "sync", "--source", "issues")) == {"conversations"}
    assert github.requests
    run(workspace, "status")
    refused = nornweave(workspace, "sync", "--source", "third")
    assert refused.returncode == 2
    assert "no source 'third'; there are: first, inbox, issues, second" in refused.stderr


def test_a_source_of_which_everything_is_left_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "app" / "lib").mkdir(parents=True)
    (tmp_path / "app" / "lib" / "a.py").write_text("def one():\n    return 1\n", encoding="utf-8")
    (tmp_path / "app" / ".gitignore").write_text("/*\n", encoding="utf-8")
    write_config(tmp_path, files("app", "code"))
    said = " ".join(nornweave(tmp_path, "sync").stderr.split())
    assert "source app: everything is left out, such as" in said
    assert "ignored: by .gitignore" in said


def test_half_a_character_in_a_document_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    cell = '{"cell_type": "markdown", "source": ["cut \\ud83d here"], "metadata": {}}'
    notebook = f'{{"cells": [{cell}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}'
    (tmp_path / "docs" / "a.ipynb").write_text(notebook, encoding="utf-8")
    (tmp_path / "docs" / "b.md").write_text('{"title": "x \\ud83d"}\n\nsome text here\n', encoding="utf-8")
    (tmp_path / "docs" / "c.eml").write_bytes(b"From: a@b\nSubject: s\nX-Access: \xed\xa0\x80\n\nsome text here\n")
    write_config(tmp_path, files("docs", "documentation"))
    done = nornweave(tmp_path, "sync", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["documentation"]["added"] == 3
