"""Chunks out of JSON, as another process sends them, with all that the index needs of them."""

from __future__ import annotations

from nornweave.core.types import Chunk, Fact, Span
from nornweave.index.port import IndexedChunk
from nornweave.read.transfer import Fields, metadata_from


def indexed_chunk_from(sent: Fields) -> IndexedChunk:
    """Read a chunk with what the index needs."""
    first, last = sent["lines"]
    return IndexedChunk(
        **{
            **sent,
            "chunk": _chunk(sent["chunk"]),
            "terms": {term: tuple(counts) for term, counts in sent["terms"].items()},
            "lines": (first, last),
            "pairs": tuple(sent["pairs"]),
            "keys": tuple(sent["keys"]),
            "facts": tuple(map(_fact, sent["facts"])),
        }
    )


def _chunk(sent: Fields) -> Chunk:
    own = {"message_ids": tuple(sent["message_ids"]), "metadata": metadata_from(sent["metadata"])}
    return Chunk(**{**sent, "span": Span(**sent["span"]), **own})


def _fact(sent: Fields) -> Fact:
    return Fact(**{**sent, "span": Span(**sent["span"]), "qualifiers": tuple(sent["qualifiers"])})
