"""Keep the conflict ledger: read the published generations' facts, compare, and replace it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from nornweave.config import Settings
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain, GenerationId
from nornweave.disagree.assertions.pairing import find_contradictions
from nornweave.disagree.conflicts.origins import origins_of
from nornweave.disagree.ledger.entries import Ledger, entries_of, update, with_lines
from nornweave.disagree.ledger.likelihood import likely_conflicts
from nornweave.index.fact_pairs import read_fact_pairs
from nornweave.index.ledger_file import ledger_place, load_ledger, published, save_ledger
from nornweave.index.passages import read_passages
from nornweave.index.searching.generation_file import DataFile
from nornweave.index.wiring import store_of
from nornweave.ingest.line_authors import find_lines

log = logging.getLogger(__name__)


def refresh_ledger(settings: Settings) -> Ledger:
    """Read all published generations and write the ledger anew.

    Nothing is read when the generations are those of the last time. Two processes that do so at once wait for each
    other.

    Raises:
        StoreError: the ledger cannot be read or written.
    """
    now = datetime.now(UTC)
    place = ledger_place(settings)
    with place.locked():
        old = load_ledger(settings)
        generations = published(settings)
        if old and dict(old.generations) == generations:
            return old
        files = {domain: _files(settings, domain, generation) for domain, generation in generations.items()}
        try:
            readable = files
            facts, pairs = read_fact_pairs(files)
        except StoreError:  # one that cannot be read costs the other domains nothing
            readable = {domain: held for domain, held in files.items() if _is_readable(domain, held)}
            facts, pairs = read_fact_pairs(readable)
        contradictions = find_contradictions(read_passages(readable))
        found = entries_of([*likely_conflicts(facts, pairs), *contradictions], now)
        sides = [side for entry in found for side in entry.sides]
        lines = find_lines(settings, readable, sides, old.lines if old else ())
        written = origins_of(lines)
        found = tuple(with_lines(entry, written) for entry in found)
        read = {domain: generation for domain, generation in generations.items() if domain in readable}
        ledger = update(old, found, read, now, unread=set(files) - set(readable), lines=lines)
        save_ledger(place, ledger)
    return ledger


def _files(settings: Settings, domain: str, generation: GenerationId) -> tuple[DataFile, ...]:
    return store_of(settings, Domain(domain)).data_files(generation)


def _is_readable(domain: str, held: Sequence[DataFile]) -> bool:
    """Tell whether a generation can be read."""
    try:
        read_fact_pairs({domain: held})
    except StoreError as error:
        log.warning("the ledger leaves %s out: %s", domain, error)
        return False
    return True
