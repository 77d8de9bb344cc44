"""Read a generation in PostgreSQL: what a question touches is fetched for it, and little else is in memory.

Scores are computed by the code that reads a generation file (``generation.py``), from the same numbers.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, Self

import duckdb
import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from nornweave.config import Bm25Settings
from nornweave.core.access.rules import Statement
from nornweave.core.access.viewer import Viewer
from nornweave.core.errors import StoreError
from nornweave.core.types import FIELDS, GenerationId
from nornweave.index.bm25 import saturations
from nornweave.index.build import GENERATION_SCHEMA
from nornweave.index.conditions import Condition
from nornweave.index.connection import Connection, connect_reader
from nornweave.index.generation import Generation, stored_chunk
from nornweave.index.index import StoredChunk, StoredText
from nornweave.index.inverted import DEFAULT_BM25, FrequentTerms, WeightedLists, lengths_of
from nornweave.index.port import Mask, Numbers, Scores
from nornweave.index.postgresql.conditions import select_chunks
from nornweave.index.postgresql.dense import CodedVectors, FetchedRows, PostgresVectors
from nornweave.index.postgresql.names import prefix_of
from nornweave.index.postgresql.server import Server, Values
from nornweave.index.postgresql.terms import RemoteLists, SeenPostgresTerms, visible
from nornweave.index.served_documents import ServedDocument
from nornweave.index.value_counts import UnreadValues, ValueCounts, count_values, unread_values
from nornweave.index.vectors import VectorIndex
from nornweave.index.visibility import Visibilities

_REMEMBERED_MASKS = 64
# Of settings of BM25 and viewers: four bytes a chunk.
_REMEMBERED_SATURATIONS = 16


class Closing(Protocol):
    """What is closed with the index."""

    def close(self) -> None:
        """Close it."""


class PostgresIndex(Generation):
    """One published generation in PostgreSQL; implements ``index.Index``; safe to use from several threads."""

    def __init__(
        self,
        server: Server,
        name: GenerationId,
        meta: Mapping[str, str],
        statements: Mapping[str, Statement],
        pin: Closing,
        local_file: Callable[[GenerationId], Path],
    ) -> None:
        """Open a generation.

        Args:
            server: with its tables.
            name: of the generation.
            meta: how it was built.
            statements: what the configuration says now about who may see each source.
            pin: keeps it from being removed until it is closed.
            local_file: copies a generation to this machine, for what reads all of it.

        Raises:
            StoreError: it is of another schema, or the server cannot be asked.
        """
        if meta.get("generation_schema") != GENERATION_SCHEMA:
            raise StoreError(
                f"{server.name}: {name} has schema {meta.get('generation_schema')!r}, this version reads "
                f"{GENERATION_SCHEMA!r}; run `nornweave sync`"
            )
        self._server = server
        self._prefix = prefix_of(name)
        self._name = name
        self._file = Path(f"{server.name}: {name}")
        self._local_file = local_file
        self._resources = ExitStack()
        self._threads = threading.local()
        self._masks: dict[tuple[Condition, ...], Mask] = {}
        self._visible = None
        self.meta = meta
        arrays = dict(self._select("select name, numbers from {g}arrays"))
        self._open_arrays(arrays, statements)
        self._open_lists()
        self._vectors = self._open_vectors(arrays.get("codes"))
        self._resources.callback(pin.close)

    def _open_arrays(self, arrays: Mapping[str, bytes], statements: Mapping[str, Statement]) -> None:
        self._documents: NDArray[np.int32] = np.frombuffer(arrays["documents"], "<i4").astype(np.int32)
        self._lengths = np.frombuffer(arrays["lengths"], "<i4").astype(np.int32).reshape(-1, len(FIELDS))
        self.size = len(self._documents)
        self._corpus = lengths_of(self._lengths)
        self._frequent = FrequentTerms(self.size, self.size)
        rules = duckdb.connect(":memory:", config={"threads": 1})
        try:
            rules.execute("create table documents (document_no integer, source_id varchar, access varchar)")
            rows = self._select("select document_no, source_id, access from {g}documents order by document_no")
            for start in range(0, len(rows), 1_000):
                part = json.dumps(rows[start : start + 1_000])
                rules.execute(
                    "insert into documents select (r->>0)::integer, r->>1, r->>2 from (select unnest(?::json[]) as r)",
                    [part],
                )
            self._visibilities = Visibilities(rules, self._documents, self.meta["access"], statements)
        finally:
            rules.close()

    def _open_lists(self) -> None:
        g = self._prefix
        counts = tuple(f"in_{field}" for field in FIELDS)
        self._remote_terms = RemoteLists[str](self._server, f"{g}terms", "term", ("chunk_nos", *counts), "text")
        self._remote_pairs = RemoteLists[int](self._server, f"{g}pairs", "pair", ("chunk_nos",), "bigint")
        self._remote_names = RemoteLists[str](self._server, f"{g}names", "name", ("chunk_nos",), "text")
        self._halves: OrderedDict[tuple[bytes, Bm25Settings], Scores] = OrderedDict()
        self._halves_lock = threading.Lock()

    def _open_vectors(self, codes: bytes | None) -> VectorIndex:
        table, dimensions = f"{self._prefix}vectors", int(self.meta["dimensions"])
        if codes is not None:
            return CodedVectors(FetchedRows(self._server, table, self.size, dimensions), codes, dimensions)
        return PostgresVectors(
            self._server,
            table,
            self.size,
            dimensions,
            indexed=self.meta["built_with"] == "hnsw",
            width=int(self.meta["hnsw_ef_search"]),
        )

    def _select(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return rows; ``{g}`` stands for what the names of the tables begin with."""
        return self._server.rows(statement.replace("{g}", self._prefix), values)

    def seen_by(self, viewer: Viewer) -> Self:
        """Return the generation as a viewer may see it: as if the rest had never been there."""
        visible = self._visibilities.of(viewer)
        return self if visible is None else self._view(visible, lengths_of(self._lengths[visible.numbers]))

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Count the chunks that hold each term."""
        asked = tuple(terms)
        lists = self._remote_terms.fetch(asked)
        return {term: len(visible(lists[term].chunks, self._seen_mask)) for term in asked}

    def sparse(
        self, weights: Mapping[str, float], document_share: float = 0, bm25: Bm25Settings = DEFAULT_BM25
    ) -> Scores:
        """Return ``Σ weight(term) · tf(term, chunk)`` for every chunk: BM25 when the weights are the terms' idf."""
        self._remote_terms.fetch(weights)  # all in one query; what follows finds them remembered
        return super().sparse(weights, document_share, bm25)

    @property
    def _held_terms(self) -> WeightedLists:
        return self._weighted_terms(DEFAULT_BM25)

    def _weighted_terms(self, bm25: Bm25Settings) -> WeightedLists:
        return SeenPostgresTerms(self._remote_terms, self._half(bm25), bm25, self._seen_mask)

    def _half(self, bm25: Bm25Settings) -> Scores:
        """Return the occurrences at which a term counts for half, of every chunk, among those that are seen."""
        key = (self.part, bm25)
        with self._halves_lock:
            half = self._halves.get(key)
            if half is None:
                numbers = slice(None) if self._visible is None else self._visible.numbers
                half = np.ones(self.size, np.float32)
                half[numbers] = saturations(self._lengths[numbers], self.average_length(bm25), bm25)
                self._halves[key] = half
                while len(self._halves) > _REMEMBERED_SATURATIONS:
                    self._halves.popitem(last=False)
        return half

    def paired(self, weights: Mapping[int, float]) -> Scores:
        """Return ``Σ weight(pair)`` over the word pairs that each chunk holds."""
        lists = self._remote_pairs.fetch(weights)
        scores = np.zeros(self.size, np.float32)
        for pair, weight in weights.items():
            scores[self._seen(lists[pair].chunks)] += weight
        return scores

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        """Return the chunks that can be looked up by each key; keys that none has are left out."""
        lists = self._remote_names.fetch(keys)
        found = {key: self._seen(postings.chunks) for key, postings in lists.items()}
        return {key: found[key] for key in dict.fromkeys(keys) if len(found[key])}

    def holding(self, terms: Iterable[str]) -> Numbers:
        """Return the chunks that hold all of the terms, ascending."""
        held: Numbers | None = None
        lists = self._remote_terms.fetch(terms)
        for chunks in sorted((self._seen(postings.chunks) for postings in lists.values()), key=len):
            held = chunks if held is None else np.intersect1d(held, chunks, assume_unique=True)
        return np.empty(0, np.int32) if held is None else held

    @property
    def _seen_mask(self) -> Mask | None:
        return None if self._visible is None else self._visible.chunks

    def within(self, conditions: Sequence[Condition]) -> Mask:
        """Return which chunks meet all conditions."""
        asked = tuple(conditions)
        mask = self._masks.get(asked)
        if mask is None:
            mask = select_chunks(self._server, self._prefix, asked, self.size)
            if len(self._masks) >= _REMEMBERED_MASKS:
                self._masks.clear()
            self._masks[asked] = mask
        return mask if self._visible is None else mask & self._visible.chunks

    def value_counts(self, field: str, type_: str, limit: int, within: Mask | None = None) -> ValueCounts:
        """Count the values that documents have in the column of a filter, those of the chunks ``within`` alone."""
        if type_ in _VALUES:
            rows = self._select(_VALUES[type_], [field])
            values = np.array([value for value, _ in rows])
            chunks = np.array([number for _, number in rows], np.int32)
        else:
            lists = [(value, np.frombuffer(chunks, "<i4")) for value, chunks in self._select(_TEXTS, [field])]
            values = np.array([value for value, chunks in lists for _ in chunks], dtype=object)
            chunks = np.concatenate([chunks for _, chunks in lists]) if lists else np.empty(0, np.int32)
        return count_values((values, chunks), type_, self._documents, limit, self._within_seen(within))

    def unread_values(self, field: str, limit: int, within: Mask | None = None) -> UnreadValues:
        """Return the values that are not of the type which their filter declares."""
        rows = self._select(
            """
            select document_no, path, said, problem
            from {g}unread_values
            join {g}documents using (document_no)
            where field = %s
            order by document_no, said collate "C"
            """,
            [field],
        )
        return unread_values(rows, self._documents, limit, self._within_seen(within))

    def served_documents(self, after: tuple[str, str], limit: int, within: Mask | None = None) -> list[ServedDocument]:
        """Return the first documents after a source and a path, by both; those with a chunk ``within`` alone."""
        seen = self._within_seen(within)
        documents = self._documents if seen is None else self._documents[seen]
        chunks = np.bincount(documents, minlength=self._all_documents)
        rows = self._select(
            """
            select document_no, source_id, path, gate, content_hash,
              to_char(updated_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), octet_length("text")
            from {g}documents
            where (source_id, path) > (%(source)s, %(path)s)
            and (%(visible)s::integer[] is null or document_no = any(%(visible)s::integer[]))
            order by source_id, path
            limit %(limit)s
            """,
            {
                "source": after[0],
                "path": after[1],
                "visible": None if seen is None else np.flatnonzero(chunks).tolist(),
                "limit": limit,
            },
        )
        return [
            ServedDocument(source_id, path, gate, content_hash, moment, size, int(chunks[number]))
            for number, source_id, path, gate, content_hash, moment, size in rows
        ]

    def sources_of(self, path: str) -> tuple[str, ...]:
        """Return the sources that have a document of this path."""
        rows = self._select("select document_no, source_id from {g}documents where path = %s order by 1", [path])
        return tuple(dict.fromkeys(name for number, name in rows if self.sees_document(number)))

    def contents(self, numbers: Numbers) -> dict[int, str]:
        """Return the texts of chunks, by number."""
        return dict(
            self._select("select chunk_no, content from {g}chunks where chunk_no = any(%s)", [self._asked(numbers)])
        )

    def containing(self, text: str, k: int) -> Numbers:
        """Return the first ``k`` chunks that contain ``text``, without regard to case; reads every text."""
        most = k if self._visible is None else self.size  # what may not be seen is not counted
        rows = self._select(
            "select chunk_no from {g}chunks where position(lower(%s) in lower(content)) > 0 order by chunk_no limit %s",
            [text, most],
        )
        return self._seen(np.array([number for (number,) in rows], np.int32))[:k]

    def paths(self) -> Collection[str]:
        """Return the source-relative path of every document."""
        rows = self._select("select document_no, path from {g}documents")
        return [path for number, path in rows if self.sees_document(number)]

    def seen_places(self, places: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the documents among some, by source id and path, that are there and may be seen."""
        rows = self._select(
            "select document_no, source_id, path from {g}documents where path = any(%s)",
            [[path for _, path in places]],
        )
        seen = {(source_id, path) for number, source_id, path in rows if self.sees_document(number)}
        return seen.intersection(places)

    def chunks(self, numbers: Numbers) -> dict[int, StoredChunk]:
        """Return chunks with their documents' facts, by number."""
        asked = self._asked(np.asarray(numbers, np.int32))
        cards = dict(self._select("select chunk_no, card from {g}cards where chunk_no = any(%s)", [asked]))
        try:
            return {number: stored_chunk(number, from_json(cards[number])) for number in asked}
        except (ValueError, KeyError, TypeError) as error:
            raise self._unreadable(error) from error

    def chunk(self, chunk_id: str) -> StoredChunk | None:
        """Return a chunk by its id."""
        rows = self._select("select chunk_no from {g}chunks where chunk_id = %s", [chunk_id])
        return next(iter(self.chunks(np.array([number for (number,) in rows], np.int32)).values()), None)

    def document(self, source_id: str, path: str) -> StoredText | None:
        """Return a document by its place."""
        # First whether it may be seen: how long its text takes to read would tell that it is there.
        numbers = self._select(
            "select document_no from {g}documents where source_id = %s and path = %s", [source_id, path]
        )
        if not numbers or not self.sees_document(numbers[0][0]):
            return None
        rows = self._select(
            """
            select
              title, format, updated_at, revision, url, stale, metadata, "text",
              array(select chunk_id from {g}chunks c where c.document_no = d.document_no order by chunk_no)
            from {g}documents d
            where document_no = %s
            """,
            [numbers[0][0]],
        )
        return StoredText.of(rows[0])

    def _asked(self, numbers: Numbers) -> list[int]:
        asked: list[int] = self._seen(numbers).tolist()
        return asked

    def _cursor(self) -> Connection:
        """Return this thread's connection to a copy on this machine, for what reads a whole generation."""
        cursor: Connection | None = getattr(self._threads, "cursor", None)
        if cursor is None:
            cursor = self._threads.cursor = connect_reader(self._local_file(self._name))
        return cursor


_TEXTS = """
select v.value, f.chunk_nos
from (select distinct value_no, value from {g}facet_values where field = %s) v
join {g}facets f using (value_no)
"""
_NUMBERS = "select distinct value, chunk_no from {g}quantities where field = %s"
# Microseconds, doubled; odd for a moment, even for the first one of a day, month or year.
_MOMENTS = """
select distinct 2 * (extract(epoch from first) * 1000000)::int8 + (first = last)::integer as value, chunk_no
from {g}moments
where field = %s
"""
_VALUES = {"integer": _NUMBERS, "number": _NUMBERS, "date": _MOMENTS}
