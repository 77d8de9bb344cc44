"""What git says of the files of a folder: which it has, and which it ignores, by all of its rules."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from nornweave.connect.git.program import GitFailedError, excludes_file, run_git

_TIMEOUT_S = 120.0
_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")


@dataclass(frozen=True, slots=True)
class WorkTree:
    """What git says of a folder; paths are relative to it.

    Attributes:
        tracked: files that git has.
        ignored: files, and with a slash at their end folders, that it would never add.
    """

    tracked: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()


def repository_above(root: str) -> str | None:
    """Return the nearest folder that holds a folder, or is it, and a ``.git``; ``None`` if there is none."""
    place = Path(root)
    return next((str(each) for each in (place, *place.parents) if os.path.lexists(each / ".git")), None)


def look_at(root: str) -> WorkTree | None:
    """Return what git says of a folder; ``None`` without a repository around it or without git.

    A folder that is ignored as a whole, but was named as a source, is wanted: then nothing in it is ignored.

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
