"""Receipts by idempotency key: who sends the same once more, because an answer was lost, gets the same answer.

A key is held for a day, in a file of its own, from before anything is put into the inbox: a process that is killed in
between leaves a key without receipts, and whoever comes back with it is told what it would have been told.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nornweave.connect.inbox.deposits import InboxDocument, Receipt, Status
from nornweave.core.errors import QueryError, SourceUnavailableError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.files.lock import held
from nornweave.core.types import canonical_json, digest

KEEP_S = 24 * 3600.0
MAX_KEYS = 10_000
MAX_KEY_CHARACTERS = 255
FIELD = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class ReceiptBook:
    """The keys of one inbox."""

    folder: Path

    def once(
        self, key: str, documents: Sequence[InboxDocument], put: Callable[[], Sequence[Receipt]]
    ) -> tuple[Receipt, ...]:
        """Put documents into an inbox, or return what was said when this key came with them before.

        Args:
            key: 1 to 255 printable ASCII characters.

        Raises:
            QueryError: the key is none, or came with other documents before.
            SourceUnavailableError: the folder cannot be written.
        """
        check_key(key)
        body = _digest(documents)
        try:
            with held(self.folder / ".lock"):
                self._sweep()
                return self._once(self.folder / f"{digest(key)}.json", body, put)
        except OSError as error:
            raise SourceUnavailableError(
                f"{str(self.folder)!r} cannot be written: {error.strerror}; free space or permit it"
            ) from error

    def _once(self, file: Path, body: str, put: Callable[[], Sequence[Receipt]]) -> tuple[Receipt, ...]:
        known = _read(file)
        if known and known["body"] != body:
            raise QueryError(FIELD, "came with other documents before; a key is for one request and its repetitions")
        if known and known["receipts"] is not None:
            return tuple(Receipt(path, Status(status), reason) for path, status, reason in known["receipts"])
        write_whole(file, json.dumps({"body": body, "receipts": None}))
        receipts = tuple(_as_if_first(receipt) if known else receipt for receipt in put())
        said = [(each.source_path, each.status.value, each.reason) for each in receipts]
        write_whole(file, json.dumps({"body": body, "receipts": said}, ensure_ascii=True))
        return receipts

    def _sweep(self) -> None:
        """Forget keys of more than a day, and the oldest of too many."""
        ages = sorted((file.stat().st_mtime, file) for file in self.folder.glob("*.json"))
        before = time.time() - KEEP_S
        for number, (moment, file) in enumerate(ages):
            if moment < before or number < len(ages) - MAX_KEYS:
                file.unlink(missing_ok=True)


def check_key(key: str) -> None:
    """Refuse what is no key.

    Raises:
        QueryError: empty, too long or not printable ASCII.
    """
    if not (1 <= len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable()):
        raise QueryError(FIELD, f"expected 1 to {MAX_KEY_CHARACTERS} printable ASCII characters")


def _as_if_first(receipt: Receipt) -> Receipt:
    """Return what was to be said of a document that is there already because its answer was lost."""
    is_own = receipt.reason == "duplicate"
    return Receipt(receipt.source_path, Status.ACCEPTED) if is_own else receipt


def _digest(documents: Sequence[InboxDocument]) -> str:
    parts: list[str | bytes] = []
    for each in documents:
        moment = each.source_updated_at.isoformat() if each.source_updated_at else ""
        parts += [each.source_path, each.content, canonical_json(each.metadata), moment, type(each.content).__name__]
    return digest(*parts)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return known if isinstance(known, dict) and {"body", "receipts"} <= known.keys() else None
