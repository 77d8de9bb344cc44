"""HTML as Markdown, each line with the number of the one it was read from; what is no text is left out."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_LEFT_OUT = frozenset({"script", "style", "head", "template", "noscript", "svg", "nav"})
_LISTS = {"ul": "- ", "ol": "1. "}
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`"}
_FLOWING = frozenset(
    {"a", "span", "abbr", "small", "sub", "sup", "u", "mark", "kbd", "q", "time", "label", "wbr", *_MARKS}
)
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])|(?<!\S)([-+]|\d+[.)])(?=\s)")


def markdown_of_html(text: str) -> list[tuple[int, str]]:
    """Return Markdown that reads as a page does."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.flush()
    return reader.lines


def with_tables(text: str) -> str:
    """Return text that was taken out of HTML with its tables, whose cells a bar parts, as those of Markdown."""
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


class _Reader(HTMLParser):
    """Collects the text of one block and writes it when the block ends."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[tuple[int, str]] = []
        self._text, self._line, self._prefix = "", 1, ""
        self._left_out = 0
        self._lists: list[str] = []
        self._cells: list[str] | None = None
        self._columns = 0
        self._in_table = False
        self._is_literal = False
        self._href = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, a style or a link."""
        self._left_out = 0 if tag == "body" else self._left_out + (tag in _LEFT_OUT)
        if self._left_out:
            return
        if tag in _FLOWING:
            self._text += _MARKS.get(tag, "[" if tag == "a" else "")
            self._href = dict(attrs).get("href") or "" if tag == "a" else self._href
        elif tag in {"td", "th"} and self._cells is not None:
            self._text = ""
        elif tag == "br":
            self._text += " "
        else:
            self.flush()
            self._begin(tag)

    def _begin(self, tag: str) -> None:
        if re.fullmatch("h[1-6]", tag):
            self._prefix = f"{'#' * int(tag[1])} "
        elif tag in _LISTS:
            self._lists.append(_LISTS[tag])
        elif tag == "li" and self._lists:
            self._prefix = f"{'   ' * (len(self._lists) - 1)}{self._lists[-1]}"
        elif tag == "blockquote":
            self._prefix = "> "
        elif tag == "tr":
            self._cells, self._line = [], self.getpos()[0]
        elif tag == "table":
            self._in_table, self._columns = True, 0
        self._is_literal = tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        """End what began."""
        if tag in _LEFT_OUT:
            self._left_out = max(0, self._left_out - 1)
        elif tag in _FLOWING:
            href = re.sub(r"[\s()<>]", "", self._href)
            self._text += _MARKS.get(tag, f"]({href})" if tag == "a" else "")
        elif tag in {"td", "th"} and self._cells is not None:
            self._cells.append(self._text.strip())
            self._text = ""
        elif tag == "tr" and self._cells is not None:
            self.lines.append((self._line, f"| {' | '.join(self._cells)} |"))
            if not self._columns and self._cells:
                self._columns = len(self._cells)
                self.lines.append((self._line, f"|{' --- |' * self._columns}"))
            self._cells = None
        else:
            self._in_table = self._in_table and tag != "table"
            self.flush()
            if tag in _LISTS and self._lists:
                self._lists.pop()
            self._prefix = "" if tag != "li" else self._prefix

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if self._left_out:
            return
        if not self._text.strip() and data.strip():
            self._line = self.getpos()[0] + data[: len(data) - len(data.lstrip())].count("\n")
        in_code = self._text.count("`") % 2 == 1
        self._text += data if self._is_literal or in_code else _SPECIAL.sub(r"\\\1\2", re.sub(r"\s+", " ", data))

    def flush(self) -> None:
        """Write the block that was collected."""
        text = self._text
        self._text = ""
        if self._is_literal:
            body = text.strip("\n").split("\n")
            fenced = ["~~~~~~", *body, "~~~~~~"]
            self.lines += [(max(1, self._line - 1 + place), line) for place, line in enumerate(fenced)]
            self._is_literal = False
        elif text.strip():
            self.lines.append((self._line, self._prefix + text.strip()))
            self._prefix = " " * len(self._prefix) if self._lists else ""
        if not self._lists and not self._in_table:
            self.lines.append((self._line, ""))
