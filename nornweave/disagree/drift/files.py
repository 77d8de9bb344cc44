"""List and read the files of a folder or of a commit."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nornweave.connect.files.skip import Rules, tree_of_folder
from nornweave.connect.files.walk import walk
from nornweave.connect.git.blame import commit_of
from nornweave.connect.git.program import Blobs, GitFailedError, run_git
from nornweave.connect.git.tree import list_tree
from nornweave.core.errors import ConfigError, DocumentError, NornWeaveError, SourceUnavailableError
from nornweave.core.files.paths import is_inside, is_text, unsafe_path
from nornweave.core.text.decode import decode
from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Domain
from nornweave.disagree.drift.kinds import MAX_BYTES, Kind, kind_of, text_of_page, unread_language_of

GIT_S = 30.0
"""The longest that one call of git may take."""

_REGULAR = {"100644", "100755"}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read.

    Attributes:
        path: relative to the folder, with ``/``.
        kind: documentation or code.
        version: the blob of a committed file; empty in a working tree.
    """

    path: str
    kind: Kind
    version: str = ""


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
        found = (SourceFile(path, kind) for path in self._paths() if (kind := kind_of(path)) is not None)
        return tuple(one for one in found if self._is_readable(one.path))

    def unread(self) -> dict[str, int]:
        """Return how many programs are in each language that is not read."""
        return dict(Counter(filter(None, map(unread_language_of, self._paths()))))

    def read(self, file: SourceFile) -> bytes:
        """Read a file.

        Raises:
            OSError: the file cannot be read.
        """
        return (self.root / file.path).read_bytes()

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
            for file in list_tree(self.root, self.revision, timeout_s=GIT_S):
                if file.mode not in _REGULAR or not 0 < file.size <= MAX_BYTES:
                    continue
                if is_text(file.path) and unsafe_path(file.path) is None and (kind := kind_of(file.path)) is not None:
                    files.append(SourceFile(file.path, kind, file.blob))
        except GitFailedError as error:
            raise ConfigError(f"git ls-tree: {error}") from error
        return tuple(sorted(files, key=lambda one: one.path))

    def unread(self) -> dict[str, int]:
        """Return how many programs are in each language that is not read."""
        files = list_tree(self.root, self.revision, timeout_s=GIT_S)
        return dict(Counter(filter(None, (unread_language_of(file.path) for file in files))))

    def read(self, file: SourceFile) -> bytes:
        """Read a blob.

        Raises:
            NornWeaveError: git does not return the blob.
        """
        blobs = self._blobs.setdefault(0, Blobs(self.root, timeout_s=GIT_S))
        raw = blobs.read(file.version)
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
