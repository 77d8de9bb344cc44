"""List the files of a commit, and a folder's tracked and ignored files. Objects must lie in the source.

A tree may name the same subtree many times, so a small repository can list more files than fit into memory. A ``.git``
file, a symlink, ``commondir`` and ``objects/info/alternates`` all name places anywhere on the machine. Who can write
into a source could have a private repository ingested by one of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nornweave.connect.git.program import GitFailedError, excludes_file, run_git, split_fields, stream_git
from nornweave.core.errors import DocumentError, SourceUnavailableError
from nornweave.core.files.paths import is_inside, open_regular, printable

MAX_FILES = 500_000
"""Files that a commit may list."""
MAX_LISTING_BYTES = 256 * 1024 * 1024
"""Bytes of ``git ls-tree`` without sizes: paths, and some 50 bytes a file."""


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A line in the output of ``git ls-tree``.

    Attributes:
        path: the path; undecodable bytes are lone surrogates.
        mode: six octal digits, as git writes them.
        blob: the object id of the content.
        size: the size in bytes; 0 if git does not know it.
    """

    path: str
    mode: str
    blob: str
    size: int


def list_tree(root: Path, *arguments: str, timeout_s: float, with_sizes: bool = True) -> Iterator[TreeFile]:
    """Yield all files of a tree in git's order.

    Args:
        arguments: options of ``git ls-tree``, then the tree.
        timeout_s: the time limit, in seconds.
        with_sizes: also ask for the sizes. Git then needs the files themselves, which a partial clone may not have.

    Raises:
        GitFailedError: the tree or a part of it cannot be read.
        SourceUnavailableError: the tree has more than ``MAX_FILES`` files or ``MAX_LISTING_BYTES`` of paths, git is not
            installed, or git takes too long.
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
    """Refuse a listing that is too long, before any of it is stored."""
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


_POINTER_BYTES = 8_192


def leads_outside(root: Path, *, timeout_s: float) -> str | None:
    """Return why a folder's repository does not belong to the folder; ``None`` if it does.

    The repository belongs to the folder if git's files are inside the folder, or in the ``.git`` of a folder above it.
    A linked work tree and a submodule have git's files elsewhere. Their repository belongs to them if it names their
    folder as one of its work trees.

    Raises:
        GitFailedError: the folder is in no repository.
        SourceUnavailableError: git is not installed or takes longer than ``timeout_s``.
    """
    home = os.path.realpath(root)
    git_dir = _place(root, "--absolute-git-dir", timeout_s)
    common = _place(root, "--git-common-dir", timeout_s)
    # Going up from the folder, git finds a bare repository or a ".git" without following any pointer.
    is_own = git_dir == common and (is_inside(git_dir, home) or is_inside(home, git_dir.removesuffix("/.git")))
    if not is_own and not any(is_inside(home, tree) for tree in _work_trees(git_dir, common, timeout_s)):
        return (
            f"its .git leads out of the source, to {printable(git_dir)!r}; clone the repository itself, or name the "
            "place of the repository as the source"
        )
    borrowed = next((place for place in _stores(root, common, timeout_s) if not is_inside(place, common)), None)
    if borrowed is not None:
        return (
            f"its objects lie outside the repository, in {printable(borrowed)!r}; run 'git repack -a -d' and remove "
            "objects/info/alternates, or clone it without --shared and --reference"
        )
    return None


def _place(root: Path, option: str, timeout_s: float) -> str:
    answer = run_git(root, "rev-parse", "--path-format=absolute", option, timeout_s=timeout_s)
    return os.path.realpath(os.fsdecode(answer).removesuffix("\n"))


def _work_trees(git_dir: str, common: str, timeout_s: float) -> Iterator[str]:
    """Yield the work trees that a repository names as its own."""
    if git_dir.startswith(f"{common}/worktrees/"):
        pointer = os.path.join(git_dir, _first_line(f"{git_dir}/gitdir"))  # noqa: PTH118
        yield os.path.dirname(os.path.realpath(pointer))  # noqa: PTH120
    elif git_dir == common:
        arguments = ("config", "--file", f"{git_dir}/config", "--get", "core.worktree")
        try:
            named = os.fsdecode(run_git(Path("/"), *arguments, timeout_s=timeout_s)).removesuffix("\n")
        except GitFailedError:
            return
        yield os.path.realpath(os.path.join(git_dir, named))  # noqa: PTH118


def _first_line(file: str) -> str:
    try:
        with open_regular(file) as opened:
            return os.fsdecode(opened.read(_POINTER_BYTES).partition(b"\n")[0])
    except (OSError, DocumentError):
        return ""


def _stores(root: Path, common: str, timeout_s: float) -> Iterator[str]:
    """Yield the places where a repository stores its objects, including symlinks and alternates."""
    objects = f"{common}/objects"
    yield os.path.realpath(objects)
    for folder in (objects, f"{objects}/pack"):
        with os.scandir(folder) as entries:
            yield from (os.path.realpath(entry.path) for entry in entries if entry.is_symlink())
    for line in run_git(root, "count-objects", "-v", timeout_s=timeout_s).splitlines():
        if line.startswith(b"alternate: "):
            yield os.path.realpath(os.fsdecode(line.removeprefix(b"alternate: ")))


_TIMEOUT_S = 120.0
_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")


@dataclass(frozen=True, slots=True)
class WorkTree:
    """The tracked and ignored paths in a folder. Paths are relative to the folder.

    Attributes:
        tracked: the files that git tracks.
        ignored: the files that git ignores, and the folders that it ignores. The path of a folder ends with a slash.
    """

    tracked: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()


def repository_above(root: str) -> str | None:
    """Return the nearest folder with a ``.git``: the folder itself or a folder above it; ``None`` if there is none."""
    place = Path(root)
    return next((str(each) for each in (place, *place.parents) if os.path.lexists(each / ".git")), None)


def look_at(root: str) -> WorkTree | None:
    """Return the work tree of a folder; ``None`` if there is no repository or git is not installed.

    If git ignores the folder itself, no file in it counts as ignored.

    Raises:
        SourceUnavailableError: git does not answer in time.
    """
    if repository_above(root) is None or shutil.which("git") is None:
        return None
    folder = Path(root)
    rules = ("-c", f"core.excludesFile={excludes_file(folder)}")
    try:
        tracked = _paths(run_git(folder, "ls-files", "-z", "--cached", timeout_s=_TIMEOUT_S))
        ignored = _paths(run_git(folder, *rules, *_IGNORED, timeout_s=_TIMEOUT_S))
    except GitFailedError:
        return None
    return WorkTree(tracked, frozenset() if "./" in ignored else ignored)


def _paths(answer: bytes) -> frozenset[str]:
    return frozenset(os.fsdecode(path) for path in answer.split(b"\0") if path)
