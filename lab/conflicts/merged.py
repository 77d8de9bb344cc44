"""Commits of other people whose only change makes a documented value equal to the code: nobody here labelled them.

Undone, such a commit is drift as it happens: the page then says what it said before the correction.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.conflicts.documented import words
from nornweave.disagree.drift.records import Finding
from nornweave.disagree.drift.scan import DriftOptions, scan

LIST = Path(__file__).parents[1] / "labelled" / "merged-corrections.txt"
NEAR = 3
"""Lines around the corrected one in which a finding, or the name of the value, counts as there."""
_NAME = re.compile(r"[A-Za-z][A-Za-z]*(?:[_-][A-Za-z\d]+)+|[a-z]+(?:[A-Z][a-z\d]+)+|`([a-z]{4,40})`")
_NUMBER = re.compile(r"(?<![\w.])\d[\d_,]*(?:\.\d+)?|\b(?:true|false)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected value: its line on the page before the correction."""

    repository: str
    commit: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Noticed:
    """Who says that a documented value is wrong: a diff, the nearest number, a search for the name."""

    by_diff: bool
    by_number: bool
    by_existence: bool


@dataclass(frozen=True, slots=True)
class Corrected:
    """What is noticed while a correction is missing, and what is still said once it is made.

    Attributes:
        others: what a diff reports elsewhere while it is missing.
    """

    correction: Correction
    missing: Noticed
    made: Noticed
    others: int


NOTICED = ("by_diff", "by_number", "by_existence")


def corrections(listed: Path = LIST) -> Iterator[Correction]:
    """Yield the listed corrections."""
    for row in listed.read_text(encoding="utf-8").splitlines():
        if row.strip() and not row.startswith("#"):
            repository, commit, path, line = row.split()
            yield Correction(repository, commit, path, int(line))


def look(one: Correction, folder: Path) -> Corrected | None:
    """Undo a correction, make it, and ask everybody; ``None`` without ``owner/name`` as ``name`` below a folder."""
    root = folder / one.repository.partition("/")[2]
    if not root.is_dir():
        return None
    before, after = f"{one.commit}~1", one.commit
    missing, others = _asked(root, one, after, before)
    made, _ = _asked(root, one, before, after)
    return Corrected(one, missing, made, others)


def _asked(root: Path, one: Correction, base: str, head: str) -> tuple[Noticed, int]:
    """Ask everybody about the corrected line at the head; and what a diff from the base reports elsewhere."""
    report = scan(root, DriftOptions(diff=f"{base}..{head}", use_lock=False)).report
    there = [finding for finding in report.findings if _is_there(finding, one)]
    lines = _git(root, "show", f"{head}:{one.path}").splitlines()
    written = _NUMBER.findall(lines[one.line - 1]) if one.line <= len(lines) else []
    name = _name(lines, one.line)
    code = _code(root, head, name) if name else []
    near = [number for line in code for number in _NUMBER.findall(line.rpartition(name)[2])[:1]]
    noticed = Noticed(
        by_diff=bool(there),
        by_number=bool(near) and not {number.lower() for number in near} & {number.lower() for number in written},
        by_existence=bool(name) and not code,
    )
    return noticed, len(report.findings) - len(there)


def _is_there(finding: Finding, one: Correction) -> bool:
    return finding.second.path == one.path and abs(finding.second.line - one.line) <= NEAR


def _name(lines: list[str], line: int) -> str:
    """Return the nearest name at or above a line that is spelt as one."""
    for text in reversed(lines[max(0, line - 1 - NEAR) : line]):
        found = _NAME.search(text)
        if found and words(found[0]):
            return found[1] or found[0]
    return ""


def _code(root: Path, commit: str, name: str) -> list[str]:
    """Return the lines of other files that have a name and are no documentation."""
    pages = [f":!*{suffix}" for suffix in (".md", ".mdx", ".rst", ".txt", ".adoc", ".html")]
    return _git(root, "grep", "-h", "-I", "-F", "-e", name, commit, "--", ".", *pages).splitlines()[:200]


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace")
