"""Clean the glyph runs of a PDF page into upright fragments, and order these into rows, column by column.

Coordinates are those of ``port``. Find the tables of a PDF page whose cells have several lines: a file writes such a
table cell by cell, and goes back to the left below a row. Columns of text have no such rows.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, groupby, pairwise
from operator import attrgetter, itemgetter
from typing import TypeAlias

from nornweave.read.pdf.port import GlyphLine, GlyphRun, PageGlyphs

_BOLD_NAME = re.compile(r"bold|black|heavy|demi|semibold|CMBX|SFBX", re.IGNORECASE)
_MONO_NAME = re.compile(r"mono|courier|CMTT|SFTT|typewriter|consol|lettergothic|menlo|monaco|nimbusmon", re.IGNORECASE)

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_SPACES = dict.fromkeys([0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
_INVISIBLE = {code: None for code in [*range(0x20), *range(0x7F, 0xA0), 0x200B, 0x2060, 0xFEFF] if code not in _SPACES}
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_CLEAN: Mapping[int, str | None] = {**_INVISIBLE, **_SPACES, **_LIGATURES, **_SURROGATES}

_TEX_FONT = re.compile(r"F\d{1,4}")
"""The names of TeX's bitmap fonts, which say nothing about their codes. pdfTeX has numbered them."""
_TEX_CODE = re.compile(r"(?<=[A-Za-z])[\x0b-\x0f\x1b-\x1f]|[\x0b-\x0f\x1b-\x1f](?=[a-z]{2})|(?<=\d)\x15(?=\d)")
_OF_TEX = {code: said for at in (0x0B, 0x1B) for code, said in enumerate(("ff", "fi", "fl", "ffi", "ffl"), at)}
_OF_TEX[0x15] = "–"
"""Ligatures inside words, at their codes in the encodings OT1 and T1, and the dash between numbers in T1."""

# Old TeX fonts print an accent and a letter: "Ros´e".
_COMBINING = dict(zip("´¨ˆ˜ˇ˚˘˝", "\u0301\u0308\u0302\u0303\u030c\u030a\u0306\u030b", strict=True))
_ACCENTED = re.compile(r"([´¨ˆ˜ˇ˚˘˝]) ?([A-Za-z])")

_FAR = 100_000.0  # points; further out nobody has seen a page
_UNKNOWN = "\ufffd"
_LOGO = re.compile(r"L\^A ?T(?= ?E ?X)")
"""TeX raises a letter of LaTeX, which is no exponent."""
_FIRST_MARK, _LARGER = re.compile(r"\d{1,3}|[a-z]"), 1.1  # of a footnote: its line is set so much larger, at least
_BULLET_GLYPH = re.compile(r"^\s*[\ufffd\ue000-\uf8ff]{1,2}(?=\s|\w|$)")  # symbol fonts give bullets no Unicode value
_LEADERS = re.compile(r"(?:\s?[.·]){5,}")  # dots between a table of contents' entry and its page

_WIDE_GAP = 1.5  # em between fragments of one row, from which they are cells rather than words


