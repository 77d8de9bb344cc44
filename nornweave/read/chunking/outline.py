"""The outline of a document: its blocks in sections, each with the headings and names above it.

Lists and their introductions: the lines of items, and the lines that introduce a list.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Literal, TypeAlias

from nornweave.core.text.index_fields import is_day, released
from nornweave.core.text.inline_markup import plain_line
from nornweave.core.text.spans import SENTENCE, TokenIndex
from nornweave.core.types import Span
from nornweave.read.blocks.block import Block, Kind

UnitKind: TypeAlias = Kind | Literal["label"]
HOLDING = frozenset({"note", "term"})
HEADS = frozenset({"heading", "front", "label"})
"""What says something of what follows it."""

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


@dataclass(frozen=True, slots=True)
class Unit:
    """A block, or the lines that name a block (a ``label``), with the blank space after it.

    Attributes:
        above: the notes, terms and lists around the unit, outermost first. For a label, the last one is its own block.
    """

    block: Block
    span: Span
    kind: UnitKind
    above: tuple[Block, ...] = ()


def units_of(blocks: Iterable[Block], above: tuple[Block, ...] = (), *, opens: bool = False) -> Iterator[Unit]:
    """Yield blocks as units. A block that contains headings is replaced by the units inside it.

    Args:
        opens: whether all blocks that contain other blocks are replaced, even if they contain no heading.
    """
    for block in blocks:
        is_holding = block.kind in HOLDING and bool(block.parts)
        if is_holding and (opens or _has_heading(block)):
            head = Span(block.span.start, block.parts[0].span.start)
            if len(head):
                yield Unit(block, head, "label", (*above, block))
            yield from units_of(block.parts, (*above, block))
        else:
            yield Unit(block, block.span, block.kind if is_holding or block.kind not in HOLDING else "paragraph", above)


# ``**Q:** Why …?``, ``Q: Why …?``, and a line in bold that asks.
_ASKED = re.compile(
    r"[ \t]*(?:(?:\*\*|__)?Q(?:uestion)?(?:[ \t]?\d{1,3})?[.:)](?:\*\*|__)?[ \t]+(?P<asked>\S[^\n]*?\?)"
    r"|(?P<mark>\*\*|__)(?P<bold>[^\n*_][^\n]*?\?)(?P=mark))(?:\*\*|__)?:?[ \t]*(?:\n|\Z)"
)
_ANSWERED = re.compile(r"[^\n]*?\?(?::{2,4}|;;)[ \t]+(?=\S)")
"""A question with its answer behind it: ``Is it free?:: Yes.``"""


def with_questions(blocks: Sequence[Block], text: str) -> Iterator[Block]:
    """Yield blocks with each question as a heading above its answer, if a document has several.

    A question is a term that ends with a question mark (``Why …?::``), or a paragraph whose first sentence does.
    """
    asked = [_question(block, text) for block in blocks]
    if sum(map(bool, asked)) < 2:
        yield from blocks
        return
    level = 0
    for block, question in zip(blocks, asked, strict=True):
        level = block.level if block.kind == "heading" else level
        if question is None:
            yield block
            continue
        title, end = question
        yield Block(Span(block.span.start, end), "heading", block.lines[:1], level + 1, title)
        if block.parts:
            first, *others = block.parts
            yield from (replace(first, span=Span(end, first.span.end)), *others)
        elif end < block.span.end:
            yield replace(block, span=Span(end, block.span.end), lines=block.lines[1:])


def _question(block: Block, text: str) -> tuple[str, int] | None:
    """Return the question that opens a block, and where its answer begins; ``None`` if there is none."""
    if block.kind == "term" and block.parts and block.info.rstrip().endswith("?"):
        on_line = _ANSWERED.match(text, block.span.start, block.span.end)
        return block.info, on_line.end() if on_line else block.parts[0].span.start
    asked = _ASKED.match(text, block.span.start, block.span.end) if block.kind == "paragraph" else None
    return ((asked["asked"] or asked["bold"]).strip(), asked.end()) if asked else None


def _has_heading(block: Block) -> bool:
    return any(part.kind == "heading" or _has_heading(part) for part in block.parts)


def kinds_of(block: Block) -> frozenset[str]:
    """Return the kinds of a block and of all blocks inside it."""
    return frozenset({block.kind}).union(*map(kinds_of, block.parts))


def tile(units: Iterable[Unit], text: str, whole: Span) -> list[Unit]:
    """Return the units without gaps. They cover ``whole``, and each unit ends where the next one begins.

    Blank units are left out. If there are no units, ``whole`` becomes one paragraph.
    """
    tiled: list[Unit] = []
    for unit in units:
        if not tiled:
            tiled.append(replace(unit, span=Span(whole.start, unit.span.end)))
        elif len(unit.span) and not text[unit.span.start : unit.span.end].isspace():
            tiled[-1] = replace(tiled[-1], span=Span(tiled[-1].span.start, unit.span.start))
            tiled.append(unit)
    if tiled:
        tiled[-1] = replace(tiled[-1], span=Span(tiled[-1].span.start, whole.end))
    elif len(whole):
        tiled.append(Unit(Block(whole, "paragraph"), whole, "paragraph"))
    return tiled


def opened(unit: Unit, text: str) -> list[Unit]:
    """Return the units inside a unit, without gaps between them."""
    return tile(units_of((unit.block,), unit.above, opens=True), text, unit.span)


# What stands above the first heading in no more tokens than this (a comment, "Skip to content") joins its section.
_SMALL_PREAMBLE = 20
_ABSTRACT = re.compile(r"(?:[\dIVX.]+\s+)?abstract\W*\Z", re.I)
_REFERENCES = re.compile(r"(?:[\dIVX.]+\s+)?(?:references|bibliography|works cited|literature cited)\W*\Z", re.I)


@dataclass(slots=True)
class OutlineSection:
    """The blocks from one heading to the next. ``path`` has the titles of the headings above, then its own title."""

    path: tuple[str, ...]
    level: int
    units: list[Unit] = field(default_factory=list)

    @property
    def span(self) -> Span:
        """The span from the start of the first unit to the end of the last one."""
        return Span(self.units[0].span.start, self.units[-1].span.end)

    @property
    def bare(self) -> bool:
        """Tell whether there is no text under the heading."""
        return all(unit.kind in HEADS for unit in self.units)

    def holds(self, below: OutlineSection) -> bool:
        """Tell whether ``below`` is this section, or a section below its headings."""
        return below.path[: len(self.path)] == self.path


def sections_of(units: Sequence[Unit], *, academic: bool, changelog: bool = False) -> Iterator[OutlineSection]:
    """Yield a section for each heading, and one for the text above the first heading.

    Together the sections contain all units, in order.

    Args:
        academic: whether a heading inside an abstract or the references opens no section.
        changelog: whether headings that name a release count as releases, whatever their levels.
    """
    section = OutlineSection((), 0)
    above = _Releases(units) if changelog else _Headings()
    labels: list[Unit] = []
    for unit in units:
        level, title = unit.block.level, unit.block.info
        whole = academic and section.path and (_ABSTRACT.match(section.path[-1]) or _REFERENCES.match(section.path[-1]))
        if unit.kind == "label":  # it names what follows
            labels.append(unit)
            continue
        if unit.kind == "heading" and not (whole and level > section.level):
            if section.units:
                yield section
            above.add(level, title, opened=section.bare)
            names = [block.info for block in unit.above if block.info]
            section = OutlineSection((*(title for _, title in above.open[:-1]), *names, title), level)
        section.units += (*labels, unit)
        labels = []
    section.units += labels
    if section.units:
        yield section


class _Headings:
    """The headings above a place in a document, by level."""

    def __init__(self) -> None:
        self.open: list[tuple[int, str]] = []

    def add(self, level: int, title: str, *, opened: bool) -> None:  # noqa: ARG002 - releases look at it
        """Close the headings of this level and of deeper levels. Then open a heading.

        Args:
            opened: whether the new heading directly follows the heading above it.
        """
        while self.open and self.open[-1][0] >= level:
            self.open.pop()
        self.open.append((level, title))


_UNRELEASED = re.compile(r"\W*unreleased\b", re.I)


def _is_release(title: str) -> bool:
    return bool(released(title) or _UNRELEASED.match(title))


class _Releases(_Headings):
    """The headings above a place in a changelog. In a changelog no release is below another release.

    The levels of the headings alone do not show this. For example, standard-version gives a patch release the same
    level as the headings inside a minor release.
    """

    def __init__(self, units: Iterable[Unit]) -> None:
        super().__init__()
        self._following = sum(unit.kind == "heading" and _is_release(unit.block.info) for unit in units)
        self._parts: set[str] = set()

    def add(self, level: int, title: str, *, opened: bool) -> None:
        """Open a heading. If it is a release, close the release above.

        A heading that is not a release may be a part of the release above, even if both have the same level.

        Args:
            opened: whether the new heading directly follows the heading above it.
        """
        # A version may stand below a day, and a day below its version.
        kinds = [is_day(name) if _is_release(name) else None for _, name in self.open]
        if _is_release(title):
            self._following -= 1
            del self.open[kinds.index(is_day(title)) if is_day(title) in kinds else len(kinds) :]
            super().add(level, title, opened=opened)
            return
        at = next((at for at, kind in enumerate(kinds) if kind is not None and self.open[at][0] == level), None)
        # Below the last release only what is called as parts of others are, or what stands directly below it.
        held = self._following or title in self._parts or (opened and at == len(kinds) - 1)
        if {True, False} & set(kinds):
            self._parts.add(title)
        if at is not None and held:
            self.open[at + 1 :] = [(level, title)]
        else:
            super().add(level, title, opened=opened)


def joined(sections: Iterable[OutlineSection], index: TokenIndex, *, paged: bool = False) -> Iterator[OutlineSection]:
    """Join headings without text to the section below. Join a short text above the first heading in the same way.

    The path of the resulting section has the joined headings. Headings without text that are not above the next section
    become a section of their own. Its name is the heading around all of them.

    Args:
        paged: whether each section is a separate place, such as a slide or a cell. A heading is then joined only with a
            section below it.
    """
    alone: list[OutlineSection] = []
    for section in sections:
        if paged and alone and not alone[-1].holds(section):
            yield _together(alone)
            alone = []
        alone.append(section)
        if not (section.bare or (not section.path and _tokens(section, index) <= _SMALL_PREAMBLE)):
            kin = len(alone)
            while kin and alone[kin - 1].holds(section):
                kin -= 1
            # A section without text says so itself: to its neighbour it does not belong.
            if any(each.path for each in alone[:kin]):
                yield _together(alone[:kin])
                del alone[:kin]
            yield replace(section, units=[unit for each in alone for unit in each.units])
            alone = []
    if alone:
        yield _together(alone)


def _together(sections: Sequence[OutlineSection]) -> OutlineSection:
    last, units = sections[-1], [unit for each in sections for unit in each.units]
    if all(each.holds(last) for each in sections):
        return replace(last, units=units)
    levels = zip(*(each.path for each in sections), strict=False)
    path = tuple(names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels))
    return replace(sections[0], path=path, units=units)


def _tokens(section: OutlineSection, index: TokenIndex) -> int:
    return sum(index.count(unit.span) for unit in section.units if unit.kind != "front")


def top_level(sections: Sequence[OutlineSection]) -> int:
    """Return the heading level of a paper's main sections.

    It is the first level in use, or the second if the first is used only for the title.
    """
    levels = [unit.block.level for section in sections for unit in section.units if unit.kind == "heading"]
    if not levels:
        return 1
    top = min(levels)
    return top + 1 if levels.count(top) == 1 and levels[0] == top else top


def limit_of(section: OutlineSection, top: int, h1_limit: int, limit: int, *, academic: bool) -> int:
    """Return the token limit for a chunk of ``section``: ``h1_limit`` down to the level ``top``, below it ``limit``.

    In an academic text the abstract gets ``limit`` and the references get ``h1_limit``, whatever their levels.
    """
    if academic and section.path:
        if _ABSTRACT.match(section.path[-1]):
            return limit
        if _REFERENCES.match(section.path[-1]):
            return h1_limit
    return h1_limit if section.level <= top else limit


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
