"""How far a local repository is ahead of the commit that was read.

Files of the work tree are compared here and not by git, which would start the programs that a repository names as
filters.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import lru_cache
from pathlib import Path

from nornweave.connect.git.blame import is_own_repository
from nornweave.connect.git.program import GitFailedError, run_git
from nornweave.connect.protocol import Lag
from nornweave.core.errors import DocumentError, SourceUnavailableError
from nornweave.core.files.paths import read_regular
from nornweave.core.text.decode import MAX_BYTES

DEADLINE_S = 2.0
"""Of one call of git."""
MAX_FILES = 20_000
"""Of a work tree with more, whether they were changed is not told."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# As ``git ls-files --stage --debug -z`` prints a file of a work tree, no submodule and no link.
_TRACKED = re.compile(
    rb"100(?:644|755) ([0-9a-f]+) 0\t([^\0]+)\0  ctime: \d+:\d+\n  mtime: (\d+):(\d+)\n  dev: [^\n]*\n  uid: [^\n]*\n"
    rb"  size: (\d+)\tflags: ([0-9a-f]+)\n"
)
_is_own = lru_cache(maxsize=256)(is_own_repository)  # saves five of eight calls of git
_NOT_LOOKED_AT = 0x40008000
"""Flags of a file that git takes as unchanged: left out of a sparse work tree, or assumed so."""


def lag_of(root: Path, ref: str, commit: str) -> Lag | None:
    """Return how far a branch is ahead of a commit; ``None`` if git does not answer in time."""
    if not _COMMIT.fullmatch(commit) or not _is_own(root):
        return None
    asked = ("rev-list", "--count", "--first-parent", f"{commit}..{ref}", "--")
    try:
        commits = int(run_git(root, *asked, timeout_s=DEADLINE_S))
    except (GitFailedError, SourceUnavailableError, ValueError):
        return None
    return Lag(commits, _is_changed(root))


def _is_changed(root: Path) -> bool | None:
    """Tell whether files below a folder differ from the checked-out commit; ``None`` if git cannot answer."""
    try:
        listed = run_git(root, "ls-files", "--stage", "--debug", "-z", timeout_s=DEADLINE_S)
        if not 0 < listed.count(b"\0") <= MAX_FILES:  # a bare repository lists none
            return None
        if run_git(root, "diff-index", "--cached", "--name-only", "-z", "HEAD", "--", ".", timeout_s=DEADLINE_S):
            return True
    except (GitFailedError, SourceUnavailableError):
        return None
    return any(_differs(root, *match.groups()) for match in _TRACKED.finditer(listed))


def _differs(root: Path, blob: bytes, path: bytes, seconds: bytes, fraction: bytes, size: bytes, flags: bytes) -> bool:
    """Tell whether a file differs from git's version. The file is read only if its time changed."""
    if int(flags, 16) & _NOT_LOOKED_AT:
        return False
    place = os.path.join(os.fsencode(root), path)  # noqa: PTH118 - bytes
    try:
        found = os.lstat(place)
        if (found.st_mtime_ns, found.st_size) == (int(seconds) * 10**9 + int(fraction), int(size)):
            return False
        content = read_regular(os.fsdecode(place), MAX_BYTES, follows=False)
    except (OSError, DocumentError):
        return True
    kind = hashlib.sha1 if len(blob) == 40 else hashlib.sha256  # as git names objects
    return kind(b"blob %d\0" % len(content) + content).hexdigest() != blob.decode()