@dataclass(frozen=True, slots=True)
class GlyphFragment:
    """A run of glyphs on one baseline, without a wide gap between them.

    ``size``, ``bold`` and ``mono`` are those of most letters. ``turned`` means that the text is not horizontal on the
    page.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    baseline: float
    size: float
    bold: bool
    mono: bool
    text: str
    turned: bool = False


@dataclass(frozen=True, slots=True)
class GlyphBlock:
    """Neighbouring fragments that the PDF library groups."""

    fragments: tuple[GlyphFragment, ...]
    x0: float
    y0: float
    x1: float
    y1: float

    @classmethod
    def of(cls, fragments: Sequence[GlyphFragment]) -> GlyphBlock:
        """Return the block that consists of ``fragments``. There must be at least one fragment."""
        return cls(
            tuple(fragments),
            min(f.x0 for f in fragments),
            min(f.y0 for f in fragments),
            max(f.x1 for f in fragments),
            max(f.y1 for f in fragments),
        )


@dataclass(frozen=True, slots=True)
class PdfPage:
    """A page as the PDF library reads it. Its columns are not found yet.

    ``unseen`` is the number of hidden runs, which are left out.
    """

    number: int
    width: float
    height: float
    blocks: tuple[GlyphBlock, ...]
    images: int = 0
    letters: int = 0
    unreadable: int = 0
    unseen: int = 0


def read_page(number: int, glyphs: PageGlyphs) -> PdfPage:
    """Turn a page's glyphs into blocks of cleaned fragments.

    Letters without a Unicode value in their font are left out. ``unreadable`` counts them.
    """
    blocks: list[GlyphBlock] = []
    letters = unreadable = 0
    printed: set[tuple[int, int, str]] = set()
    for lines in glyphs.blocks:
        fragments = []
        for line in lines:
            # Printing twice, a fraction of a point apart, is how some programs make letters bold.
            x, y = (_bounded(value, -_FAR, _FAR) for value in line.box[:2])
            text = "".join(run.text for run in line.runs)
            place = (round(x / 2), round(y / 2), text)
            if place in printed:
                continue
            printed.add(place)
            letters += len(text) - text.count(" ")
            unreadable += text.count(_UNKNOWN)
            fragment = _fragment(line)
            if fragment is not None:
                fragments.append(fragment)
        for _, same in groupby(fragments, attrgetter("turned")):
            blocks.append(GlyphBlock.of(_join_neighbours(list(same))))
    size = (_bounded(glyphs.width, 1.0, _FAR), _bounded(glyphs.height, 1.0, _FAR))
    return PdfPage(number, *size, tuple(blocks), letters=letters, unreadable=unreadable, unseen=glyphs.unseen)


def is_wide_gap(left: GlyphFragment, right: GlyphFragment) -> bool:
    """Tell whether the gap between two fragments of one row separates cells and not just words."""
    return right.x0 - left.x1 > _WIDE_GAP * max(left.size, right.size)


def _fragment(line: GlyphLine) -> GlyphFragment | None:
    runs = line.runs
    parts = [_clean(run) for run in runs]
    raised = list(map(_raise, runs, parts, range(len(runs))))
    if len(runs) > 1 and _FIRST_MARK.fullmatch(parts[0]) and _LARGER * runs[0].size < runs[1].size:
        raised[0] = f"{parts[0]} "
    text = _readable("".join(raised))
    if not text:
        return None
    weights: dict[tuple[float, bool, bool], int] = {}
    for run, part in zip(runs, parts, strict=True):
        style = (round(_bounded(run.size, 1.0, 2000.0) * 2) / 2, _is_bold(run), _is_mono(run))
        weights[style] = weights.get(style, 0) + len(part.strip())
    size, _, mono = max(weights, key=weights.__getitem__)
    longest = max(range(len(parts)), key=lambda position: len(parts[position]))
    x0, y0, x1, y1, baseline, turned = _upright(line.box, line.direction, runs[longest].origin)
    bold = sum(n for (_, bold, _), n in weights.items() if bold) > 0.8 * sum(weights.values())
    return GlyphFragment(x0, y0, x1, y1, baseline, size, bold, mono, text, turned)


def _is_bold(run: GlyphRun) -> bool:
    return run.bold or _names(_BOLD_NAME, run.font)


def _is_mono(run: GlyphRun) -> bool:
    return run.mono or _names(_MONO_NAME, run.font)


@lru_cache(maxsize=8192)
def _names(style: re.Pattern[str], font: str) -> bool:
    return style.search(font) is not None


def _raise(run: GlyphRun, part: str, position: int) -> str:
    """Return the text of a run with superscripts marked: an exponent as "10^5", not "105".

    The mark of a footnote is also separated from the word before it.
    """
    if not run.raised or not part.strip().isalnum():
        return part
    return f"^{part}" if position else f"{part} "


def _clean(run: GlyphRun) -> str:
    text = run.text
    if not text.isprintable() and _TEX_FONT.fullmatch(run.font):
        text = _TEX_CODE.sub(lambda found: _OF_TEX[ord(found[0])], text)
    return text if text.isascii() and text.isprintable() else text.translate(_CLEAN)


def _readable(text: str) -> str:
    if not text.isascii():
        text = _ACCENTED.sub(lambda match: match[2] + _COMBINING[match[1]], _BULLET_GLYPH.sub("• ", text))
        text = unicodedata.normalize("NFC", text)
        if text.count(_UNKNOWN) * 2 > len(text.replace(" ", "")):
            return ""
    return " ".join(_LEADERS.sub(" ... ", _LOGO.sub("LAT", text)).split())


def _bounded(value: float, least: float, most: float) -> float:
    """Return a number between ``least`` and ``most``. Numbers in a damaged file may be 0, infinite or NaN."""
    return min(max(value, least), most) if math.isfinite(value) else least


def _upright(
    box: Sequence[float], direction: Sequence[float], origin: Sequence[float]
) -> tuple[float, float, float, float, float, bool]:
    """Rotate a line's box by quarter turns until its text runs from left to right.

    Return the four sides of the box, the baseline, and whether the text was turned.
    """
    x0, y0, x1, y1, left, base = (_bounded(value, -_FAR, _FAR) for value in (*box, *origin))
    across, down = (_bounded(part, -1.0, 1.0) for part in direction[:2])
    quarter = round(math.atan2(down, across) / (math.pi / 2)) % 4
    if quarter == 0:
        return x0, y0, x1, y1, base, abs(direction[1]) > 0.1
    if quarter == 1:
        return y0, -x1, y1, -x0, -left, True
    if quarter == 2:
        return -x1, -y1, -x0, -y0, -base, True
    return -y1, x0, -y0, x1, left, True


def _join_neighbours(fragments: list[GlyphFragment]) -> list[GlyphFragment]:
    """Join fragments of one line that were separated at the wide spaces of justified text."""
    joined: list[GlyphFragment] = []
    for fragment in fragments:
        if joined and _continues(joined[-1], fragment):
            last = joined[-1]
            joined[-1] = replace(
                max(last, fragment, key=lambda f: len(f.text)),
                x0=last.x0,
                x1=fragment.x1,
                y0=min(last.y0, fragment.y0),
                y1=max(last.y1, fragment.y1),
                bold=last.bold and fragment.bold,
                text=f"{last.text} {fragment.text}",
            )
        else:
            joined.append(fragment)
    return joined


def _continues(left: GlyphFragment, right: GlyphFragment) -> bool:
    level = abs(left.baseline - right.baseline) < 1 and left.size == right.size
    if left.text.isdecimal() or right.text.isdecimal():  # it may be the number of a line
        return False
    return level and right.x0 > left.x1 - 1 and not is_wide_gap(left, right)


_TABLE_CELLS = 3
_COMPARED = 50  # fragments of a row that a further one may overlap; keeps rows of thousands of cells linear
_LINES = 5  # of a column, at least
_WITHIN_SENTENCES = 0.25  # of the lines of running text begin with a small letter
_BESIDE = 0.3  # of the lines of columns that the file goes through row by row are followed by one beside them
_SAME_SIZE, _SMALLER, _APART = 0.3, 0.95, 4.0  # points, of the body's size, points from its edge
_NEXT_LINE = 1.8  # em from one line of a note to the next
_MOST, _WIDE = 0.6, 0.8  # of the lines of a column are nearly as wide as it is

Cell: TypeAlias = list[GlyphFragment]
TableRow: TypeAlias = list[Cell]

CELL = 25
"""Characters of a line that may be a table's cell."""
ITEM = re.compile(r"[•◦▪‣∙●○■]\s*\S|(?:[·–—*]\s+|\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)]\s+|\[\w{1,12}\]\s+)\S")
"""Begins an item of a list."""
_FIGURE = re.compile(r"[(+±−-]?\d(?:[\d.,]*\d)?[%*)]*$|[–—-]$")

