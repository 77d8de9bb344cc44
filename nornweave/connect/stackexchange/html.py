"""Convert the small HTML of forum posts into plain text; code keeps its lines.

Handles the tags that Stack Exchange allows, in one pass without recursion; the time is linear in the input.
"""

from __future__ import annotations

import html
import re

# A tag ends at the first ">" and never holds a "<"; a lone "<" is text. Comments are tags that say nothing.
_TAG = re.compile(r"<!--[^<>]*>|<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,15})(?P<attributes>[^<>]*)>")
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_BLOCKS = frozenset(
    ["p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "blockquote", "table", "hr", "details"]
)
_LINES = frozenset(["br", "tr", "dt", "dd", "summary"])
_CELLS = frozenset(["td", "th"])
_SILENT = frozenset(["script", "style"])
_BLANK_LINES = re.compile(r"\n{3,}")
_FENCE = "```"


def text_of_html(source: str) -> str:
    """Render HTML as text: ``pre`` between fences, verbatim; list items after dashes; entities decoded."""
    writer = _Writer()
    position = 0
    for tag in _TAG.finditer(source):
        writer.text(source[position : tag.start()])
        position = tag.end()
        if tag["name"]:
            writer.tag(tag["name"].lower(), bool(tag["close"]), tag["attributes"])
    writer.text(source[position:])
    return writer.finish()


class _Writer:
    def __init__(self) -> None:
        self._done: list[str] = []  # finished blocks
        self._open: list[str] = []  # pieces of the current block
        self._verbatim = False
        self._silent = False

    def text(self, raw: str) -> None:
        if not raw or self._silent:
            return
        self._open.append(_decoded(raw) if self._verbatim else re.sub(r"\s+", " ", _decoded(raw)))

    def tag(self, name: str, closes: bool, attributes: str) -> None:
        if name in _SILENT:
            self._silent = not closes
        elif name == "pre":
            self._end_block()
            self._verbatim = not closes
        elif self._verbatim:
            return
        elif name in _BLOCKS:
            self._end_block()
        elif name == "li" and not closes:
            self._open.append("\n- ")
        elif name in _LINES and closes == (name == "tr"):
            self._open.append("\n")
        elif name in _CELLS and closes:
            self._open.append(" | ")
        elif name == "code":
            self._open.append("`")
        elif name == "img" and (alt := _ALT.search(attributes)):
            self._open.append(_decoded(alt.group(1) or alt.group(2) or ""))

    def finish(self) -> str:
        self._end_block()
        return "\n\n".join(self._done)

    def _end_block(self) -> None:
        block = "".join(self._open)
        self._open.clear()
        if self._verbatim:
            block = block.replace("\r\n", "\n").strip("\n")
            if block.strip():
                self._done.append(f"{_FENCE}\n{block.rstrip()}\n{_FENCE}")
            return
        lines = "\n".join(line.strip() for line in block.split("\n"))
        text = _BLANK_LINES.sub("\n\n", lines).strip()
        if text:
            self._done.append(text)


def _decoded(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # an entity with more digits than Python converts
        return text
