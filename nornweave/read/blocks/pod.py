"""The blocks of POD, Perl's manual pages: headings, items with their tags, indented examples.

Each line of the text is one visible line; commands and the marks around words are removed. Text between
``=cut`` and the next command, behind ``=for``, and between ``=begin`` of another format and its ``=end`` is not shown.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence

from nornweave.core.types import Span
from nornweave.read.blocks.block import Blocks, even_line_ends, lines
from nornweave.read.blocks.man import Line, Role, blocks_of_page

_POD = re.compile(r"^=(?:head[1-6]|pod|over|item)\b", re.MULTILINE)
_NAME = re.compile(
    r"^=head1[ \t]+NAME[ \t]*\s+(\S[^\n]*?)(?:,[^\n]*?)?[ \t]+(?:-+|\u2013|\u2014|E<mdash>)[ \t]", re.MULTILINE
)
_COMMAND = re.compile(r"=([a-zA-Z]+)(\d?)(?:[ \t]+(.*))?$")
_OPENING = r"(?P<letter>[A-Z])(?P<angles><{2,}(?=\s)[ \t]*|<(?!<))"
_ENTITIES: Mapping[str, str] = {"verbar": "|", "sol": "/"}
_SEEN = frozenset({"text", "man"})
"""Formats of ``=begin`` that are shown; one with a colon before its name holds POD."""
_BULLET = re.compile(r"[*+-]|\(?\d{1,3}[.)]?|[a-zA-Z][.)]")


def is_pod(text: str) -> bool:
    """Tell whether a text is POD, the documentation format of Perl."""
    return _POD.search(text) is not None


def title_of(text: str) -> str:
    """Return the subject of a page, which is the text of its section NAME; empty if there is no such section."""
    said = _NAME.search(text)
    return _shown(said[1], [])[0].strip() if said else ""


def read_pod(text: str) -> Blocks:
    """Read POD. Markup is removed, and each line is filled with blanks to its old length."""
    even = even_line_ends(text)
    spans = list(lines(even, Span(0, len(even))))
    rows = [even[span.start : span.end].rstrip("\n") for span in spans]
    return blocks_of_page(even, spans, rows, _page(rows))


def _page(rows: Sequence[str]) -> list[Line]:
    """Return the visible text of each line. Lines above the first POD command are included."""
    page: list[Line] = []
    depth, until, hidden, is_code, above = 0, "", "", False, ""
    marks: Sequence[tuple[str, str]] = ()
    for row in rows:
        begins, above = not above.strip(), row
        found = _COMMAND.match(row.rstrip()) if begins or row.startswith(("=cut", "=head")) else None
        command, number, said = (found[1], found[2], found[3] or "") if found else ("", "", "")
        if begins:
            is_code, marks, hidden = row[:1] in {" ", "\t"}, (), hidden if hidden == "cut" else ""
        if until:
            until = "" if command == "end" and said.strip() == until else until
            page.append(Line())
        elif command in {"head", "item"}:
            hidden, depth = "", depth if command == "item" else 0
            shown, marks = _shown(said, ())
            is_bullet = _BULLET.fullmatch(shown.split(maxsplit=1)[0]) if shown.split() else True
            role: Role = "heading" if command == "head" else "item" if is_bullet else "tag"
            page.append(Line(shown.strip(), role, depth, int(number or 1) + 1))
        elif command:
            hidden = command if command in {"cut", "for", "encoding"} else ""
            depth = max(0, depth + (command == "over") - (command == "back"))
            name = said.strip()
            until = name if command == "begin" and not name.startswith(":") and name not in _SEEN else ""
            page.append(Line(role="break", depth=depth))
        elif hidden or is_code:
            page.append(Line() if hidden else Line(row, "code", depth))
        else:
            shown, marks = _shown(row, marks)
            page.append(Line(shown.strip(), "text", depth))
    return page


def _shown(row: str, opened: Sequence[tuple[str, str]]) -> tuple[str, Sequence[tuple[str, str]]]:
    """Return a line without its markup, and the marks that are still open at its end.

    Args:
        opened: the marks that are open at the start of the line. A mark has its letter and a pattern of its closing.
    """
    marks, parts, at = list(opened), [""], 0
    while found := re.compile(f"{_OPENING}|{marks[-1][1]}" if marks else _OPENING).search(row, at):
        parts[-1] += row[at : found.start()]
        at = found.end()
        if found["letter"]:
            width = len(found["angles"].strip())
            marks.append((found["letter"], rf"(?:^|\s+)>{{{width}}}" if width > 1 else ">"))
            parts.append("")
        else:
            letter, _ = marks.pop()
            if len(parts) > 1:  # it was opened on this line
                inner = parts.pop()
                parts[-1] += _said(letter, inner)
    return "".join(parts) + row[at:], marks


def _said(letter: str, inner: str) -> str:
    if letter in {"X", "Z"}:
        return ""
    if letter == "E":
        number = inner.replace("0x", "x") if inner.startswith("0x") else inner
        return _ENTITIES.get(inner) or html.unescape(f"&#{number};" if number[-1:].isdigit() else f"&{inner};")
    if letter == "L":
        shown, bar, _ = inner.partition("|")
        page, _, section = shown.partition("/")
        return shown if bar else " in ".join(filter(None, (section.strip('"'), page)))
    return inner