_ROWS = 3  # of a table, at least, unless all of its cells stand below each other and some in each row are wrapped
_COLUMN = 5  # lines of a column of text, at least
_TALL = 12  # times the size of letters that a cell may begin above the ones before it
_WRAPPED = 0.25  # of its rows have a cell of several lines
_LINE, _LEADING, _ROW_GAP = 0.5, 2.1, 4.0  # times the size of letters: less is one line, more is another cell or table
_SAME = 2.0  # points between baselines of one line, or edges of a cell, at most
_LOOKED_BACK = 3  # rows, for cells that are empty


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """Fragments on one baseline of one column, from left to right.

    ``region`` is the number of the column or band on the page. A row is ``tabular`` if it has three cells or consists
    mostly of figures. If the cells of a table's row have several lines, the fragments are sorted by cell, and
    ``bottom`` is the baseline of the lowest line.
    """

    fragments: tuple[GlyphFragment, ...]
    page: int
    region: int
    x0: float
    x1: float
    baseline: float
    bottom: float
    size: float
    bold: bool
    mono: bool
    tabular: bool
    cells: int
    text: str

    @classmethod
    def of(cls, fragments: tuple[GlyphFragment, ...], page: int, region: int) -> LayoutRow:
        """Return a row with these fragments, which are sorted from left to right. There must be at least one."""
        longest = max(fragments, key=lambda f: len(f.text))
        cells = 1 + sum(is_wide_gap(a, b) for a, b in pairwise(fragments))
        text = " ".join(f.text for f in fragments)
        return cls(
            fragments,
            page,
            region,
            x0=fragments[0].x0,
            x1=max(f.x1 for f in fragments),
            baseline=longest.baseline,
            bottom=longest.baseline,
            size=longest.size,
            bold=all(f.bold for f in fragments),
            mono=all(f.mono for f in fragments),
            tabular=cells >= _TABLE_CELLS or is_mostly_figures(text),
            cells=cells,
            text=text,
        )

    @classmethod
    def of_cells(cls, cells: TableRow, page: int, region: int) -> LayoutRow:
        """Return a table's row with these cells. The lines of each cell stay together."""
        row = cls.of(tuple(f for cell in cells for f in cell), page, region)
        places = [f.baseline for f in row.fragments]
        return replace(row, baseline=min(places), bottom=max(places), tabular=True, cells=len(cells))

    @property
    def lines(self) -> tuple[str, ...]:
        """The texts of the row's lines. In a table's row the lines of the first cell come first."""
        return (self.text,) if self.bottom == self.baseline else tuple(f.text for f in self.fragments)

    def parted(self) -> list[LayoutRow]:
        """Return a separate row for each line in the cells of a table's row, from the top."""
        return rows_of(self.fragments, self.page, self.region) if self.bottom != self.baseline else [self]

    def with_rest(self, rest: Iterable[GlyphFragment], columns: Sequence[float]) -> LayoutRow:
        """Return a table's row with the lines ``rest`` added to its cells.

        They are the rest of the row on the next page. ``columns`` are the left edges of the columns on the next page.
        """
        fragments = sorted((*self.fragments, *rest), key=lambda fragment: bisect_right(columns, fragment.x0 + 2))
        return replace(self, fragments=tuple(fragments), text=" ".join(f.text for f in fragments))


