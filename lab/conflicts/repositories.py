"""Checked-out repositories: their texts, and what is stated in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from nornweave.core.errors import DocumentError
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.drift.files import SourceFile, WorkingTree
from nornweave.disagree.drift.reading import facts_of as drift_facts
from nornweave.disagree.facts.code import Comment
from nornweave.read.chunking.languages import language_of

LIST = Path(__file__).parents[1] / "labelled" / "repositories.txt"
MAX_BYTES = 400_000
"""Of a file: larger ones are generated."""

Role = Literal["code", "documentation"]

_PAGES = frozenset((".md", ".mdx", ".rst", ".txt", ".adoc"))
_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "pom.xml", "go.mod", "Cargo.toml")
_LEFT_OUT = frozenset(
    """.git node_modules vendor dist t test tests testing spec specs bench benchmark benchmarks example examples
    fixtures __pycache__ third_party locale locales i18n types""".split()  # noqa: SIM905
)
# ``Quartz.Tests.Unit/``, ``RetryTest.cs``, ``page.spec.tsx``.
_APART = re.compile(r"(?:^|[/._-])(?:tests?|specs?|examples?|bench(?:mark)?s?|fixtures?)(?=[/._A-Z-]|$)|"
                    r"(?:Test|Spec|Example|Benchmark|Fixture)s?(?=[/._A-Z-]|$)")  # fmt: skip
# Pages that speak of what was: altering them contradicts nothing.
_PAST = ("changelog", "changes", "history", "news", "release", "whatsnew", "upgrad", "migrat", "todo", "licen")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that is checked out at a known commit: ``owner/name`` below a folder, as ``name``."""

    name: str
    commit: str
    root: Path


def repositories(folder: Path, listed: Path = LIST) -> Iterator[Repository]:
    """Yield the listed repositories that are checked out below a folder, in the order of the list."""
    for line in listed.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, commit, _licence = line.split()
            root = folder / name.partition("/")[2]
            if root.is_dir():
                yield Repository(name, commit, root)


def texts(root: Path) -> Iterator[tuple[str, Role, str]]:
    """Yield path, role and text of programs and pages, but for tests, examples and pages about the past."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name.lower() not in _LEFT_OUT)
        for name in sorted(files):
            file = Path(folder, name)
            path = file.relative_to(root).as_posix()
            role = _role(path)
            if role is None or file.is_symlink() or file.stat().st_size > MAX_BYTES:
                continue
            yield path, role, file.read_bytes().decode("utf-8", "replace")


def _role(path: str) -> Role | None:
    place = PurePosixPath(path.lower())
    if _APART.search(path) or place.name.endswith((".min.js", ".d.ts")):
        return None
    if place.suffix in _PAGES:
        return None if any(part.lstrip("0123456789.-_").startswith(_PAST) for part in place.parts) else "documentation"
    return "code" if language_of(path) else None


def manifests(root: Path) -> dict[str, str]:
    """Return the manifests at the top of a repository, path → text."""
    files = [root / name for name in _MANIFESTS] + sorted(root.glob("*.gemspec"))
    return {file.name: file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()}


def comments_of(file: SourceFile, raw: bytes) -> tuple[Comment, ...]:
    """Return the comments of a program, as ``nornweave drift`` reads them; none if it is no text."""
    try:
        return drift_facts(file.path, file.kind, raw).comments
    except DocumentError:
        return ()


def facts_of(repository: Repository, file: SourceFile, raw: bytes) -> tuple[LocatedFact, ...]:
    """Return what a file states and uses, as ``nornweave drift`` reads it; nothing if it is no text."""
    try:
        found = drift_facts(file.path, file.kind, raw)
    except DocumentError:
        return ()
    return tuple(
        LocatedFact(
            fact=fact, domain=file.kind, source_id=repository.name, path=file.path, line_range=(fact.line + 1,) * 2
        )
        for fact in found.facts
    )


def all_facts(repository: Repository) -> dict[str, tuple[LocatedFact, ...]]:
    """Return what the files of a repository state and use, by path, of the files that ``nornweave drift`` reads."""
    tree = WorkingTree(repository.root)
    return {file.path: facts_of(repository, file, tree.read(file)) for file in tree.list()}
