"""Open the segments of a generation.

What a query touches is mapped from a file beside the segment, which workers share: vectors, BM25 postings, word pairs,
names and what is shown of chunks. Texts, filters and whatever else is read in SQL are in the segment.

``FileSearch`` scores the visible chunks of one file, ``FileTexts`` reads its visible texts, chunks and documents.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic_core import from_json

from nornweave.config import Bm25Settings
from nornweave.core.access import Statement, Viewer, decode_rule
from nornweave.core.errors import StoreError
from nornweave.core.types import freeze
from nornweave.index.connection import lift_memory_limit, require_vss
from nornweave.index.port import Hits, Mask, Numbers, Scores, Vectors
from nornweave.index.records import StoredChunk, StoredText, decode_facts
from nornweave.index.searching.arrays import Arrays, open_arrays
from nornweave.index.searching.conditions import Condition
from nornweave.index.searching.counting import FileCounts, RuledDocument
from nornweave.index.searching.finding import (
    Completion,
    FoundLines,
    LinePattern,
    WordTexts,
    complete,
    find_lines,
    find_texts,
)
from nornweave.index.searching.generation_file import (
    ChunkPlace,
    GenerationFile,
    IndexedDocument,
    read_indexed,
    read_places,
    read_texts,
)
from nornweave.index.searching.inverted import (
    DEFAULT_BM25,
    Cards,
    FrequentTerms,
    InvertedLists,
    Lengths,
    TermLists,
    TextKeys,
    WeightedTerms,
    load_names,
    load_pairs,
)
from nornweave.index.searching.vectors import SettingVectors, TokenVectors, VectorIndex, load_hnsw, load_matrix
from nornweave.index.searching.visibility import AccessToday, SeenTerms, Visibilities, Visible

log = logging.getLogger(__name__)

K = TypeVar("K", int, str)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """The open parts of one file, shared by all viewers.

    Attributes:
        live: a mask of the documents that are not gone in this generation; ``None`` for all.
    """

    file: GenerationFile
    mapped: Mapped
    masks: dict[tuple[Condition, ...], Mask]
    visibilities: Visibilities
    live: Mask | None = None


class Segment:
    """A viewer's view of one file: its searches, texts and counts. Implements ``index.Parts``.

    Attributes:
        corpus: the lengths of the visible chunks, of this file or of all segments together.
        visible: the part that the viewer may see; ``None`` for everything.
    """

    def __init__(self, opened: OpenFile, corpus: Lengths, visible: Visible | None = None) -> None:
        self.opened = opened
        self.corpus = corpus
        self.visible = visible
        self.search = FileSearch(opened.file, opened.mapped, corpus, visible)
        self.live = opened.live
        self.texts = FileTexts(opened.file, opened.mapped, visible, opened.live)
        self.counts = FileCounts(opened.file, opened.masks, visible, opened.live)
        self.size = opened.file.size
        self.chunk_count = self.size if visible is None else visible.chunk_count
        self.document_count = opened.file.document_count if visible is None else visible.document_count
        self.part = b"" if visible is None else visible.key

    @property
    def restricted_documents(self) -> int:
        """Count the documents that are not open to everybody."""
        return self.opened.visibilities.restricted

    def ruled_documents(self, path: str) -> list[RuledDocument]:
        """Return the documents that ``path`` names, by source and path, also those that nobody may see.

        It names a document if it equals the document's path, its ``source/path`` or the last components of its path.
        """
        rows = self.opened.file.rows(
            """
            select document_no, source_id, path, access, metadata
            from documents
            where path = $1 or source_id || '/' || path = $1 or ends_with(path, '/' || $1)
            order by source_id, path
            """,
            [path],
        )
        return [
            RuledDocument(source, name, self.opened.visibilities.rule(number), json.loads(known), decode_rule(own))
            for number, source, name, own, known in rows
            if self.live is None or self.live[number]
        ]

    def seen_by(self, viewer: Viewer) -> Segment:
        """Return a viewer's view of the file, or the file itself if they see everything."""
        return self._showing(self.opened.visibilities.of(viewer))

    def without(self, key: str) -> Segment:
        """Return a view without the documents that have a lookup key, or the segment itself if there are none."""
        return self._showing(self.but_for(key))

    def _showing(self, visible: Visible | None) -> Segment:
        if visible is None or visible is self.visible:
            return self
        return Segment(self.opened, visible.lengths(self.opened.mapped.terms), visible)

    def but_for(self, key: str) -> Visible | None:
        """Return the visible part without the documents that have a lookup key.

        ``None`` means that everything is visible, because the viewer sees everything and no document has the key.
        """
        named = self.search.named([key])
        return self.opened.visibilities.without(self.visible, named[key]) if key in named else self.visible


