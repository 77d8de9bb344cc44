"""Decide by their paths which files are read as documentation and which as code; leave out tests inside of them.

Files that stand apart are not read (``conflicts/apart.py``), nor are files of other projects or of tools.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal

from nornweave.connect.files.skip import (
    LOCKS,
    TOOL_DIRECTORIES,
    VENDORED_DIRECTORIES,
    VERSION_CONTROL,
    WRITTEN_SUFFIXES,
)
from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.conflicts.apart import DOC_FOLDERS, stands_apart
from nornweave.disagree.facts.configuration import is_configuration
from nornweave.read.blocks.man import as_definitions, is_called_manual
from nornweave.read.chunking.languages import code_format_of, language_of
from nornweave.read.kinds import BINARY_SUFFIXES

Kind = Literal["code", "documentation"]

MAX_BYTES = 1_000_000
"""Larger files are data or generated."""

FORMATS = {
    ".md": "markdown", ".mdx": "markdown", ".markdown": "markdown", ".rst": "rst", ".txt": "text", ".adoc": "asciidoc",
    ".asciidoc": "asciidoc", ".html": "html", ".htm": "html",
}  # fmt: skip


_TEMPLATES = frozenset((".in", ".tmpl", ".template"))
_SAMPLES = frozenset((".example", ".sample", ".dist"))
"""A configuration beside documentation that explains each key, mostly in comments: it is read as a page."""
_INLINE_TESTS = lazy_pattern(
    r"^([ \t]*)#\[cfg\(test\)\]\s*(?:#\[[^\]\n]*\]\s*)*(?:pub\S*\s+)?mod\s+\w+\s*\{[\s\S]*?^\1\}", re.MULTILINE
)
_SKIPPED_FOLDERS = VERSION_CONTROL | TOOL_DIRECTORIES | VENDORED_DIRECTORIES


def kind_of(path: str) -> Kind | None:
    """Return ``documentation`` or ``code``, as a file with this path is read; ``None`` if it is not read.

    Args:
        path: the path in its folder, with ``/``.
    """
    pure = _without_template(path)
    path = str(pure)
    folders = {folder.lower() for folder in pure.parts[:-1]}
    name, suffix = pure.name.lower(), pure.suffix.lower()
    if stands_apart(path) or not _SKIPPED_FOLDERS.isdisjoint(folders) or suffix in BINARY_SUFFIXES:
        return None
    if name in LOCKS or name.endswith(WRITTEN_SUFFIXES):
        return None
    if program_of(path) is not None or is_configuration("", path):
        return "code"
    # Elsewhere HTML is a template.
    is_template = suffix in {".html", ".htm"} and DOC_FOLDERS.isdisjoint(folders)
    return "documentation" if _format_of(pure) and not is_template else None


_BY_NAMES = frozenset(("lua", "elixir"))
"""Languages whose literals are read beside names, without a grammar of theirs."""
_UNREAD = frozenset("objc scala perl shell sql hcl protobuf graphql cmake".split())  # noqa: SIM905


def program_of(path: str) -> str | None:
    """Return the language of a program that drift reads; ``None`` for other files."""
    other = code_format_of(path)
    return language_of(path) or (other if other in _BY_NAMES else None)


def unread_language_of(path: str) -> str | None:
    """Return the language of a program of the project that drift does not read; ``None`` for other files."""
    folders = {folder.lower() for folder in PurePosixPath(path).parts[:-1]}
    is_own = not stands_apart(path) and not is_for_tools(path) and _SKIPPED_FOLDERS.isdisjoint(folders)
    other = code_format_of(path) if is_own and kind_of(path) is None else None
    return other if other in _UNREAD else None


def is_for_tools(path: str) -> bool:
    """Tell whether a file is hidden or in a hidden folder, such as a workflow. ``.env`` files do not count."""
    return re.search(r"(?:^|/)\.(?!env)", path) is not None


def without_tests(text: str, suffix: str) -> str:
    """Return a program with blanks for its tests, if it is in Rust. Lines and offsets stay.

    Args:
        suffix: the suffix of the file, with its dot.
    """
    return _INLINE_TESTS.sub(lambda match: re.sub(r"\S", " ", match[0]), text) if suffix == ".rs" else text


def format_of(path: str) -> str:
    """Return the format of documentation for ``Passage.format``; empty for other files."""
    return _format_of(_without_template(path))


def _format_of(page: PurePosixPath) -> str:
    suffix = page.suffix.lower()
    is_manual = suffix != ".pod" and is_called_manual(page.name)
    return FORMATS.get(suffix) or ("man" if is_manual else "")


def text_of_page(text: str, path: str) -> str:
    """Return a page with the same lines, as drift looks for names in it: a manual page as a list of definitions."""
    return as_definitions(text) if format_of(path) == "man" else text


def _without_template(path: str) -> PurePosixPath:
    """Return the path of the page that a template makes: ``lamp.txt`` for ``lamp.txt.in`` and ``docs/lamp.example``."""
    pure = PurePosixPath(path)
    if pure.suffix.lower() in _SAMPLES and not DOC_FOLDERS.isdisjoint(folder.lower() for folder in pure.parts[:-1]):
        return pure.with_suffix(".txt")
    is_page = pure.suffix.lower() in _TEMPLATES and _format_of(PurePosixPath(pure.stem)) != ""
    return pure.with_suffix("") if is_page else pure
