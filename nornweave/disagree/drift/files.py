"""List and read the files of a folder or of a commit.

Decide by their paths which files are read as documentation and which as code; leave out tests inside of them.

Files that stand apart are not read (``conflicts/comparable.py``), nor are files of other projects or of tools.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal

from nornweave.connect.files.skip import (
    LOCKS,
    TOOL_DIRECTORIES,
    VENDORED_DIRECTORIES,
    VERSION_CONTROL,
    WRITTEN_SUFFIXES,
    Rules,
    tree_of_folder,
)
from nornweave.connect.files.walk import walk
from nornweave.connect.git.blame import commit_of
from nornweave.connect.git.program import Blobs, GitFailedError, run_git
from nornweave.connect.git.tree import TreeFile, list_tree
from nornweave.core.errors import ConfigError, DocumentError, NornWeaveError, SourceUnavailableError
from nornweave.core.files.paths import is_inside, is_text, unsafe_path
from nornweave.core.text.decode import decode
from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.terminal import lines_of
from nornweave.core.types import Domain
from nornweave.disagree.conflicts.comparable import DOC_FOLDERS, stands_apart
from nornweave.disagree.facts.configuration import is_configuration
from nornweave.read.blocks.man import as_definitions, is_called_manual, is_pod
from nornweave.read.chunking.languages import code_format_of, language_of, program_suffix
from nornweave.read.kinds import BINARY_SUFFIXES

GIT_S = 30.0
"""The longest that one call of git may take."""

_REGULAR = {"100644", "100755"}

Kind = Literal["code", "documentation"]

MAX_BYTES = 1_000_000
"""Larger files are data or generated."""
MAX_HEAD = 1_000
"""Bytes of a file that tell its language."""

FORMATS = {
    ".md": "markdown", ".mdx": "markdown", ".markdown": "markdown", ".rst": "rst", ".txt": "text", ".adoc": "asciidoc",
    ".asciidoc": "asciidoc", ".html": "html", ".htm": "html", ".pod": "pod",
}  # fmt: skip


_TEMPLATES = frozenset((".in", ".tmpl", ".template"))
_SAMPLES = frozenset((".example", ".sample", ".dist"))
"""A configuration beside documentation that explains each key, mostly in comments: it is read as a page."""
_INLINE_TESTS = lazy_pattern(
    r"^([ \t]*)#\[cfg\(test\)\]\s*(?:#\[[^\]\n]*\]\s*)*(?:pub\S*\s+)?mod\s+\w+\s*\{[\s\S]*?^\1\}", re.MULTILINE
)
_TESTS = lazy_pattern(
    r"(?:^|/)(?:unit|integration|functional|regression|self|api|system)?[_-]?tests?"
    r"(?:[_-]?(?:suites?|data|cases?|files?|utils?|configs?|fixtures?|harness|e2e))?/"
    r"|[/_.-]tests?\d*\.(?:conf|cfg|ini|json|toml|ya?ml|properties|env|xml)(?:\.in)?$",
    re.IGNORECASE,
)
"""Folders and configurations of tests, by what their names are made of."""
_SKIPPED_FOLDERS = VERSION_CONTROL | TOOL_DIRECTORIES | VENDORED_DIRECTORIES


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read.

    Attributes:
        path: relative to the folder, with ``/``.
        kind: documentation or code.
        version: the blob of a committed file; empty in a working tree.
        told: what ``suffix_told`` returns for the file.
    """

    path: str
    kind: Kind
    version: str = ""
    told: str = ""

    @property
    def suffix(self) -> str:
        """The suffix of the file's language, with its dot: its own, or what its first line tells."""
        return PurePosixPath(self.path).suffix or self.told

    @property
    def program(self) -> str | None:
        """The language of the program that the file is; ``None`` for other files."""
        return program_of(self.path + self.told)


def is_repository(root: Path) -> bool:
    """Tell whether a folder lies in the working tree of a git repository, and git is installed."""
    try:
        return run_git(root, "rev-parse", "--is-inside-work-tree", timeout_s=GIT_S).strip() == b"true"
    except (GitFailedError, SourceUnavailableError):
        return False


