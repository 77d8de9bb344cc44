"""Read .xlsx with openpyxl: each sheet as the tables that lie on it, in parts that have the header and their range."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from openpyxl import load_workbook
from openpyxl.styles.colors import COLOR_INDEX
from openpyxl.utils import get_column_letter

from nornweave.core.errors import DocumentError
from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import freeze
from nornweave.read.blocks.unseen import alike, colour
from nornweave.read.formats.archive import open_office_archive, properties, read_xml, theme_colours
from nornweave.read.formats.markdown import about_tokens, grouped, header_lines, heading, joined, plain, row
from nornweave.read.parsed import Parsed

MAX_COLUMNS = 256
MAX_CELLS = 400_000
"""Of all sheets together, the filled ones."""
MAX_ROWS = 1_048_576
MAX_SHEETS = 500
MAX_CELL = 2_000
"""Characters of one cell."""

_HIDDEN = re.compile(rb"<(?:\w+:)?(?:row|col)\s[^<>]*\b(?:hidden=[\"'](?:1|true)|(?:ht|width)=[\"']0)[\"'][^<>]*>")
_ATTRIBUTE = re.compile(rb"\b(\w+)=[\"']([^\"']*)[\"']")
_COLOURED = re.compile(rb"<(?:\w+:)?(?:tableParts|conditionalFormatting|picture)\b")
"""Of a sheet in which more than the cells' own fills is behind text."""
_SHOWS_NOTHING = ";;;"
_STRICT = "http://purl.oclc.org/ooxml/"
_THEME = ("lt1", "dk1", "lt2", "dk2")  # as Excel counts them
_WHITE = (255, 255, 255)
_HEADER_ROWS = 4
_YEARS = range(1900, 2101)
_NOTE_TOKENS = 300

Cells = dict[int, "CellValue"]


