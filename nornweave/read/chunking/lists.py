"""Lists and their introductions: the lines of items, and the lines that introduce a list."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from nornweave.core.text.inline_markup import plain_line
from nornweave.core.text.spans import SENTENCE
from nornweave.core.types import Span
from nornweave.read.blocks.block import Block
from nornweave.read.chunking.outline import Unit, UnitKind, tile, units_of

_MARK = re.compile(r"[ \t>]*\S+[ \t]+")
_ITEM = re.compile(r"^([ \t>]*)([-+•]|\*{1,6}|\.{1,6}|\(?(?:\d{1,9}|#)[.)]|<[\d.]+>)[ \t]+\S", re.MULTILINE)
# Columns by which an item stands deeper than the one that holds it; AsciiDoc repeats the mark instead.
_DEEPER = 2
# AsciiDoc joins a block to an item by a line with a plus.
_JOINS_ABOVE = re.compile(r"\+[ \t]*\n")
_JOINS_BELOW = re.compile(r"^\+[ \t]*\n(?:[\[.][^\n]*\n)*\s*\Z", re.MULTILINE)
_BOLD = re.compile(r"(\*\*|__)[^\s*_][^\n]*\1:?\Z")
_COLON = re.compile(r"[:：][\s*_`\\]*\Z")
_NO_SENTENCE = re.compile(r"(?![!<])[^\n]*[^\W_][)\"'`*_]*\Z")
_LONGEST_SAID = 160


def gathered(blocks: Iterable[Block], text: str) -> Iterator[Block]:
    """Yield blocks. Further items, indented blocks and blocks after a ``+`` are joined with their list to one block."""
    run: list[Block] = []
    for block in blocks:
        said = text[block.span.start : block.span.end]
        if run and not _belongs(block, said, run, text):
            yield _as_list(run)
            run = []
        run.append(block)
    if run:
        yield _as_list(run)


def _belongs(block: Block, said: str, run: list[Block], text: str) -> bool:
    if block.kind == "heading":
        return False
    last = run[-1].span
    if _JOINS_ABOVE.match(said) or _JOINS_BELOW.search(text, last.start, last.end):
        return True
    deeper = said[:1] in " \t" and _columns(said) > _columns(text[run[0].span.start : run[0].span.end])
    return run[0].kind == "list" and (block.kind == "list" or deeper)


def _as_list(run: list[Block]) -> Block:
    if len(run) == 1:
        return run[0]
    lines = range(run[0].lines[0], run[-1].lines[-1] + 1)
    return Block(Span(run[0].span.start, run[-1].span.end), "list", lines, parts=tuple(run))


def _columns(text: str) -> int:
    expanded = text.split("\n", 1)[0].expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def leads_in(said: str, below: UnitKind) -> bool:
    """Tell whether a text introduces the next block, because it ends with a colon, is bold, or names a list."""
    said = _JOINS_BELOW.sub("", said).strip()
    return bool(_COLON.search(said) or _BOLD.match(said) or (below == "list" and _NO_SENTENCE.match(said)))


def items_of(unit: Unit, text: str, said: str) -> Iterator[Unit]:
    """Yield the outermost items of a list. If there is only one, yield it as a ``label``, and then its nested items.

    Args:
        said: the text that introduces the list. For the nested items, this is the first line of their item.
    """
    whole, parts = unit.span, unit.block.parts
    held = [part.span for part in parts if part.kind != "list"]
    found = [
        (item.start(), len(item[1].expandtabs(4)) + _DEEPER * (len(item[2]) - 1 if item[2][0] in "*." else 0))
        for item in _ITEM.finditer(text, whole.start, whole.end)
        if not _is_inside(item.start(), held)
    ]
    starts, is_item = _outermost(found), False
    if len(starts) == 1 and not text[whole.start : starts[0]].strip():
        line = _MARK.sub("", text[starts[0] : whole.end].split("\n", 1)[0], count=1)
        said, is_item = one_sentence(SENTENCE.split(line)[0]), True
        starts = _outermost([(at, depth) for at, depth in found if at > starts[0]])
    above = (*unit.above, replace(unit.block, info=said))
    if not starts:
        yield from tile(units_of(parts, above), text, whole) if len(parts) > 1 else [unit]
        return
    if not text[whole.start : starts[0]].strip():
        starts[0] = whole.start
    known = frozenset(starts)
    for span in map(Span, *zip(*pairwise(dict.fromkeys((whole.start, *starts, whole.end))), strict=True)):
        first = bisect_right(parts, span.start, key=lambda part: part.span.end)
        within = parts[first : bisect_left(parts, span.end, lo=first, key=lambda part: part.span.start)]
        clipped = [
            replace(part, span=Span(max(span.start, part.span.start), min(span.end, part.span.end))) for part in within
        ]
        if span.start not in known and len(clipped) > 1:
            yield from tile(units_of(clipped, above), text, span)
        else:
            kind: UnitKind = "label" if is_item and span.start not in known else "list"
            yield Unit(replace(unit.block, span=span, parts=tuple(clipped)), span, kind, above)


def _is_inside(at: int, spans: Sequence[Span]) -> bool:
    place = bisect_left(spans, at, key=lambda span: span.start)
    return place > 0 and at < spans[place - 1].end


def _outermost(found: Sequence[tuple[int, int]]) -> list[int]:
    least = min((depth for _, depth in found), default=0)
    return [at for at, depth in found if depth < least + _DEEPER]


def one_sentence(said: str) -> str:
    """Return the last sentence of an introduction without markup; empty if that sentence is too long for a name."""
    line = plain_line(" ".join(SENTENCE.split(said.strip())[-1].split()))
    return line if len(line) <= _LONGEST_SAID else ""
