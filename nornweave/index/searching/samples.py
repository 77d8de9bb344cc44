"""List the chunks of a generation by place, and read single documents as they were indexed.

Texts are read only when they are asked for: the places of 100,000 chunks alone take about 50 MB.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nornweave.core.types import Chunk, ContentHash, Document, DocumentId, Domain, Metadata, SourceId, Span, freeze

Rows: TypeAlias = Callable[[str, list[object]], list[tuple[Any, ...]]]
"""Runs a statement with its values on a generation, and raises ``StoreError`` when that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPlace:
    """The place and properties of a chunk, without its text.

    Attributes:
        position: the number of the chunk in its document, from 0.
        line_range: its first and last line, from 1.
        section: the heading path as one line.
    """

    chunk_no: int
    document_no: int
    position: int
    source_id: str
    path: str
    format: str
    span: Span
    line_range: tuple[int, int]
    page: int | None
    title: str | None
    section: str | None
    message_ids: tuple[str, ...]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document with its indexed chunks by number, in order."""

    document: Document
    chunks: tuple[tuple[int, Chunk], ...]


_PLACES = """
select
  c.chunk_no, c.document_no, c.position, d.source_id, d.path, d.format, c.char_start, c.char_end,
  c.line_start, c.line_end, c.page, c.title, c.section, c.message_ids, c.metadata
from chunks c
join documents d using (document_no)
where len(?::varchar[]) = 0
or list_bool_or(list_transform(?::varchar[], lambda part: contains(c.content, part)))
order by c.chunk_no
"""


def read_places(rows_of: Rows, holding: Sequence[str] = ()) -> list[ChunkPlace]:
    """Return the places of a file's chunks, in order.

    Args:
        holding: texts. Only chunks that contain at least one of them are returned; all chunks if it is empty.

    Raises:
        StoreError: the generation cannot be read.
    """
    return [_place(row) for row in rows_of(_PLACES, [list(holding), list(holding)])]


def _place(row: Sequence[Any]) -> ChunkPlace:
    (
        number, document, position, source, path, kind, start, end, first, last, page, title, section, messages,
        metadata,
    ) = row  # fmt: skip
    return ChunkPlace(
        chunk_no=number,
        document_no=document,
        position=position,
        source_id=source,
        path=path,
        format=kind,
        span=Span(start, end),
        line_range=(first, last),
        page=page,
        title=title,
        section=section,
        message_ids=tuple(messages or ()),
        metadata=freeze(json.loads(metadata)),
    )


def read_texts(rows_of: Rows, documents: Iterable[int]) -> dict[int, str]:
    """Return the texts of documents, by number.

    Raises:
        StoreError: the generation cannot be read.
    """
    numbers = sorted(set(map(int, documents)))
    wanted = "[" + ",".join(map(str, numbers)) + "]"
    return dict(
        rows_of(
            'select document_no, "text" from documents where document_no in (select unnest(?::integer[]))', [wanted]
        )
    )


def read_indexed(rows_of: Rows, domain: str, path: str, sees: Callable[[int], bool]) -> tuple[IndexedDocument, ...]:
    """Return the documents at a path, at most one per source, with everything that was indexed except facts.

    Args:
        domain: the domain of the documents, which the file does not store.
        sees: tells whether the viewer may see the document with a number. Other documents are left out.

    Raises:
        StoreError: the generation cannot be read.
    """
    rows = rows_of(
        """
        select document_no, document_id, source_id, format, title, content_hash, url, metadata, "text"
        from documents
        where path = ?
        order by document_no
        """,
        [path],
    )
    return tuple(
        IndexedDocument(
            Document(
                id=DocumentId(identifier),
                domain=Domain(domain),
                source_id=SourceId(source),
                path=path,
                text=text,
                format=kind,
                content_hash=ContentHash(content_hash),
                title=title,
                url=url,
                metadata=freeze(json.loads(metadata)),
            ),
            _chunks(rows_of, number),
        )
        for number, identifier, source, kind, title, content_hash, url, metadata, text in rows
        if sees(number)
    )


def _chunks(rows_of: Rows, document_no: int) -> tuple[tuple[int, Chunk], ...]:
    rows = rows_of(
        """
        select
          chunk_no, char_start, char_end, content, context, token_count, title, section, page, message_ids, metadata
        from chunks
        where document_no = ?
        order by chunk_no
        """,
        [document_no],
    )
    return tuple(
        (
            number,
            Chunk(
                span=Span(start, end),
                content=content,
                token_count=tokens,
                context=context or "",
                title=title,
                section=section,
                page=page,
                message_ids=tuple(messages or ()),
                metadata=freeze(json.loads(metadata)),
            ),
        )
        for number, start, end, content, context, tokens, title, section, page, messages, metadata in rows
    )
