"""Chunks, documents and facts in the store's form.

They stand apart from the ports, whose arrays the process that makes a chunk need not load. Facts are one JSON array per
chunk, and the keys that the ledger joins by.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

from nornweave.core.types import Chunk, ChunkId, DocumentId, Fact, Frequencies, Metadata, Span, freeze


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk in a generation, with properties of its document."""

    chunk_no: int
    chunk_id: ChunkId
    document_id: DocumentId
    content: str
    source_id: str
    path: str
    title: str | None
    section: str | None
    page: int | None
    char_range: tuple[int, int]
    line_range: tuple[int, int]
    message_ids: tuple[str, ...]
    updated_at: datetime | None
    revision: str | None
    url: str | None
    stale: bool
    metadata: Metadata
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """A document in a generation, with the ids of its chunks in order."""

    title: str | None
    format: str
    updated_at: datetime | None
    revision: str | None
    url: str | None
    stale: bool
    metadata: Metadata
    text: str
    chunk_ids: tuple[ChunkId, ...]

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """Return the document in a row whose columns are in the order of the fields."""
        values = dict(zip(cls.__slots__, row, strict=True))
        metadata, chunk_ids = freeze(json.loads(values["metadata"])), tuple(values["chunk_ids"] or ())
        return cls(**{**values, "metadata": metadata, "chunk_ids": chunk_ids})


class DescribedSetting(NamedTuple):
    """The words that describe a setting, and their vector's key. ``position`` is its place among the chunk's facts."""

    position: int
    text: str
    embedding_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A chunk with its data for the index.

    Attributes:
        chunk_id: the same as long as the document, the text and the order of equal texts stay the same.
        embedding_key: identifies the vector. It depends on the encoder version and the embedded text.
        terms: term → occurrences in each of ``types.FIELDS``.
        lines: first and last line, from 1.
        pairs: the keys of its word pairs, distinct, ascending.
        keys: its lookup keys, distinct, ascending.
        facts: the facts that it states, in their order in the text.
        settings: the settings whose value it states, if the words that describe settings are encoded.
    """

    chunk_id: ChunkId
    chunk: Chunk
    embedding_key: str
    terms: Mapping[str, Frequencies]
    lines: tuple[int, int]
    pairs: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    settings: tuple[DescribedSetting, ...] = ()


def encode_facts(facts: Sequence[Fact]) -> str | None:
    """Return facts as JSON; ``None`` if there are none, as in most chunks."""
    if not facts:
        return None
    rows = [
        (
            fact.name, fact.owner, fact.attribute, fact.kind, fact.value, fact.unit, fact.side, fact.form,
            list(fact.qualifiers), fact.negated, fact.span.start, fact.span.end, fact.line, fact.statement,
        )
        for fact in facts
    ]  # fmt: skip
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def decode_facts(rows: Sequence[Sequence[Any]] | None) -> tuple[Fact, ...]:
    """Return the facts in the parsed JSON of ``encode_facts``; no facts for ``None``."""
    return tuple(map(decode_fact, rows or ()))


def decode_fact(row: Sequence[Any]) -> Fact:
    """Return one fact from the parsed JSON of ``encode_facts``."""
    name, owner, attribute, kind, value, unit, side, form, qualifiers, negated, start, end, line, statement = row
    return Fact(
        name=name,
        owner=owner,
        attribute=attribute,
        kind=kind,
        value=value,
        unit=unit,
        side=side,
        form=form,
        qualifiers=tuple(qualifiers),
        negated=negated,
        span=Span(start, end),
        line=line,
        statement=statement,
    )
