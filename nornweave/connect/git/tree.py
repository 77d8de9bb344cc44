"""List the files of a commit from the output of ``git ls-tree``.

A tree may name the same subtree many times, so a small repository can list more files than fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nornweave.connect.git.program import split_fields, stream_git
from nornweave.core.errors import SourceUnavailableError

MAX_FILES = 500_000
"""Files that a commit may list."""
MAX_LISTING_BYTES = 256 * 1024 * 1024
"""Bytes of ``git ls-tree`` without sizes: paths, and some 50 bytes a file."""


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A line of ``git ls-tree``.

    Attributes:
        path: undecodable bytes are lone surrogates.
        mode: six octal digits, as git writes them.
        blob: object id.
        size: in bytes; 0 where git does not know it.
    """

    path: str
    mode: str
    blob: str
    size: int


def list_tree(root: Path, *arguments: str, timeout_s: float, with_sizes: bool = True) -> Iterator[TreeFile]:
    """Yield the files of a tree in git's order, folders entered.

    Args:
        root: a folder in a repository.
        arguments: options of ``git ls-tree`` and the tree.
        timeout_s: the longest that it may take.
        with_sizes: needs the files themselves, which a partial clone may not have.

    Raises:
        GitFailedError: the tree or a part of it cannot be read.
        SourceUnavailableError: it lists more than ``MAX_FILES`` files or ``MAX_LISTING_BYTES``, git is not
            installed, or it takes too long.
    """
    _check_length(root, *arguments, timeout_s=timeout_s)
    options = ("-r", "-z", *(["--long"] if with_sizes else []))
    stream = stream_git(root, "ls-tree", *options, *arguments, timeout_s=timeout_s, must_finish=True)
    with closing(stream):
        for line in split_fields(stream):
            if line:
                facts, _, path = line.partition("\t")
                mode, _, blob, *size = facts.split()
                yield TreeFile(path, mode, blob, int(size[0]) if size and size[0].isdigit() else 0)


def _check_length(root: Path, *arguments: str, timeout_s: float) -> None:
    """Count what a listing has before any of it is kept; without sizes git needs a tenth of the time."""
    files = total = 0
    stream = stream_git(root, "ls-tree", "-r", "-z", *arguments, timeout_s=timeout_s, must_finish=True)
    with closing(stream):
        for chunk in stream:
            files, total = files + chunk.count(b"\0"), total + len(chunk)
            if files > MAX_FILES or total > MAX_LISTING_BYTES:
                raise SourceUnavailableError(
                    f"the commit lists more than {MAX_FILES:,} files, or names them in more than "
                    f"{MAX_LISTING_BYTES:,} bytes; make sources of its folders (path: <repository>/<folder>)"
                )
