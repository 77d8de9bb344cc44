"""``HIERARCHICAL_SECTIONS``: chunks that follow a document's headings.

An outline tells where a text's blocks are and which of them are headings. Sections run from heading to heading; a
section within its limit is one chunk, a larger one is cut between blocks. Code and tables stay whole and with the
paragraph above.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nornweave.chunking.outline import Block, Kind, paragraphs
from nornweave.chunking.outline_html import Readable, read_html
from nornweave.chunking.outline_markdown import outline_markdown
from nornweave.chunking.outline_rst import outline_rst
from nornweave.chunking.spans import LINE, SENTENCE, WORD, TokenIndex, split, strip, strip_lines
from nornweave.types import Chunk, Document, Domain, JsonValue, Span, freeze

VERSION = "sections-1"

# How far code and tables may exceed the limit before they are cut after all, in multiples of it.
_WHOLE = 4
# What stands above the first heading in no more tokens than this (a comment, "Skip to content") joins its section.
_SMALL_PREAMBLE = 20
# A heading larger than this share of the limit is text that somebody made bold.
_HEADING_SHARE = 2

_OUTLINES: Mapping[str, Callable[[str], Sequence[Block]]] = {
    "markdown": outline_markdown,
    "rst": outline_rst,
    "text": paragraphs,
}
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
_ABSTRACT = re.compile(r"(?:[\dIVX.]+\s+)?abstract\W*\Z", re.I)
_REFERENCES = re.compile(r"(?:[\dIVX.]+\s+)?(?:references|bibliography|works cited|literature cited)\W*\Z", re.I)
_PASSED_ON = ("source_type", "authors", "publication_date", "doi", "venue", "citation_count", "tags")


@dataclass(slots=True)
class _Section:
    """A heading's blocks up to the next heading; ``path`` holds the titles above it and its own."""

    path: tuple[str, ...]
    level: int
    blocks: list[Block] = field(default_factory=list)

    @property
    def span(self) -> Span:
        return Span(self.blocks[0].span.start, self.blocks[-1].span.end)

    @property
    def bare(self) -> bool:
        """Say whether there is nothing under the heading."""
        return all(block.kind in {"heading", "front"} for block in self.blocks)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a section that is not cut further."""

    span: Span
    kind: Kind
    cut: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """A chunk to be: a span of the outlined text, its section, and the pieces in it."""

    span: Span
    section: _Section
    pieces: Sequence[_Piece]


class _Counted:
    """A tokenizer that answers with token starts which are known already."""

    version = ""

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = starts

    def token_starts(self, text: str) -> Sequence[int]:  # noqa: ARG002 - the port's signature
        return self._starts


def chunk_sections(document: Document, index: TokenIndex, *, h1_limit: int = 1024, limit: int = 512) -> Iterator[Chunk]:
    """Cut a document at its headings (AGENTS, ``HIERARCHICAL_SECTIONS`` and its academic form).

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
        index = TokenIndex(readable.text, _Counted(_token_starts(readable, index)))
        parts = _parts(document, readable.blocks, index, h1_limit, limit)
        spans = _source_spans(document.text, readable, [part.span for part in parts])
    else:
        blocks = _OUTLINES.get(document.format, paragraphs)(document.text)
        parts = _parts(document, blocks, index, h1_limit, limit)
        spans = [part.span for part in parts]
    for part, span in zip(parts, spans, strict=True):
        yield _chunk(document, part, span, index)


