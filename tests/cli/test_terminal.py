"""What documents and file names contain does nothing to the terminal of whoever reads them."""

import io
import json
import logging
from pathlib import Path

import pytest
from command_line import nornweave
from configurations import files, write_config
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from nornweave.core.text.terminal import UNSEEN, LogFormatter, Terminal, print_json, print_text

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
CLEAR = "\x1b[2J"
C1 = "\x9b2J"


def printed(text: str) -> str:
    stream = io.StringIO()
    terminal = Terminal(stream, width=200)
    terminal.print(text, style="red", soft_wrap=True)
    table = Table(box=None)
    table.add_column(text, no_wrap=True)
    table.add_row(text)
    terminal.print(table)
    return stream.getvalue()


@given(st.text())
def test_no_control_character_of_foreign_text_is_printed(text: str) -> None:
    assert not UNSEEN.search(printed(text))


@pytest.mark.parametrize("path", ["docs/[/webhooks].md", "app/[id]/page.tsx", "[bold]red[/bold].md", "a:smile:b.md"])
def test_brackets_and_colons_are_text(path: str) -> None:
    assert printed(path).split() == [path] * 3


def test_colours_and_cursor_moves_of_our_own_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    terminal = Terminal(stream, width=80)
    terminal.print(f"red{CLEAR}", style="red")
    terminal.show_cursor(False)
    assert stream.getvalue() == "\x1b[31mred[2J\x1b[0m\n\x1b[?25l"


def test_json_keeps_what_it_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"path": f"a{CLIPBOARD}{C1}\u202e\U000e0041é"}
    print_json(document)
    line = capsys.readouterr().out
    assert json.loads(line) == document
    assert not UNSEEN.search(line)
    assert "é" in line


def test_plain_text_and_log_lines_are_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(f"one{CLIPBOARD}\ntwo")
    assert capsys.readouterr().out == "one]52;c;cm0gLXJmIH4=\ntwo\n"
    record = logging.LogRecord("n", logging.WARNING, "f", 1, "cannot read %s", (f"a{CLEAR}.md",), None)
    assert LogFormatter("%(message)s").format(record) == "cannot read a[2J.md"


@pytest.mark.slow
def test_a_query_shows_hostile_documents_harmlessly(tmp_path: Path) -> None:
    for path in ("docs/[/webhooks].md", "docs/app/[id]/page.md", f"docs/esc{CLEAR}ape.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"# Zebracorn\n\nThe zebracorn of {path} says {CLIPBOARD}{C1} hello.\n")
    write_config(tmp_path, files("docs"))
    for arguments in (["sync"], ["query", "zebracorn"], ["query", "zebracorn", "--text"], ["status"]):
        done = nornweave(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        assert not UNSEEN.search(done.stdout + done.stderr)
        if arguments[:1] == ["query"]:
            assert "[/webhooks].md" in done.stdout
            assert "[id]/page.md" in done.stdout
