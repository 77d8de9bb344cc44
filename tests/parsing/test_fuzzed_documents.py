"""Documents that nobody would write are read, or refused with a reason, at a cost that grows with their size."""

import subprocess
import sys

import pytest

from lab.fuzz.__main__ import mixed
from lab.fuzz.targets import TARGETS, read

BY_PATH = {target.path: target for target in reversed(TARGETS)}


def test_random_documents_are_read_or_refused_without_a_defect() -> None:
    outcomes = [(target.path, read(target, raw)) for target, raw in mixed(seed=1, count=250)]
    assert [(path, outcome) for path, outcome in outcomes if outcome.state in {"trouble", "lost"}] == []
    assert sum(outcome.state == "read" for _, outcome in outcomes) > 180


@pytest.mark.parametrize(("path", "snippet", "size"), [
    ("a.js", "/** a\n", 64_000), ("a.js", "else if(a)", 50_000), ("a.ts", "if(a)", 50_000), ("a.py", "(", 100_000),
    ("a.json", "a", 100_000), ("a.json", "1-", 100_000), ("a.xml", "|\n", 100_000),
    ("a.c", "void pour(int n) {\nif (n) {\n} else\n" + "cups = kettle(first, second, last) +\n" * 8 + "0;\n}\n", 2_000),
    ("a.md", f"=== {' ' * 9_000}!\n", 18_100), ("a.md", f"---\n{' ' * 9_000}!\n---\n", 9_100),
])  # fmt: skip
def test_what_once_took_quadratic_time_is_read_within_its_limit(path: str, snippet: str, size: int) -> None:
    """The limit is of processor time: a busy machine reads the same documents."""
    outcome = read(BY_PATH[path], BY_PATH[path].raw(snippet * (size // len(snippet))))
    assert outcome.state == "read", outcome


def test_a_marked_section_of_html_that_nobody_knows_is_text() -> None:
    assert read(BY_PATH["a.html"], b"<p>before <![CDAT after").state == "read"


@pytest.mark.slow
def test_no_pattern_takes_time_that_doubles_with_each_character() -> None:
    """The limit is of processor time, 1 s for 2,000 characters."""
    tried = subprocess.run(
        [sys.executable, "-m", "lab.fuzz.patterns", "--tries", "2"], capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stdout