def _token_starts(readable: Readable, index: TokenIndex) -> list[int]:
    """Carry the token starts of an HTML file over to its readable text.

    Added marks and signs written as references (``&gt;``) count one token each.
    """
    starts: list[int] = []
    for run in readable.runs:
        source = run.source
        if not len(source) or index.text[source.start] == "&":
            sign = readable.text[run.start : run.start + run.length].strip()
            starts += [run.start] * (bool(sign) and not sign.isalnum())
            continue
        offsets = (index.offset_after(source.start, number) for number in range(index.count(source)))
        starts += [run.start + (offset - source.start) * run.length // len(source) for offset in offsets]
    return starts


def _source_spans(text: str, readable: Readable, spans: Sequence[Span]) -> list[Span]:
    """Return spans of the file that tile it: from each part's first tag to the next part's."""
    if not spans:
        return []
    starts = [0, *(readable.source_of(span.start) for span in spans[1:])]
    return [strip(text, Span(start, end)) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _parts(document: Document, blocks: Sequence[Block], index: TokenIndex, h1_limit: int, limit: int) -> list[_Part]:
    research = document.domain is Domain.RESEARCH
    sections = list(_joined(_sections(blocks, academic=research), index))
    top = _top_level(sections) if research else 1
    if document.format == "text":
        h1_limit = limit
    return [
        part
        for section in sections
        for part in _cut(section, index, _limit(section, top, h1_limit, limit, academic=research))
    ]


def _sections(blocks: Sequence[Block], *, academic: bool) -> Iterator[_Section]:
    section = _Section((), 0)
    above: list[tuple[int, str]] = []
    for block in blocks:
        whole = academic and section.path and (_ABSTRACT.match(section.path[-1]) or _REFERENCES.match(section.path[-1]))
        if block.kind == "heading" and not (whole and block.level > section.level):
            if section.blocks:
                yield section
            while above and above[-1][0] >= block.level:
                above.pop()
            above.append((block.level, block.title))
            section = _Section(tuple(title for _, title in above), block.level)
        section.blocks.append(block)
    if section.blocks:
        yield section


def _joined(sections: Iterable[_Section], index: TokenIndex) -> Iterator[_Section]:
    """Join headings with nothing under them, and the little above the first one, to the section below.

    Its path names those headings; a heading with nothing under it and no section of its own below stays alone.
    """
    above: _Section | None = None
    for section in sections:
        bare = section.bare or (not section.path and _tokens(section, index) <= _SMALL_PREAMBLE)
        if above and above.path == section.path[: len(above.path)]:
            above.blocks += section.blocks
            above.path, above.level = section.path, section.level
        else:
            if above:
                yield above
            above = section
        if not bare:
            yield above
            above = None
    if above:
        yield above


def _tokens(section: _Section, index: TokenIndex) -> int:
    return sum(index.count(block.span) for block in section.blocks if block.kind != "front")


def _top_level(sections: Sequence[_Section]) -> int:
    """Return the level of a paper's named sections: below a single title they are the second level in use."""
    levels = [block.level for section in sections for block in section.blocks if block.kind == "heading"]
    if not levels:
        return 1
    top = min(levels)
    return top + 1 if levels.count(top) == 1 and levels[0] == top else top


def _limit(section: _Section, top: int, h1_limit: int, limit: int, *, academic: bool) -> int:
    if academic and section.path:
        if _ABSTRACT.match(section.path[-1]):
            return limit
        if _REFERENCES.match(section.path[-1]):
            return h1_limit
    return h1_limit if section.level <= top else limit


def _cut(section: _Section, index: TokenIndex, limit: int) -> Iterator[_Part]:
    """Cut a section into parts of at most ``limit`` tokens, between groups of pieces that belong together."""
    if index.count(section.span) <= limit:
        groups = [[_Piece(block.span, block.kind) for block in section.blocks]]
    else:
        groups = _packed(_grouped(section.blocks, index, limit), index, limit)
    for group in groups:
        inner = strip_lines(index.text, Span(group[0].span.start, group[-1].span.end))
        if len(inner):
            alone = all(piece.kind == "front" for piece in group)
            yield _Part(inner, _Section((), 0) if alone else section, group)


def _packed(groups: Iterator[list[_Piece]], index: TokenIndex, limit: int) -> list[list[_Piece]]:
    packed: list[list[_Piece]] = []
    for group in groups:
        if packed and index.count(Span(packed[-1][0].span.start, group[-1].span.end)) <= limit:
            packed[-1] += group
        else:
            packed.append(group)
    return packed


def _grouped(blocks: Sequence[Block], index: TokenIndex, limit: int) -> Iterator[list[_Piece]]:
    """Yield pieces that must not be parted: headings with what follows, a paragraph with the code or table below it."""
    group: list[_Piece] = []
    for block in blocks:
        piece = _Piece(block.span, block.kind)
        tied = bool(group) and _tied(group, block.kind)
        if tied and index.count(Span(group[0].span.start, block.span.end)) <= limit:
            group.append(piece)
            continue
        if (
            group
            and all(one.kind == "heading" for one in group)
            and index.count(Span(group[0].span.start, group[-1].span.end)) <= limit // _HEADING_SHARE
        ):
            *ready, group = _under_headings(group, block, index, limit)
            yield from ready
            continue
        if group:
            yield group
        *ready, group = ([piece] for piece in _pieces(block.span, block.kind, index, limit))
        yield from ready
    if group:
        yield group


def _only_headings(group: Sequence[_Piece]) -> bool:
    return bool(group) and all(piece.kind == "heading" for piece in group)


def _tied(group: Sequence[_Piece], kind: Kind) -> bool:
    """Say whether a block of ``kind`` belongs to what is above it."""
    last = group[-1].kind
    return last in {"heading", "front"} or (kind in _WHOLE_KINDS and last in {"paragraph", "list"})


def _under_headings(headings: list[_Piece], block: Block, index: TokenIndex, limit: int) -> list[list[_Piece]]:
    """Cut a block that exceeds the limit together with the headings above it."""
    used = index.count(Span(headings[0].span.start, headings[-1].span.end))
    first, *others = _pieces(block.span, block.kind, index, limit if block.kind in _WHOLE_KINDS else limit - used)
    return [[*headings, first], *([piece] for piece in others)]


def _pieces(span: Span, kind: Kind, index: TokenIndex, limit: int) -> list[_Piece]:
    if index.count(span) <= (limit * _WHOLE if kind in _WHOLE_KINDS else limit):
        return [_Piece(span, kind)]
    return [_Piece(part, kind, kind in _WHOLE_KINDS) for part in split(span, index, limit, _BOUNDARIES[kind])]


def _chunk(document: Document, part: _Part, span: Span, index: TokenIndex) -> Chunk:
    content = index.text[part.span.start : part.span.end]
    path = part.section.path
    return Chunk(
        span=span,
        content=content,
        token_count=index.count(part.span),
        context=_context(document, path),
        title=path[-1] if path else document.title,
        section=" > ".join(path) or None,
        metadata=freeze({**_metadata(document, part, content), **_academic(document, path)}),
    )


def _context(document: Document, path: tuple[str, ...]) -> str:
    title = document.title
    above = (title,) if title and not (path and _same(title, path[0])) else ()
    return " > ".join((*above, *path)) or document.path


def _same(title: str, heading: str) -> bool:
    return title.casefold().split() == heading.casefold().split()


def _metadata(document: Document, part: _Part, content: str) -> dict[str, JsonValue]:
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
