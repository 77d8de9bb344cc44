"""Walk a folder of files without leaving it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from nornweave.connect.files.gitignore import IgnoreFile, IgnoreFiles
from nornweave.connect.files.skip import Rules
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.files.paths import Within, folders_above, is_text, printable
from nornweave.core.text.dates import since_1970
from nornweave.core.types import Entry, Listing, Skip

LINK = "symlink; its target is ingested where it lies"
_MAX_IGNORE_BYTES = 1024 * 1024


def entry_of(path: str, status: os.stat_result) -> Entry:
    """Return the document that a file is, by what the file system says."""
    size, changed_at = status.st_size, status.st_mtime_ns
    return Entry(path=path, gate=f"{size}-{changed_at}", size=size, updated_at=since_1970(changed_at / 1e9))


def walk(root: str, rules: Rules, *, gitignore: bool, within: Within | None = None) -> Listing:
    """List the files below a directory that the rules take.

    Symlinks are left out: what they lead to is listed where it lies, if it belongs to the source.

    Args:
        root: a resolved directory.
        rules: which files and directories are left out.
        gitignore: also leave out what the ``.gitignore`` files in ``root`` and below ignore.
        within: look at these paths only, and at the folders that lead to them.

    Returns:
        Files by path; a directory that is left out is one skip, not one for each file in it.

    Raises:
        SourceUnavailableError: a directory or a ``.gitignore`` cannot be read, so what it holds is unknown;
            or the rules of the ``.gitignore`` files are more than ``IgnoreFiles`` reads.
    """
    walker = _Walker(root, rules, gitignore=gitignore, within=within)
    walker.run()
    by_path = attrgetter("path")
    return Listing(
        tuple(sorted(walker.entries, key=by_path)),
        tuple(sorted(walker.skipped, key=by_path)),
        within=within and Within(frozenset(path for path in within.paths if not walker.is_left_out(path))),
    )


@dataclass(frozen=True, slots=True)
class _Folder:
    """A directory on the way: its prefix is empty or ends with a slash."""

    prefix: str
    ignores: tuple[tuple[int, str, IgnoreFile], ...] = ()


class _Walker:
    def __init__(self, root: str, rules: Rules, *, gitignore: bool, within: Within | None) -> None:
        self.entries: list[Entry] = []
        self.skipped: list[Skip] = []
        self._within = within
        self._on_the_way = {folder for path in within.paths for folder in folders_above(path)} if within else set()
        self._left_out: set[str] = set()
        self._root = root
        self._rules = rules
        self._gitignore = gitignore
        self._ignore_files = IgnoreFiles()
        self._pending: list[_Folder] = []

    def run(self) -> None:
        self._pending.append(_Folder(""))
        while self._pending:  # not recursive: folders may lie deeper than Python's stack
            folder = self._pending.pop()
            entries = self._scan(folder)
            if self._gitignore:
                folder = self._with_ignore_file(folder, entries)
            for entry in entries:
                if self._is_asked_for(folder.prefix + entry.name):
                    self._visit(folder, entry)

    def is_left_out(self, path: str) -> bool:
        """Say whether a rule kept the walk from a folder that holds a path."""
        return not self._left_out.isdisjoint(folders_above(path))

    def _is_asked_for(self, path: str) -> bool:
        return self._within is None or path in self._on_the_way or self._within.holds(path)

    def _scan(self, folder: _Folder) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self._root, folder.prefix)) as entries:  # noqa: PTH118
                return list(entries)
        except (FileNotFoundError, NotADirectoryError):
            if folder.prefix:
                return []  # removed while we were listing: its documents are gone indeed
            raise _unreadable(self._root, "", "it is gone") from None
        except OSError as error:
            raise _unreadable(self._root, folder.prefix, error.strerror) from error

    def _with_ignore_file(self, folder: _Folder, entries: Iterable[os.DirEntry[str]]) -> _Folder:
        path = folder.prefix + ".gitignore"
        if not any(entry.name == ".gitignore" and entry.is_file(follow_symlinks=False) for entry in entries):
            return folder
        try:
            rules = self._read_rules(os.path.join(self._root, path))  # noqa: PTH118
        except FileNotFoundError:
            return folder
        except OSError as error:
            raise _unreadable(self._root, path, error.strerror) from error
        except ValueError as error:
            raise _too_long(self._root, folder.prefix, path, error) from error
        return _Folder(folder.prefix, (*folder.ignores, (len(folder.prefix), path, rules)))

    def _read_rules(self, file: str) -> IgnoreFile:
        with open(file, "rb") as opened:  # noqa: PTH123
            raw = opened.read(_MAX_IGNORE_BYTES + 1)
        if len(raw) > _MAX_IGNORE_BYTES:
            raise ValueError(f"it is larger than {_MAX_IGNORE_BYTES:,} bytes")
        return self._ignore_files.read(raw.decode("utf-8", "surrogateescape"))

    def _visit(self, folder: _Folder, entry: os.DirEntry[str]) -> None:
        path = folder.prefix + entry.name
        try:
            is_directory = entry.is_dir(follow_symlinks=False)
            reason = self._reason_to_skip(folder, entry, path, is_directory=is_directory)
            if reason is not None and path in self._on_the_way:
                self._left_out.add(path)
            if reason:
                self.skipped.append(Skip(printable(path), reason))
            elif is_directory and reason is None:
                self._pending.append(_Folder(f"{path}/", folder.ignores))
            elif reason is None:
                self._take(path, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            return  # removed while we were listing
        except OSError as error:
            raise _unreadable(self._root, folder.prefix, error.strerror) from error

    def _reason_to_skip(self, folder: _Folder, entry: os.DirEntry[str], path: str, *, is_directory: bool) -> str | None:
        """Return why an entry is left out, ``""`` when nobody needs to be told, ``None`` when it is taken."""
        if not is_text(entry.name):
            return "the file name is not valid UTF-8; rename it"
        if entry.is_symlink():  # it may be a folder that somebody counts on
            return "" if self._rules.prunes(path) else LINK
        if self._rules.prunes(path) if is_directory else self._rules.is_unwanted(path):
            return ""
        if by := _ignored_by(folder, path, entry.name, is_directory=is_directory):
            return f"ignored by {by}"
        if is_directory:
            return self._rules.skip_directory(path, self._is_file)
        return None

    def _is_file(self, path: str) -> bool:
        return os.path.isfile(os.path.join(self._root, path))  # noqa: PTH113, PTH118

    def _take(self, path: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            self.skipped.append(Skip(path, "not a regular file"))
        elif reason := self._rules.skip_file(path, status.st_size):
            self.skipped.append(Skip(path, reason))
        else:
            self.entries.append(entry_of(path, status))


def _ignored_by(folder: _Folder, path: str, name: str, *, is_directory: bool) -> str | None:
    """Return the ``.gitignore`` that ignores an entry; the deepest one that says anything decides."""
    for start, file, rules in reversed(folder.ignores):
        verdict = rules.verdict(path[start:], name, is_directory=is_directory)
        if verdict is not None:
            return file if verdict else None
    return None


def _unreadable(root: str, path: str, reason: str | None) -> SourceUnavailableError:
    where = os.path.join(root, path).rstrip("/")  # noqa: PTH118
    return SourceUnavailableError(
        f"{printable(where)!r} cannot be read: {reason or 'unknown error'}. What it holds is unknown, so nothing "
        "counts as deleted; give read and search permission, or name it in exclude."
    )


def _too_long(root: str, prefix: str, path: str, reason: ValueError) -> SourceUnavailableError:
    folder = f"name {printable(prefix)!r} in exclude" if prefix else "make sources of its folders"
    return SourceUnavailableError(
        f"{printable(os.path.join(root, path))!r} is not read: {reason}. What it ignores is unknown, so nothing of "  # noqa: PTH118
        f"the source is read and nothing counts as deleted; mend it, or {folder}."
    )
