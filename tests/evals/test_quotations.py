"""Quotations of code: what the measure of them counts."""

from __future__ import annotations

import random
from pathlib import Path

import typer
from typer.testing import CliRunner

from lab.quotations import changed, functions, is_merged, main

FUNCTION = '''def at_most(values, limit):
    """Return at most so many values."""
    # The first come first.
    if len(values) <= limit:
        return values
    return values[:limit]'''


def test_functions_are_drawn_and_files_that_are_not_python_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"import os\n\n\n{FUNCTION}\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("this is not Python", encoding="utf-8")
    assert list(functions(tmp_path)) == [FUNCTION]


def test_a_change_is_one_word_of_the_code() -> None:
    for seed in range(30):
        other = changed(FUNCTION, random.Random(seed))
        assert other is not None
        assert other.splitlines()[:3] == FUNCTION.splitlines()[:3]
        assert other != FUNCTION
        assert not is_merged(FUNCTION, f"```python\n{other}\n```\n")
    assert is_merged(FUNCTION, f"```python\n{FUNCTION}\n```\n")


def test_the_command_prints_shares(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(FUNCTION, encoding="utf-8")
    app = typer.Typer()
    app.command()(main)
    outcome = CliRunner().invoke(app, [str(tmp_path)])
    assert outcome.exit_code == 0, outcome.output
    assert "1.000" in outcome.output
