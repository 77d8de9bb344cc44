"""``HIERARCHICAL_SECTIONS``: chunks that follow a document's headings, or the sections that a paper's parser found.

An outline has the blocks of a text and its headings. Sections run from heading to heading; a
section within its limit is one chunk, a larger one is cut between blocks. Code and tables stay whole and with the
paragraph above. Questions with their answers are cut as papers are.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from nornweave.core.text.index_fields import LISTS_RELEASES, is_changelog, lists_releases
from nornweave.core.text.spans import (
    LINE,
    PARAGRAPH,
    SENTENCE,
    WORD,
    KnownStarts,
    TokenIndex,
    pack,
    split,
    strip,
    strip_lines,
)
from nornweave.core.types import ANCHOR, Chunk, Document, Domain, JsonValue, Metadata, Section, Span, freeze
from nornweave.read.blocks.block import Block, Blocks, rows_of
from nornweave.read.blocks.html import read_html
from nornweave.read.blocks.reader import CONVERTED, read_blocks, without_template
from nornweave.read.chunking.outline import (
    HEADS,
    HOLDING,
    OutlineSection,
    Unit,
    UnitKind,
    gathered,
    items_of,
    joined,
    kinds_of,
    leads_in,
    limit_of,
    one_sentence,
    opened,
    sections_of,
    tile,
    top_level,
    units_of,
    with_questions,
)

PAPERS_VERSION = "papers-2"

_DOCUMENT_KEYS = ("source_type", "title", "authors", "publication_date", "doi", "venue", "citation_count", "tags")


def chunk_papers(
    document: Document, index: TokenIndex, *, section_limit: int = 1024, limit: int = 512, abstract_limit: int = 512
) -> Iterator[Chunk]:
    """Cut a paper at its sections, or a thread at its answers. Long parts are cut at paragraphs.

    A heading that has only subsections under it goes with the first subsection.

    Args:
        document: a document whose ``sections`` cover its text. Without sections the whole text is one section.
        index: the token index of ``document.text``.
        section_limit: the maximum number of tokens in a chunk of a section of level 1 or of the references.
        limit: the maximum number of tokens in a chunk of a deeper section, a question or an answer.
        abstract_limit: the maximum number of tokens in a chunk of the abstract. No other text is in such a chunk.

    Yields:
        Chunks in order that leave out only blank space.
    """
    for section, path, whole in _paper_parts(document, index, limit):
        for piece in split(whole, index, _limit(section, section_limit, limit, abstract_limit)):
            span = strip_lines(document.text, piece)
            if len(span):
                yield _paper_chunk(document, section, path, span, index)


def _limit(section: Section, section_limit: int, limit: int, abstract_limit: int) -> int:
    if section.kind == "abstract":
        return abstract_limit
    if section.kind in {"question", "answer"}:
        return limit
    return section_limit if section.level == 1 or section.kind == "references" else limit


def _paper_parts(document: Document, index: TokenIndex, limit: int) -> Iterator[tuple[Section, Sequence[str], Span]]:
    """Yield the sections, each with its headings and its span.

    A heading without text joins the subsection below it.
    """
    sections: Sequence[Section] = document.sections or (Section(span=Span(0, len(document.text)), heading=""),)
    above: list[Section] = []
    start = 0
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        while above and above[-1].level >= section.level:
            above.pop()
        above += [section] if section.heading else []
        span = Span(start, section.span.end)
        text = document.text[section.span.start : section.span.end]
        is_bare = section.kind == "section" and text.strip() == section.heading
        if is_bare and following and following.level > section.level and index.count(span) < limit:
            continue
        yield section, [each.heading for each in above], span
        start = section.span.end


def _paper_chunk(document: Document, section: Section, path: Sequence[str], span: Span, index: TokenIndex) -> Chunk:
    page = page_of(document.page_starts, span.start)
    return Chunk(
        span=span,
        content=document.text[span.start : span.end],
        token_count=index.count(span),
        context="\n".join(line for line in _paper_context(document.title, path, section.context) if line),
        title=section.heading or document.title,
        section=" > ".join(path) or None,
        page=page,
        metadata=_paper_metadata(document, section, page),
    )


def _paper_context(title: str | None, path: Sequence[str], more: str) -> tuple[str, str, str]:
    """Return the title, the headings and the context ``more`` of a section. Text that would be repeated is left out."""
    shown = [heading for heading in path if heading != title and not (more and more.startswith(heading))]
    return ("" if title and more.startswith(title) else title or "", " > ".join(shown), more)


def _paper_metadata(document: Document, section: Section, page: int | None) -> Metadata:
    values: dict[str, JsonValue] = {key: document.metadata.get(key) for key in _DOCUMENT_KEYS}
    values["title"] = document.title or values["title"]
    recognised = document.metadata.get("ocr_pages")
    values["ocr"] = True if isinstance(recognised, Sequence) and page in recognised else None
    values["section_name"] = section.heading or None
    return freeze({**values, **section.metadata})


def page_of(page_starts: Sequence[int], offset: int) -> int | None:
    """Return the number of the page with the character at ``offset``, from 1; ``None`` for a document without pages."""
    return max(1, bisect_right(page_starts, offset)) if page_starts else None


# How far code may exceed the limit before it is cut after all, in multiples of it.
_WHOLE = 4

_BOUNDARIES: Mapping[UnitKind, Sequence[re.Pattern[str]]] = {
    "list": (PARAGRAPH, SENTENCE, LINE, WORD),
    "front": (LINE, WORD),
    "code": (LINE, WORD),
    "table": (LINE, WORD),
}
_OF_PROSE = (SENTENCE, LINE, WORD)
_WHOLE_KINDS = frozenset({"code", "table"})


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a section that is never cut.

    Attributes:
        header: the header of the table that the piece continues; empty for other pieces.
    """

    span: Span
    unit: Unit
    cut: bool = False
    header: str = ""

    @property
    def kind(self) -> UnitKind:
        """The kind of the piece's unit."""
        return self.unit.kind


