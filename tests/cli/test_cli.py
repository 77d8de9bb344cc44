"""The command line as users drive it: a process, its exit code, its stdout and stderr."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import nornweave
from configurations import files, write_config
from typer.main import get_command

from nornweave import __version__
from nornweave.cli.main import app
from nornweave.cli.report import _excerpt
from nornweave.core.text.analyzer import analyze

EXAMPLES = Path(__file__).parents[2] / "examples" / "payments"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A copy of the example corpus in all four domains, with an encoder that needs no model."""
    shutil.copytree(EXAMPLES, tmp_path / "payments")
    write_config(
        tmp_path,
        files("code", "code", "payments/code"),
        files("docs", path="payments/docs"),
        files("slack", "conversations", "payments/slack", type="slack"),
        files("papers", "research", "payments/research"),
    )
    return tmp_path


def as_json(folder: Path, *arguments: str) -> Any:
    done = nornweave(folder, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def readable_by_others(folder: Path) -> list[str]:
    return [str(path) for path in (folder, *folder.rglob("*")) if path.lstat().st_mode & 0o077]


def test_a_sync_says_from_the_first_moment_what_it_does_and_what_is_kept(workspace: Path) -> None:
    terminal, end = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "nornweave.cli", "sync"], cwd=workspace, stdout=end, stderr=end)
    os.close(end)
    said = b""
    while b"start Dagster" not in said and select.select([terminal], [], [], 60)[0]:
        said += os.read(terminal, 4096)
    process.send_signal(signal.SIGINT)
    with suppress(OSError):  # the end of a terminal
        while select.select([terminal], [], [], 60)[0] and (piece := os.read(terminal, 4096)):
            said += piece
    # CPython ends by the signal, for a shell 130 as well, if it came while a module was imported that evaluates a text.
    assert process.wait(60) in {130, -signal.SIGINT}
    assert b"what was read and encoded is kept" in said, said
    os.close(terminal)


def test_the_version_is_printed_without_a_configuration(tmp_path: Path) -> None:
    done = nornweave(tmp_path, "--version")
    assert (done.returncode, done.stdout) == (0, f"nornweave {__version__}\n")


def test_help_names_every_command_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nornweave.cli", "-h"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    sections = done.stdout[done.stdout.index("Use:") :].split("\n\n")
    rows = [line for section in sections for line in section.splitlines()[1:]]
    assert sorted(row.split()[0] for row in rows) == sorted(get_command(app).commands)
    assert all(row.endswith(".") and len(row) <= 79 for row in rows)
    assert "Others:" not in done.stdout  # a new command belongs into cli.options


def test_verbose_logs_and_quiet_does_not(tmp_path: Path) -> None:
    (tmp_path / "nornweave.yaml").write_text("sources: []\n")
    quiet, verbose = (nornweave(tmp_path, option, "-v", "status") for option in ("-q", "-v"))
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert verbose.returncode == 0
    assert quiet.stdout == verbose.stdout


def test_without_a_source_the_remedy_is_to_add_one(tmp_path: Path) -> None:
    (tmp_path / "nornweave.yaml").write_text("sources: []\n")
    findings = as_json(tmp_path, "doctor")
    remedies = {each["remedy"] for each in findings if each["check"] == "index"}
    assert len(remedies) == 1
    assert "nornweave init --add" in remedies.pop()


def test_a_sync_is_no_remedy_where_no_source_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    lines = (
        "sources:",
        "  - {id: d, domain: documentation, type: files, path: docs}",
        "  - {id: m, domain: conversations, type: slack, token_env: NOT_SET_ANYWHERE, channels: [a]}",
    )
    (tmp_path / "nornweave.yaml").write_text("\n".join(lines))
    done = nornweave(tmp_path, "doctor", "--json")
    remedies = {each["subject"]: each["remedy"] for each in json.loads(done.stdout) if each["check"] == "index"}
    assert remedies["documentation"] == "run `nornweave sync`"
    assert remedies["conversations"] == "no source of this domain can be read; mend that first"


def test_the_lines_that_match_are_shown_and_marked() -> None:
    text = "# Head\n\none\ntwo\nthree\nfour\n====\nthe webhook\nhas a timeout\nof ten\nlast\n"
    shown = _excerpt(text, frozenset(analyze("webhook timeout")))
    assert [line.plain.strip() for line in shown] == ["three", "four", "the webhook", "has a timeout"]
    marked = [line.plain[span.start : span.end] for line in shown for span in line.spans if span.style == "bold"]
    assert marked == ["webhook", "timeout"]


