"""Turn HTML into Markdown: headings, lists, code and tables; pictures by their description, nothing is fetched."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning
from bs4.element import Tag
from markdownify import MarkdownConverter

from nornweave.config.base import is_web_address
from nornweave.read.blocks.styles import DEEPEST, Element, PageStyles
from nornweave.read.blocks.unseen import NEVER_SHOWN, is_hidden
from nornweave.read.formats.markdown import closed, joined, plain, table

MAX_COLUMNS = 256
_MAX_ROWSPAN = 10_000
_LEFT_OUT = NEVER_SHOWN | {"noscript", "svg", "head"}
_TABLE_TAGS = ("caption", "colgroup", "tbody", "td", "tfoot", "th", "thead", "tr")
_SHORT = 20
"""Characters of a text that may stand beside itself: values do, merged cells of prose do not."""
_ENDS = "\n\n"


class _Converter(MarkdownConverter):
    """A converter of markdownify that also fills merged cells of tables and drops markup used only for layout."""

    class Options(MarkdownConverter.DefaultOptions):  # type: ignore[name-defined,misc]
        heading_style = "atx"
        bullets = "-"
        escape_asterisks = False
        escape_underscores = False
        escape_misc = False
        strip_document = None

    def escape(self, text: str, parent_tags: Any) -> str:
        return text if parent_tags & {"pre", "code"} else plain(text)

    def convert_img(self, el: Tag, _text: str, **_: Any) -> str:
        return " ".join(str(el.get("alt") or "").split())

    def convert_a(self, el: Tag, text: str, **_: Any) -> str:
        target = str(el.get("href") or "")
        named = text.strip() and text.strip() != target and is_web_address(target)
        return f"[{text}]({target})" if named and "\n" not in target and len(target) < 500 else text

    def convert_b(self, _el: Tag, text: str, **_: Any) -> str:
        return text

    convert_strong = convert_em = convert_i = convert_u = convert_del = convert_s = convert_sub = convert_sup = (
        convert_b
    )

    def convert_table(self, el: Tag, _text: str, **_: Any) -> str:
        captions, rows = _parted(grid(el))
        caption = el.find("caption")
        told = caption.get_text(" ", strip=True) if caption else ""
        return f"{_ENDS}{joined((told, *map(plain, captions), table(rows)))}{_ENDS}"


def markdown_of(html: str | bytes) -> str:
    """Convert HTML to Markdown. The HTML may be incomplete or malformed.

    If it is nested too deeply, return only its text.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        soup = BeautifulSoup(html, "lxml")
    styles = PageStyles(html if isinstance(html, str) else html.decode("utf-8", "replace"))
    for tag in soup.find_all(lambda tag: tag.name in _LEFT_OUT or _is_unseen(tag, styles)):
        tag.decompose()
    for element in soup.find_all("table"):
        if _lays_out(element):
            _dissolve(element)
    try:
        text = str(_Converter().convert_soup(soup))
    except RecursionError:
        text = plain(soup.get_text("\n", strip=True))
    return closed("\n".join(line.rstrip() for line in text.strip("\n").splitlines()))


def _is_unseen(tag: Tag, styles: PageStyles) -> bool:
    if is_hidden([*tag.attrs.items()], tag.name):
        return True
    path = (*reversed([*islice(tag.parents, DEEPEST)]), tag) if styles.has_rules or "style" in tag.attrs else ()
    return bool(path) and styles.hides([Element.of(each.name, [*each.attrs.items()]) for each in path])


def _lays_out(element: Tag) -> bool:
    """Tell whether a table is used only for layout, because it contains tables or has only one row or one column."""
    if element.find("table") is not None:
        return True
    _, rows = _parted(grid(element))
    return len(rows) < 2 or len(rows[0]) < 2


def _dissolve(element: Tag) -> None:
    """Turn a table and its cells into ordinary blocks."""
    for tag in element.find_all(_TABLE_TAGS):
        if tag.find_parent("table") is element:
            tag.name = "div"
    element.name = "div"


def _parted(rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Return the captions above a table's header, and the rows from the header on.

    A row above the header with only one text becomes a caption. Columns without text are dropped.
    """
    first = next((place for place, cells in enumerate(rows) if len(set(filter(None, cells))) > 1), len(rows))
    captions = [" ".join(next(filter(None, cells)).split()) for cells in rows[:first] if any(cells)]
    body = rows[first:]
    used = [column for column in range(len(body[0]) if body else 0) if any(cells[column] for cells in body)]
    header = [body[0][column] for column in used] if body else []
    below = [[_once(cells, column) for column in used] for cells in body[1:]]
    return captions, [header, *below] if body else []


def _once(cells: Sequence[str], column: int) -> str:
    """Return the text of a cell below the header; empty if the cell on its left has the same long text.

    Such a cell only continues a merged cell. Two cells with the same short text may be separate cells.
    """
    return "" if column and cells[column] == cells[column - 1] and len(cells[column]) > _SHORT else cells[column]


def grid(element: Tag) -> list[list[str]]:
    """Return the texts of a table's cells in rows of equal length. The text of a merged cell is repeated."""
    open_cells: dict[int, tuple[int, str]] = {}
    own = [line for line in element.find_all("tr") if line.find_parent("table") is element]
    rows = [list(_filled(line.find_all(["td", "th"], recursive=False), open_cells)) for line in own]
    width = max(map(len, rows), default=0)
    return [cells + [""] * (width - len(cells)) for cells in rows]


def _filled(cells: Sequence[Tag], open_cells: dict[int, tuple[int, str]]) -> Iterator[str]:
    """Yield the texts of one row.

    ``open_cells`` has the cells of earlier rows that extend into this row, by column.
    """
    column = 0
    remaining = list(reversed(cells))
    while column < MAX_COLUMNS and (remaining or any(place >= column for place in open_cells)):
        if column in open_cells:
            left, text = open_cells.pop(column)
            if left > 1:
                open_cells[column] = (left - 1, text)
            # ``any`` above looks at later columns only.
            yield text
            column += 1
            continue
        if not remaining:
            yield ""
            column += 1
            continue
        cell = remaining.pop()
        text = cell.get_text(" ", strip=True)
        rows_below = min(_span(cell, "rowspan"), _MAX_ROWSPAN) - 1
        for place in range(column, min(column + _span(cell, "colspan"), MAX_COLUMNS)):
            if rows_below > 0:
                open_cells[place] = (rows_below, text)
            yield text
            column += 1


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name) or "1")
    return max(1, int(value)) if value.isascii() and value.isdigit() and len(value) < 7 else 1
