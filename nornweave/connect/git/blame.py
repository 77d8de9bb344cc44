"""Find who wrote a line: ``git blame`` of single lines, within a deadline.

Blame of a working tree would run the programs that a repository configures as filters, so only commits are blamed. A
line that the commit does not have is not committed yet.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from nornweave.connect.git.program import GitFailedError, run_git
from nornweave.connect.git.tree import leads_outside
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.text.dates import since_1970
from nornweave.core.text.terminal import lines_of
from nornweave.core.types import Origin

MAX_FILES = 200
"""Files that are blamed; of more the first, by path."""
MAX_LINES = 60
"""Lines of one file."""
TOTAL_S = 20.0
FILE_S = 10.0
MAX_SUBJECT = 200
NOT_COMMITTED = Origin()

_HEADER = re.compile(rb"^([0-9a-f]{40}(?:[0-9a-f]{24})?) \d+ (\d+)")


def origins(
    root: Path,
    revision: str,
    lines: Mapping[tuple[str, int], str],
    *,
    total_s: float = TOTAL_S,
    max_files: int = MAX_FILES,
) -> dict[tuple[str, int], Origin]:
    """Return the author of each line.

    Args:
        root: a folder in a repository, which may be a bare one.
        lines: path relative to ``root`` and line number from 1 → the line's text when it was read. The file may differ
            from the commit.
        total_s: the time limit for all files, in seconds.
        max_files: the maximum number of files to blame, in the order of their paths.

    Returns:
        Authors by path and line. Lines for which git did not answer in time are left out.
    """
    deadline = time.monotonic() + total_s
    is_shallow = is_shallow_clone(root)
    # The folder inside the repository, ending with a slash; nothing at its top and in a bare one.
    prefix = _rev_parse(root, "--show-prefix") or ""
    wanted: dict[str, dict[int, str]] = defaultdict(dict)
    for (path, line), text in sorted(lines.items()):
        if len(wanted[path]) < MAX_LINES:
            wanted[path][line] = text
    found: dict[tuple[str, int], Origin] = {}
    with ThreadPoolExecutor(2) as pool:
        tasks = {
            path: pool.submit(_of_file, _File(root, revision, prefix, path, is_shallow), texts, deadline)
            for path, texts in sorted(wanted.items())[:max_files]
        }
        for path, task in tasks.items():
            found.update({(path, line): origin for line, origin in task.result().items()})
    return found


def is_shallow_clone(root: Path) -> bool:
    """Tell whether a repository lacks older commits. In that case the age of a line may be unknown."""
    return _rev_parse(root, "--is-shallow-repository") == "true"


def is_own_repository(root: Path) -> bool:
    """Tell whether a folder's repository belongs to the folder, by the rules of ``leads_outside``.

    The result is ``False`` if git cannot answer.
    """
    try:
        return leads_outside(root, timeout_s=FILE_S) is None
    except (GitFailedError, SourceUnavailableError, OSError):
        return False


def commit_of(root: Path, ref: str) -> str | None:
    """Return the commit that a branch, tag or commit name means; ``None`` if the repository has no such name."""
    if ref.startswith("-") or "\0" in ref:
        return None
    return _rev_parse(root, "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")


def _rev_parse(root: Path, *arguments: str) -> str | None:
    """Return the output of ``git rev-parse``; ``None`` if it fails."""
    try:
        return os.fsdecode(run_git(root, "rev-parse", *arguments, timeout_s=FILE_S)).rstrip("\n")
    except (GitFailedError, SourceUnavailableError):
        return None


@dataclass(frozen=True, slots=True)
class _File:
    """A file at a commit."""

    root: Path
    revision: str
    prefix: str
    path: str
    is_shallow: bool


def _of_file(file: _File, lines: Mapping[int, str], deadline: float) -> dict[int, Origin]:
    left = min(FILE_S, deadline - time.monotonic())
    if left <= 0:
        return {}
    try:
        committed = run_git(file.root, "cat-file", "blob", f"{file.revision}:{file.prefix}{file.path}", timeout_s=left)
    except GitFailedError:
        return dict.fromkeys(lines, NOT_COMMITTED)
    except SourceUnavailableError:
        return {}
    places = _places(committed.decode("utf-8", "replace"), lines)
    ranges = [part for place in sorted(set(places.values())) for part in ("-L", f"{place},{place}")]
    found = dict.fromkeys((line for line in lines if line not in places), NOT_COMMITTED)
    if ranges:
        arguments = ("blame", "--porcelain", "--no-textconv", *ranges, file.revision, "--", file.path)
        left = deadline - time.monotonic()
        try:
            raw = run_git(file.root, *arguments, timeout_s=max(0.0, min(FILE_S, left)))
        except (GitFailedError, SourceUnavailableError):
            return found
        blamed = _parse(raw, set(places.values()), is_shallow=file.is_shallow)
        found.update({line: blamed[place] for line, place in places.items() if place in blamed})
    return found


def _places(committed: str, lines: Mapping[int, str]) -> dict[int, int]:
    """Return for each line its number in the committed file. Of several lines with the same text the nearest counts."""
    known: dict[str, list[int]] = {text: [] for text in lines.values()}
    for number, content in enumerate(lines_of(committed), 1):
        if content in known:
            known[content].append(number)
    return {
        line: min(known[text], key=lambda number, line=line: abs(number - line))  # type: ignore[misc]
        for line, text in lines.items()
        if known[text]
    }


def _parse(raw: bytes, wanted: Collection[int], *, is_shallow: bool = False) -> dict[int, Origin]:
    """Return the authors of the ``wanted`` lines from ``git blame --porcelain``, which describes each commit once."""
    commits: dict[bytes, dict[bytes, bytes]] = defaultdict(dict)
    lines: dict[int, bytes] = {}
    commit = b""
    for row in raw.split(b"\n"):
        if row.startswith(b"\t"):
            continue
        if header := _HEADER.match(row):
            commit = header[1]
            lines[int(header[2])] = commit
        elif commit:
            key, _, value = row.partition(b" ")
            commits[commit].setdefault(key, value)
    return {
        line: _origin(commit, commits[commit])
        for line, commit in lines.items()
        # Git attributes lines older than a shallow clone to its oldest commit.
        if line in wanted and not (is_shallow and b"boundary" in commits[commit])
    }


def _origin(commit: bytes, facts: Mapping[bytes, bytes]) -> Origin:
    return Origin(
        revision=commit.decode("ascii")[:12],
        author=facts.get(b"author", b"").decode("utf-8", "replace"),
        written_at=since_1970(facts.get(b"author-time", b"")),
        subject=facts.get(b"summary", b"").decode("utf-8", "replace")[:MAX_SUBJECT],
    )