def reading_order(page: PdfPage, page_blocks: Iterable[GlyphBlock]) -> list[LayoutRow]:
    """Return the rows of a page in reading order, column by column. Margin notes come last, then turned text.

    Regions are read in the order of the file. A region ends where the file moves back up the page. It also ends where
    lines that are too long for cells stand beside the last block. A file may write several columns row by row. The
    columns are then found by the gaps between them.
    """
    blocks = list(page_blocks)
    turned = [f for block in blocks if block.fragments[0].turned for f in block.fragments]
    blocks = [block for block in blocks if not block.fragments[0].turned]
    notes = _margin_notes([f for block in blocks for f in block.fragments])
    if notes:
        kept = ([f for f in block.fragments if f not in notes] for block in blocks)
        blocks = [GlyphBlock.of(fragments) for fragments in kept if fragments]
    rows: list[LayoutRow] = []
    regions = count()
    for above, table in _around_tables(blocks):
        fragments = [f for block in above for f in block.fragments]
        gutters = _gutters(fragments)
        for column in _columns(fragments, gutters) if gutters else _as_written(above):
            rows += rows_of(column, page.number, next(regions))
        region = next(regions)
        rows += (LayoutRow.of_cells(cells, page.number, region) for cells in table)
    rows += rows_of(notes, page.number, next(regions))
    return rows + rows_of(turned, page.number, next(regions))