@dataclass(frozen=True, slots=True)
class CellValue:
    """The value of a cell as it is shown. It is a label if it may stand in a header: a text, a date or a year."""

    text: str
    is_label: bool


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row that is not empty: its number, and its filled cells by column. Rows and columns count from 1."""

    number: int
    cells: Cells


@dataclass(frozen=True, slots=True)
class Area:
    """A part of a sheet as Markdown, and the corners of its cell range."""

    top: int
    left: int
    bottom: int
    right: int
    text: str
    is_note: bool = False

    @property
    def range(self) -> str:
        """Return the cell range in spreadsheet notation: ``A12:F30``, or ``B3`` for one cell."""
        first = f"{get_column_letter(self.left)}{self.top}"
        last = f"{get_column_letter(self.right)}{self.bottom}"
        return first if first == last else f"{first}:{last}"


def read_xlsx(raw: bytes) -> Parsed:
    """Turn a workbook into Markdown. Each sheet has a heading, and so has each cell range below it.

    The values of formulas are those that were stored when the file was saved. ``metadata["left_out"]`` names parts
    beyond ``MAX_CELLS``, ``MAX_COLUMNS`` and ``MAX_SHEETS``.
    """
    with open_office_archive(raw) as archive:
        title, modified, told = properties(archive)
        workbook = read_xml(archive, "xl/workbook.xml")
    if workbook is not None and _STRICT in workbook.tag:  # openpyxl 3.1 finds nothing in them
        raise DocumentError("saved as 'Strict Open XML', which is not read; save it as an ordinary .xlsx")
    left_out: list[str] = []
    with closing(load_workbook(io.BytesIO(raw), read_only=True, data_only=True, keep_links=False)) as values:
        text = joined(_sheets(values.worksheets, left_out))
    return Parsed(
        text=text, title=title, updated_at=modified, metadata=freeze({**told, "left_out": tuple(left_out) or None})
    )


def _sheets(sheets: Sequence[Any], left_out: list[str]) -> Iterator[str]:
    budget = MAX_CELLS
    if len(sheets) > MAX_SHEETS:
        left_out.append(f"{len(sheets) - MAX_SHEETS:,} sheets after the first {MAX_SHEETS:,}")
    for sheet in sheets[:MAX_SHEETS]:
        if sheet.sheet_state != "visible":
            left_out.append(f"{sheet.title}: a hidden sheet")
            continue
        known = len(left_out)
        rows = list(_rows(sheet, budget, left_out))
        budget -= sum(len(sheet_row.cells) for sheet_row in rows)
        areas = [area for block in _blocks(rows) for area in _areas(block)]
        said = [f"({note.partition(': ')[2]})" for note in left_out[known:]]
        parts = (joined((heading(2, area.range), area.text)) for area in _with_joined_notes(areas))
        yield joined((heading(1, sheet.title), *parts, *said))


def _rows(sheet: Any, budget: int, left_out: list[str]) -> Iterator[SheetRow]:
    """Yield the rows that are not empty, until the limit of cells is reached."""
    sheet.reset_dimensions()  # what a file states of its size is often wrong
    is_wide = False
    markup = sheet.parent._archive.read(sheet._worksheet_path)
    hidden_rows, hidden_columns = _hidden(markup)
    unseen = invisible = 0
    shades = _Shades(sheet.parent, _WHITE if _COLOURED.search(markup) is None else None)
    for number, line in enumerate(sheet.iter_rows(), 1):
        filled = dict(_filled(line[:MAX_COLUMNS], shades))
        invisible += sum(cell.value is not None for cell in line[:MAX_COLUMNS]) - len(filled)
        cells = {} if number in hidden_rows else {at: cell for at, cell in filled.items() if at not in hidden_columns}
        unseen += len(filled) - len(cells)
        is_wide = is_wide or any(cell.value is not None for cell in line[MAX_COLUMNS:])
        budget -= len(cells)
        if budget < 0 or number > MAX_ROWS:
            limit = f"{MAX_CELLS:,} cells" if budget < 0 else f"{MAX_ROWS:,} rows"
            left_out.append(f"{sheet.title}: rows from {number:,} on, beyond {limit}")
            break
        if cells:
            yield SheetRow(number, cells)
    if unseen:
        left_out.append(f"{sheet.title}: {unseen:,} cells in hidden rows and columns")
    if invisible:
        left_out.append(f"{sheet.title}: {invisible:,} cells that show nothing")
    if is_wide:
        left_out.append(f"{sheet.title}: columns after {get_column_letter(MAX_COLUMNS)}")


def _hidden(markup: bytes) -> tuple[set[int], set[int]]:
    """Return the numbers of hidden rows and the numbers of hidden columns.

    openpyxl does not report them while streaming.
    """
    tags = [dict(_ATTRIBUTE.findall(tag)) for tag in _HIDDEN.findall(markup)]
    rows = {int(tag[b"r"]) for tag in tags if tag.get(b"r", b"").isdigit()}
    spans = [
        (int(tag[b"min"]), int(tag[b"max"]))
        for tag in tags
        if tag.get(b"min", b"").isdigit() and tag.get(b"max", b"").isdigit()
    ]
    return rows, {column for first, last in spans for column in range(first, min(last, MAX_COLUMNS) + 1)}


def _filled(line: Sequence[Any], shades: _Shades) -> Iterator[tuple[int, CellValue]]:
    for column, cell in enumerate(line, 1):
        if cell.value is not None and getattr(cell, "number_format", "") != _SHOWS_NOTHING and not shades.hide(cell):
            text = _shown(cell.value, cell)
            if text and not text.isspace():
                yield column, CellValue(text[:MAX_CELL], _is_label(cell.value))


class _Shades:
    """The colours of the cells of a sheet."""

    def __init__(self, workbook: Any, ground: tuple[int, int, int] | None) -> None:
        """Read the theme. ``ground`` is the colour behind a cell without a fill, if it is known."""
        self._ground = ground
        self._theme = theme_colours(workbook.loaded_theme)
        self._known: dict[tuple[int, int], bool] = {}

    def hide(self, cell: Any) -> bool:
        """Tell whether the text of a cell has nearly the colour of its background."""
        style = getattr(cell, "style_array", None)
        if style is None:
            return False
        if (key := (style.fontId, style.fillId)) not in self._known:
            font, fill = cell.font.color, cell.fill
            behind = (
                self._colour(fill.fgColor) if fill.fill_type == "solid" else None if fill.fill_type else self._ground
            )
            self._known[key] = font is not None and alike(self._colour(font), behind)
        return self._known[key]

    def _colour(self, said: Any) -> tuple[int, int, int] | None:
        if said.type == "theme":
            return None if said.tint else self._theme.get(_THEME[said.theme] if said.theme < len(_THEME) else "")
        if said.type == "indexed":
            return colour(f"#{COLOR_INDEX[said.indexed][2:]}") if said.indexed < len(COLOR_INDEX) else None
        return colour(f"#{str(said.rgb)[-6:]}")


def _is_label(value: object) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value in _YEARS
    return isinstance(value, str | date)


def _shown(value: object, cell: Any) -> str:
    """Return a value as the sheet shows it: as a date or in per cent if the format of the cell says so."""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, int | float):
        if "%" in str(getattr(cell, "number_format", "") or ""):
            return f"{value * 100:.10g}%"
        return str(value) if isinstance(value, int) else f"{value:.12g}"
    return str(value)


def _blocks(rows: Sequence[SheetRow]) -> Iterator[list[SheetRow]]:
    """Divide a sheet into blocks of rows at its empty rows."""
    block: list[SheetRow] = []
    for sheet_row in rows:
        if block and sheet_row.number > block[-1].number + 1:
            yield block
            block = []
        block.append(sheet_row)
    if block:
        yield block


def _areas(block: Sequence[SheetRow]) -> Iterator[Area]:
    """Yield a block of rows as tables, each with the header; as text if it has only one column or one row."""
    columns = sorted({column for sheet_row in block for column in sheet_row.cells})
    if len(columns) == 1 or len(block) == 1:
        yield from _notes(block)
        return
    first = next((place for place, sheet_row in enumerate(block) if len(sheet_row.cells) > 1), 0)
    notes, rest = block[:first], block[first:]
    if len(rest) < 2:
        yield from _notes(block)
        return
    columns = sorted({column for sheet_row in rest for column in sheet_row.cells})
    above, header, body = _header(rest)
    captions = [_line(sheet_row) for sheet_row in (*notes, *above)]
    names = [header.cells[c].text if c in header.cells else "" for c in columns] if header else _letters(columns)
    written = [row([sheet_row.cells[c].text if c in sheet_row.cells else "" for c in columns]) for sheet_row in body]
    top_lines = joined(("  \n".join(captions), header_lines(names)))
    for start, end in grouped(written, header=top_lines):
        top = block[0].number if start == 0 else body[start].number
        text = "\n".join((top_lines, *written[start:end]))
        yield Area(top, columns[0], body[end - 1].number, columns[-1], text)


def _header(rows: Sequence[SheetRow]) -> tuple[Sequence[SheetRow], SheetRow | None, Sequence[SheetRow]]:
    """Return the rows above the header, the header and the rows below it.

    Some rows at the beginning may have only labels, with rows of numbers below them. The header is then the fullest of
    these rows. If all rows have only labels, the header is the first row. If the first row has a number, the header is
    ``None``.
    """
    labels = 0
    while (
        labels < len(rows) and labels <= _HEADER_ROWS and all(value.is_label for value in rows[labels].cells.values())
    ):
        labels += 1
    if labels == 0:
        return (), None, rows
    if labels == len(rows) or labels > _HEADER_ROWS:
        return (), rows[0], rows[1:]
    widest = max(range(labels), key=lambda place: (len(rows[place].cells), place))
    return rows[:widest], rows[widest], rows[widest + 1 :]


def _letters(columns: Iterable[int]) -> list[str]:
    return [get_column_letter(column) for column in columns]


def _line(sheet_row: SheetRow) -> str:
    return plain(" · ".join(one_line(sheet_row.cells[column].text) for column in sorted(sheet_row.cells)))


def _notes(block: Sequence[SheetRow]) -> Iterator[Area]:
    columns = [column for sheet_row in block for column in sheet_row.cells]
    lines = [_line(sheet_row) for sheet_row in block]
    for start, end in grouped(lines, _NOTE_TOKENS):
        text = "  \n".join(lines[start:end])
        yield Area(block[start].number, min(columns), block[end - 1].number, max(columns), text, is_note=True)


def _with_joined_notes(areas: Iterable[Area]) -> Iterator[Area]:
    """Yield areas. Short texts that follow each other are joined, so that each area is long enough for search."""
    last: Area | None = None
    for area in areas:
        if (
            last is not None
            and last.is_note
            and area.is_note
            and about_tokens(last.text) + about_tokens(area.text) < _NOTE_TOKENS
        ):
            last = Area(
                min(last.top, area.top), min(last.left, area.left), max(last.bottom, area.bottom),
                max(last.right, area.right), joined((last.text, area.text)), is_note=True,
            )  # fmt: skip
            continue
        if last is not None:
            yield last
        last = area
    if last is not None:
        yield last