@dataclass(frozen=True, slots=True)
class SectionPart:
    """A part of a section that will be a chunk: a span of the outlined text, its section, and its pieces."""

    span: Span
    section: OutlineSection
    pieces: Sequence[Piece]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms and notes around the part, outermost first, without the titles of its section.

        If the part continues a term or a note, the names around its beginning are used if there are more of them.
        """
        held = [(*piece.unit.above, *((piece.unit.block,) if piece.kind in HOLDING else ())) for piece in self.pieces]
        same = takewhile(lambda level: len({id(block) for block in level}) == 1, zip(*held, strict=False))
        whole = [level[0] for level in same]
        begun = [block for block in self.pieces[0].unit.above if block.span.start < self.span.start]
        longest = max(whole, begun, key=len)
        names = (block.info for block in longest if block.info and block.kind in HOLDING)
        return tuple(name for name in names if name not in self.section.path)

    @property
    def opens_page(self) -> bool:
        """Whether the part begins with the front matter of a page, and the text below it is under no heading."""
        kinds = [piece.kind for piece in self.pieces]
        first = next((piece.unit.block.level for piece in self.pieces if piece.kind == "heading"), 0)
        return len(kinds) > 1 and kinds[0] == "front" and kinds[1] != "heading" and first > 1

    @property
    def led_in(self) -> tuple[str, ...]:
        """The introductions of the lists that the part continues, and the items around it, outermost first."""
        above = self.pieces[0].unit.above
        return tuple(block.info for block in above if block.kind == "list" and block.span.start < self.span.start)


def cut_section(section: OutlineSection, index: TokenIndex, limit: int) -> Iterator[SectionPart]:
    """Cut a section into parts of at most ``limit`` tokens. The cuts are between groups of pieces."""
    if index.count(section.span) <= limit:
        groups = [[Piece(unit.span, unit) for unit in section.units]]
    else:
        groups = _packed(_grouped(_opened(section.units, index, limit), index, limit), index, limit)
    for group in groups:
        inner = strip_lines(index.text, Span(group[0].span.start, group[-1].span.end))
        if len(inner):
            alone = all(piece.kind == "front" for piece in group)
            yield SectionPart(inner, OutlineSection((), 0) if alone else section, group)


def _opened(units: Sequence[Unit], index: TokenIndex, limit: int) -> Iterator[Unit]:
    """Yield units. Blocks and lists that are too long for one part are replaced by the units inside them.

    The introduction of such a block or list becomes a label.
    """
    led_in = ""
    for unit, below in zip(units, [*units[1:], None], strict=True):
        said = index.text[unit.span.start : unit.span.end]
        is_long = index.count(unit.span) > limit
        if unit.kind == "list" and is_long:
            items = list(items_of(unit, index.text, led_in))
            yield from _opened(items, index, limit) if len(items) > 1 else items
        elif unit.kind in HOLDING and is_long:
            yield from _opened(opened(unit, index.text), index, limit)
        elif below and _leads_in(unit, said, below):
            yield replace(unit, kind="label")
        else:
            yield unit
        led_in = one_sentence(said) if unit.kind == "paragraph" and leads_in(said, "list") else ""


def _leads_in(unit: Unit, said: str, below: Unit) -> bool:
    is_text = unit.kind == "paragraph" or (unit.kind == "list" and below.kind in _WHOLE_KINDS)
    return is_text and below.kind != "heading" and leads_in(said, below.kind)


def _packed(groups: Iterator[list[Piece]], index: TokenIndex, limit: int) -> list[list[Piece]]:
    packed: list[list[Piece]] = []
    for group in groups:
        if packed and index.count(Span(packed[-1][0].span.start, group[-1].span.end)) <= limit:
            packed[-1] += group
        else:
            packed.append(group)
    return packed


def _grouped(units: Iterable[Unit], index: TokenIndex, limit: int) -> Iterator[list[Piece]]:
    """Yield groups of pieces to keep together.

    A heading stays with the next piece. A paragraph stays with the code or table below it.
    """
    group: list[Piece] = []
    for unit in units:
        is_whole = unit.kind in _WHOLE_KINDS
        last = group[-1].kind if group else None
        used = index.count(Span(group[0].span.start, group[-1].span.end)) if group else 0
        # More than half a chunk of headings is text that somebody made bold.
        below = last in {"heading", "label"} and group[0].kind in {"heading", "label"} and used <= limit // 2
        is_narrowed = below and unit.kind != "code"
        first, *others = _pieces(unit, index, limit - used if is_narrowed else limit, limit)
        is_tied = last in HEADS or (is_whole and last in {"paragraph", "list"})
        if is_tied and (below or used + index.count(first.span) <= limit):
            group.append(first)
        else:
            heads = list(takewhile(lambda piece: piece.kind in {"heading", "label"}, reversed(group)))[::-1]
            heads = heads if len(heads) < len(group) else []
            yield from [group[: len(group) - len(heads)]] if group else []
            group = [*heads, first]
        for piece in others:
            yield group
            group = [piece]
    if group:
        yield group


def _pieces(unit: Unit, index: TokenIndex, limit: int, row_limit: int) -> list[Piece]:
    if index.count(unit.span) <= (limit * _WHOLE if unit.kind == "code" else limit):
        return [Piece(unit.span, unit)]
    is_whole = unit.kind in _WHOLE_KINDS
    if unit.kind != "table":
        # A list that would fit without what stands above it is cut between its items all the same.
        held = [item.span for item in items_of(unit, index.text, "")] if unit.kind == "list" else [unit.span]
        boundaries = _BOUNDARIES.get(unit.kind, _OF_PROSE)
        spans = pack((part for span in held for part in split(span, index, limit, boundaries)), index, limit)
        return [Piece(span, unit, is_whole) for span in spans]
    rows = rows_of(index.text, unit.block)
    header = "\n".join(row.line for row in rows if row.is_header)
    below = [row.span.start for row in rows if not row.is_header][1:]  # a header stays with the first row below it
    starts = [unit.span.start, *below, unit.span.end]
    parts = [
        part for start, end in pairwise(starts) for part in split(Span(start, end), index, row_limit, (LINE, WORD))
    ]
    return [Piece(span, unit, True, header if at else "") for at, span in enumerate(pack(parts, index, limit))]


VERSION = "sections-27"

_PASSED_ON = ("source_type", "authors", "publication_date", "doi", "venue", "citation_count", "tags")


def chunk_sections(document: Document, index: TokenIndex, *, h1_limit: int = 1024, limit: int = 512) -> Iterator[Chunk]:
    """Cut a document at its headings.

    Args:
        document: a document whose ``format`` is ``markdown``, ``rst``, ``html``, or any other for plain text.
        index: the token index of ``document.text``.
        h1_limit: the maximum number of tokens in a chunk of a top section. A top section is one below an H1 heading, or
            the text above the first heading. In a research document it is a named section, such as the references.
            Plain text has no top section.
        limit: the maximum number of tokens in any other chunk.

    Yields:
        Chunks in order. Code and tables are cut only if they are longer than four times the limit, and are then marked
        ``split_block``. A heading stays with the text below it, even if code in that text makes the chunk longer than
        the limit. For HTML, ``content`` is the readable text, the spans cover the file, and the token counts are those
        of the file's text without tags.
    """
    if document.format == "html":
        readable = read_html(without_template(document.text))
        read = Blocks(readable.text, readable.blocks)
        words = list(readable.words(document.text))
        listed = _lists_releases(document, read)
        index = TokenIndex(readable.text, KnownStarts(_token_starts(words, index)))
        parts = _parts(document, read, index, h1_limit, limit, notes=listed or is_changelog(document.path))
        starts = [0, *readable.sources_of((part.span.start for part in parts[1:]), words), len(document.text)]
        spans = [
            strip(document.text, Span(start, max(start, end)))
            for start, end in pairwise(starts[-1:] if not parts else starts)
        ]
        anchors = _anchors(readable.blocks, parts)
    else:
        read = read_blocks(document.text, "markdown" if document.format in CONVERTED else document.format)
        index = index.without(read.text, read.hidden)
        listed = _lists_releases(document, read)
        parts = _parts(document, read, index, h1_limit, limit, notes=listed or is_changelog(document.path))
        spans = [_without_hidden_head(read, part.span) for part in parts]
        anchors = [""] * len(parts)
    for part, span, anchor in zip(parts, spans, anchors, strict=True):
        if content := read.shown(part.span).strip("\n"):
            chunk = _chunk(document, part, span, index, content, anchor)
            yield replace(chunk, metadata=freeze({**chunk.metadata, LISTS_RELEASES: True})) if listed else chunk


def _lists_releases(document: Document, read: Blocks) -> bool:
    """Tell whether the headings of a page are those of a changelog although its path does not say so."""
    headings = (block.info for block in _every(read.blocks) if block.kind == "heading")
    return not is_changelog(document.path) and lists_releases(document.path, headings)


def _without_hidden_head(read: Blocks, span: Span) -> Span:
    """Return a span without the hidden text at its beginning. If no text in it is visible, return the whole span."""
    start = span.start
    for hidden in read.hidden:
        if hidden.start > start:
            break
        start = max(start, hidden.end)
        start += len(read.text[start : span.end]) - len(read.text[start : span.end].lstrip("\r\n"))
    return Span(start, span.end) if start < span.end else span


def _anchors(blocks: Sequence[Block], parts: Sequence[SectionPart]) -> list[str]:
    """Return the anchor of the heading or definition nearest above each part; an empty text if there is none."""
    named = [block for block in _every(blocks) if block.anchor]
    anchors = []
    for part in parts:
        headings = (piece.span.start for piece in part.pieces if piece.kind == "heading")
        start = max(headings, default=part.span.start)
        place = bisect_right(named, start, key=lambda block: block.span.start)
        anchors.append(named[place - 1].anchor if place else "")
    return anchors


def _every(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from _every(block.parts)


def _token_starts(words: Iterable[tuple[Span, int]], index: TokenIndex) -> list[int]:
    """Return the starts of the tokens in the readable text of an HTML file.

    The tokens of a word are those of the same word in the file. A word that is not found there counts as one token.
    """
    starts: list[int] = []
    for word, at in words:
        count = index.count(Span(at, at + len(word))) if at >= 0 else 1
        offsets = (index.offset_after(at, number) - at for number in range(1, count))
        starts += [word.start, *(word.start + min(offset, len(word) - 1) for offset in offsets)]
    return starts


def _parts(
    document: Document, read: Blocks, index: TokenIndex, h1_limit: int, limit: int, *, notes: bool
) -> list[SectionPart]:
    research = document.domain is Domain.RESEARCH
    # Lists of Markdown hold what belongs to them, and those of HTML are lists of their items.
    asked = [*with_questions(read.blocks, read.text)]
    blocks = asked if document.format in {"markdown", "html", *CONVERTED} else gathered(asked, read.text)
    units = tile(units_of(blocks), read.text, Span(0, len(read.text)))
    found = sections_of(units, academic=research, changelog=notes)
    sections = list(joined(found, index, paged=document.format in CONVERTED))
    top = top_level(sections) if research else 1
    if document.format == "text":
        h1_limit = limit
    return [
        part
        for section in sections
        for part in cut_section(section, index, limit_of(section, top, h1_limit, limit, academic=research))
    ]


def _chunk(document: Document, part: SectionPart, span: Span, index: TokenIndex, content: str, anchor: str) -> Chunk:
    path = () if part.opens_page and document.title else (*part.section.path, *part.names)
    place = _named_place(document.sections, span)
    context = _context(document, path)
    return Chunk(
        span=span,
        content=content,
        token_count=index.count(part.span),
        context="\n".join(filter(None, (context, *part.led_in, part.pieces[0].header))),
        title=path[-1] if path else document.title,
        section=" > ".join((*path, place) if place else path) or None,
        page=page_of(document.page_starts, span.start),
        metadata=freeze(
            {
                **_metadata(document, part, path, content),
                **_academic(document, part.section.path),
                ANCHOR: anchor or None,
            }
        ),
    )


def _named_place(sections: Sequence[Section], span: Span) -> str | None:
    """Return the names of the sections that a span touches: ``cell 12``, ``cells 12-15``.

    ``None`` for a document without sections.

    Args:
        sections: the sections, which cover the whole text. The heading of each is a word and a number.
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


def _metadata(document: Document, part: SectionPart, path: tuple[str, ...], content: str) -> dict[str, JsonValue]:
    kinds = frozenset[str]().union(
        *(kinds_of(piece.unit.block) if piece.kind in {*HOLDING, "list"} else {piece.kind} for piece in part.pieces)
    )
    return {
        "heading_path": path,
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
