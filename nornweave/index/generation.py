"""Read one generation: its vectors, inverted lists and chunks.

What a query touches is mapped from a file beside it, which workers share: vectors, BM25 postings, word pairs and names.
Texts stay in the file.
"""

from __future__ import annotations

import copy
import json
import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa
from pydantic_core import from_json

from nornweave.config import Bm25Settings
from nornweave.core.access.rules import Statement
from nornweave.core.access.viewer import Viewer
from nornweave.core.errors import StoreError
from nornweave.core.types import freeze
from nornweave.index.arrays import Arrays, ArrayWriter, open_arrays
from nornweave.index.build import GENERATION_SCHEMA
from nornweave.index.cards import Cards, write_cards
from nornweave.index.conditions import Condition, select_chunks
from nornweave.index.connection import Connection, connect_reader, lift_memory_limit, load_vss
from nornweave.index.facts import decode_facts
from nornweave.index.index import StoredChunk, StoredText
from nornweave.index.inverted import (
    DEFAULT_BM25,
    FrequentTerms,
    InvertedLists,
    Lengths,
    TermLists,
    WeightedLists,
    load_names,
    load_pairs,
    write_names,
    write_pairs,
    write_terms,
)
from nornweave.index.port import Mask, Numbers, Scores, Vectors
from nornweave.index.ranked_chunks import Hits
from nornweave.index.samples import ChunkPlace, IndexedDocument, read_indexed, read_places, read_texts
from nornweave.index.served_documents import ServedDocument, documents_after
from nornweave.index.value_counts import (
    FieldValues,
    UnreadRow,
    UnreadValues,
    ValueCounts,
    count_values,
    field_values,
    unread_rows,
    unread_values,
)
from nornweave.index.vectors import HnswVectors, Nearest, VectorIndex, load_hnsw, load_matrix, write_vectors
from nornweave.index.visibility import NO_STATEMENTS, SeenTerms, Visibilities, Visible

log = logging.getLogger(__name__)

# Filters come in streaks; a mask is a byte a chunk.
_REMEMBERED_MASKS = 64


def facts_of(file: Path) -> Mapping[str, str]:
    """Return the metadata of a generation without loading it.

    Raises:
        StoreError: it cannot be read.
    """
    connection = connect_reader(file)
    try:
        return dict(connection.execute("select key, value from meta").fetchall())
    except duckdb.Error as error:
        raise StoreError(f"{file}: cannot be read ({error}); roll back, or sync again") from error
    finally:
        connection.close()


