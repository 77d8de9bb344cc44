"""reStructuredText as Markdown: the part of it that people write, line by line, each with its number.

What a directive would include, run or fetch is only named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

Lines = Sequence[tuple[int, str]]

_ADORNED = re.compile(r"([=\-~^\"'`*+#.:_])\1{2,}\s*")
_DIRECTIVE = re.compile(r"(\s*)\.\. ([\w:-]+)::\s*(.*)")
_TARGET = re.compile(r"\s*\.\. (?:_[^:]*:|\|)")
_OPTION = re.compile(r"\s+:[\w-]+:")
_FIELD = re.compile(r":([A-Za-z][\w .-]{0,60}):(?:\s+(.*)|$)")
_CODE = frozenset({"code-block", "code", "sourcecode", "parsed-literal", "literalinclude"})
_BORDER = re.compile(r"\s*=+(?: +=+)+\s*")
_GRID = re.compile(r"\s*\+[-=]+(?:\+[-=]+)*\+\s*")
# Roles and references; what stands between two backticks each is code in both languages.
_LITERAL = re.compile(r"(``.+?``)")
_ROLE = re.compile(r":[\w:.+-]+:`([^`<]*?)(?:\s*<[^`>]*>)?`")
_LINK = re.compile(r"`([^`<]*?)\s*<([^`>\s]+)>`__?")
_REFERENCE = re.compile(r"(?<![`\w])`([^`]+)`_{0,2}(?!`)")


def markdown_of_rst(lines: Lines) -> list[tuple[int, str]]:
    """Return Markdown that reads as the lines do; each line has the number of the one that it was made of."""
    return list(_blocks(lines))


def _blocks(lines: Lines) -> Iterator[tuple[int, str]]:
    at, levels = 0, dict[str, int]()
    while at < len(lines):
        number, line = lines[at]
        below = lines[at + 1][1] if at + 1 < len(lines) else ""
        directive = _DIRECTIVE.match(line)
        if _GRID.fullmatch(line) or _BORDER.fullmatch(line):
            size = _table_size(lines[at:])
            yield from _table(lines[at : at + size])
            at += size
        elif (
            _ADORNED.fullmatch(line)
            and below.strip()
            and at + 2 < len(lines)
            and lines[at + 2][1].strip() == line.strip()
        ):
            yield from _title(lines[at + 1], f"{line[0]}{line[0]}", levels)
            at += 3
        elif (
            line.strip()
            and not line[0].isspace()
            and _ADORNED.fullmatch(below)
            and len(below.rstrip()) >= len(line.rstrip())
        ):
            yield from _title(lines[at], below[0], levels)
            at += 2
        elif directive:
            size = _indented(lines[at + 1 :], len(directive[1]))
            yield from _directive(number, directive[2], directive[3], lines[at + 1 : at + 1 + size])
            at += 1 + size
        elif line.rstrip().endswith("::"):
            size = _indented(lines[at + 1 :], len(line) - len(line.lstrip()))
            yield number, _inline("" if line.strip() == "::" else line.rstrip()[:-1])
            yield from _fenced(number, "", lines[at + 1 : at + 1 + size])
            at += 1 + size
        else:
            yield number, _line(line)
            at += 1


def _line(line: str) -> str:
    """Return a line of a paragraph; a field has a bold name, and ends where its line does."""
    field = _FIELD.match(line)
    if field:
        return f"**{field[1]}:** {_inline(field[2] or '')}  "
    return "" if _TARGET.match(line) else _inline(line)


def _title(line: tuple[int, str], mark: str, levels: dict[str, int]) -> Iterator[tuple[int, str]]:
    """Yield a heading; the levels are those of the marks in the order in which they come."""
    yield line[0], ""
    yield line[0], f"{'#' * min(levels.setdefault(mark, len(levels) + 1), 6)} {_inline(line[1].strip())}"
    yield line[0], ""


def _directive(number: int, name: str, argument: str, body: Lines) -> Iterator[tuple[int, str]]:
    options = len(list(takewhile(lambda line: _OPTION.match(line[1]), body)))
    if name.rpartition(":")[2] in _CODE:
        yield from _fenced(number, argument, body[options:])
        return
    yield number, ""
    yield number, f"> **{name}** {_inline(argument)}"
    yield number, ">"
    inside = body[options:]
    margin = _margin(inside)
    yield from ((line_number, f"> {line}") for line_number, line in _blocks([(n, text[margin:]) for n, text in inside]))
    yield number, ""


def _fenced(number: int, language: str, body: Lines) -> Iterator[tuple[int, str]]:
    filled = [place for place, (_, line) in enumerate(body) if line.strip()]
    if not filled:
        return
    code, margin = body[filled[0] : filled[-1] + 1], _margin(body)
    yield number, ""
    yield code[0][0] - 1, f"~~~~~~ {language}"
    yield from ((line_number, line[margin:]) for line_number, line in code)
    yield code[-1][0], "~~~~~~"
    yield code[-1][0], ""


def _indented(lines: Lines, margin: int) -> int:
    """Count the lines that are blank or stand further in than a margin."""
    return len(
        list(takewhile(lambda line: not line[1].strip() or len(line[1]) - len(line[1].lstrip()) > margin, lines))
    )


def _margin(lines: Lines) -> int:
    return min((len(line) - len(line.lstrip()) for _, line in lines if line.strip()), default=0)


def _table_size(lines: Lines) -> int:
    """Count the lines of a table: of a grid up to a blank line, else up to its last border."""
    if _GRID.fullmatch(lines[0][1]):
        return len(list(takewhile(lambda line: line[1].lstrip()[:1] in {"+", "|"}, lines)))
    borders = [
        place
        for place, (_, line) in enumerate(lines)
        if _BORDER.fullmatch(line) and (place + 1 == len(lines) or not lines[place + 1][1].strip())
    ]
    return borders[0] + 1 if borders else 1


def _table(lines: Lines) -> Iterator[tuple[int, str]]:
    """Yield a table: the rows above its second border are the head; cells of several lines are joined."""
    is_grid = bool(_GRID.fullmatch(lines[0][1]))
    border = _GRID if is_grid else _BORDER
    columns = [found.span() for found in re.finditer(r"[-=]+", lines[0][1])]
    columns[-1] = (columns[-1][0], columns[-1][1] if is_grid else 10_000)
    rows: list[tuple[int, list[str]]] = []
    head, is_new = 0, True
    for number, line in lines[1:]:
        if border.fullmatch(line):
            head, is_new = head or len(rows), True
            continue
        cells = [line[start:end].strip() for start, end in columns]
        if is_new or (not is_grid and cells[0]):
            rows.append((number, cells))
            is_new = False
        elif any(cells):
            rows[-1] = (rows[-1][0], [f"{old} {new}".strip() for old, new in zip(rows[-1][1], cells, strict=True)])
    yield lines[0][0], ""
    for place, (number, cells) in enumerate(rows):
        yield number, f"| {' | '.join(_inline(cell).replace('|', chr(92) + '|') for cell in cells)} |"
        if place == 0:
            yield number, f"|{' --- |' * len(columns)}"
    yield lines[-1][0], ""


def _inline(text: str) -> str:
    """Return a line with roles as code and references as links or their text."""
    pieces = _LITERAL.split(text)
    return "".join(piece if place % 2 else _references(piece) for place, piece in enumerate(pieces))


def _references(text: str) -> str:
    return _REFERENCE.sub(r"\1", _LINK.sub(r"[\1](\2)", _ROLE.sub(r"``\1``", text))) if "`" in text else text
