"""Who wrote the lines of the ledger's open entries: ``git blame`` of just these lines, asked once per version."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nornweave.config import Settings, SourceSettings
from nornweave.connect.files.connector import FilesSettings
from nornweave.connect.git.blame import MAX_FILES, TOTAL_S, commit_of, is_own_repository, origins
from nornweave.connect.git.connector import GitSettings
from nornweave.core.errors import StoreError
from nornweave.core.types import Origin
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.origins import KnownLine, key_of, version_of
from nornweave.index.searching.generation_file import DataFile, read_lines

log = logging.getLogger(__name__)


def find_lines(
    settings: Settings,
    files: Mapping[str, Sequence[DataFile]],
    sides: Iterable[LocatedFact],
    known: Sequence[KnownLine],
) -> tuple[KnownLine, ...]:
    """Return who wrote lines, as far as git says.

    Of sources of type ``git`` the commit is asked that they read, of ``files`` in a repository the one that is checked
    out. Files with dates of their own (``metadata``) are not asked about: their repository may be another one's.

    Args:
        files: domain → files of the generation that the sides were read from.
        sides: facts with the dates of their documents.
        known: of the last time; what they say of the same version of a document is kept.

    Returns:
        By place; lines of which git says nothing within ``TOTAL_S``, or beyond ``MAX_FILES``, are left out.
    """
    before = {(line.key, line.version): line for line in known}
    found: dict[object, KnownLine] = {}
    unknown: dict[tuple[str, str], list[LocatedFact]] = defaultdict(list)
    for side in sides:
        place = key_of(side.place, side.fact), version_of(side)
        if place in before:
            found[place] = before[place]
        elif side.line_range is not None:  # pages and messages have none
            unknown[side.domain, side.source_id].append(side)
    found |= {(line.key, line.version): line for line in _ask(settings, files, unknown)}
    return tuple(sorted(found.values(), key=lambda line: line.key))


def _ask(
    settings: Settings,
    files: Mapping[str, Sequence[DataFile]],
    unknown: Mapping[tuple[str, str], Sequence[LocatedFact]],
) -> list[KnownLine]:
    deadline, files_left = time.monotonic() + TOTAL_S, MAX_FILES
    found: list[KnownLine] = []
    for source in settings.sources:
        sides = unknown.get((source.domain.value, source.id), ())
        left = deadline - time.monotonic()
        if not sides or left <= 0 or files_left <= 0:
            continue
        written = _of_source(source, files[source.domain.value], sides, left, files_left)
        files_left -= len({side.path for side in sides})
        for side in sides:
            origin = written.get((side.path, side.fact.line + 1))
            if origin is not None and origin.is_committed and origin.written_at is not None:
                found.append(KnownLine(key_of(side.place, side.fact), version_of(side), origin))
    return found


def _of_source(
    source: SourceSettings, files: Sequence[DataFile], sides: Sequence[LocatedFact], total_s: float, max_files: int
) -> Mapping[tuple[str, int], Origin]:
    root = _root(source)
    if root is not None and not is_own_repository(root):
        return {}
    revision = commit_of(root, source.ref if isinstance(source, GitSettings) else "HEAD") if root else None
    if root is None or revision is None:
        return {}
    places = {(side.source_id, side.path, side.fact.line + 1) for side in sides}
    try:
        texts = {place: text for file in files for place, text in read_lines(file, places).items()}
    except StoreError as error:
        log.warning("the ledger does not know who wrote lines of %s: %s", source.id, error)
        return {}
    lines = {(path, line): text for (_, path, line), text in texts.items()}
    return origins(root, revision, lines, total_s=total_s, max_files=max_files)


def _root(source: SourceSettings) -> Path | None:
    """Return the folder whose repository knows a source's lines."""
    is_dated = isinstance(source, FilesSettings) and source.metadata is not None
    if not isinstance(source, GitSettings | FilesSettings) or is_dated or source.path is None:
        return None
    return source.path.parent if source.path.is_file() else source.path
