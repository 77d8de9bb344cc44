"""``HIERARCHICAL_SECTIONS``: chunks that follow a document's headings.

An outline tells where a text's blocks are and which of them are headings. Sections run from heading to heading; a
section within its limit is one chunk, a larger one is cut between blocks. Code and tables stay whole and with the
paragraph above.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nornweave.core.text.spans import LINE, SENTENCE, WORD, KnownStarts, TokenIndex, split, strip, strip_lines
from nornweave.core.types import ANCHOR, Chunk, Document, Domain, JsonValue, Section, Span, freeze
from nornweave.read.chunking.outlines.blocks import (
    Block,
    Kind,
    OutlineSection,
    joined,
    limit_of,
    paragraphs,
    sections_of,
    top_level,
)
from nornweave.read.chunking.outlines.html import read_html
from nornweave.read.chunking.outlines.markup import outline_markdown, outline_rst
from nornweave.read.chunking.papers import page_of

# How far code and tables may exceed the limit before they are cut after all, in multiples of it.
_WHOLE = 4

# Before an item of a list, and at blank lines.
_ITEM = re.compile(r"\n[ \t]*(?:\r?\n\s*|(?=(?:[-*+]|\d{1,9}[.)])[ \t]))")
_BOUNDARIES: Mapping[Kind, Sequence[re.Pattern[str]]] = {
    "paragraph": (SENTENCE, LINE, WORD),
    "heading": (SENTENCE, LINE, WORD),
    "list": (_ITEM, LINE, SENTENCE, WORD),
    "front": (LINE, WORD),
    "code": (LINE, WORD),
    "table": (LINE, WORD),
}
_WHOLE_KINDS = frozenset({"code", "table"})


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a section that is not cut further."""

    span: Span
    kind: Kind
    cut: bool = False


@dataclass(frozen=True, slots=True)
class SectionPart:
    """A chunk to be: a span of the outlined text, its section, and the pieces in it."""

    span: Span
    section: OutlineSection
    pieces: Sequence[Piece]


def cut_section(section: OutlineSection, index: TokenIndex, limit: int) -> Iterator[SectionPart]:
    """Cut a section into parts of at most ``limit`` tokens, between groups of pieces that belong together."""
    if index.count(section.span) <= limit:
        groups = [[Piece(block.span, block.kind) for block in section.blocks]]
    else:
        groups = _packed(_grouped(section.blocks, index, limit), index, limit)
    for group in groups:
        inner = strip_lines(index.text, Span(group[0].span.start, group[-1].span.end))
        if len(inner):
            alone = all(piece.kind == "front" for piece in group)
            yield SectionPart(inner, OutlineSection((), 0) if alone else section, group)


def _packed(groups: Iterator[list[Piece]], index: TokenIndex, limit: int) -> list[list[Piece]]:
    packed: list[list[Piece]] = []
    for group in groups:
        if packed and index.count(Span(packed[-1][0].span.start, group[-1].span.end)) <= limit:
            packed[-1] += group
        else:
            packed.append(group)
    return packed


def _grouped(blocks: Sequence[Block], index: TokenIndex, limit: int) -> Iterator[list[Piece]]:
    """Yield pieces that must not be parted: headings with what follows, a paragraph with the code or table below it."""
    group: list[Piece] = []
    for block in blocks:
        is_whole = block.kind in _WHOLE_KINDS
        last = group[-1].kind if group else None
        used = index.count(Span(group[0].span.start, group[-1].span.end)) if group else 0
        # More than half a chunk of headings is text that somebody made bold.
        below = last == "heading" and group[0].kind == "heading" and used <= limit // 2
        first, *others = _pieces(block.span, block.kind, index, limit - used if below and not is_whole else limit)
        is_tied = last in {"heading", "front"} or (is_whole and last in {"paragraph", "list"})
        if is_tied and (below or used + index.count(first.span) <= limit):
            group.append(first)
        else:
            yield from [group] if group else []
            group = [first]
        for piece in others:
            yield group
            group = [piece]
    if group:
        yield group


def _pieces(span: Span, kind: Kind, index: TokenIndex, limit: int) -> list[Piece]:
    if index.count(span) <= (limit * _WHOLE if kind in _WHOLE_KINDS else limit):
        return [Piece(span, kind)]
    return [Piece(part, kind, kind in _WHOLE_KINDS) for part in split(span, index, limit, _BOUNDARIES[kind])]


VERSION = "sections-6"

CONVERTED = frozenset({"docx", "pptx", "xlsx", "epub", "ipynb", "eml", "mbox"})
"""Formats whose text is Markdown that their parser wrote; their sections name places (``cell 12``)."""

_OUTLINES: Mapping[str, Callable[[str], Sequence[Block]]] = {
    "markdown": outline_markdown,
    "rst": outline_rst,
    "text": paragraphs,
    **dict.fromkeys(CONVERTED, outline_markdown),
}
_PASSED_ON = ("source_type", "authors", "publication_date", "doi", "venue", "citation_count", "tags")