def _margin_notes(fragments: Sequence[GlyphFragment]) -> frozenset[GlyphFragment]:
    """Return the notes in the margin beside running text. Their letters are smaller than those of the text."""
    letters: Counter[float] = Counter()
    for f in fragments:
        letters[round(f.size, 1)] += len(f.text)
    size = letters.most_common(1)[0][0] if letters else 0.0
    body = [f for f in fragments if abs(f.size - size) < _SAME_SIZE and len(f.text) > CELL]
    if len(body) < _LINES or not runs_on(body):
        return frozenset()
    left, right = min(f.x0 for f in body), max(f.x1 for f in body)
    rows = rows_of((f for f in fragments if f.size < _SMALLER * size), 0, 0)  # a small table's cells are in one row
    notes: list[list[LayoutRow]] = []
    for row in rows:
        is_outside = row.x0 >= right + _APART or row.x1 <= left - _APART
        if not is_outside or not any(map(str.isalpha, row.text)):  # lines may be numbered
            continue
        if notes and row.baseline - notes[-1][-1].baseline < _NEXT_LINE * row.size:
            notes[-1].append(row)
        else:
            notes.append([row])
    # A word left of a paragraph is its label.
    kept = [note for note in notes if len(note) > 1 or len(note[0].text) > CELL or note[0].x0 > right]
    return frozenset(f for note in kept for row in note for f in row.fragments)


def _around_tables(blocks: Iterable[GlyphBlock]) -> Iterator[tuple[list[GlyphBlock], list[TableRow]]]:
    """Yield each table together with the text above it. The last item is the text below the last table."""
    placed = [(number, f) for number, block in enumerate(blocks) for f in block.fragments]
    at = 0
    for start, stop, table in (*tables_of([f for _, f in placed]), (len(placed), 0, [])):
        above = groupby(placed[at:start], itemgetter(0))
        yield [GlyphBlock.of([f for _, f in block]) for _, block in above], table
        at = stop


def _as_written(blocks: Iterable[GlyphBlock]) -> list[list[GlyphFragment]]:
    regions: list[list[GlyphFragment]] = []
    last: GlyphBlock | None = None
    for block in blocks:
        if last is None or block.y1 <= last.y0 + 1 or _is_column(last, block):
            regions.append([])
        regions[-1] += block.fragments
        last = block
    return regions


def _is_column(last: GlyphBlock, block: GlyphBlock) -> bool:
    beside = block.x0 >= last.x1 - 1 or block.x1 <= last.x0 + 1
    if not beside or block.y0 >= last.y1 - 1:
        return False
    is_long = max(len(f.text) for f in block.fragments) > CELL
    return is_long or all(len(each.fragments) >= _LINES and runs_on(each.fragments) for each in (last, block))


def runs_on(lines: Sequence[GlyphFragment]) -> bool:
    """Tell whether sentences continue from line to line, because many lines begin with a small letter.

    Cells and list items begin with a capital.
    """
    return sum(line.text[0].islower() for line in lines) >= _WITHIN_SENTENCES * len(lines)


def _gutters(fragments: Sequence[GlyphFragment]) -> list[float]:
    """Return the left edges of the columns of text, without the first column; empty if there is only one column.

    The result is also empty if the fragments beside each other are cells of a table. In cells, sentences do not
    continue from line to line, and lines are shorter than the column.
    """
    begins = Counter(
        int(after.x0)
        for before, after in pairwise(fragments)
        if abs(before.baseline - after.baseline) < 2 and is_wide_gap(before, after)
    )
    gutters: list[float] = []
    for x in sorted(x for x in begins if begins[x] + begins[x + 1] >= _LINES):
        column = [f for f in fragments if (not gutters or f.x0 >= gutters[-1]) and f.x1 <= x]
        beyond = sum(f.x0 >= x for f in fragments)
        times = begins[x] + begins[x + 1]
        if len(column) >= _LINES and times >= _BESIDE * max(len(column), beyond):
            gutters.append(x - 1.0)
    sides = ([f for f in fragments if _side(f, gutters) == side] for side in range(len(gutters) + 1))
    return gutters if gutters and all(map(_is_running_text, sides)) else []