class Generation:
    """One published file, open for reading; a context manager, safe to use from several threads.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """

    def __init__(
        self,
        file: Path,
        statements: Mapping[str, Statement] = NO_STATEMENTS,
        corpus: Lengths | None = None,
        nearest: Nearest | None = None,
    ) -> None:
        """Open a file.

        Args:
            file: of the generation.
            statements: what the configuration says now about who may see each source, beside what the file says.
            corpus: the lengths of all chunks of the corpus that this file is a shard of.
            nearest: asks an index over the vectors that is elsewhere.
        """
        if not file.is_file():
            raise StoreError(f"{file}: no such generation")
        self._file = file
        self._connection = connect_reader(file)
        self._resources = ExitStack()
        self._resources.callback(self._connection.close)
        self._threads = threading.local()
        self._masks: dict[tuple[Condition, ...], Mask] = {}
        self._visible: Visible | None = None
        try:
            self.meta: Mapping[str, str] = dict(self._connection.execute("select key, value from meta").fetchall())
            self._check_schema(file)
            if nearest:
                self.meta = {**self.meta, "built_with": "hnsw"}
            self._load(statements, corpus, nearest)
            # One thread a query: several run at once, and for a handful of rows a second one only gets in the way.
            self._connection.execute("set threads = 1")
        except (duckdb.Error, KeyError, ValueError, OSError, MemoryError) as error:
            self._resources.close()
            raise StoreError(f"{file}: cannot be read ({error}); roll back, or sync again") from error
        except StoreError:
            self._resources.close()
            raise

    def _check_schema(self, file: Path) -> None:
        if self.meta.get("generation_schema") != GENERATION_SCHEMA:
            raise StoreError(
                f"{file}: has schema {self.meta.get('generation_schema')!r}, this version reads "
                f"{GENERATION_SCHEMA!r}; run `nornweave sync`"
            )

    def _load(self, statements: Mapping[str, Statement], corpus: Lengths | None, nearest: Nearest | None) -> None:
        chunks = self._connection.execute("select chunk_no, document_no from chunks").fetchnumpy()
        self.size = len(chunks["chunk_no"])
        self._documents = np.zeros(self.size, np.int32)
        self._documents[chunks["chunk_no"]] = chunks["document_no"]
        dimensions = int(self.meta["dimensions"])
        self._resources.callback(self._unmap)
        arrays = open_arrays(self._file, self._identity(), partial(self._write_arrays, dimensions))
        self._terms = TermLists(arrays, corpus)
        self._corpus = self._terms.corpus
        self._frequent = FrequentTerms(self.size, self.size)
        self._visibilities = Visibilities(self._connection, self._documents, self.meta["access"], statements)
        self._pairs = load_pairs(arrays)
        self._names = load_names(arrays)
        self._cards = Cards(arrays)
        self._vectors = HnswVectors(nearest, load_matrix(arrays)) if nearest else self._load_vectors(arrays)

    def _load_vectors(self, arrays: Arrays) -> VectorIndex:
        if self.meta["built_with"] != "hnsw":
            return load_matrix(arrays)
        try:
            load_vss(self._connection)
        except StoreError as error:
            # DuckDB reads the tables of a file whose index it does not know.
            log.warning("%s: its vector index is not used, it is searched exactly: %s", self._file, error)
            return load_matrix(arrays)
        # The index has to be in memory, some 4 kB a chunk.
        lift_memory_limit(self._connection)
        return load_hnsw(self._connection, arrays, search_width=int(self.meta["hnsw_ef_search"]))

    def _identity(self) -> str:
        """Tell this generation from another of the same name, as a candidate that is built again."""
        return f"{self.meta['generation']} {self.meta['built_at']} {self._file.stat().st_size}"

    def _unmap(self) -> None:
        """Drop what is mapped: the file is gone from the disk when nobody maps it."""
        for name in ("_vectors", "_terms", "_pairs", "_names", "_cards"):
            self.__dict__.pop(name, None)

    def _write_arrays(self, dimensions: int, arrays: ArrayWriter) -> None:
        write_vectors(self._connection, arrays, self.size, dimensions)
        write_terms(self._connection, arrays)
        write_pairs(self._connection, arrays)
        write_names(self._connection, arrays)
        write_cards(self._connection, arrays)

    @property
    def built_at(self) -> str:
        """Return the time of its build, ISO 8601, UTC."""
        return self.meta["built_at"].replace("+00:00", "Z")

    @property
    def chunk_count(self) -> int:
        """Count the chunks that there are for who asks; their numbers are below ``size``."""
        return self.size if self._visible is None else self._visible.chunk_count

    @property
    def document_count(self) -> int:
        """Count the documents that have chunks and may be seen."""
        return self._all_documents if self._visible is None else self._visible.document_count

    @property
    def restricted_documents(self) -> int:
        """Count the documents that somebody without groups may not see."""
        return self._visibilities.restricted

    @property
    def part(self) -> bytes:
        """Tell the part that may be seen from other parts; empty for everything."""
        return b"" if self._visible is None else self._visible.key

    @property
    def _all_documents(self) -> int:
        return int(self._documents[-1]) + 1 if self.size else 0

    def seen_by(self, viewer: Viewer) -> Self:
        """Return the generation as a viewer may see it: as if the rest had never been there.

        The view shares everything with the generation, has to be done with before that is closed, and is not to be
        closed itself.
        """
        visible = self._visibilities.of(viewer)
        return self if visible is None else self._view(visible, visible.lengths(self._terms))

    def lengths_for(self, viewer: Viewer) -> Lengths:
        """Return how many chunks a viewer in groups may see, and how long they are."""
        return self._visibilities.part_of(viewer).lengths(self._terms)

    def shard_seen_by(self, viewer: Viewer, corpus: Lengths) -> Self:
        """Return this shard as a viewer in groups may see it, of a corpus of which they see so much."""
        return self._view(self._visibilities.part_of(viewer), corpus)

    def _view(self, visible: Visible, corpus: Lengths) -> Self:
        view = copy.copy(self)
        view._visible, view._frequent, view._corpus = visible, visible.frequent, corpus
        return view

    def sees_document(self, document_no: int) -> bool:
        """Tell whether a document may be seen."""
        return self._visible is None or bool(self._visible.documents[document_no])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._resources.close()

    def dense(self, query: Vectors, k: int, within: Mask | None = None) -> Hits:
        """Return the ``k`` chunks of highest cosine similarity, in [-1, 1].

        Args:
            query: normalised vector of shape ``(dimensions,)``.
            k: how many.
            within: which chunks may be found; the answer is exact then.
        """
        if self._visible is None:
            return self._vectors.search(query, k, within)
        if within is not None:
            within = within & self._visible.chunks
        return self._vectors.search(query, k, within, self._visible.numbers)

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        """Return the cosine similarity of some chunks, in their order."""
        return self._vectors.similarities(query, numbers)

    def vectors(self, numbers: Numbers) -> Vectors:
        """Return the vectors of some chunks from memory, in their order, of shape ``(len(numbers), dimensions)``."""
        return self._vectors.vectors(numbers)

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Count the chunks that hold each term."""
        held = self._held_terms
        return {term: held.frequency(term) for term in terms}

    def sparse(
        self, weights: Mapping[str, float], document_share: float = 0, bm25: Bm25Settings = DEFAULT_BM25
    ) -> Scores:
        """Return ``Σ weight(term) · tf(term, chunk)`` for every chunk: BM25 when the weights are the terms' idf.

        Args:
            weights: term → what it counts for.
            document_share: in [0, 1]; this share of a term's part comes from where the chunk's document says it best,
                so that a passage of a document about the subject need not repeat the subject.
            bm25: ``k1``, ``b``, and what a term counts for in each field.

        Raises:
            StoreError: the generation cannot be read.
        """
        held = self._held_terms
        frequent = {term for term in weights if self._frequent.is_frequent(held.frequency(term))}
        return self.sparse_with(weights, frequent, document_share, bm25)

    def sparse_with(
        self, weights: Mapping[str, float], frequent: Collection[str], document_share: float, bm25: Bm25Settings
    ) -> Scores:
        """Return what ``sparse`` does, with the terms that are frequent in the corpus that this may be a shard of.

        Sums depend on their order in the last bit, and the order on which terms are frequent.
        """
        terms = self._weighted_terms(bm25)
        scores = np.zeros(self.size, np.float32)
        rare: dict[str, float] = {}
        for term, weight in weights.items():
            if term in frequent:
                made = partial(self._summed, terms, {term: 1.0}, document_share)
                key = (term, bm25, document_share, self._corpus)
                scores += self._frequent.row(key, made) * np.float32(weight)
            else:
                rare[term] = weight
        return scores + self._summed(terms, rare, document_share) if rare else scores

    def _summed(self, terms: WeightedLists, weights: Mapping[str, float], document_share: float) -> Scores:
        scores = np.zeros(self.size, np.float32)
        documents = np.zeros(self._all_documents, np.float32)
        for term, weight in weights.items():
            chunks, frequencies = terms.weighted(term)
            if not len(chunks):
                continue
            scores[chunks] += (weight * (1 - document_share)) * frequencies
            if document_share:
                found_in, highest = self._best_of_documents(chunks, frequencies)
                documents[found_in] += (weight * document_share) * highest
        return scores + documents[self._documents] if document_share else scores

    def term_weights(self, term: str, numbers: Numbers, bm25: Bm25Settings) -> Scores:
        """Return what a term counts for in some chunks before idf, in their order."""
        chunks, weights = self._weighted_terms(bm25).weighted(term)
        if not len(chunks):
            return np.zeros(len(numbers), np.float32)
        places = np.minimum(np.searchsorted(chunks, numbers), len(chunks) - 1)
        return np.where(chunks[places] == numbers, weights[places], np.float32(0))

    def average_length(self, bm25: Bm25Settings) -> float:
        """Return the mean length of the chunks that may be seen, their fields weighted."""
        return self._corpus.average(bm25)

    def paired(self, weights: Mapping[int, float]) -> Scores:
        """Return ``Σ weight(pair)`` over the word pairs that each chunk holds."""
        scores = np.zeros(self.size, np.float32)
        for pair, weight in weights.items():
            scores[self._seen(self._pairs.chunks(pair))] += weight
        return scores

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        """Return the chunks that can be looked up by each key; keys that none has are left out."""
        found = {key: self._seen(self._names.chunks(key)) for key in keys}
        return {key: chunks for key, chunks in found.items() if len(chunks)}

    def holding(self, terms: Iterable[str]) -> Numbers:
        """Return the chunks that hold all of the terms, ascending."""
        held: Numbers | None = None
        terms_held = self._held_terms
        for chunks in sorted((terms_held.chunks(term) for term in terms), key=len):
            held = chunks if held is None else np.intersect1d(held, chunks, assume_unique=True)
        return np.empty(0, np.int32) if held is None else held

    def within(self, conditions: Sequence[Condition]) -> Mask:
        """Return which chunks meet all conditions."""
        asked = tuple(conditions)
        mask = self._masks.get(asked)
        if mask is None:
            try:
                mask = select_chunks(self._cursor(), asked, self.size)
            except duckdb.Error as error:
                raise self._unreadable(error) from error
            if len(self._masks) >= _REMEMBERED_MASKS:
                self._masks.clear()
            self._masks[asked] = mask
        return mask if self._visible is None else mask & self._visible.chunks

    def value_counts(self, field: str, type_: str, limit: int, within: Mask | None = None) -> ValueCounts:
        """Count the values that documents have in the column of a filter, those of the chunks ``within`` alone."""
        try:
            found = field_values(self._cursor(), field, type_)
        except duckdb.Error as error:
            raise self._unreadable(error) from error
        return count_values(found, type_, self._documents, limit, self._within_seen(within))

    def field_values(self, field: str, type_: str) -> FieldValues:
        """Return the values of a field with the chunks that have them, also those that may not be seen."""
        try:
            return field_values(self._cursor(), field, type_)
        except duckdb.Error as error:
            raise self._unreadable(error) from error

    def unread_values(self, field: str, limit: int, within: Mask | None = None) -> UnreadValues:
        """Return the values that are not of the type which their filter declares."""
        return unread_values(self.unread_rows(field), self._documents, limit, self._within_seen(within))

    def unread_rows(self, field: str) -> list[UnreadRow]:
        """Return values that are not of the declared type, of all documents, also those that may not be seen."""
        try:
            return unread_rows(self._cursor(), field)
        except duckdb.Error as error:
            raise self._unreadable(error) from error

    def served_documents(self, after: tuple[str, str], limit: int, within: Mask | None = None) -> list[ServedDocument]:
        """Return the first documents after a source and a path, by both; those with a chunk ``within`` alone."""
        try:
            return documents_after(self._cursor(), self._documents, after, limit, self._within_seen(within))
        except duckdb.Error as error:
            raise self._unreadable(error) from error

    def sources_of(self, path: str) -> tuple[str, ...]:
        """Return the sources that have a document of this path."""
        rows = self._rows("select document_no, source_id from documents where path = ?", [path])
        return tuple(dict.fromkeys(name for number, name in rows if self.sees_document(number)))

    def _within_seen(self, within: Mask | None) -> Mask | None:
        """Return which chunks may be found, without those that may not be seen; ``None`` for all."""
        if self._visible is None:
            return within
        return self._visible.chunks if within is None else within & self._visible.chunks

    def contents(self, numbers: Numbers) -> dict[int, str]:
        """Return the texts of chunks, by number."""
        return dict(
            self._rows(
                "select chunk_no, content from chunks where chunk_no in (select unnest(?::integer[]))",
                [_literal(self._seen(numbers))],
            )
        )

    def containing(self, text: str, k: int) -> Numbers:
        """Return the first ``k`` chunks that contain ``text``, without regard to case; reads every text."""
        most = k if self._visible is None else self.size  # what may not be seen is not counted
        rows = self._rows(
            "select chunk_no from chunks where contains(lower(content), lower(?)) order by chunk_no limit ?",
            [text, most],
        )
        return self._seen(np.array([number for (number,) in rows], np.int32))[:k]

    def paths(self) -> Collection[str]:
        """Return the source-relative path of every document."""
        rows = self._rows("select document_no, path from documents", [])
        return [path for number, path in rows if self.sees_document(number)]

    def seen_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the documents among some, by source id and path, that are there and may be seen."""
        rows = self._rows(
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
        """Return chunks with their documents' facts, by number."""
        try:
            cards = self._cards.read(map(int, self._seen(np.asarray(numbers, np.int32))))
            return {number: stored_chunk(number, from_json(card)) for number, card in cards.items()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._unreadable(error) from error

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        """Return a chunk by its id."""
        rows = self._rows("select chunk_no from chunks where chunk_id = ?", [chunk_id])
        return next(iter(self.chunks(np.array([number for (number,) in rows], np.int32)).values()), None)

    def document(self, source_id: str, path: str) -> StoredText | None:
        """Return a document by its place."""
        # First whether it may be seen: how long its text takes to read would tell that it is there.
        numbers = self._rows("select document_no from documents where source_id = ? and path = ?", [source_id, path])
        if not numbers or not self.sees_document(numbers[0][0]):
            return None
        rows = self._rows(
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

    def _seen(self, numbers: Numbers) -> Numbers:
        """Return the chunks among some that may be seen."""
        return numbers if self._visible is None else self._visible.of(numbers)

    @property
    def _held_terms(self) -> WeightedLists | InvertedLists[str] | SeenTerms:
        return self._terms.default if self._visible is None else self._visible.terms(self._terms)

    def _weighted_terms(self, bm25: Bm25Settings) -> WeightedLists:
        try:
            if self._visible is not None:
                return self._visible.lists(self._terms, bm25, self._corpus, self._cursor)
            return self._terms.by(bm25, self._cursor)
        except duckdb.Error as error:
            raise self._unreadable(error) from error

    def document_places(self) -> pa.Table:
        """Return the source and path of every document, in the order of their numbers, whoever may see them."""
        try:
            return self._cursor().execute("select source_id, path from documents order by document_no").to_arrow_table()
        except duckdb.Error as error:
            raise self._unreadable(error) from error

    @property
    def chunk_documents(self) -> Numbers:
        """Return the document of each chunk, by number."""
        return self._documents

    @property
    def lengths(self) -> Lengths:
        """Return how many chunks this file has, and how long they are."""
        return self._terms.own

    def write_weights(self, name: str, arrays: ArrayWriter) -> None:
        """Write what terms count for in the corpus that this file is a shard of, by the default settings.

        Raises:
            StoreError: the generation cannot be read.
            OSError: the disk is full.
        """
        try:
            self._terms.write_weights(name, arrays, self._connection)
        except duckdb.Error as error:
            raise self._unreadable(error) from error

    def use_weights(self, weights: Scores) -> None:
        """Take what ``write_weights`` wrote, instead of computing it in memory."""
        self._terms.use_weights(weights)

    def chunk_places(self, holding: Sequence[str] = ()) -> list[ChunkPlace]:
        """List chunks in order, those of documents whose path no other source of the domain has as well."""
        return [one for one in read_places(self._rows, holding) if self.sees_document(one.document_no)]

    def document_texts(self, documents: Iterable[int]) -> dict[int, str]:
        """Return the texts of documents, by number."""
        return read_texts(self._rows, (number for number in documents if self.sees_document(number)))

    def indexed_documents(self, path: str) -> tuple[IndexedDocument, ...]:
        """Return the documents at a path, one for each source that has it, with everything that was indexed of them."""
        return read_indexed(self._rows, self.meta["domain"], path, self.sees_document)

    def _best_of_documents(self, chunks: Numbers, weights: Scores) -> tuple[Numbers, Scores]:
        """Return the documents of some chunks, ascending, and the highest weight that a chunk of each has."""
        documents = self._documents[chunks]
        begins = np.ones(len(documents), np.bool_)
        np.not_equal(documents[1:], documents[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        return documents[starts], np.maximum.reduceat(weights, starts)

    def _rows(self, statement: str, values: list[object]) -> list[tuple[Any, ...]]:
        try:
            return self._cursor().execute(statement, values).fetchall()
        except duckdb.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> StoreError:
        return StoreError(f"{self._file}: cannot be read ({error}); roll back, or sync again")

    def _cursor(self) -> Connection:
        """Return this thread's cursor: a DuckDB connection is not shared between threads."""
        cursor: Connection | None = getattr(self._threads, "cursor", None)
        if cursor is None:
            cursor = self._threads.cursor = self._connection.cursor()
        return cursor


def stored_chunk(number: int, card: dict[str, Any]) -> StoredChunk:
    """Return a chunk out of the card that a generation keeps of it."""
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
    """Write numbers as text that DuckDB casts to a list: binding a list costs fifty times as much."""
    return "[" + ",".join(map(str, numbers)) + "]"
