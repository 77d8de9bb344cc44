"""The status of documents (waiting in the inbox, indexed, failed, skipped, taken out), and taking them out.

Three things are put together: what answers (a generation), what the last sync could not store (``outcomes.json``), and
the files of the inbox. A file of the inbox is what was indexed if its gate says so, or else its bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from nornweave.connect.inbox.deposits import (
    MAX_FILE_BYTES,
    file_name,
    gate_of,
    is_document_file,
    loads,
    read_header,
    withdraw,
)
from nornweave.core.errors import QueryError, SourceUnavailableError
from nornweave.core.files.paths import unsafe_path
from nornweave.core.text.dates import iso_moment, utc_text
from nornweave.core.types import canonical_json, digest, freeze
from nornweave.index.index import Index
from nornweave.index.outcomes import Outcome
from nornweave.index.port import Mask
from nornweave.index.searching.counting import ServedDocument

BATCH = 500
DocumentPlace = tuple[str, str]
"""Source id and path."""


class DocumentStatus(StrEnum):
    """The status of a document after the last sync."""

    ACCEPTED = "accepted"
    INDEXED = "indexed"
    FAILED = "failed"
    SKIPPED = "skipped"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """The state of one document.

    Attributes:
        generation: the published generation if it has this document, perhaps in an older version; else ``None``.
        updated_at: when the document last changed, as ISO 8601 in UTC.
        size: the bytes of the deposited file, or for other sources of the text; ``None`` if nothing is stored.
    """

    source_path: str
    source_id: str
    status: DocumentStatus
    generation: str | None = None
    reason: str | None = None
    updated_at: str | None = None
    size: int | None = None
    chunks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsQuery:
    """Which documents to list: at most ``limit``, after a cursor, and only those with a status or from a source."""

    limit: int
    cursor: str | None = None
    status: DocumentStatus | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class DepositPage:
    """A page of documents, sorted by source and path. ``next`` is the cursor of the next page; ``None`` at the end."""

    documents: tuple[DocumentState, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file in the inbox."""

    path: str
    gate: str
    size: int
    updated_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The state of a domain's documents: the generation, the outcomes and the inbox.

    Attributes:
        generation: the generation that answers; ``None`` before the first publication.
        outcomes: the documents that the last sync did not store.
        root: the folder of the inbox.
        inbox: the source id of the inbox.
        within: a mask of the chunks that may be seen; ``None`` for all chunks.
    """

    generation: Index | None
    outcomes: Sequence[Outcome]
    root: Path
    inbox: str
    within: Mask | None = None

    def page(self, asked: DocumentsQuery) -> DepositPage:
        """Return the requested documents by source and path.

        Raises:
            QueryError: the cursor is invalid.
            SourceUnavailableError: the inbox cannot be read.
            StoreError: the generation cannot be read.
        """
        found: list[DocumentState] = []
        for state in self._states(read_cursor(asked.cursor), asked.source):
            if asked.status is not None and state.status is not asked.status:
                continue
            if len(found) == asked.limit:
                return DepositPage(tuple(found), cursor_after(found[-1]))
            found.append(state)
        return DepositPage(tuple(found), None)

    def take_out(self, source_path: str) -> bool:
        """Remove a document from the inbox. Return ``False`` if neither the inbox nor the index has the document.

        Raises:
            ForeignDocumentError: only other sources have the document.
            SourceUnavailableError: the inbox cannot be written.
        """
        if withdraw(self.root, source_path):
            return True
        served = self.generation.sources_of(source_path) if self.generation else ()
        owners = sorted({*served, *(each.source_id for each in self.outcomes if each.path == source_path)})
        if owners and self.inbox not in owners:
            raise ForeignDocumentError(source_path, owners)
        return self.inbox in owners

    def _states(self, after: DocumentPlace, source_id: str | None) -> Iterator[DocumentState]:
        waiting = {(self.inbox, file.path): file for file in waiting_files(self.root)}
        outcomes = {(each.source_id, each.path): each for each in self.outcomes}
        others = sorted({*waiting, *outcomes})
        for places, served in self._batches(after, others):
            for place in places:
                if source_id is None or place[0] == source_id:
                    yield self._state(place, served.get(place), outcomes.get(place), waiting.get(place))

    def _batches(
        self, after: DocumentPlace, others: Sequence[DocumentPlace]
    ) -> Iterator[tuple[Sequence[DocumentPlace], Mapping[DocumentPlace, ServedDocument]]]:
        """Yield batches of places after ``after``, in order, with the generation's document at each place that has one.

        Args:
            others: places that are listed even if the generation has no document there.
        """
        while True:
            rows = self.generation.served_documents(after, BATCH, self.within) if self.generation else []
            served = {(row.source_id, row.path): row for row in rows}
            is_last = len(rows) < BATCH
            end = max(served) if served else after
            between = [place for place in others if place > after and (is_last or place <= end)]
            yield sorted({*served, *between}), served
            if is_last:
                return
            after = end

    def _state(
        self, place: DocumentPlace, served: ServedDocument | None, outcome: Outcome | None, file: WaitingFile | None
    ) -> DocumentState:
        source_id, path = place
        is_inbox = source_id == self.inbox
        if outcome and (not is_inbox or (file is not None and file.gate == outcome.gate)):
            status = DocumentStatus.SKIPPED if outcome.outcome == "skipped" else DocumentStatus.FAILED
        elif not is_inbox:
            status = DocumentStatus.INDEXED
        elif file is None:
            status = DocumentStatus.DELETED
        else:
            is_indexed = served is not None and self._holds(file, served)
            status = DocumentStatus.INDEXED if is_indexed else DocumentStatus.ACCEPTED
        says_why = outcome is not None and status in {DocumentStatus.SKIPPED, DocumentStatus.FAILED}
        return DocumentState(
            source_path=path,
            source_id=source_id,
            status=status,
            generation=self.generation.meta["generation"] if self.generation and served else None,
            reason=outcome.reason if outcome and says_why else None,
            updated_at=file.updated_at if file else served.updated_at if served else None,
            size=file.size if file else served.size if served else None,
            chunks=served.chunks if served else 0,
        )

    def _holds(self, file: WaitingFile, served: ServedDocument) -> bool:
        """Tell whether an inbox file equals the indexed document: its gate is the same, or its content is."""
        return file.gate == served.gate or _content_hash(self.root / file_name(file.path)) == served.content_hash


class ForeignDocumentError(Exception):
    """A document to take out of the inbox belongs to other sources."""

    def __init__(self, source_path: str, owners: Sequence[str]) -> None:
        super().__init__(source_path, owners)
        self.source_path, self.owners = source_path, owners


def waiting_files(root: Path) -> list[WaitingFile]:
    """Return the documents of an inbox in any order. Broken files are left out, because the sync reports them.

    Raises:
        SourceUnavailableError: the folder cannot be read.
    """
    try:
        files = [file for file in root.iterdir() if is_document_file(file.name)]
        return [found for file in files if (found := _waiting(file)) is not None]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SourceUnavailableError(f"the inbox {str(root)!r} cannot be read: {error.strerror}") from error


def read_cursor(cursor: str | None) -> DocumentPlace:
    """Return the place after which a cursor continues; the first place for ``None``.

    Raises:
        QueryError: it is not a valid cursor.
    """
    if cursor is None:
        return "", ""
    try:
        source_id, path = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError) as error:
        raise QueryError("cursor", "is not a cursor; pass `next` of the page before") from error
    if not (isinstance(source_id, str) and isinstance(path, str)) or "\0" in source_id + path:
        raise QueryError("cursor", "is not a cursor; pass `next` of the page before")
    return source_id, path


def cursor_after(state: DocumentState) -> str:
    """Return the cursor of the page that begins after a document."""
    return base64.urlsafe_b64encode(json.dumps([state.source_id, state.source_path]).encode()).decode()


def _waiting(file: Path) -> WaitingFile | None:
    try:
        return _described(file, gate_of(file.stat()))
    except FileNotFoundError:
        return None  # taken out meanwhile


@lru_cache(maxsize=65_536)
def _described(file: Path, gate: str) -> WaitingFile | None:
    header = read_header(file)
    path, size, stated = header.get("source_path"), header.get("size"), header.get("source_updated_at")
    if not isinstance(path, str) or file_name(path) != file.name or unsafe_path(path):
        return None
    moment = iso_moment(stated) or datetime.fromtimestamp(int(gate.split("-")[1]) / 1e9, UTC)
    return WaitingFile(path, gate, size if isinstance(size, int) else 0, utc_text(moment, "seconds"))


def _content_hash(file: Path) -> str | None:
    """Return the content hash of an inbox file as a sync computes it; ``None`` if it cannot be read."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_FILE_BYTES + 1)
    except OSError:
        return None
    metadata = loads(raw).get("metadata")
    return digest(raw, canonical_json(freeze(metadata) if isinstance(metadata, Mapping) else {}))
