"""Decide by their paths which files are read as documentation and which as code.

Some files are left out because their differences are not contradictions: changelogs and upgrade guides describe other
versions, tests and examples set values of their own, and translations lag behind.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal

from nornweave.connect.files.skip import (
    BINARY_SUFFIXES,
    GENERATED_NAMES,
    GENERATED_SUFFIXES,
    TOOL_DIRECTORIES,
    VENDORED_DIRECTORIES,
    VERSION_CONTROL,
)
from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.configuration import is_configuration
from nornweave.read.chunking.languages import language_of

Kind = Literal["code", "documentation"]

MAX_BYTES = 1_000_000
"""Larger files are data or generated."""

FORMATS = {
    ".md": "markdown", ".mdx": "markdown", ".markdown": "markdown", ".rst": "rst", ".txt": "text", ".adoc": "asciidoc",
    ".asciidoc": "asciidoc", ".html": "html", ".htm": "html",
}  # fmt: skip


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SKIPPED_FOLDERS = (
    VERSION_CONTROL
    | TOOL_DIRECTORIES
    | VENDORED_DIRECTORIES
    | _words("""
        t test tests testing integration smoke unittests __tests__ spec specs e2e fixtures fixture testdata test-data
        mocks __mocks__ __snapshots__ snapshots golden example examples sample samples demo demos playground benchmark
        benchmarks benches bench migrations locale locales i18n translations lang langs dist htmlcov
    """)
)
_HISTORY_FOLDERS = _words("""
    changelog changelogs changes release-notes releasenotes release_notes releases news newsfragments blog posts rfc
    rfcs adr adrs pep peps sep seps kep keps jep jeps tep teps proposals archive archived
    legacy versioned_docs whatsnew upgrading upgrade migration issue_template pull_request_template
""")
_HISTORY_FILES = lazy_pattern(
    r"change-?_?logs?|changes|history|news|releases?|release[-_ ]?notes?|whats?[-_ ]?new|upgrad|migrat|deprecations|"
    r"security|code[-_]of[-_]conduct|licen[sc]e|copying|notice|authors|contributors|maintainers|credits|roadmap|todo",
    re.IGNORECASE,
)
_TEST_FILE = lazy_pattern(
    r"^test_|^tests?\.|_tests?\.|[.-](?:test|spec|stories|bench)\.[cm]?[jt]sx?$|(?:Test|Tests|TestCase|IT)\.\w{1,6}$|_spec\.rb$|"
    r"^conftest\.py$|^bench_|_bench(?:mark)?\."
)
_OLD_VERSION = lazy_pattern(r"^(?:version-|v)?\d{1,3}(?:\.(?:\d{1,3}|x)){1,3}$")
_LANGUAGES = """
    ar bg bn ca cs da de el es fa fi fr he hi hr hu id it ja ko lt nl no pl pt ro ru sk sl sr sv sw ta te th
    tr uk ur vi zh
"""
_LANGUAGE = lazy_pattern(rf"(?:{'|'.join(_LANGUAGES.split())})(?:[-_](?:[A-Za-z]{{2,4}}|\d{{3}})){{0,2}}")
_LANGUAGE_SUFFIX = lazy_pattern(rf"(?:[._]|^readme-)(?:{_LANGUAGE.pattern})$", re.IGNORECASE)
_DOC_FOLDERS = _words("docs doc documentation site website manual man www guide guides content")


def kind_of(path: str) -> Kind | None:
    """Return the kind as which a file is read, by its path; ``None`` if it is not read.

    Args:
        path: relative, with ``/``.
    """
    pure = PurePosixPath(path)
    folders = [folder.lower() for folder in pure.parts[:-1]]
    name, suffix = pure.name.lower(), pure.suffix.lower()
    if not _SKIPPED_FOLDERS.isdisjoint(folders) or suffix in BINARY_SUFFIXES or _TEST_FILE.search(pure.name):
        return None
    if name in GENERATED_NAMES or name.endswith(GENERATED_SUFFIXES):
        return None
    if language_of(path) is not None or is_configuration("", path):
        # What lies beside the pages builds them, or shows how to use the program.
        return "code" if _DOC_FOLDERS.isdisjoint(folders) else None
    return "documentation" if suffix in FORMATS and _is_current_documentation(pure, folders) else None


def _is_current_documentation(pure: PurePosixPath, folders: list[str]) -> bool:
    if not _HISTORY_FOLDERS.isdisjoint(folders) or _HISTORY_FILES.match(pure.stem):
        return False
    if any(_OLD_VERSION.match(folder) or _LANGUAGE.fullmatch(folder) for folder in folders):
        return False
    if _LANGUAGE_SUFFIX.search(pure.stem) or _LANGUAGE.fullmatch(pure.stem.lower()):
        return False
    # Elsewhere HTML is a template.
    return pure.suffix.lower() not in {".html", ".htm"} or not _DOC_FOLDERS.isdisjoint(folders)


def format_of(path: str) -> str:
    """Name the format of documentation as ``Passage.format`` does; empty for others."""
    return FORMATS.get(PurePosixPath(path).suffix.lower(), "")


_MINIFIED_LINE = 2_000
_MINIFIED_SHARE = 0.5


def is_minified(text: str) -> bool:
    """Tell whether most of a program stands in lines that nobody writes by hand."""
    long = sum(len(line) for line in text.split("\n") if len(line) > _MINIFIED_LINE)
    return long > _MINIFIED_SHARE * len(text)
