"""Keep the conflict ledger: read the published generations' facts, compare, and replace the file."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

from nornweave.conflicts import find_conflicts
from nornweave.conflicts.origins import origins_of
from nornweave.errors import StoreError
from nornweave.ledger.entries import Ledger, entries_of, update, with_lines
from nornweave.ledger.file import ledger_file, load_ledger, published, save_ledger
from nornweave.settings import Settings
from nornweave.store.fact_pairs import read_fact_pairs
from nornweave.store.lock import WriterLock
from nornweave.sync.line_authors import find_lines
from nornweave.types import Domain, GenerationId
from nornweave.wiring import store_of

log = logging.getLogger(__name__)

LOCK_WAIT_S = 60.0


def refresh_ledger(settings: Settings, now: datetime | None = None) -> Ledger:
    """Read all published generations and write the ledger anew.

    Nothing is read when the generations are those of the last time. Two processes that do so at once wait for each
    other.

    Raises:
        StoreError: the ledger cannot be read or written.
    """
    now = now or datetime.now(UTC)
    file = ledger_file(settings)
    with WriterLock(file.with_suffix(".lock"), purpose="ledger", wait_s=LOCK_WAIT_S):
        old = load_ledger(settings)
        generations = published(settings)
        if old and dict(old.generations) == generations:
            return old
        files = {domain: _file(settings, domain, generation) for domain, generation in generations.items()}
        try:
            readable = files
            facts, pairs = read_fact_pairs(files)
        except StoreError:  # one that cannot be read costs the other domains nothing
            readable = {domain: file for domain, file in files.items() if _is_readable(domain, file)}
            facts, pairs = read_fact_pairs(readable)
        found = entries_of(find_conflicts(facts, joined=pairs), now)
        sides = [side for entry in found for side in entry.sides]
        lines = find_lines(settings, readable, sides, old.lines if old else ())
        written = origins_of(lines)
        found = tuple(with_lines(entry, written) for entry in found)
        read = {domain: generation for domain, generation in generations.items() if domain in readable}
        ledger = update(old, found, read, now, unread=set(files) - set(readable), lines=lines)
        save_ledger(file, ledger)
    return ledger


def _file(settings: Settings, domain: str, generation: GenerationId) -> Path:
    return store_of(settings, Domain(domain)).files.path(generation)


def _is_readable(domain: str, file: Path) -> bool:
    """Tell whether a generation can be read."""
    try:
        read_fact_pairs({domain: file})
    except StoreError as error:
        log.warning("the ledger leaves %s out: %s", domain, error)
        return False
    return True
