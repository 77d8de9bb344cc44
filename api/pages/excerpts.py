"""Excerpts of passages for a list of results: the part with the most words of the question."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from api.pages.code_colours import colours_of
from api.pages.markup import Block, blocks_of
from api.pages.text_runs import HIT, TextRun, highlighted, marked_code, window
from nornweave.core.text.legible import lines_of

# What fits a screen beside nine others.
MAX_LINES = 9
MAX_PARAGRAPHS = 5
MAX_CHARACTERS = 600
# What stands before the first match of a paragraph that is cut.
_BEFORE_MATCH = 120
# A line as short as this ends where its author wanted it to.
_WRAPPED = 50
# What begins a paragraph of its own in plain text.
_BEGINS = re.compile(r"[-*+•]\s|\d+[.)]\s")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number in the document, if the document has lines, and its text."""

    number: int | None
    runs: tuple[TextRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Neighbouring lines of code or blocks of prose, and the numbers of lines or blocks before and after them."""

    lines: tuple[Line, ...] = ()
    blocks: tuple[Block, ...] = ()
    before: int = 0
    after: int = 0


def code_excerpt(text: str, terms: Collection[str], first_line: int | None, language: str = "") -> Excerpt:
    """Return the neighbouring lines of code that hold the most different terms; the earliest lines if several do.

    Args:
        text: the text of the passage.
        terms: the terms of the question (``query_terms_of``).
        first_line: the number of its first line; ``None`` if its lines have no numbers.
        language: the language of the code, for its colours; empty for no colours.
    """
    text = text.rstrip()
    lines = list(marked_code(lines_of(text), colours_of(text, language), terms))
    shown = window(lines, MAX_LINES)
    return Excerpt(
        lines=tuple(
            Line(None if first_line is None else first_line + place, _cut(lines[place], MAX_CHARACTERS))
            for place in shown
        ),
        before=shown.start,
        after=len(lines) - shown.stop,
    )


def markup_excerpt(text: str, terms: Collection[str], *, title: str = "", format: str = "markdown") -> Excerpt:  # noqa: A002
    """Return one or more blocks of a passage that stand side by side and together hold the most of the terms.

    Entries of a list and rows of a table count as blocks. The head of a table stays above the chosen rows.

    Args:
        title: the title of the passage. Headings at the beginning that repeat it are left out.
        format: the format of the document. A passage of ``html`` is plain text.
    """
    text, format = (_with_tables(text), "markdown") if format == "html" else (text, format)  # noqa: A001
    return _chosen(_without_title(blocks_of(text, terms, format=format), title))


def _with_tables(text: str) -> str:
    """Return text that was read from HTML, with its rows of cells (``a | b``) written as Markdown tables."""
    lines: list[str] = []
    columns = 0
    for line in text.split("\n"):
        bars = line.count(" | ")
        if bars:
            lines += [] if columns == bars else [""]
            lines.append(f"| {line} |")
            lines += [] if columns == bars else [f"|{' --- |' * (bars + 1)}"]
        else:
            lines += ["", line] if columns else [line]
        columns = bars
    return "\n".join(lines)


def prose_excerpt(text: str, terms: Collection[str], *, title: str = "") -> Excerpt:
    """Return the neighbouring paragraphs of a plain text that hold the most different terms."""
    paragraphs = paragraphs_of(text)
    blocks = [Block(tag="p", lines=(1, 1), runs=highlighted(paragraph, terms)) for paragraph in paragraphs]
    return _chosen(_without_title(blocks, title))


def paragraphs_of(text: str) -> list[str]:
    """Return the paragraphs of a plain text: wrapped lines are joined, blank lines left out."""
    paragraphs: list[str] = []
    joins = False
    for line in lines_of(text):
        if not line.strip():
            joins = False
            continue
        if not joins or _BEGINS.match(line) or line[0].isspace():
            paragraphs.append(line)
        else:
            paragraphs[-1] += f" {line}"
        joins = len(line) >= _WRAPPED
    return paragraphs


def _without_title(blocks: Sequence[Block], title: str) -> Sequence[Block]:
    """Return blocks without the headings at the beginning, which the page shows already."""
    for place, block in enumerate(blocks):
        if block.tag != "heading" and "".join(run.text for run in block.runs).strip() != title:
            return blocks[place:]
    return blocks


def _chosen(blocks: Sequence[Block]) -> Excerpt:
    pieces = [(place, piece) for place, block in enumerate(blocks) for piece in _pieces(block)]
    shown = window([tuple(_texts(piece)) for _, piece in pieces], MAX_PARAGRAPHS)
    kept = groupby(pieces[shown.start : shown.stop], key=lambda piece: piece[0])
    return Excerpt(
        blocks=tuple(_joined(blocks[place], [piece for _, piece in group]) for place, group in kept),
        before=shown.start,
        after=len(pieces) - shown.stop,
    )


def _pieces(block: Block) -> Iterator[Block]:
    """Yield the entries of a list, the rows of a table, or the block itself."""
    if block.tag in {"ul", "ol"}:
        for place, entry in enumerate(block.blocks):
            yield replace(block, blocks=(entry,), level=block.level + place)
    elif block.tag == "table":
        yield from (replace(block, blocks=(row,)) for row in block.blocks[1:] or block.blocks)
    elif block.tag == "pre":
        shown = window([line.runs for line in block.blocks], MAX_LINES)
        yield replace(block, blocks=block.blocks[shown.start : shown.stop])
    else:
        yield replace(block, runs=_cut(block.runs, MAX_CHARACTERS))


def _joined(whole: Block, pieces: Sequence[Block]) -> Block:
    """Return the chosen pieces of a block as one block."""
    blocks = tuple(block for piece in pieces for block in piece.blocks)
    head = whole.blocks[:1] if whole.tag == "table" and len(whole.blocks) > 1 else ()
    return replace(pieces[0], blocks=(*head, *blocks))


def _texts(block: Block) -> Iterator[TextRun]:
    yield from block.runs
    for inner in block.blocks:
        yield from _texts(inner)


def _cut(runs: tuple[TextRun, ...], limit: int) -> tuple[TextRun, ...]:
    """Return at most ``limit`` characters, beginning shortly before the first match."""
    if sum(len(run.text) for run in runs) <= limit:
        return runs
    before = next((place for place, run in enumerate(runs) if run.kind == HIT), 0)
    skipped = max(0, sum(len(run.text) for run in runs[:before]) - _BEFORE_MATCH)
    skipped = 0 if skipped < _BEFORE_MATCH else skipped
    shown, at = [TextRun("… ")] if skipped else [], 0
    for run in runs:
        text = run.text[max(0, skipped - at) : max(0, skipped + limit - at)]
        at += len(run.text)
        shown += [run._replace(text=text)] if text else []
    return (*shown, TextRun(" …")) if at > skipped + limit else tuple(shown)
