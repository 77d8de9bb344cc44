"""Read the visible texts, chunks and documents of one generation file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic_core import from_json

from nornweave.core.types import freeze
from nornweave.index.port import Mask, Numbers
from nornweave.index.records import StoredChunk, StoredText, decode_facts
from nornweave.index.searching.finding import (
    Completion,
    FoundLines,
    LinePattern,
    WordTexts,
    complete,
    find_lines,
    find_texts,
)
from nornweave.index.searching.generation_file import GenerationFile
from nornweave.index.searching.samples import ChunkPlace, IndexedDocument, read_indexed, read_places, read_texts
from nornweave.index.searching.search import Mapped
from nornweave.index.searching.visibility import Visible


class FileTexts:
    """The texts of one file. Every method is thread-safe."""

    def __init__(
        self, file: GenerationFile, mapped: Mapped, visible: Visible | None = None, live: Mask | None = None
    ) -> None:
        """Store the arguments.

        Args:
            visible: the part that the viewer may see; ``None`` for everything.
            live: a mask of the documents that are not gone, visible or not; ``None`` for all.
        """
        self._file = file
        self._mapped = mapped
        self._visible = visible
        self._live = live

    def sees_document(self, document_no: int) -> bool:
        return self._visible is None or bool(self._visible.documents[document_no])

    def contents(self, numbers: Numbers) -> dict[int, str]:
        return dict(
            self._file.rows(
                "select chunk_no, content from chunks where chunk_no in (select unnest(?::integer[]))",
                [_literal(self._seen(numbers))],
            )
        )

    def containing(self, text: str, k: int) -> Numbers:
        most = k if self._visible is None else self._file.size  # then drop invisible chunks
        rows = self._file.rows(
            "select chunk_no from chunks where contains(lower(content), lower(?)) order by chunk_no limit ?",
            [text, most],
        )
        return self._seen(np.array([number for (number,) in rows], np.int32))[:k]

    def find(self, pattern: LinePattern, limit: int, deadline: float, within: Mask | None = None) -> FoundLines:
        return find_lines(self._file, self._documents(within), pattern, limit, deadline)

    def texts_with(
        self, word: str, endings: Sequence[str], limit: int, deadline: float, within: Mask | None = None
    ) -> WordTexts:
        return find_texts(self._file, self._documents(within), word, endings, limit, deadline)

    def _documents(self, within: Mask | None) -> list[int]:
        """Return the numbers of the visible documents with a chunk in ``within`` (``None``: any), ascending."""
        if self._visible is not None:
            within = self._visible.chunks if within is None else within & self._visible.chunks
        documents = self._file.documents if within is None else self._file.documents[within]
        return list(map(int, np.unique(documents)))

    def complete(self, typed: str, limit: int) -> list[Completion]:
        return complete(self._file, None if self._visible is None else self._visible.documents, typed, limit)

    def paths(self) -> Collection[str]:
        rows = self._file.rows("select document_no, path from documents")
        return [path for number, path in rows if self.sees_document(number)]

    def sources_of(self, path: str) -> tuple[str, ...]:
        rows = self._file.rows("select document_no, source_id from documents where path = ?", [path])
        return tuple(dict.fromkeys(name for number, name in rows if self.sees_document(number)))

    def seen_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        rows = self._file.rows(
            """
            select document_no, source_id, path
            from documents
            where path in (select unnest(from_json(?, '["varchar"]')))
            """,
            [json.dumps([path for _, path in places], ensure_ascii=False)],
        )
        seen = {(source_id, path) for number, source_id, path in rows if self.sees_document(number)}
        return seen.intersection(places)

    def chunks(self, numbers: Numbers) -> dict[int, StoredChunk]:
        try:
            cards = self._mapped.cards.read(map(int, self._seen(np.asarray(numbers, np.int32))))
            return {number: stored_chunk(number, from_json(card)) for number, card in cards.items()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._file.unreadable(error) from error

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        rows = self._file.rows("select chunk_no from chunks where chunk_id = ?", [chunk_id])
        return next(iter(self.chunks(np.array([number for (number,) in rows], np.int32)).values()), None)

    def document(self, source_id: str, path: str) -> StoredText | None:
        # Check visibility first: the time to read a text would reveal that it exists.
        numbers = self._file.rows(
            "select document_no from documents where source_id = ? and path = ?", [source_id, path]
        )
        if not numbers or not self.sees_document(numbers[0][0]):
            return None
        rows = self._file.rows(
            """
            select
              title, format, updated_at, revision, url, stale, metadata, "text",
              (select list(chunk_id order by chunk_no) from chunks where chunks.document_no = documents.document_no)
            from documents
            where document_no = ?
            """,
            [numbers[0][0]],
        )
        return StoredText.of(rows[0])

    def document_places(self) -> pa.Table:
        """Return the source and path of every document, in the order of their numbers."""
        with self._file.reading() as cursor:
            return cursor.sql("select source_id, path from documents order by document_no").to_arrow_table()

    def live_paths(self) -> list[str]:
        """Return the paths of all documents that are not gone, including invisible documents."""
        paths: list[str] = self.document_places()["path"].to_pylist()
        return paths if self._live is None else [path for path, there in zip(paths, self._live, strict=True) if there]

    def chunk_places(self, holding: Sequence[str] = ()) -> list[ChunkPlace]:
        counts = Counter(self.live_paths())
        return [place for place in self.places(holding) if counts[place.path] == 1]

    def places(self, holding: Sequence[str] = ()) -> list[ChunkPlace]:
        """Return the places of the visible chunks; with ``holding``, only of those that contain one of its texts."""
        return [place for place in read_places(self._file.rows, holding) if self.sees_document(place.document_no)]

    def document_texts(self, documents: Iterable[int]) -> dict[int, str]:
        return read_texts(self._file.rows, (number for number in documents if self.sees_document(number)))

    def indexed_documents(self, path: str) -> tuple[IndexedDocument, ...]:
        return read_indexed(self._file.rows, self._file.meta["domain"], path, self.sees_document)

    def _seen(self, numbers: Numbers) -> Numbers:
        return numbers if self._visible is None else self._visible.of(numbers)


def stored_chunk(number: int, known: list[Any] | dict[str, Any]) -> StoredChunk:
    """Return the chunk of a card, which is a list of values or, from an earlier version, an object."""
    card = known if isinstance(known, dict) else dict(zip(StoredChunk.__slots__[1:], known, strict=True))
    updated_at = card["updated_at"]
    parsed = {
        "char_range": tuple(card["char_range"]),
        "line_range": tuple(card["line_range"]),
        "message_ids": tuple(card["message_ids"] or ()),
        "updated_at": datetime.fromisoformat(updated_at) if updated_at else None,
        "metadata": freeze(card["metadata"]),
        "facts": decode_facts(card["facts"]),
    }
    return StoredChunk(chunk_no=number, **{**card, **parsed})


def _literal(numbers: Numbers) -> str:
    """Return numbers as text that DuckDB can cast to a list. Binding a list takes fifty times as long."""
    return "[" + ",".join(map(str, numbers)) + "]"