def _is_running_text(lines: Sequence[GlyphFragment]) -> bool:
    """Tell whether lines are running text and not cells.

    Running text has longer lines than cells. In addition, either its sentences continue from line to line, or its lines
    are almost as wide as their column.
    """
    if len(lines) < _LINES:
        return False
    width = max(f.x1 for f in lines) - min(f.x0 for f in lines)
    is_long = sum(len(f.text) for f in lines) > CELL * len(lines)
    is_full = sum(f.x1 - f.x0 >= _WIDE * width for f in lines) >= _MOST * len(lines)
    return is_long and (is_full or runs_on(lines))


def _side(fragment: GlyphFragment, gutters: Sequence[float]) -> int | None:
    """Return the number of the column of a fragment, from the left; ``None`` if it crosses several columns."""
    side = bisect_right(gutters, fragment.x0)
    return side if bisect_right(gutters, fragment.x1 - 1) == side else None


def _columns(fragments: Sequence[GlyphFragment], gutters: Sequence[float]) -> Iterator[list[GlyphFragment]]:
    """Yield the columns of a page from the top. Lines that cross several columns are yielded in between."""
    columns: list[list[GlyphFragment]] = [[] for _ in range(len(gutters) + 1)]
    across: list[GlyphFragment] = []
    for fragment in sorted(fragments, key=attrgetter("baseline")):
        side = _side(fragment, gutters)
        if across and side is not None:
            yield across
            across = []
        elif side is None and any(columns):
            yield from filter(None, columns)
            columns = [[] for _ in columns]
        (across if side is None else columns[side]).append(fragment)
    yield from filter(None, (*columns, across))


def rows_of(fragments: Iterable[GlyphFragment], page: int, region: int) -> list[LayoutRow]:
    """Return the rows of some fragments, from the top. Fragments on one baseline are a row."""
    rows: list[list[GlyphFragment]] = []
    for fragment in sorted(fragments, key=lambda f: (f.baseline, f.x0)):
        if rows and _same_row(rows[-1], fragment):
            rows[-1].append(fragment)
        else:
            rows.append([fragment])
    return [LayoutRow.of(tuple(sorted(row, key=attrgetter("x0"))), page, region) for row in rows]


def _same_row(row: list[GlyphFragment], fragment: GlyphFragment) -> bool:
    first = row[0]
    if abs(fragment.baseline - first.baseline) > 0.35 * min(max(fragment.size, 5.0), first.size):
        return False
    return all(fragment.x0 >= other.x1 - 1 or fragment.x1 <= other.x0 + 1 for other in row[-_COMPARED:])


def tables_of(fragments: Sequence[GlyphFragment]) -> Iterator[tuple[int, int, list[TableRow]]]:
    """Yield each table: the index of its first fragment, the index after its last fragment, and its rows."""
    table: list[TableRow] = []
    start = at = 0
    for row in (*_rows(fragments), []):
        is_row = len(row) > 1 and not all(map(_is_text_column, row))
        if table and not (is_row and _goes_on(table, row)):
            if _is_table(table):
                yield start, at, table
            table = []
        if is_row:
            start = start if table else at
            table.append(row)
        at += sum(map(len, row))


def _rows(fragments: Sequence[GlyphFragment]) -> list[TableRow]:
    """Return the rows that the fragments form. Each fragment is put into the last cell, a new cell or a new row."""
    rows: list[TableRow] = []
    for f in fragments:
        if not rows:
            rows.append([[f]])
            continue
        row, cell = rows[-1], rows[-1][-1]
        left = max(line.x1 for line in row[-2][-_COMPARED:]) if len(row) > 1 else None
        if _is_in_cell(cell, f, left):
            cell.append(f)
            continue
        top = _first_beside(rows, f)
        if top is None or f.x0 < max(line.x1 for line in cell[top:]) - 1:
            rows.append([[f]])
        elif top:
            rows[-1:] = [[*row[:-1], cell[:top]], [cell[top:], [f]]]
        else:
            row.append([f])
    return rows


