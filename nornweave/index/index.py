"""A published index as queries read it, in whichever store and in how many files.

Chunks have numbers from 0, in the order of source, path and place in the document; an index never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from nornweave.core.access import Viewer
from nornweave.index.port import Vectors

if TYPE_CHECKING:
    from nornweave.index.manifest import QueryMap
    from nornweave.index.searching.generation import Segment
    from nornweave.index.searching.segments import Segments


SAMPLE = 64
"""Chunks that tell how near to a question a corpus is anyway."""


class Index:
    """One domain's published index, open for reading. Thread-safe; a context manager.

    Its operations are those of its parts, which are one file or several segments. ``within`` limits a search to some
    chunks. By default all visible chunks are searched.

    Raises:
        StoreError: every operation raises it when the published files cannot be read.
    """

    def __init__(
        self,
        meta: Mapping[str, str],
        parts: Segment | Segments,
        resources: ExitStack,
        query_map: QueryMap | None = None,
    ) -> None:
        self.meta = meta
        self.query_map = query_map
        """The map learnt from earlier questions; ``None`` if there is none. It needs the encoder that it names."""
        self.size = parts.size
        """Chunk numbers are below this, for every viewer."""
        self._parts = parts
        self._resources = resources

        search = parts.search
        self.dense = search.dense  # the k chunks of highest cosine similarity to a normalised vector, in [-1, 1]
        self.similarities, self.vectors = search.similarities, search.vectors  # of some chunks, in their order
        self.token_matches = search.token_matches  # each token of a query with the nearest one of some chunks
        self.setting_similarities = search.setting_similarities  # of some chunks, by place among the facts of each
        self.document_frequencies = search.document_frequencies  # chunks that hold each term
        self.term_weights = search.term_weights  # what terms count for in some chunks before idf, a column each
        self.average_length = search.average_length  # of the chunks that may be seen, their fields weighted
        # A score for every chunk: ``Σ weight(term) · tf(term, chunk)``, BM25 when the weights are the terms' idf. Of a
        # term's part ``document_share`` comes from where the chunk's document says it best.
        self.sparse = search.sparse
        # Chunks by what they hold, ascending; keys that none holds are left out.
        self.paired, self.named, self.named_nearly = search.paired, search.named, search.named_nearly
        self.holding = search.holding

        counts = parts.counts
        self.within, self.value_counts, self.unread_values = counts.within, counts.value_counts, counts.unread_values
        self.served_documents = counts.served_documents  # the first after a source and a path, by both
        self.stated_documents = counts.stated_documents  # whoever may see them
        self.ruled_documents = parts.ruled_documents  # at a path or at paths that end so, whoever may see them

        texts = parts.texts
        self.contents, self.containing, self.document_texts = texts.contents, texts.containing, texts.document_texts
        self.chunk, self.chunks, self.document = texts.chunk, texts.chunks, texts.document
        self.find, self.complete = texts.find, texts.complete  # as ``finding`` says
        self.texts_with = texts.texts_with  # documents that hold a word
        self.paths, self.sources_of, self.seen_places = texts.paths, texts.sources_of, texts.seen_places
        self.sees_document = texts.sees_document
        # Chunks of documents whose path no other source has as well: a judgment names a path alone.
        self.chunk_places = texts.chunk_places
        self.indexed_documents = texts.indexed_documents  # at a path, with all that was indexed of them but facts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def sample(self) -> Vectors:
        """Return a sample of the visible chunks' vectors, at even distances, contiguous in memory."""
        visible = np.flatnonzero(self.within(())).astype(np.int32)
        return np.ascontiguousarray(self.vectors(visible[:: max(1, len(visible) // SAMPLE)][:SAMPLE]))

    @property
    def built_at(self) -> str:
        """Return the time of its build, ISO 8601, UTC."""
        return self.meta["built_at"].replace("+00:00", "Z")

    @property
    def chunk_count(self) -> int:
        """Count the visible chunks. Their chunk numbers are below ``size``."""
        return self._parts.chunk_count

    @property
    def document_count(self) -> int:
        """Count the visible documents that have chunks."""
        return self._parts.document_count

    @property
    def restricted_documents(self) -> int:
        """Count the documents that are not open to everybody."""
        return self._parts.restricted_documents

    @property
    def part(self) -> bytes:
        """Return a key that identifies the visible part; empty if everything is visible."""
        return self._parts.part

    def seen_by(self, viewer: Viewer) -> Index:
        """Return a viewer's view of the generation, as if the rest had never existed.

        The view shares its files with the generation. Do not close the view, and do not use it after the generation is
        closed.
        """
        return _view(self, self._parts.seen_by(viewer))

    def without(self, key: str) -> Index:
        """Return a view without the documents that have a lookup key, as if they had never existed."""
        return _view(self, self._parts.without(key))

    def close(self) -> None:
        """Close the index's files."""
        self._resources.close()


def _view(generation: Index, parts: Segment | Segments) -> Index:
    """Return a view with these parts; the generation itself if they are its own parts."""
    if parts is generation._parts:
        return generation
    return Index(generation.meta, parts, ExitStack(), generation.query_map)