@pytest.mark.slow
def test_a_day_with_the_command_line(workspace: Path) -> None:
    """Sync, search, change, break, delete, sync again, look at the status, roll back, lose a source; nobody else may
    read it.
    """
    (workspace / "var").mkdir()
    (workspace / "var").chmod(0o755)
    first = as_json(workspace, "sync", "--strict")
    assert set(first) == {"code", "documentation", "conversations", "research"}
    for report in first.values():
        assert report["published"]
        assert report["generation"] == "gen-000001"
        assert (report["failed"], report["changed"], report["removed"]) == ([], 0, 0)
        assert report["chunks"] == report["embedded"] + report["reused"]

    found = as_json(workspace, "query", "handle_payment_error", "--domain", "code", "--top-k", "3")
    places = [(item["citation"]["source_path"], item["citation"]["line_range"]) for item in found["items"]]
    assert ("src/payments/handlers.py", [42, 67]) in places

    (workspace / "payments/docs/added.md").write_text("# Zebra\n\nThe zebracorn endpoint returns 418.\n")
    (workspace / "payments/docs/scan.md").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)
    (workspace / "payments/docs/onboarding.md").unlink(missing_ok=True)
    second = nornweave(workspace, "sync", "--domain", "documentation", "--json")
    report = json.loads(second.stdout)["documentation"]
    assert second.returncode == 0, "one document that fails does not fail the sync"
    assert (report["added"], [failure["path"] for failure in report["failed"]]) == (1, ["scan.md"])
    assert "scan.md" in second.stderr
    zebra = as_json(workspace, "query", "zebracorn", "--domain", "documentation")["items"][0]
    assert zebra["citation"]["source_path"] == "added.md"
    assert "418" in zebra["content"]

    status = as_json(workspace, "status")["documentation"]
    assert [failure["path"] for failure in status["failed"]] == ["scan.md"]
    assert (status["generation"], len(status["runs"])) == ("gen-000002", 2)
    strict = nornweave(workspace, "sync", "--domain", "documentation", "--json", "--strict")
    assert strict.returncode == 3, strict.stderr
    assert [failure["path"] for failure in json.loads(strict.stdout)["documentation"]["failed"]] == ["scan.md"]

    assert as_json(workspace, "rollback", "documentation")["generation"] == "gen-000001"
    items = as_json(workspace, "query", "zebracorn", "--domain", "documentation")["items"]
    assert all(item["citation"]["source_path"] != "added.md" for item in items)

    (workspace / "payments/docs").rename(workspace / "payments/unmounted")
    third = nornweave(workspace, "sync", "--domain", "code", "--domain", "documentation", "--json")
    assert third.returncode == 1 and "docs" in third.stderr
    again, missing = (json.loads(third.stdout)[domain] for domain in ("code", "documentation"))
    assert (again["published"], again["embedded"], again["unchanged"]) == (False, 0, first["code"]["added"])
    assert missing["removed"] == 0 and missing["unavailable"]["docs"], "one source fails alone"
    assert as_json(workspace, "query", "payments", "--domain", "documentation")["items"]
    assert readable_by_others(workspace / "var") == []


@pytest.mark.parametrize(("arguments", "code", "said"), [
    (("frobnicate",), 2, "frobnicate"),
    (("query",), 2, "Missing argument"),
    (("query", "x", "--domain", "cod"), 2, "did you mean 'code'?"),
    (("query", "x", "--top-k", "0"), 2, "greater than or equal to 1"),
    (("query", "  "), 2, "blank"),
    (("query", "x" * 32_001), 2, "32,000"),
    (("query", "x"), 1, "nornweave sync"),
    (("rollback", "code"), 1, "nothing to roll back to"),
    (("rollback", "code", "gen-000007"), 1, "gen-000007"),
])  # fmt: skip
def test_wrong_use(workspace: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = nornweave(workspace, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_configuration_stops_every_command(workspace: Path) -> None:
    (workspace / "nornweave.yaml").write_text("sourcs: []")
    for command in (("sync",), ("query", "x"), ("status",), ("rollback", "code")):
        done = nornweave(workspace, *command)
        assert (done.returncode, done.stdout) == (2, "")
        assert "'sourcs'" in done.stderr
        assert "sources" in done.stderr


def test_status_before_anything_was_ingested(workspace: Path) -> None:
    status = as_json(workspace, "status")
    assert status["code"]["generation"] is None
    assert "never" in nornweave(workspace, "status").stdout


def test_a_page_without_text_is_named_and_has_not_failed(workspace: Path) -> None:
    (workspace / "payments" / "docs" / "app.html").write_text(
        "<html><body><div id='app'></div></body></html>", encoding="utf-8"
    )
    nornweave(workspace, "sync")
    printed = nornweave(workspace, "status")
    cells = next(line for line in printed.stdout.splitlines() if line.startswith("documentation")).split()
    named = [line for line in (printed.stdout + printed.stderr).splitlines() if "app.html" in line]
    assert cells[5] == "0" and len(named) == 1 and "failed" not in named[0], (cells, named)


def test_lines_of_hidden_text_are_not_found_but_counted(tmp_path: Path) -> None:
    hidden = "".join(f"<!-- quokka number {number} -->\n\n" for number in range(5))
    pages = {
        "a.md": f"# Pumps\n\n{hidden}A quokka pump starts. <!-- the quokka is ill -->\n\nIt stops. <!-- quokka -->",
        "b.rst": "Pumps\n=====\n\n.. the quokka leaves\n\nA quokka stays.\n",
        "c.adoc": "= Pumps\n\n// no quokka here\nOne quokka sleeps.\n",
    }
    (tmp_path / "docs").mkdir()
    for name, text in pages.items():
        (tmp_path / "docs" / name).write_text(text)
    write_config(tmp_path, files("docs", path="docs"))
    assert nornweave(tmp_path, "sync").returncode == 0
    found = as_json(tmp_path, "find", "quokka")
    lines = [(match["source_path"], match["line"], match["text"].strip()) for match in found["matches"]]
    assert lines == [
        ("a.md", 13, "A quokka pump starts."),
        ("b.rst", 6, "A quokka stays."),
        ("c.adoc", 4, "One quokka sleeps."),
    ]
    assert (found["hidden"], found["truncated"]) == (8, False)
    found = as_json(tmp_path, "find", "QUOKKA", "-i", "--limit", "2")
    assert [match["source_path"] for match in found["matches"]] == ["a.md", "b.rst"] and found["truncated"]
    assert "ill" not in nornweave(tmp_path, "find", "quok+a", "--regex").stdout
    done = nornweave(tmp_path, "find", "quokka number")
    assert done.returncode == 1 and "not shown: 5 lines of hidden text" in done.stderr