@dataclass(frozen=True)
class WorkingTree:
    """The files in a folder. In a repository, these are the tracked files and those that ``git add`` would add."""

    root: Path

    def list(self) -> tuple[SourceFile, ...]:
        """Return the files to read, by path, without links, large files and files that ``kind_of`` excludes."""
        found = (SourceFile(path, kind, told=told) for path, told in self._told() if (kind := kind_of(path + told)))
        return tuple(one for one in found if self._is_readable(one.path))

    def unread(self) -> dict[str, str]:
        """Return a mapping from path to language of the programs whose language is not read."""
        return {path: language for path, told in self._told() if (language := unread_language_of(path + told))}

    def read(self, file: SourceFile) -> bytes:
        """Read a file.

        Raises:
            OSError: the file cannot be read.
        """
        return (self.root / file.path).read_bytes()

    def _told(self) -> Iterator[tuple[str, str]]:
        yield from ((path, suffix_told(path, partial(self._head, path))) for path in self._paths())

    def _head(self, path: str) -> bytes:
        if not self._is_readable(path):
            return b""
        with (self.root / path).open("rb") as opened:
            return opened.read(MAX_HEAD)

    def _paths(self) -> Iterator[str]:
        listed = self._listed_by_git() if is_repository(self.root) else []
        if listed:
            yield from sorted(listed)
            return
        root = os.path.realpath(self.root)
        found = walk(root, Rules(Domain.CODE, tree_of_folder(root), only=("**",)), ignores=True)
        yield from (one.path for one in found.entries)

    def _listed_by_git(self) -> set[str]:
        try:
            raw = run_git(self.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", timeout_s=GIT_S)
        except GitFailedError:
            return set()
        paths = (os.fsdecode(name) for name in raw.split(b"\0") if name)
        return {path for path in paths if is_text(path) and unsafe_path(path) is None}

    def _is_readable(self, path: str) -> bool:
        full = self.root / path
        try:
            status = full.lstat()
            outside = not is_inside(os.path.realpath(full), os.path.realpath(self.root))
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and 0 < status.st_size <= MAX_BYTES and not outside


@dataclass(frozen=True)
class Commit:
    """The files of a commit; if the folder is below the repository's top, only the files in the folder."""

    root: Path
    revision: str
    _blobs: dict[int, Blobs] = field(default_factory=dict, compare=False, repr=False)

    def list(self) -> tuple[SourceFile, ...]:
        """Return the files to read, by path, with their blobs.

        Raises:
            ConfigError: git does not know the commit.
            SourceUnavailableError: the commit has too many files, or git does not answer in time.
        """
        files = []
        try:
            for file, told in self._told():
                if self._is_readable(file) and (kind := kind_of(file.path + told)) is not None:
                    files.append(SourceFile(file.path, kind, file.blob, told))
        except GitFailedError as error:
            raise ConfigError(f"git ls-tree: {error}") from error
        return tuple(sorted(files, key=lambda one: one.path))

    def unread(self) -> dict[str, str]:
        """Return a mapping from path to language of the programs whose language is not read."""
        return {
            file.path: language for file, told in self._told() if (language := unread_language_of(file.path + told))
        }

    def _told(self) -> Iterator[tuple[TreeFile, str]]:
        for file in list_tree(self.root, self.revision, timeout_s=GIT_S):
            yield file, suffix_told(file.path, partial(self._blob, file.blob)) if self._is_readable(file) else ""

    @staticmethod
    def _is_readable(file: TreeFile) -> bool:
        is_small = file.mode in _REGULAR and 0 < file.size <= MAX_BYTES
        return is_small and is_text(file.path) and unsafe_path(file.path) is None

    def _blob(self, blob: str) -> bytes | None:
        return self._blobs.setdefault(0, Blobs(self.root, timeout_s=GIT_S)).read(blob)

    def read(self, file: SourceFile) -> bytes:
        """Read a blob.

        Raises:
            NornWeaveError: git does not return the blob.
        """
        raw = self._blob(file.version)
        if raw is None:
            raise SourceUnavailableError(f"the repository has no blob {file.version}; fetch the whole history")
        return raw

    def close(self) -> None:
        """End the git process that ``read`` keeps."""
        for blobs in self._blobs.values():
            blobs.close()


def git(root: Path, *arguments: str) -> bytes:
    """Run git in a folder and return its output.

    Raises:
        ConfigError: git reports an error. The message is the message of git.
    """
    try:
        return run_git(root, *arguments, timeout_s=GIT_S)
    except GitFailedError as error:
        raise ConfigError(f"git {arguments[0]}: {error}") from error


def renames(root: Path, base: str, head: str) -> dict[str, str]:
    """Return a mapping from path at the base to path at the head for each file that moved between two commits."""
    only_names = ("--no-ext-diff", "--no-textconv", "--relative", "--find-renames", "--diff-filter=R", "--name-status")
    raw = git(root, "diff", *only_names, "-z", base, head)
    fields = [os.fsdecode(one) for one in raw.split(b"\0") if one]
    return dict(zip(fields[1::3], fields[2::3], strict=False))


_RANGE = lazy_pattern(r"(?P<base>[^\s.](?:[^\s]*?[^\s.])?)(?P<dots>\.{2,3})(?P<head>[^\s.][^\s]*)?$")


def commits_of(root: Path, written: str) -> tuple[str, str]:
    """Return the base and the head of ``BASE..HEAD``, or of ``BASE...HEAD``, whose base is the fork of both.

    Raises:
        ConfigError: the range is not valid, the folder is not a repository, or git does not know a commit.
    """
    match = _RANGE.match(written)
    if match is None or written.startswith("-"):
        raise ConfigError(f"--diff {written!r}: expected BASE..HEAD, such as origin/main..HEAD")
    if not is_repository(root):
        raise ConfigError(f"--diff needs a git repository, and {str(root)!r} is in none")
    base, head = (_known_commit(root, name) for name in (match["base"], match["head"] or "HEAD"))
    if len(match["dots"]) == 3:
        base = git(root, "merge-base", base, head).decode("ascii").strip()
    return base, head


def _known_commit(root: Path, name: str) -> str:
    found = commit_of(root, name)
    if found is None:
        raise ConfigError(
            f"--diff: {name!r} names no commit here; fetch it first (a shallow clone has only the newest)"
        )
    return found


def read_or_reason(tree: WorkingTree | Commit, file: SourceFile) -> bytes | str:
    """Return the content of a file, or the reason as text if the file cannot be read."""
    try:
        return tree.read(file)
    except OSError as error:
        return error.strerror or type(error).__name__
    except NornWeaveError as error:
        return str(error)


@dataclass
class Texts:
    """Texts of files, decoded once."""

    read: Callable[[str], bytes]
    known: dict[str, str] = field(default_factory=dict)

    def __call__(self, path: str) -> str:
        """Return the text of a file; empty if it cannot be read."""
        if path not in self.known:
            try:
                self.known[path] = text_of_page(decode(self.read(path)), path)
            except (OSError, DocumentError):  # it changed while we looked
                self.known[path] = ""
        return self.known[path]

    def written(self, path: str, line: int, shown: str) -> str:
        """Return a line, counted from 1, as its file has it, of which ``shown`` is what a manual page says there."""
        text = decode(self.read(path))
        return lines_of(text)[line - 1] if format_of(path, text) in {"man", "pod"} else shown


def kind_of(path: str) -> Kind | None:
    """Return ``documentation`` or ``code``, as a file with this path is read; ``None`` if it is not read.

    Args:
        path: the path in its folder, with ``/``.
    """
    pure = _without_template(path)
    path = str(pure)
    folders = {folder.lower() for folder in pure.parts[:-1]}
    name, suffix = pure.name.lower(), pure.suffix.lower()
    if stands_apart(path) or _TESTS.search(path) or not _SKIPPED_FOLDERS.isdisjoint(folders):
        return None
    if name in LOCKS or name.endswith(WRITTEN_SUFFIXES) or suffix in BINARY_SUFFIXES:
        return None
    if program_of(path) is not None or is_configuration("", path):
        return "code"
    # Elsewhere HTML is a template.
    is_template = suffix in {".html", ".htm"} and DOC_FOLDERS.isdisjoint(folders)
    return "documentation" if _format_of(pure) and not is_template else None


def suffix_told(path: str, head: Callable[[], bytes | None]) -> str:
    """Return the suffix that the first line of a program without a suffix tells: ``.rb`` for Ruby; empty otherwise.

    Args:
        head: a function that returns the first bytes of the file.
    """
    if PurePosixPath(path).suffix or kind_of(path) is not None or kind_of(f"{path}.py") is None:
        return ""
    return program_suffix((head() or b"")[:MAX_HEAD].decode("utf-8", "replace"))


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


def format_of(path: str, text: str = "") -> str:
    """Return the format of documentation for ``Passage.format``; empty for other files. A text may be POD."""
    found = _format_of(_without_template(path))
    return "pod" if found in {"text", "man"} and is_pod(text) else found


def _format_of(page: PurePosixPath) -> str:
    suffix = page.suffix.lower()
    return FORMATS.get(suffix) or ("man" if is_called_manual(page.name) else "")


def text_of_page(text: str, path: str) -> str:
    """Return a page with the same lines, as drift looks for names in it: a manual page as a list of definitions."""
    return as_definitions(text) if format_of(path, text) in {"man", "pod"} else text


def _without_template(path: str) -> PurePosixPath:
    """Return the path of the page that a template makes: ``lamp.txt`` for ``lamp.txt.in`` and ``docs/lamp.example``."""
    pure = PurePosixPath(path)
    if pure.suffix.lower() in _SAMPLES and not DOC_FOLDERS.isdisjoint(folder.lower() for folder in pure.parts[:-1]):
        return pure.with_suffix(".txt")
    is_page = pure.suffix.lower() in _TEMPLATES and _format_of(PurePosixPath(pure.stem)) != ""
    return pure.with_suffix("") if is_page else pure
