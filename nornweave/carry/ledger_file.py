"""The conflict ledger as one JSON document, and its place in a workspace."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from nornweave.carry.wiring import store_of, workspace_server
from nornweave.config import Settings
from nornweave.core.errors import QueryError, StoreError
from nornweave.core.files.lock import WriterLock
from nornweave.core.files.writing import write_whole
from nornweave.core.types import Fact, GenerationId
from nornweave.disagree.conflicts.records import NO_NOTES, KnownLine, LedgerNotes, origins_of
from nornweave.disagree.ledger import Ledger
from nornweave.index.records import decode_facts, encode_facts

log = logging.getLogger(__name__)

_VERSION = 3
_PAIR_ID = re.compile(r"[0-9a-f]{16}")
KEEP_DISMISSED = 10_000
"""Pairs; of more the oldest are forgotten."""
_LEDGER = TypeAdapter(Ledger)
LOCK_WAIT_S = 60.0


class LedgerPlace(Protocol):
    """The place of the ledger's document. Every method is thread-safe.

    Raises:
        StoreError: every method except ``version`` raises it when the document cannot be read or written.
    """

    name: str
    """For messages."""

    def read(self) -> str | None:
        """Return the document; ``None`` if there is none yet."""

    def write(self, document: str) -> None:
        """Replace the document."""

    def version(self) -> object:
        """Return a value that changes with the document; ``None`` if there is none. This is cheap."""

    def locked(self) -> AbstractContextManager[object]:
        """Keep other writers out until the context ends."""


class LedgerFile:
    """The ledger in a file. Implements ``LedgerPlace``."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.name = str(file)

    def read(self) -> str | None:
        try:
            return self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise damaged(self, error) from error

    def write(self, document: str) -> None:
        try:
            write_whole(self._file, document)
        except OSError as error:
            raise StoreError(f"{self._file}: cannot be written: {error}") from error

    def version(self) -> object:
        try:
            status = self._file.stat()
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino)

    def locked(self) -> AbstractContextManager[object]:
        """Keep other processes of this machine out."""
        return WriterLock(self._file.with_suffix(".lock"), purpose="ledger", wait_s=LOCK_WAIT_S)


def damaged(place: LedgerPlace, error: Exception) -> StoreError:
    """Return the error for a ledger that cannot be read, with a remedy."""
    return StoreError(f"{place.name}: is damaged ({error!r}); remove it: the next sync writes it anew")


def ledger_file(settings: Settings) -> Path:
    """Return the path of the ledger for domains in files."""
    return settings.data_dir / "ledger" / "conflicts.json"


def ledger_place(settings: Settings) -> LedgerPlace:
    """Return the place of a workspace's ledger, a file or a row in PostgreSQL."""
    server = workspace_server(settings)
    if server is None:
        return LedgerFile(ledger_file(settings))
    from nornweave.carry.postgresql.ledger import LedgerRow

    return LedgerRow(server)


def published(settings: Settings) -> dict[str, GenerationId]:
    """Return the published generation of each served domain. Domains without one are left out."""
    current = {domain.value: store_of(settings, domain).current() for domain in settings.served_domains}
    return {domain: generation for domain, generation in current.items() if generation}


def load_ledger(settings: Settings) -> Ledger | None:
    """Return the ledger; ``None`` if there is none yet or another version wrote it.

    Raises:
        StoreError: the ledger is damaged, or cannot be read.
    """
    place = ledger_place(settings)
    document = place.read()
    if document is None:
        return None
    try:
        stored = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise damaged(place, ValueError(str(error))) from error
    if not isinstance(stored, dict) or stored.get("version") != _VERSION:
        return None
    try:
        return _LEDGER.validate_python(_with_records(stored))
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        raise damaged(place, ValueError(f"{problem['loc']}: {problem['msg']}")) from error
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(place, error) from error


class LedgerReader:
    """Reads those notes of the ledger that answers show, and reads them again when the ledger changes. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._place = ledger_place(settings)
        self._read: tuple[object, LedgerNotes] = (None, NO_NOTES)

    def read(self) -> LedgerNotes:
        """Return the line authors and the dismissed pairs; both are empty if the ledger is missing or damaged."""
        version = self._place.version()
        if version is None:
            return NO_NOTES
        known, notes = self._read
        if known != version:
            notes = self._load()
            self._read = (version, notes)
        return notes

    def _load(self) -> LedgerNotes:
        try:
            ledger = load_ledger(self._settings)
        except StoreError as error:
            log.warning("answers do not say who wrote lines, and show dismissed conflicts: %s", error)
            return NO_NOTES
        return LedgerNotes(origins_of(ledger.lines), frozenset(ledger.dismissed)) if ledger else NO_NOTES


def dismiss(settings: Settings, conflict_id: str, *, undo: bool = False) -> str:
    """Dismiss the conflict of two statements in all documents that state them; with ``undo``, undo the dismissal.

    Args:
        conflict_id: the id of a ledger entry, or of a conflict in an answer.

    Returns:
        The id of this pair of statements.

    Raises:
        QueryError: there is no such conflict.
        StoreError: the ledger cannot be read or written.
    """
    place = ledger_place(settings)
    with place.locked():
        ledger = load_ledger(settings) or Ledger(made_at=datetime.now(UTC), generations={}, open=())
        entries = {entry.entry_id: entry.pair_id for entry in (*ledger.open, *ledger.settled)}
        pair = entries.get(conflict_id, conflict_id)
        if not _PAIR_ID.fullmatch(pair):
            raise QueryError("id", f"{conflict_id!r} is not the id of a conflict (16 digits and letters a to f)")
        others = tuple(each for each in ledger.dismissed if each != pair)
        if undo and len(others) == len(ledger.dismissed):
            raise QueryError("id", f"conflict {conflict_id!r} is not dismissed")
        dismissed = others if undo else (*others, pair)[-KEEP_DISMISSED:]
        save_ledger(place, replace(ledger, dismissed=dismissed))
    return pair


def save_ledger(place: LedgerPlace, ledger: Ledger) -> None:
    """Replace the ledger.

    Raises:
        StoreError: the ledger cannot be written.
    """
    place.write(json.dumps({"version": _VERSION, **_plain(ledger)}, ensure_ascii=False, default=_plain))


def _plain(record: object) -> Any:
    """Return a value that ``json`` can write.

    Records become objects and times become ISO 8601. Facts are written as in a generation.
    """
    if isinstance(record, datetime):
        return record.isoformat()
    if isinstance(record, Fact):
        return encode_facts((record,))
    if isinstance(record, KnownLine):
        return {"key": record.key, "version": record.version, **_plain(record.origin)}
    if is_dataclass(record):
        return {field.name: getattr(record, field.name) for field in fields(record)}
    if isinstance(record, Mapping):
        return dict(record)
    raise TypeError(f"{type(record).__name__} is not part of a ledger")


def _with_records(stored: dict[str, Any]) -> dict[str, Any]:
    """Return a stored ledger with its facts and line authors decoded."""
    for entry in (*stored["open"], *stored["settled"]):
        for side in (*entry["sides"], *entry["also"]):
            (side["fact"],) = decode_facts(json.loads(side["fact"]))
    lines = [{"key": line.pop("key"), "version": line.pop("version"), "origin": line} for line in stored["lines"]]
    return {**stored, "lines": lines}
