"""``nornweave push``: files reach the inbox of a domain, on this machine and through a running service."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import HASHED, nornweave
from live_server import live

from api.app import create_app
from nornweave.connect.connectors import load_settings

TOKEN = "t0ken-of-this-test"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "nornweave.yaml").write_text(json.dumps({"data_dir": "var", "domains": {"documentation": HASHED}}))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text("# Guide\n\nThe queue is drained.\n")
    (tmp_path / "größe.txt").write_text("Another text.\n")
    return tmp_path


@pytest.fixture
def url(workspace: Path) -> Iterator[str]:
    settings = load_settings(workspace / "nornweave.yaml", {})
    with live(create_app(settings, environment={"NORNWEAVE_SERVICE_TOKEN": TOKEN})) as url:
        yield url


def inbox(workspace: Path) -> dict[str, dict[str, object]]:
    headers = [
        json.loads(file.read_bytes().split(b"\n")[0].removesuffix(b",") + b"}")
        for file in (workspace / "var" / "inbox" / "documentation").glob("*.json")
    ]
    return {header["source_path"]: header for header in headers}


PUSH = ("push", "--domain", "documentation")


def test_files_are_put_into_the_inbox_of_the_configuration(workspace: Path) -> None:
    options = ("--path", "handbook/", "--metadata", "environment=prod", "--metadata", "severity=3")
    done = nornweave(workspace, *PUSH, "docs/guide.md", str(workspace / "größe.txt"), *options, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "domain": "documentation",
        "url": None,
        "documents": [
            {"source_path": "handbook/docs/guide.md", "status": "ACCEPTED", "reason": None},
            {"source_path": "handbook/größe.txt", "status": "ACCEPTED", "reason": None},
        ],
    }
    put = inbox(workspace)
    assert put["handbook/größe.txt"]["metadata"] == {"environment": "prod", "severity": 3}
    again = nornweave(workspace, *PUSH, "docs/guide.md", *options)
    assert (again.returncode, "duplicate" in again.stdout) == (0, True), "nothing is wrong with what is there already"


def test_files_are_sent_to_a_running_service(workspace: Path, url: str) -> None:
    variables = {**os.environ, "NORNWEAVE_TOKEN": TOKEN}
    sent = nornweave(workspace, *PUSH, "docs/guide.md", "größe.txt", "--url", url, "--json", variables=variables)
    assert (sent.returncode, sent.stderr) == (0, "")
    assert {each["source_path"]: each["status"] for each in json.loads(sent.stdout)["documents"]} == {
        "docs/guide.md": "ACCEPTED",
        "größe.txt": "ACCEPTED",
    }
    assert set(inbox(workspace)) == {"docs/guide.md", "größe.txt"}
    (workspace / "photo.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(10))
    refused = nornweave(workspace, *PUSH, "photo.md", "docs/guide.md", "--url", url, variables=variables)
    assert refused.returncode == 1
    assert "photo.md: binary content" in refused.stderr
    assert "duplicate" in refused.stdout
    wrong = nornweave(workspace, *PUSH, "größe.txt", "--url", url, variables={**variables, "NORNWEAVE_TOKEN": "x"})
    assert wrong.returncode == 1
    assert "answers 401" in wrong.stderr
    assert TOKEN not in wrong.stderr + wrong.stdout


@pytest.mark.parametrize(("arguments", "code", "said"), [
    (("none.md",), 2, "none.md: is not there"),
    (("docs",), 2, "docs: is a folder"),
    (("größe.txt", "./größe.txt"), 2, "would take the place of"),
    (("größe.txt", "--metadata", "severity"), 2, "expected KEY=VALUE"),
    (("größe.txt", "--path", "../x"), 1, "holds an empty component"),
    (("größe.txt", "--url", "http://127.0.0.1:9"), 1, "cannot be reached"),
])  # fmt: skip
def test_what_is_wrong_is_said(workspace: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = nornweave(workspace, *PUSH, *arguments)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