class _Shared:
    """A file that is open for several generations of this process."""

    def __init__(self) -> None:
        self.users = 0
        self.lock = threading.Lock()
        self.resources = ExitStack()
        self.opened: tuple[GenerationFile, Mapped, dict[tuple[Condition, ...], Mask]] | None = None


# Most segments of a generation belong to the one before, too: they stay open and mapped.
_shared: dict[tuple[str, int, int, int], _Shared] = {}
_lock = threading.Lock()


def open_shared(
    stack: ExitStack,
    path: Path,
    live: Mask | None,
    *,
    statements: Mapping[str, Statement],
    today: AccessToday | None,
) -> OpenFile:
    """Open a segment. It is opened once for all generations of this process, and closed after its last use.

    Args:
        stack: closing it ends the use.
        live: a mask of the documents that are not gone; ``None`` for all.
        statements: the access statements of the current configuration by source, in addition to the file's.
        today: today's access rules, for an older generation.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise StoreError(f"{path}: no such generation: {error.strerror}") from error
    key = (str(path), status.st_ino, status.st_size, status.st_mtime_ns)
    with _lock:
        shared = _shared.setdefault(key, _Shared())
        shared.users += 1
    stack.callback(_give_back, key, shared)
    with shared.lock:
        if shared.opened is None:
            shared.opened = (*_opened(shared.resources, path), {})
        file, mapped, masks = shared.opened
    if live is not None and len(live) != file.all_documents:
        raise StoreError(f"{path}: is not the file that the manifest means; roll back")
    with file.opening():
        visibilities = Visibilities(file.cursor(), file.documents, file.meta["access"], statements, today, live)
    return OpenFile(file, mapped, masks, visibilities, live)


def _give_back(key: tuple[str, int, int, int], shared: _Shared) -> None:
    with _lock:
        shared.users -= 1
        if shared.users:
            return
        del _shared[key]
    shared.resources.close()


def _opened(stack: ExitStack, path: Path) -> tuple[GenerationFile, Mapped]:
    """Open one file; ``stack`` closes it.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """
    file = GenerationFile(path)
    stack.callback(file.close)
    with file.opening():
        arrays = open_arrays(path, file.meta["arrays"])
        keys, names = load_names(arrays)
        pairs, vectors = load_pairs(arrays), _vectors(file, arrays)
        mapped = Mapped(TermLists(arrays), pairs, names, keys, Cards(arrays), vectors, TokenVectors(arrays),
                        SettingVectors(arrays))  # fmt: skip
        stack.callback(vars(mapped).clear)
        # One thread a query: several run at once, and for a handful of rows a second one only gets in the way.
        file.connection.execute("set threads = 1")
    return file, mapped


def _vectors(file: GenerationFile, arrays: Arrays) -> VectorIndex:
    if file.meta["built_with"] != "hnsw":
        return load_matrix(arrays)
    try:
        require_vss(file.connection)
    except StoreError as error:
        # DuckDB reads a file's tables even without the extension of its index.
        log.warning("%s: its vector index is not used, it is searched exactly: %s", file.path, error)
        return load_matrix(arrays)
    # The index has to be in memory, some 4 kB a chunk.
    lift_memory_limit(file.connection)
    return load_hnsw(file.connection, arrays, search_width=int(file.meta["hnsw_ef_search"]))


@dataclass
class Mapped:
    """The mapped arrays of one generation. Closing releases them, so that the disk space of a removed file is freed."""

    terms: TermLists
    pairs: InvertedLists[int]
    names: InvertedLists[str]
    name_keys: TextKeys
    cards: Cards
    vectors: VectorIndex
    tokens: TokenVectors
    settings: SettingVectors


class FileSearch:
    """Scores of the visible chunks of one file. Every method is thread-safe."""

    def __init__(self, file: GenerationFile, mapped: Mapped, corpus: Lengths, visible: Visible | None = None) -> None:
        self._file = file
        self._mapped = mapped
        self._corpus = corpus
        self._visible = visible
        self._size = file.size
        self._frequent = visible.frequent if visible else FrequentTerms(file.size, file.size)

    def dense(self, query: Vectors, k: int, within: Mask | None = None) -> Hits:
        if self._visible is None:
            return self._mapped.vectors.search(query, k, within)
        if within is not None:
            within = within & self._visible.chunks
        return self._mapped.vectors.search(query, k, within, self._visible.numbers)

    def similarities(self, query: Vectors, numbers: Numbers) -> Scores:
        return self._mapped.vectors.similarities(query, numbers)

    def vectors(self, numbers: Numbers) -> Vectors:
        return self._mapped.vectors.vectors(numbers)

    def token_matches(self, tokens: NDArray[np.int8], numbers: Numbers) -> Scores:
        return self._mapped.tokens.matches(tokens, numbers)

    def setting_similarities(self, query: Vectors, numbers: Numbers) -> dict[int, dict[int, float]]:
        return self._mapped.settings.similarities(query, numbers)

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        frequency = self._terms.frequency
        return {term: frequency(term) for term in terms}

    def sparse(
        self, weights: Mapping[str, float], document_share: float = 0, bm25: Bm25Settings = DEFAULT_BM25
    ) -> Scores:
        frequency = self._terms.frequency
        frequent = {term for term in weights if self._frequent.is_frequent(frequency(term))}
        return self.sparse_with(weights, frequent, document_share, bm25)

    def sparse_with(
        self, weights: Mapping[str, float], frequent: Collection[str], document_share: float, bm25: Bm25Settings
    ) -> Scores:
        """Return the score of each chunk: the sum of each term's weight in the question times its weight in the chunk.

        ``frequent`` are the terms that are frequent in all segments together. They are added first, because the order
        of addition affects the last bit. The share ``document_share`` of a term's weight comes from the best chunk of
        the chunk's document.
        """
        terms = self._weighted(bm25)
        scores = np.zeros(self._size, np.float32)
        rare: dict[str, float] = {}
        for term, weight in weights.items():
            if term in frequent:
                made = partial(self._summed, terms, {term: 1.0}, document_share)
                key = (term, bm25, document_share, self._corpus)
                scores += self._frequent.row(key, made) * np.float32(weight)
            else:
                rare[term] = weight
        return scores + self._summed(terms, rare, document_share) if rare else scores

    def _summed(self, terms: WeightedTerms, weights: Mapping[str, float], document_share: float) -> Scores:
        scores = np.zeros(self._size, np.float32)
        documents = np.zeros(self._file.document_count, np.float32)
        for term, weight in weights.items():
            chunks, frequencies = terms.weighted(term)
            if not len(chunks):
                continue
            scores[chunks] += (weight * (1 - document_share)) * frequencies
            if document_share:
                holding, highest = self._best_of_documents(chunks, frequencies)
                documents[holding] += (weight * document_share) * highest
        return scores + documents[self._file.documents] if document_share else scores

    def _best_of_documents(self, chunks: Numbers, weights: Scores) -> tuple[Numbers, Scores]:
        """Return the documents of some chunks, ascending, each with the highest weight of its chunks."""
        documents = self._file.documents[chunks]
        begins = np.ones(len(documents), np.bool_)
        np.not_equal(documents[1:], documents[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        return documents[starts], np.maximum.reduceat(weights, starts)

    def term_weights(self, terms: Sequence[str], numbers: Numbers, bm25: Bm25Settings) -> Scores:
        return self._weighted(bm25).weights(terms, numbers)

    def average_length(self, bm25: Bm25Settings) -> float:
        return self._corpus.average(bm25)

    def paired(self, pairs: Iterable[int]) -> dict[int, Numbers]:
        return self._held(self._mapped.pairs, pairs)

    def named(self, keys: Iterable[str]) -> dict[str, Numbers]:
        return self._held(self._mapped.names, keys)

    def _held(self, lists: InvertedLists[K], keys: Iterable[K]) -> dict[K, Numbers]:
        find, starts, chunk_nos = lists.keys.find, lists.offsets, lists.chunk_nos
        placed = [(key, place) for key in keys if (place := find(key)) >= 0]
        chunks_of = {key: self._seen(chunk_nos[starts[place] : starts[place + 1]]) for key, place in placed}
        return {key: chunks for key, chunks in chunks_of.items() if len(chunks)}

    def named_nearly(self, field: str, word: str) -> Numbers:
        chunks_of = self.named(self._mapped.name_keys.near(field, word)).values()
        return np.unique(np.concatenate([*chunks_of])) if chunks_of else np.empty(0, np.int32)

    def holding(self, terms: Iterable[str]) -> Numbers:
        held: Numbers | None = None
        chunks_of: Callable[[str], Numbers] = self._terms.chunks
        for chunks in sorted((chunks_of(term) for term in terms), key=len):
            held = chunks if held is None else np.intersect1d(held, chunks, assume_unique=True)
        return np.empty(0, np.int32) if held is None else held

    def _seen(self, numbers: Numbers) -> Numbers:
        return numbers if self._visible is None else self._visible.of(numbers)

    @property
    def _terms(self) -> InvertedLists[str] | SeenTerms:
        terms = self._mapped.terms
        return terms.lists if self._visible is None else self._visible.terms(terms)

    def _weighted(self, bm25: Bm25Settings) -> WeightedTerms:
        terms = self._mapped.terms
        return terms.by(bm25, self._corpus) if self._visible is None else self._visible.by(terms, bm25, self._corpus)


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
