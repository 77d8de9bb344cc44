"""The conflict ledger as one JSON document, and where a workspace keeps it."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from pathlib import Path
from typing import Any

from nornweave.config import Settings
from nornweave.core.errors import StoreError
from nornweave.core.types import GenerationId, Origin
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.origins import NO_ORIGINS, KnownLine, Origins, origins_of
from nornweave.disagree.ledger.entries import Ledger, LedgerEntry
from nornweave.index.facts import decode_facts, encode_facts
from nornweave.index.ledger_place import LedgerFile, LedgerPlace, damaged
from nornweave.index.wiring import store_of, workspace_server

log = logging.getLogger(__name__)

_VERSION = 3


def ledger_file(settings: Settings) -> Path:
    """Return the file of the ledger, where domains are in files."""
    return settings.data_dir / "ledger" / "conflicts.json"


def ledger_place(settings: Settings) -> LedgerPlace:
    """Return where the ledger of a workspace is."""
    server = workspace_server(settings)
    if server is None:
        return LedgerFile(ledger_file(settings))
    from nornweave.index.postgresql.ledger import LedgerRow

    return LedgerRow(server)


def published(settings: Settings) -> dict[str, GenerationId]:
    """Return the published generation of each served domain that has one."""
    current = {domain.value: store_of(settings, domain).current() for domain in settings.served_domains}
    return {domain: generation for domain, generation in current.items() if generation}


def load_ledger(settings: Settings) -> Ledger | None:
    """Return the ledger as it was written last; ``None`` before the first time, or when another version wrote it.

    Raises:
        StoreError: it is damaged, or cannot be read.
    """
    place = ledger_place(settings)
    document = place.read()
    if document is None:
        return None
    try:
        stored = json.loads(document)
    except ValueError as error:
        raise damaged(place, error) from error
    if not isinstance(stored, dict) or stored.get("version") != _VERSION:
        return None
    try:
        return Ledger(
            made_at=datetime.fromisoformat(stored["made_at"]),
            generations=stored["generations"],
            open=tuple(map(_read_entry, stored["open"])),
            settled=tuple(map(_read_entry, stored["settled"])),
            lines=tuple(map(_read_line, stored["lines"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(place, error) from error


class LineBook:
    """Line authors from the ledger, reloaded when it changes; thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._place = ledger_place(settings)
        self._read: tuple[object, Origins] = (None, NO_ORIGINS)

    def origins(self) -> Origins:
        """Return the line authors; empty if the ledger is missing or damaged."""
        version = self._place.version()
        if version is None:
            return NO_ORIGINS
        known, origins = self._read
        if known != version:
            origins = self._load()
            self._read = (version, origins)
        return origins

    def _load(self) -> Origins:
        try:
            ledger = load_ledger(self._settings)
        except StoreError as error:
            log.warning("answers do not say who wrote lines: %s", error)
            return NO_ORIGINS
        return origins_of(ledger.lines) if ledger else NO_ORIGINS


def save_ledger(place: LedgerPlace, ledger: Ledger) -> None:
    """Replace the ledger.

    Raises:
        StoreError: it cannot be written.
    """
    stored = {
        "version": _VERSION,
        "made_at": ledger.made_at.isoformat(),
        "generations": dict(ledger.generations),
        "open": [_written_entry(entry) for entry in ledger.open],
        "settled": [_written_entry(entry) for entry in ledger.settled],
        "lines": [_written_line(line) for line in ledger.lines],
    }
    place.write(json.dumps(stored, ensure_ascii=False))


def _written_entry(entry: LedgerEntry) -> dict[str, Any]:
    return {
        **{name: getattr(entry, name) for name in _PLAIN},
        "first_seen": entry.first_seen.isoformat(),
        "settled": entry.settled.isoformat() if entry.settled else None,
        "sides": [_written_side(side) for side in entry.sides],
        "also": [_written_side(side) for side in entry.also],
    }


_PLAIN = (
    "entry_id",
    "entity",
    "attribute",
    "detector",
    "suggested",
    "reason",
    "explanation",
    "confidence",
)


def _written_side(side: LocatedFact) -> dict[str, Any]:
    return {
        **{name: getattr(side, name) for name in _PLACE},
        "fact": encode_facts((side.fact,)),
        "line_range": side.line_range,
        "updated_at": side.updated_at.isoformat() if side.updated_at else None,
    }


_PLACE = ("domain", "source_id", "path", "section", "title", "revision", "author", "chunk_id")


def _read_entry(stored: dict[str, Any]) -> LedgerEntry:
    one, other = map(_read_side, stored["sides"])
    return LedgerEntry(
        **{name: stored[name] for name in _PLAIN},
        sides=(one, other),
        also=tuple(map(_read_side, stored["also"])),
        first_seen=datetime.fromisoformat(stored["first_seen"]),
        settled=datetime.fromisoformat(stored["settled"]) if stored["settled"] else None,
    )


def _read_side(stored: dict[str, Any]) -> LocatedFact:
    (fact,) = decode_facts(json.loads(stored["fact"]))
    lines, updated_at = stored["line_range"], stored["updated_at"]
    return LocatedFact(
        **{name: stored[name] for name in _PLACE},
        fact=fact,
        line_range=(lines[0], lines[1]) if lines else None,
        updated_at=datetime.fromisoformat(updated_at) if updated_at else None,
    )


def _written_line(line: KnownLine) -> dict[str, Any]:
    origin = line.origin
    return {
        "key": line.key,
        "version": line.version,
        "revision": origin.revision,
        "author": origin.author,
        "written_at": origin.written_at.isoformat() if origin.written_at else None,
    }


def _read_line(stored: dict[str, Any]) -> KnownLine:
    domain, source_id, path, start, value = stored["key"]
    written_at = datetime.fromisoformat(stored["written_at"]) if stored["written_at"] else None
    origin = Origin(revision=stored["revision"], author=stored["author"], written_at=written_at)
    return KnownLine((domain, source_id, path, start, value), stored["version"], origin)
