"""The blocks of Org: headings, blocks, drawers, tables; comments and what is not exported are not text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nornweave.core.text.inline_markup import one_line
from nornweave.read.blocks.block import Blocks, Found, Reading, Stretch, end_of, indent_of, indented_end, read_lines

_HEADING = re.compile(
    r"(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)[ \t]+)?(?:\[#\w\][ \t]+)?(.*?)(?:[ \t]+(:[\w@#%:]+:))?$"
)
_NOT_EXPORTED = re.compile(r":(?:noexport|ARCHIVE):")
_BEGIN = re.compile(r"[ \t]*#\+begin_?([\w-]*):?[ \t]*([\w+#.-]*)", re.IGNORECASE)
_CODE = frozenset({"src", "example", "export", "verse_code"})
_SHOWN_EXPORTS = frozenset({"", "html", "ascii", "text"})
_NO_CODE = re.compile(r"[ \t]:exports[ \t]+(?:none|results)\b", re.IGNORECASE)
_KEYWORD = re.compile(r"[ \t]*#(?:\+[\w-]+(?:\[[^\]]*\])?:|\s|$)")
_DRAWER = re.compile(r"[ \t]*:[\w-]+:$")
_TABLE = re.compile(r"[ \t]*\|")
_FIXED = re.compile(r"[ \t]*:(?:[ \t]|$)")
_ITEM = re.compile(r"[ \t]*(?:[-+]|\d{1,4}[.)])[ \t]+\S|[ \t]+\*[ \t]+\S")
_TERM = re.compile(r"([ \t]*[-+][ \t]+)(\S.*?)[ \t]+::(?:[ \t]+(?=\S)|$)")
_INLINE_COMMENT = re.compile(r"@@comment:[^@]*@@")
_MARKS = re.compile(
    r"\[\[[^\[\]]*\]\[([^\[\]]*)\]\]|\[\[([^\[\]]*)\]\]|(?<!\w)[*/=~+_](?=\S)([^*/=~+]*?)[*/=~+_](?!\w)"
)


def read_org(text: str) -> Blocks:
    """Read a text in Org format."""
    return read_lines(text, 0, _block_at)


def _block_at(reading: Reading, stretch: Stretch, at: int, _above: str) -> Found:
    found = _found(stretch.rows, at)
    if found.kind in {"paragraph", "list"} and "@@comment" in reading.text:
        span = stretch.span(at, found.end)
        reading.hidden += [
            type(span)(*each.span()) for each in _INLINE_COMMENT.finditer(reading.text, span.start, span.end)
        ]
    return found


def _found(rows: Sequence[str], at: int) -> Found:  # noqa: C901 - one case after another
    row = rows[at]
    if heading := _HEADING.match(row):
        level, title = len(heading[1]), heading[2]
        if title.split(" ")[0] == "COMMENT" or _NOT_EXPORTED.search(heading[3] or ""):
            below = (end for end in range(at + 1, len(rows)) if _is_heading(rows[end], level))
            return Found("hidden", next(below, len(rows)))
        return Found("heading", at + 1, level, _read(title)) if _read(title) else Found("paragraph", at + 1)
    if begin := _BEGIN.match(row):
        name = begin[1].lower()
        closing = re.compile(rf"[ \t]*#\+end_?{re.escape(name)}", re.IGNORECASE)
        last = end_of(rows, at, lambda row: not closing.match(row) and not _is_heading(row, 99))
        end = min(last + 1, len(rows)) if last < len(rows) and closing.match(rows[last]) else last
        is_of_other = name == "export" and begin[2].lower() not in _SHOWN_EXPORTS
        if name == "comment" or is_of_other or (name == "src" and _NO_CODE.search(row)):
            return Found("hidden", end)
        if name in _CODE or last == at + 1:
            return Found("code", end, info=begin[2])
        return Found("note", end, body=at + 1, cut=end - last)
    if _KEYWORD.match(row):
        return Found("hidden", at + 1)
    if _DRAWER.match(row):
        end = end_of(rows, at, lambda row: row.strip().upper() != ":END:" and not _is_heading(row, 99))
        if end < len(rows) and rows[end].strip().upper() == ":END:":
            return Found("hidden", end + 1)
    if _TABLE.match(row):
        return Found(
            "table",
            end_of(rows, at, _TABLE.match),
            int(rows[at + 1 : at + 2] != [] and "-" in rows[at + 1][:4]),
            "pipe",
        )
    if _FIXED.match(row):
        return Found("code", end_of(rows, at, _FIXED.match))
    if term := _TERM.match(row):
        end = indented_end(rows, at + 1, indent_of(row) + 1)
        lead = term.end() if term.end() < len(row) else 0
        return Found("term", end, info=_read(term[2]), body=at if lead else at + 1 if end > at + 1 else -1, lead=lead)
    if _ITEM.match(row):
        return Found("list", end_of(rows, at, lambda row: row and not _TERM.match(row) and not _starts(row)))
    return Found("paragraph", end_of(rows, at, lambda row: row and not _ITEM.match(row) and not _starts(row)))


def _is_heading(row: str, level: int) -> bool:
    heading = _HEADING.match(row)
    return heading is not None and len(heading[1]) <= level


def _starts(row: str) -> bool:
    return (row[0] == "*" and _is_heading(row, 99)) or bool(
        _BEGIN.match(row) or _KEYWORD.match(row) or _TABLE.match(row)
    )


def _read(title: str) -> str:
    return one_line(_MARKS.sub(lambda mark: mark[1] or mark[2] or mark[3] or "", title))
