"""Keep the conflict ledger: read the published generations' claims, compare, and replace the file in one step."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nornweave.claims.located import LocatedClaim
from nornweave.documents import LedgerDocument, LedgerEntryDocument, LedgerSideDocument
from nornweave.errors import StoreError
from nornweave.ledger import Ledger, LedgerEntry, LedgerSide, find_entries, update
from nornweave.settings import Settings
from nornweave.store.claims import decode_claims, encode_claims, read_claims
from nornweave.store.lock import WriterLock
from nornweave.types import ChunkId, Domain, GenerationId
from nornweave.workspace import store_of

log = logging.getLogger(__name__)

_VERSION = 1
LOCK_WAIT_S = 60.0


def ledger_file(settings: Settings) -> Path:
    """Return where the ledger is kept."""
    return settings.data_dir / "ledger" / "conflicts.json"


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
        claims = {domain: _claims(settings, domain, generation) for domain, generation in generations.items()}
        readable = {domain: found for domain, found in claims.items() if found is not None}
        read = {domain: generation for domain, generation in generations.items() if domain in readable}
        ledger = update(old, find_entries(readable, now), read, now, unread=set(claims) - set(readable))
        _save(file, ledger)
    return ledger


def _claims(settings: Settings, domain: str, generation: GenerationId) -> list[LocatedClaim] | None:
    """Read a generation's claims; one that cannot be read costs the other domains nothing."""
    try:
        return list(read_claims(store_of(settings, Domain(domain)).files.path(generation)))
    except StoreError as error:
        log.warning("the ledger leaves %s out: %s", domain, error)
        return None


def published(settings: Settings) -> dict[str, GenerationId]:
    """Return the published generation of each served domain that has one."""
    current = {domain.value: store_of(settings, domain).current() for domain in settings.served_domains}
    return {domain: generation for domain, generation in current.items() if generation}


def load_ledger(settings: Settings) -> Ledger | None:
    """Return the ledger as it was written last; ``None`` before the first time, or when another version wrote it.

    Raises:
        StoreError: the file is damaged.
    """
    file = ledger_file(settings)
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(f"{file}: is damaged ({error}); remove it: the next sync writes it anew") from error
    if not isinstance(stored, dict) or stored.get("version") != _VERSION:
        return None
    try:
        return Ledger(
            made_at=datetime.fromisoformat(stored["made_at"]),
            generations=stored["generations"],
            open=tuple(map(_read_entry, stored["open"])),
            settled=tuple(map(_read_entry, stored["settled"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{file}: is damaged ({error!r}); remove it: the next sync writes it anew") from error


def ledger_document(settings: Settings, ledger: Ledger | None) -> LedgerDocument:
    """Return the ledger as contract §4 has it, with a notice where it lags behind what is published."""
    if ledger is None:
        notices = ["there is no ledger yet; `nornweave sync` writes it"]
        return {"made_at": None, "generations": {}, "open": [], "settled": [], "notices": notices}
    now = published(settings)
    behind = [
        f"{domain}: read from {ledger.generations.get(domain, 'nothing')}, published is {generation}; "
        "`nornweave conflicts` brings the ledger up to date"
        for domain, generation in now.items()
        if ledger.generations.get(domain) != generation
    ]
    return {
        "made_at": _written(ledger.made_at),
        "generations": dict(ledger.generations),
        "open": [_entry_document(entry) for entry in ledger.open],
        "settled": [_entry_document(entry) for entry in ledger.settled],
        "notices": behind,
    }


def _entry_document(entry: LedgerEntry) -> LedgerEntryDocument:
    return {
        "entry_id": entry.entry_id,
        "entity": entry.entity,
        "attribute": entry.attribute,
        "detector": entry.detector,
        "sides": [_side_document(side) for side in entry.sides],
        "suggested": entry.suggested,
        "reason": entry.reason,
        "explanation": entry.explanation,
        "confidence": entry.confidence,
        "first_seen": _written(entry.first_seen),
        "settled": _written(entry.settled) if entry.settled else None,
    }


def _side_document(side: LedgerSide) -> LedgerSideDocument:
    located, claim = side.located, side.claim
    return {
        "domain_id": side.domain,
        "source_id": located.source_id,
        "source_path": located.path,
        "chunk_id": located.chunk_id,
        "value": claim.value,
        "unit": claim.unit,
        "statement": claim.statement,
        "char_range": [claim.span.start, claim.span.end],
        "line_range": list(located.line_range) if located.line_range else None,
        "timestamp": _written(located.updated_at) if located.updated_at else None,
    }


def _save(file: Path, ledger: Ledger) -> None:
    stored = {
        "version": _VERSION,
        "made_at": ledger.made_at.isoformat(),
        "generations": dict(ledger.generations),
        "open": [_written_entry(entry) for entry in ledger.open],
        "settled": [_written_entry(entry) for entry in ledger.settled],
    }
    aside = file.with_suffix(f".{os.getpid()}.new")
    try:
        with aside.open("w", encoding="utf-8") as writing:
            json.dump(stored, writing, ensure_ascii=False)
            writing.flush()
            os.fsync(writing.fileno())
        aside.replace(file)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise StoreError(f"{file}: cannot be written: {error}") from error


def _written_entry(entry: LedgerEntry) -> dict[str, Any]:
    return {
        **{name: getattr(entry, name) for name in _PLAIN},
        "first_seen": entry.first_seen.isoformat(),
        "settled": entry.settled.isoformat() if entry.settled else None,
        "sides": [_written_side(side) for side in entry.sides],
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


def _written_side(side: LedgerSide) -> dict[str, Any]:
    located = side.located
    return {
        "domain": side.domain,
        "claim": encode_claims((side.claim,)),
        "chunk_id": located.chunk_id,
        "source_id": located.source_id,
        "path": located.path,
        "line_range": located.line_range,
        "updated_at": located.updated_at.isoformat() if located.updated_at else None,
    }


def _read_entry(stored: dict[str, Any]) -> LedgerEntry:
    one, other = map(_read_side, stored["sides"])
    return LedgerEntry(
        **{name: stored[name] for name in _PLAIN},
        sides=(one, other),
        first_seen=datetime.fromisoformat(stored["first_seen"]),
        settled=datetime.fromisoformat(stored["settled"]) if stored["settled"] else None,
    )


def _read_side(stored: dict[str, Any]) -> LedgerSide:
    (claim,) = decode_claims(json.loads(stored["claim"]))
    lines, updated_at = stored["line_range"], stored["updated_at"]
    return LedgerSide(
        domain=stored["domain"],
        located=LocatedClaim(
            claim=claim,
            chunk_id=ChunkId(stored["chunk_id"]),
            source_id=stored["source_id"],
            path=stored["path"],
            line_range=(lines[0], lines[1]) if lines else None,
            updated_at=datetime.fromisoformat(updated_at) if updated_at else None,
        ),
    )


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
