"""A chunk on its way into the index; apart from the ports, whose arrays the process that makes it need not load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nornweave.core.types import Chunk, ChunkId, Fact, Frequencies


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A chunk with what the index needs beside it.

    Attributes:
        chunk_id: stable while document, text and order of equal texts stay.
        embedding_key: identifies the vector: encoder version and embedded text.
        terms: term → occurrences in each of ``types.FIELDS``.
        lines: first and last line, from 1.
        pairs: keys of the word pairs, distinct, ascending.
        keys: what it can be looked up by, distinct, ascending.
        facts: what it states, by place.
    """

    chunk_id: ChunkId
    chunk: Chunk
    embedding_key: str
    terms: Mapping[str, Frequencies]
    lines: tuple[int, int]
    pairs: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