def chunk_sections(document: Document, index: TokenIndex, *, h1_limit: int = 1024, limit: int = 512) -> Iterator[Chunk]:
    """Cut a document at its headings.

    Args:
        document: ``format`` is ``markdown``, ``rst``, ``html``, or anything else for plain text.
        index: of ``document.text``.
        h1_limit: tokens of a chunk of a top section: H1 and what stands above any heading; in research documents the
            named sections, the references too. Plain text has no top section.
        limit: tokens of any other chunk.

    Yields:
        Chunks in order. Code and tables are cut only beyond four times the limit and then marked ``split_block``; a
        heading stays with what follows, even when code below it then exceeds the limit. For HTML ``content`` is the
        readable text and the spans tile the file, token counts are those of the file's text without its tags.
    """
    if document.format == "html":
        readable = read_html(document.text)
        words = list(readable.words(document.text))
        index = TokenIndex(readable.text, KnownStarts(_token_starts(words, index)))
        parts = _parts(document, readable.blocks, index, h1_limit, limit)
        starts = [0, *readable.sources_of((part.span.start for part in parts[1:]), words), len(document.text)]
        spans = [
            strip(document.text, Span(start, max(start, end)))
            for start, end in pairwise(starts[-1:] if not parts else starts)
        ]
        anchors = _anchors(readable.blocks, parts)
    else:
        blocks = _OUTLINES.get(document.format, paragraphs)(document.text)
        parts = _parts(document, blocks, index, h1_limit, limit)
        spans = [part.span for part in parts]
        anchors = [""] * len(parts)
    for part, span, anchor in zip(parts, spans, anchors, strict=True):
        yield _chunk(document, part, span, index, anchor)


def _anchors(blocks: Sequence[Block], parts: Sequence[SectionPart]) -> list[str]:
    """Return for each part the anchor of the heading or definition that it stands below; empty if there is none."""
    named = [block for block in blocks if block.anchor]
    anchors = []
    for part in parts:
        headings = (piece.span.start for piece in part.pieces if piece.kind == "heading")
        start = max(headings, default=part.span.start)
        place = bisect_right(named, start, key=lambda block: block.span.start)
        anchors.append(named[place - 1].anchor if place else "")
    return anchors


def _token_starts(words: Iterable[tuple[Span, int]], index: TokenIndex) -> list[int]:
    """Carry the token starts of an HTML file over to its readable text; what is not found there is one token a word."""
    starts: list[int] = []
    for word, at in words:
        count = index.count(Span(at, at + len(word))) if at >= 0 else 1
        offsets = (index.offset_after(at, number) - at for number in range(1, count))
        starts += [word.start, *(word.start + min(offset, len(word) - 1) for offset in offsets)]
    return starts


def _parts(
    document: Document, blocks: Sequence[Block], index: TokenIndex, h1_limit: int, limit: int
) -> list[SectionPart]:
    research = document.domain is Domain.RESEARCH
    sections = list(joined(sections_of(blocks, academic=research), index))
    top = top_level(sections) if research else 1
    if document.format == "text":
        h1_limit = limit
    return [
        part
        for section in sections
        for part in cut_section(section, index, limit_of(section, top, h1_limit, limit, academic=research))
    ]


def _chunk(document: Document, part: SectionPart, span: Span, index: TokenIndex, anchor: str) -> Chunk:
    content = index.text[part.span.start : part.span.end]
    path = part.section.path
    place = _named_place(document.sections, span)
    return Chunk(
        span=span,
        content=content,
        token_count=index.count(part.span),
        context=_context(document, path),
        title=path[-1] if path else document.title,
        section=" > ".join((*path, place) if place else path) or None,
        page=page_of(document.page_starts, span.start),
        metadata=freeze({**_metadata(document, part, content), **_academic(document, path), ANCHOR: anchor or None}),
    )


def _named_place(sections: Sequence[Section], span: Span) -> str | None:
    """Name the sections that a span touches: ``cell 12``, ``cells 12-15``; ``None`` for a document without any.

    Args:
        sections: tile the text; each heading is a word and a number.
    """
    if not sections:
        return None
    first = max(0, bisect_right(sections, span.start, key=lambda section: section.span.start) - 1)
    end = bisect_left(sections, span.end, key=lambda section: section.span.start)
    start, last = sections[first].heading, sections[max(first, end - 1)].heading
    word, _, number = start.rpartition(" ")
    return start if start == last else f"{word}s {number}-{last.rpartition(' ')[2]}"


def _context(document: Document, path: tuple[str, ...]) -> str:
    title = document.title
    above = (title,) if title and not (path and _same(title, path[0])) else ()
    return " > ".join((*above, *path))


def _same(title: str, heading: str) -> bool:
    return title.casefold().split() == heading.casefold().split()


def _metadata(document: Document, part: SectionPart, content: str) -> dict[str, JsonValue]:
    kinds = {piece.kind for piece in part.pieces}
    return {
        "heading_path": part.section.path,
        "heading_level": part.section.level,
        "file_path": document.path,
        "format": document.format,
        "has_code_blocks": "code" in kinds,
        "has_tables": "table" in kinds,
        "word_count": len(content.split()),
        "split_block": True if any(piece.cut for piece in part.pieces) else None,
    }


def _academic(document: Document, path: tuple[str, ...]) -> dict[str, JsonValue]:
    if document.domain is not Domain.RESEARCH:
        return {}
    passed = {key: document.metadata[key] for key in _PASSED_ON if key in document.metadata}
    return {**passed, "title": document.title, "section_name": path[-1] if path else None}
