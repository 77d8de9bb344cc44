"""Write the conflict ledger from the facts of the published generations.

Who wrote the lines of its open entries is asked once per version, by ``git blame`` of just these lines.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from nornweave.carry.ledger_file import ledger_place, load_ledger, published, save_ledger
from nornweave.carry.wiring import sentence_encoder_of, store_of
from nornweave.config import Settings, SourceSettings
from nornweave.connect.connectors import repository_of
from nornweave.connect.git.blame import MAX_FILES, TOTAL_S, commit_of, is_own_repository, origins
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain, GenerationId, Origin
from nornweave.disagree.assertions.pairing import find_contradictions
from nornweave.disagree.conflicts import FactConflict, LocatedFact
from nornweave.disagree.conflicts.records import KnownLine, key_of, origins_of, version_of
from nornweave.disagree.ledger import Ledger, entries_of, likely_conflicts, update, with_lines
from nornweave.index.fact_pairs import read_fact_pairs, read_passages
from nornweave.index.searching.generation_file import DataFile, read_lines

log = logging.getLogger(__name__)

COPIED_WITHIN = timedelta(hours=1)
"""Between the first and the last file of a source whose dates are those of a copy, not of what its files say."""


def refresh_ledger(settings: Settings) -> Ledger:
    """Compare all published generations, write the ledger anew, and return it.

    If the generations have not changed, the ledger is not written, so it may be read-only. Concurrent writers wait for
    each other.

    Raises:
        StoreError: the ledger cannot be read or written.
    """
    if current := _current(load_ledger(settings), published(settings)):
        return current
    now = datetime.now(UTC)
    place = ledger_place(settings)
    with place.locked():
        old, generations = load_ledger(settings), published(settings)
        if current := _current(old, generations):  # another process has written it meanwhile
            return current
        files = {domain: _files(settings, domain, generation) for domain, generation in generations.items()}
        try:
            readable = files
            facts, pairs = read_fact_pairs(files)
        except StoreError:  # continue with the other domains
            readable = {domain: held for domain, held in files.items() if _is_readable(domain, held)}
            facts, pairs = read_fact_pairs(readable)
        conflicts = [*likely_conflicts(facts, pairs)]
        if len(readable) > 1:  # across domains; not where facts of the two passages conflict already
            known = set(map(_between, conflicts))
            encoder, passages = sentence_encoder_of(settings), read_passages(readable)
            sentences = find_contradictions(passages, encode=encoder.encode if encoder else None)
            conflicts += (each for each in sentences if _between(each) not in known)
            copied = copied_sources((each.domain, each.source_id, each.saved_at) for each in passages)
            conflicts = [
                replace(
                    each, first=_without_copy_date(each.first, copied), second=_without_copy_date(each.second, copied)
                )
                for each in conflicts
            ]
        found = entries_of(conflicts, now)
        sides = [side for entry in found for side in entry.sides]
        lines = find_lines(settings, readable, sides, old.lines if old else ())
        written = origins_of(lines)
        found = tuple(with_lines(entry, written) for entry in found)
        read = {domain: generation for domain, generation in generations.items() if domain in readable}
        ledger = update(old, found, read, now, unread=set(files) - set(readable), lines=lines)
        save_ledger(place, ledger)
    return ledger


def copied_sources(dated: Iterable[tuple[str, str, datetime | None]]) -> dict[tuple[str, str], datetime]:
    """Return the first date of each source whose documents have the date of a copy, not of a change.

    A source counts as copied if all of its dates lie within ``COPIED_WITHIN`` and they have a time of day.

    Args:
        dated: the domain, the source and the document's date for each passage.
    """
    spans: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    for domain, source_id, at in dated:
        if at is not None:
            span = spans[domain, source_id]
            span[:] = (min(at, *span), max(at, *span)) if span else (at, at)
    return {
        source: first for source, (first, last) in spans.items()
        if first != last and last - first <= COPIED_WITHIN and last.time() != datetime.min.time()
    }  # fmt: skip


def _without_copy_date(side: LocatedFact, copied: Mapping[tuple[str, str], datetime]) -> LocatedFact:
    first = copied.get((side.domain, side.source_id))  # before it are messages with times of their own
    return replace(side, updated_at=None) if first and side.updated_at and side.updated_at >= first else side


def _between(conflict: FactConflict) -> tuple[frozenset[str | None], str]:
    return frozenset((conflict.first.chunk_id, conflict.second.chunk_id)), conflict.attribute


def _current(ledger: Ledger | None, generations: Mapping[str, GenerationId]) -> Ledger | None:
    return ledger if ledger and dict(ledger.generations) == generations else None


def _files(settings: Settings, domain: str, generation: GenerationId) -> tuple[DataFile, ...]:
    return store_of(settings, Domain(domain)).data_files(generation)


def _is_readable(domain: str, held: Sequence[DataFile]) -> bool:
    """Tell whether a domain's generation can be read. Log why it cannot."""
    try:
        read_fact_pairs({domain: held})
    except StoreError as error:
        log.warning("the ledger leaves %s out: %s", domain, error)
        return False
    return True


def find_lines(
    settings: Settings,
    files: Mapping[str, Sequence[DataFile]],
    sides: Iterable[LocatedFact],
    known: Sequence[KnownLine],
) -> tuple[KnownLine, ...]:
    """Return the authors of lines that git knows.

    For a source of type ``git``, the commit that was read is blamed; for ``files`` in a repository, the checked-out
    commit. Files with a metadata file are skipped, because their repository may belong to another project.

    Args:
        files: domain → files of the generation that the facts were read from.
        sides: the facts whose lines are looked up, with the dates of their documents.
        known: the result of the last call. The authors of unchanged documents are taken from it.

    Returns:
        Authors sorted by place. Lines are left out if git needs more than ``TOTAL_S`` or there are more than
        ``MAX_FILES`` files.
    """
    before = {(line.key, line.version): line for line in known if line.origin.subject}
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
    known = repository_of(source)
    revision = commit_of(*known) if known and is_own_repository(known[0]) else None
    if known is None or revision is None:
        return {}
    places = {(side.source_id, side.path, side.fact.line + 1) for side in sides}
    try:
        texts = {place: text for file in files for place, text in read_lines(file, places).items()}
    except StoreError as error:
        log.warning("the ledger does not know who wrote lines of %s: %s", source.id, error)
        return {}
    lines = {(path, line): text for (_, path, line), text in texts.items()}
    return origins(known[0], revision, lines, total_s=total_s, max_files=max_files)