def _first_beside(rows: Sequence[TableRow], f: GlyphFragment) -> int | None:
    """Return the index of the first line in the last cell that stands beside a fragment.

    The lines of the cell before this index are text above the table. The result is ``None`` if the fragment does not
    belong to the last row.
    """
    row, cell = rows[-1], rows[-1][-1]
    if any(abs(other[0].baseline - f.baseline) < _SAME for other in row[:_COMPARED]):
        return 0
    if len(row) > _COMPARED:
        return None
    above = _bottom(rows[-2]) if len(rows) > 1 else -math.inf
    highest = max(above if above < _top(row) else -math.inf, _top(row) - _TALL * f.size)
    if not highest < f.baseline < _bottom(row) + _SAME:
        return None
    beside = (place for place, line in enumerate(cell) if line.baseline > f.baseline - _SAME)
    return next(beside, 0) if len(row) == 1 else 0


def _is_in_cell(cell: Cell, f: GlyphFragment, left: float | None) -> bool:
    """Tell whether a fragment continues a cell.

    ``left`` is the right edge of the cell to the left of this cell; ``None`` for the first cell of a row.
    """
    last = cell[-1]
    lines = cell[-_COMPARED:]
    begins, ends = min(line.x0 for line in lines), max(line.x1 for line in lines)
    down = (f.baseline - last.baseline) / max(f.size, last.size)
    if abs(down) < _LINE:  # words of justified lines may stand far apart
        return f.x0 >= last.x1 - 1 and (not is_wide_gap(last, f) or (left is not None and f.x1 <= ends + 1))
    is_centred = abs(f.x0 + f.x1 - last.x0 - last.x1) < 2 * _SAME
    is_aligned = begins - _SAME < f.x0 < ends or is_centred or abs(f.x1 - last.x1) < _SAME
    return 0 < down < _LEADING and is_aligned and begins < f.x1 and (left is None or f.x0 >= left - 1)


def _is_text_column(cell: Cell) -> bool:
    """Tell whether a cell has longer lines than a table's cells have. A row of only such cells is columns of text."""
    return len(cell) >= _COLUMN and sum(len(f.text) for f in cell) > CELL * len(cell)


def _goes_on(table: Sequence[TableRow], row: TableRow) -> bool:
    """Tell whether a row continues the table directly above it. Two of its cells must be below cells of one row."""
    gap = _top(row) - _bottom(table[-1])
    return 0 < gap < _ROW_GAP * row[0][0].size and any(
        sum(any(_overlap(cell, above) for above in before[:_COMPARED]) for cell in row[:_COMPARED]) > 1
        for before in table[-_LOOKED_BACK:]
    )


def _overlap(cell: Cell, above: Cell) -> bool:
    return min(f.x0 for f in cell) < max(f.x1 for f in above) and max(f.x1 for f in cell) > min(f.x0 for f in above)


def _is_table(rows: Sequence[TableRow]) -> bool:
    """Tell whether rows are a table and not columns of text or a list.

    In a table, enough rows have cells of several lines beside each other.
    """
    wrapped = sum(_bottom(row) - _top(row) > _LINE * row[0][0].size for row in rows)
    is_list = all(len(row) == 2 and ITEM.match(f"{row[0][0].text} x") for row in rows)
    named = sum(any(map(_is_of_figures, row)) for row in rows)  # names beside rows of another table
    is_short = len(rows) == _ROWS - 1 == wrapped and len(rows[0]) == len(rows[1])
    is_short = is_short and all(abs(above[0].x0 - cell[0].x0) < _SAME for above, cell in zip(*rows, strict=True))
    return (len(rows) >= _ROWS or is_short) and wrapped >= max(_WRAPPED * len(rows), 2 * named) and not is_list


def _top(row: TableRow) -> float:
    return min(f.baseline for cell in row for f in cell)


def _bottom(row: TableRow) -> float:
    return max(f.baseline for cell in row for f in cell)


def _is_of_figures(cell: Cell) -> bool:
    return _bottom([cell]) - _top([cell]) > cell[0].size and is_mostly_figures(" ".join(f.text for f in cell))


def is_mostly_figures(text: str) -> bool:
    """Tell whether a line has at least three numbers, and few other words."""
    words = text.split()
    figures = sum(bool(_FIGURE.match(word)) for word in words)
    return figures >= 3 and 2.5 * figures >= len(words)
