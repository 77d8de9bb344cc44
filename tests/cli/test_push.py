"""``nornweave push``: files reach the inbox of a domain."""

import json
from pathlib import Path

import pytest
from command_line import HASHED, nornweave


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "nornweave.yaml").write_text(json.dumps({"data_dir": "var", "domains": {"documentation": HASHED}}))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text("# Guide\n\nThe queue is drained.\n")
    (tmp_path / "größe.txt").write_text("Another text.\n")
    return tmp_path


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
        "documents": [
            {"source_path": "handbook/docs/guide.md", "status": "ACCEPTED", "reason": None},
            {"source_path": "handbook/größe.txt", "status": "ACCEPTED", "reason": None},
        ],
    }
    put = inbox(workspace)
    assert put["handbook/größe.txt"]["metadata"] == {"environment": "prod", "severity": 3}
    again = nornweave(workspace, *PUSH, "docs/guide.md", *options)
    assert (again.returncode, "duplicate" in again.stdout) == (0, True), "nothing is wrong with what is there already"


@pytest.mark.parametrize(("arguments", "code", "said"), [
    (("none.md",), 2, "none.md: is not there"),
    (("docs",), 2, "docs: is a folder"),
    (("größe.txt", "./größe.txt"), 2, "would take the place of"),
    (("größe.txt", "--metadata", "severity"), 2, "expected KEY=VALUE"),
    (("größe.txt", "--path", "../x"), 1, "holds an empty component"),
])  # fmt: skip
def test_what_is_wrong_is_said(workspace: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = nornweave(workspace, *PUSH, *arguments)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
