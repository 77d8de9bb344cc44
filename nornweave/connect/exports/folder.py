"""List and read folders of conversation files without leaving the folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from nornweave.config.sources import SourceSettings
from nornweave.core.errors import DocumentError, SourceUnavailableError, TransientDocumentError
from nornweave.core.files.paths import PathFilter, printable, unsafe_path
from nornweave.core.text.decode import MAX_BYTES
from nornweave.core.types import Document, Domain, Entry, Listing, Skip, SourceId
from nornweave.read.isolated import parse_apart

# What macOS puts beside the files of a zip archive.
_NOT_LISTED = frozenset({"__MACOSX"})


class Folder:
    """A folder, or a single file, whose files are conversations."""

    def __init__(self, root: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self.root = root
        self._filter = PathFilter(include, exclude)

    def files(self, suffixes: Collection[str]) -> tuple[list[Entry], list[Skip]]:
        """List the files whose names end so, by path, unread, and what looked like one but was left out.

        Raises:
            SourceUnavailableError: the folder, or one inside it, is missing or cannot be read.
        """
        found: list[Entry] = []
        skipped: list[Skip] = []
        for path, full in self._walk(skipped):
            if Path(path).suffix.lower() not in suffixes or not self._filter.matches(path):
                continue
            reason = self._reason_against(path, full)
            if reason:
                skipped.append(Skip(printable(path), reason))
            elif (file := _describe(path, full)) is not None:
                found.append(file)
        return sorted(found, key=lambda file: file.path), sorted(skipped, key=lambda skip: skip.path)

    def read(self, path: str, max_bytes: int = MAX_BYTES) -> bytes:
        """Read one listed file.

        Raises:
            DocumentError: it leads out of the folder or is larger than ``max_bytes``.
            TransientDocumentError: it is gone or cannot be read now.
        """
        if reason := unsafe_path(path):
            raise DocumentError(reason)
        full = self._base() / path
        try:
            if not self._is_inside(full):
                raise DocumentError(f"{path!r} leads out of the source {str(self.root)!r}; put the file itself there")
            status = full.stat()
            if not stat.S_ISREG(status.st_mode):
                raise DocumentError(f"{path!r} is not a regular file; exclude it")
            if status.st_size > max_bytes:
                raise DocumentError(f"too large: {status.st_size:,} bytes, allowed are {max_bytes:,}; split the file")
            return full.read_bytes()
        except (OSError, RuntimeError) as error:
            raise TransientDocumentError(f"{path!r} cannot be read ({_cause(error)}); is it still there?") from error

    def mark(self, path: str) -> str:
        """Return the mark of one file; empty when it is not there."""
        file = _describe(path, self._base() / path)
        return file.gate if file is not None else ""

    def _base(self) -> Path:
        return self.root.parent if self.root.is_file() else self.root

    def _is_inside(self, full: Path) -> bool:
        if self.root.is_file():
            return full == self.root
        return full.resolve().is_relative_to(self.root.resolve())

    def _walk(self, skipped: list[Skip]) -> Iterator[tuple[str, Path]]:
        if self.root.is_file():
            yield self.root.name, self.root
            return
        pending = [""]
        while pending:  # not recursive: folders may lie deeper than Python's stack
            folder = pending.pop()
            for item in self._scan(folder):
                path = f"{folder}{item.name}"
                if item.name.startswith(".") or item.name in _NOT_LISTED:
                    continue
                if not _is_folder(item):
                    yield path, Path(item.path)
                elif item.is_symlink():
                    # What it leads to is listed where it lies, if that is in the source at all; so no loop can arise.
                    skipped.append(Skip(printable(path), "a link to a folder; put the folder itself there"))
                elif not self._filter.prunes(path):
                    pending.append(f"{path}/")

    def _scan(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / folder) as items:
                return list(items)
        except OSError as error:
            where = printable(str(self.root / folder))
            raise SourceUnavailableError(
                f"{where!r} cannot be listed ({_cause(error)}); expected a readable folder; "
                "check the path and its permissions, or exclude it"
            ) from error

    def _reason_against(self, path: str, full: Path) -> str | None:
        if reason := unsafe_path(path):
            return f"{reason}; rename it"
        try:
            return None if self._is_inside(full) else "a link that leads out of the source"
        except (OSError, RuntimeError):
            return "a link that leads nowhere"


class FolderSource:
    """The base class of sources that read a folder: a document for each file with one of some suffixes.

    Attributes:
        suffixes: of the files.
        parser: a function of a module; ``parse`` runs it in the sandbox.
    """

    domain = Domain.CONVERSATIONS
    suffixes: ClassVar[tuple[str, ...]]
    parser: Callable[[SourceId, Entry, bytes], Document]

    def __init__(self, settings: SourceSettings) -> None:
        """Store the parameters; nothing is read yet.

        Raises:
            ConfigError: a glob is broken.
        """
        self.id = SourceId(settings.id)
        self.folder = Folder(settings.required_path, include=settings.include, exclude=settings.exclude)

    def list(self) -> Listing:
        files, skipped = self.folder.files(self.suffixes)
        return Listing(tuple(files), tuple(skipped))

    def fetch(self, entry: Entry) -> bytes:
        return self.folder.read(entry.path)

    def parse(self, entry: Entry, raw: bytes) -> Document:
        return parse_apart(type(self).parser, self.id, entry, raw)


def _describe(path: str, full: Path) -> Entry | None:
    """Return ``None`` for a path that is not a file or no longer exists."""
    try:
        status = full.stat()
    except (OSError, RuntimeError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    modified, gate = datetime.fromtimestamp(status.st_mtime, UTC), f"{status.st_size}-{status.st_mtime_ns}"
    return Entry(path=path, gate=gate, size=status.st_size, updated_at=modified)


def _is_folder(item: os.DirEntry[str]) -> bool:
    try:
        return item.is_dir()
    except OSError:  # a link in a circle
        return False


def _cause(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
