"""Open a published generation, one file or several shards, as an ``Index``.

What a query touches is mapped from a file beside the generation, which workers share: vectors, BM25 postings, word
pairs, names and what is shown of chunks. Texts stay in the generation.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nornweave.core.access.rules import Statement
from nornweave.core.access.viewer import Viewer
from nornweave.core.errors import StoreError
from nornweave.index.access_today import AccessToday
from nornweave.index.arrays import Arrays, ArrayWriter, open_arrays
from nornweave.index.cards import Cards, write_cards
from nornweave.index.conditions import Condition
from nornweave.index.connection import lift_memory_limit, load_vss
from nornweave.index.counting import FileCounts
from nornweave.index.generation_file import GenerationFile
from nornweave.index.index import Index
from nornweave.index.inverted import Lengths, load_names, load_pairs, write_names, write_pairs
from nornweave.index.port import Mask, Scores
from nornweave.index.reading import FileTexts
from nornweave.index.searching import FileSearch, Mapped
from nornweave.index.terms import TermLists, write_terms
from nornweave.index.token_vectors import TokenVectors, write_token_vectors
from nornweave.index.vectors import HnswVectors, Nearest, VectorIndex, load_hnsw, load_matrix, write_vectors
from nornweave.index.visibility import NO_STATEMENTS, Visibilities, Visible

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """What is open of one file, for all viewers."""

    file: GenerationFile
    mapped: Mapped
    visibilities: Visibilities
    masks: dict[tuple[Condition, ...], Mask]

    def write_weights(self, name: str, arrays: ArrayWriter) -> None:
        """Write what terms count for in the corpus that this file is a shard of, by the default settings.

        Raises:
            StoreError: the generation cannot be read.
            OSError: the disk is full.
        """
        with self.file.reading() as cursor:
            self.mapped.terms.write_weights(name, arrays, cursor)

    def use_weights(self, weights: Scores) -> None:
        """Take what ``write_weights`` wrote, instead of computing it in memory."""
        self.mapped.terms.use_weights(weights)


class Shard:
    """One file as somebody may see it: its searches, texts and counts; implements ``index.Parts``.

    Attributes:
        opened: the file.
        corpus: the lengths of the chunks that may be seen, of this file or of the corpus that it is a shard of.
    """

    def __init__(self, opened: OpenFile, corpus: Lengths, visible: Visible | None = None) -> None:
        self.opened = opened
        self.corpus = corpus
        self.visible = visible
        self.search = FileSearch(opened.file, opened.mapped, corpus, visible)
        self.texts = FileTexts(opened.file, opened.mapped, visible)
        self.counts = FileCounts(opened.file, opened.masks, visible)
        self.size = opened.file.size
        self.chunk_count = self.size if visible is None else visible.chunk_count
        self.document_count = opened.file.document_count if visible is None else visible.document_count
        self.part = b"" if visible is None else visible.key

    @property
    def restricted_documents(self) -> int:
        """Count the documents that somebody without groups may not see."""
        return self.opened.visibilities.restricted

    def seen_by(self, viewer: Viewer) -> Shard:
        """Return the file as a viewer may see it; itself when they see everything."""
        visible = self.opened.visibilities.of(viewer)
        return self if visible is None else Shard(self.opened, visible.lengths(self.opened.mapped.terms), visible)

    def part_of(self, viewer: Viewer) -> Visible:
        """Return what a viewer in groups may see, even if it is everything."""
        return self.opened.visibilities.part_of(viewer)


def open_generation(
    file: Path,
    statements: Mapping[str, Statement] = NO_STATEMENTS,
    nearest: Nearest | None = None,
    today: AccessToday | None = None,
) -> Index:
    """Open one file; the index is a context manager, safe to use from several threads.

    Args:
        file: of the generation.
        statements: what the configuration says now about who may see each source, beside what the file says.
        nearest: asks an index over the vectors that is elsewhere.
        today: of an older generation, what is stated of its documents today.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """
    with ExitStack() as stack:
        shard = open_shard(stack, file, statements, nearest=nearest, today=today)
        meta = shard.opened.file.meta
        return Index({**meta, "built_with": "hnsw"} if nearest else meta, shard, stack.pop_all())


def open_shard(
    stack: ExitStack,
    path: Path,
    statements: Mapping[str, Statement],
    corpus: Lengths | None = None,
    nearest: Nearest | None = None,
    today: AccessToday | None = None,
) -> Shard:
    """Open one file; ``stack`` closes it.

    Args:
        stack: closes the file.
        path: of the file.
        statements: as ``open_generation``.
        corpus: the lengths of all chunks of the corpus that this file is a shard of.
        nearest, today: as ``open_generation``.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """
    file = GenerationFile(path)
    stack.callback(file.close)
    with file.opening():
        arrays = open_arrays(path, file.identity, partial(_write_arrays, file))
        vectors = HnswVectors(nearest, load_matrix(arrays)) if nearest else _vectors(file, arrays)
        keys, names = load_names(arrays)
        lists, tokens = TermLists(arrays, corpus), TokenVectors(arrays)
        mapped = Mapped(lists, load_pairs(arrays), names, keys, Cards(arrays), vectors, tokens)
        stack.callback(vars(mapped).clear)
        visibilities = Visibilities(file.connection, file.documents, file.meta["access"], statements, today)
        # One thread a query: several run at once, and for a handful of rows a second one only gets in the way.
        file.connection.execute("set threads = 1")
    return Shard(OpenFile(file, mapped, visibilities, {}), mapped.terms.corpus)


def _vectors(file: GenerationFile, arrays: Arrays) -> VectorIndex:
    if file.meta["built_with"] != "hnsw":
        return load_matrix(arrays)
    try:
        load_vss(file.connection)
    except StoreError as error:
        # DuckDB reads the tables of a file whose index it does not know.
        log.warning("%s: its vector index is not used, it is searched exactly: %s", file.path, error)
        return load_matrix(arrays)
    # The index has to be in memory, some 4 kB a chunk.
    lift_memory_limit(file.connection)
    return load_hnsw(file.connection, arrays, search_width=int(file.meta["hnsw_ef_search"]))


def _write_arrays(file: GenerationFile, arrays: ArrayWriter) -> None:
    write_vectors(file.connection, arrays, file.size, int(file.meta["dimensions"]))
    write_token_vectors(file.connection, arrays, file.size)
    write_terms(file.connection, arrays)
    write_pairs(file.connection, arrays)
    write_names(file.connection, arrays)
    write_cards(file.connection, arrays)
