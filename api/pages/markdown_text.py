"""Documents of all formats as Markdown lines, each with the number of its original line.

Invisible text is left out. Content that a directive would include, run or fetch is only named.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nornweave.core.text.spans import Lines
from nornweave.core.types import Span
from nornweave.read.blocks.block import Block, Blocks, lines
from nornweave.read.blocks.html import PAGE, read_html
from nornweave.read.blocks.reader import read_blocks
from nornweave.read.blocks.tables import rows_of

NumberedLine = tuple[int, str]

_SHOWN = replace(PAGE, marks_code=True)
_SPECIAL = re.compile(r"([\\*_\[\]<>#~])|(?<!\S)([-+]|\d+[.)])(?=\s)")
_CODE = re.compile(r"(``.+?``)")
_CODE_OF_HTML = re.compile(r"(`[^`\n]+`)")
_ITEM = re.compile(r" *- ")
_HEAD = re.compile(r"^[\s.!?=+\[]*((?:[\w-]+(?::[\w-]+)*)?)(?:::|[,\]])?\s*(.*)$")
_FENCE = re.compile(r"`{3}|~{3}|<|\{%")
_ANNOUNCES = re.compile(r"\.\. |\[[\w,]|[-.]{4,}$|#\+")
_OPTION = re.compile(r"\s+:[\w-]+:")
_FIELD = re.compile(r":([A-Za-z][\w .-]{0,60}):(?:\s+(.*)|$)")
_UNSAID = re.compile(r"\s*\.\. (?:_[^:]*:|\|)")
# Roles and references of reStructuredText; what stands between two backticks each is code in both languages.
_INLINE: Mapping[str, Sequence[tuple[re.Pattern[str], str]]] = {
    "asciidoc": (
        (re.compile(r"(?:link:|(?=https?:))([^\s\[\]]+)\[([^\[\]]+)\]"), r"[\2](\1)"),
        (re.compile(r"(?:<<[^<>,]*,\s*|xref:[^\s\[\]]+\[)([^<>\[\]]+)(?:>>|\])"), r"\1"),
        (re.compile(r"(?<![\w*])\*(?=\S)([^*]+)\*(?![\w*])"), r"**\1**"),
        (re.compile(r"`?(?<!\w)\+(?=\S)([^+`]+)\+(?!\w)`?"), r"`\1`"),
    ),
    "org": (
        (re.compile(r"\[\[([^\[\]]+)\]\[([^\[\]]+)\]\]"), r"[\2](\1)"),
        (re.compile(r"(?<!\w)[=~](?=\S)([^=~]+)[=~](?!\w)"), r"`\1`"),
        (re.compile(r"(?<![\w*])\*(?=\S)([^*]+)\*(?![\w*])"), r"**\1**"),
        (re.compile(r"(?<![\w/:])/(?=\S)([^/]+)/(?![\w/])"), r"*\1*"),
    ),
    "rst": (
        (re.compile(r":[\w:.+-]+:`([^`<]*?)(?:\s*<[^`>]*>)?`"), r"``\1``"),
        (re.compile(r"`([^`<]*?)\s*<([^`>\s]+)>`__?"), r"[\1](\2)"),
        (re.compile(r"(?<![`\w])`([^`]+)`_{0,2}(?!`)"), r"\1"),
    ),
}


def markdown_lines(text: str, format: str, first_line: int = 1) -> list[NumberedLine]:  # noqa: A002
    """Return a document as Markdown.

    Args:
        format: of the document; a format that ``read.blocks`` does not know is Markdown already.
    """
    numbers = Lines(text)
    if format == "html":
        readable = read_html(text, _SHOWN)
        tags = sorted(readable.tags)

        def tag_line(offset: int) -> int:
            start = tags[max(0, bisect_right(tags, offset) - 1)]
            return numbers.at(readable.tags[start]) + readable.text.count("\n", start, offset)

        writer = _Writer(Blocks(readable.text, readable.blocks), format, tag_line, first_line - 1)
    else:
        writer = _Writer(read_blocks(text, format), format, numbers.at, first_line - 1)
    return list(writer.written(writer.read.blocks))


@dataclass(frozen=True, slots=True)
class _Writer:
    read: Blocks
    format: str
    number_at: Callable[[int], int]
    above: int

    def written(self, blocks: Iterable[Block]) -> Iterator[NumberedLine]:
        """Yield the lines of blocks, with a blank line between two blocks."""
        was_item, last = False, 0
        for block in blocks:
            source = self._lines(block.span)
            if not source:
                continue
            is_item = self.format == "html" and block.kind == "list"
            if not (was_item and is_item):
                yield last or source[0][0], ""
            was_item, last = is_item, source[-1][0]
            yield from self._block(block, source)

    def _block(self, block: Block, source: Sequence[NumberedLine]) -> Iterator[NumberedLine]:
        first, first_line = source[0]
        if block.kind == "front":
            yield from self._code(replace(block, info="yaml"), source)
        elif block.kind == "note" and block.parts:
            head = _HEAD.match(first_line)
            name, said = head.groups() if head else ("", first_line)
            shown = f"**{name}** {self._inline(said)}" if name else f"**{said.strip(chr(34))}**"
            yield first, f"> {shown}"
            yield from ((number, f"> {line}".rstrip()) for number, line in self.written(block.parts))
        elif block.kind == "term" and block.parts:
            yield first, f"- {self._inline(first_line)}"
            yield from ((number, f"  {line}".rstrip()) for number, line in self.written(block.parts))
        elif self.format == "markdown" and (block.kind != "code" or _FENCE.match(first_line)):
            yield from source
        elif block.kind == "heading":
            number = source[-2][0] if self.format == "rst" and len(source) > 1 else first  # above its underline
            yield number, f"{'#' * min(block.level, 6)} {self._inline(block.info)}"
        elif block.kind == "code":
            yield from self._code(block, source)
        elif block.kind == "table" and (rows := rows_of(self.read.text, block)):
            for place, row in enumerate(rows):
                number = self._number(row.span.start)
                yield number, self._inline(row.line)
                if place == 0:
                    yield number, f"|{' --- |' * len(row.cells)}"
        else:
            yield from ((number, self._line(line)) for number, line in source)

    def _lines(self, span: Span) -> list[NumberedLine]:
        """Return the lines of a span, without blank lines at its ends and without their common indentation."""
        text = self.read.text
        found = [(self._number(line.start), text[line.start : line.end].rstrip()) for line in lines(text, span)]
        filled = [place for place, (_, line) in enumerate(found) if line]
        shown = found[filled[0] : filled[-1] + 1] if filled else []
        margin = min((len(line) - len(line.lstrip()) for _, line in shown if line), default=0)
        return [(number, line[margin:]) for number, line in shown]

    def _number(self, offset: int) -> int:
        return self.number_at(offset) + self.above

    def _code(self, block: Block, source: Sequence[NumberedLine]) -> Iterator[NumberedLine]:
        """Yield code as a fenced block, without the lines that introduce it."""
        body = list(source)
        while self.format != "html" and body and (not body[0][1] or _ANNOUNCES.match(body[0][1])):
            is_directive = body.pop(0)[1].startswith(".. ")
            while is_directive and body and _OPTION.match(body[0][1]):
                body.pop(0)
        margin = min((len(line) - len(line.lstrip()) for _, line in body if line), default=0)
        if body:
            yield body[0][0] - 1, f"~~~~~~ {block.info}"
            yield from ((number, line[margin:]) for number, line in body)
            yield body[-1][0], "~~~~~~"

    def _line(self, line: str) -> str:
        """Return a line of a paragraph as Markdown. A field of RST gets a bold name and a line break."""
        if self.format == "rst":
            if field := _FIELD.match(line):
                return f"**{field[1]}:** {self._inline(field[2] or '')}  "
            if _UNSAID.match(line) or line.strip() == "::":
                return ""
            line = line[:-1] if line.endswith("::") else line
        bullet = _ITEM.match(line) if self.format == "html" else None
        start = bullet.end() if bullet else 0
        return line[:start] + self._inline(line[start:])

    def _inline(self, line: str) -> str:
        """Return a line with its inline markup as Markdown. In HTML only code is marked."""
        pieces = (_CODE_OF_HTML if self.format == "html" else _CODE).split(line)
        return "".join(piece if place % 2 else self._marked(piece) for place, piece in enumerate(pieces))

    def _marked(self, text: str) -> str:
        if self.format in {"html", "man"}:
            return _SPECIAL.sub(r"\\\1\2", text)
        for pattern, replacement in _INLINE.get(self.format, ()):
            text = pattern.sub(replacement, text)
        return text
