"""Real documents to measure on: the judged sets where they are, and the functions of the installed packages."""

from __future__ import annotations

import ast
import json
import shutil
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

MAX_FUNCTION_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Corpus:
    """A copy of real files that a benchmark may change."""

    name: str
    domain: str
    folder: Path


def site_packages() -> Path:
    """Return the folder of the virtual environment's packages."""
    return Path(sysconfig.get_paths()["purelib"])


def judged_sets(shared: Path, target: Path) -> Iterator[Corpus]:
    """Copy the judged sets that are there."""
    for name, domain in (("code-cosqa", "code"), ("research-scifact", "research")):
        native = shared / name / "native"
        if native.is_dir():
            yield Corpus(name, domain, Path(shutil.copytree(native, target / name, copy_function=shutil.copyfile)))


def packages_corpus(target: Path, documents: int) -> Corpus:
    """Copy the first ``documents`` Python files of the installed packages, by path."""
    root = site_packages()
    folder = target / f"site-packages-{documents}"
    for file in sorted(root.rglob("*.py"))[:documents]:
        copy = folder / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return Corpus("site-packages", "code", folder)


def functions_corpus(target: Path, documents: int) -> Corpus:
    """Write ``documents`` functions of the installed packages, one a file: many small real documents."""
    folder = target / f"functions-{documents}"
    for number, (name, text) in enumerate(_functions(documents)):
        file = folder / f"{number // 250:03}" / f"{number:05}_{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Corpus(f"functions x {documents}", "code", folder)


def messages_corpus(target: Path, messages: int) -> Corpus:
    """Write ``messages`` docstrings of the installed packages as messages, a file a module: many real short texts."""
    target.mkdir(parents=True, exist_ok=True)
    left, started = messages, datetime(2026, 1, 1, tzinfo=UTC)
    for number, file in enumerate(sorted(site_packages().rglob("*.py"))):
        said = _docstrings(file)[:left]
        left -= len(said)
        lines = [
            json.dumps({"user": file.stem, "text": text, "timestamp": (started + timedelta(minutes=at)).isoformat()})
            for at, text in enumerate(said)
        ]
        if lines:
            (target / f"{number:05}-{file.stem}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        if not left:
            break
    return Corpus(f"docstrings x {messages - left}", "conversations", target)


def _docstrings(file: Path) -> list[str]:
    tree = _parsed(file)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if tree else []
    said = (" ".join((ast.get_docstring(node) or "").split())[:600] for node in functions)
    return [text for text in said if text]


def _functions(count: int) -> Iterator[tuple[str, str]]:
    left = count
    for file in sorted(site_packages().rglob("*.py")):
        for name, text in _functions_of(file):
            if not left:
                return
            left -= 1
            yield name, text


def _parsed(file: Path) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return None


def _functions_of(file: Path) -> Iterator[tuple[str, str]]:
    tree = _parsed(file)
    source = file.read_text(encoding="utf-8") if tree else ""
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef):
            text = ast.get_source_segment(source, node) or ""
            if 80 < len(text) < MAX_FUNCTION_CHARACTERS:
                yield node.name, text
