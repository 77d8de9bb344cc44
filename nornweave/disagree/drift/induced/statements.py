"""Every value that stands near a name which the code has, with how it stands there: its template.

No notation is known here. A template is the kind of block (heading, table, item, fence, line), how the name stands to
the literal, and the tokens around the literal, abstracted. ``learning`` decides which templates state values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from nornweave.core.text.lines import lines_of
from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.drift.induced.tokens import MAX_LINE, Token, tokens_of
from nornweave.disagree.facts.documentation.fragments import fragments_of
from nornweave.disagree.facts.documentation.surface import surface_of
from nornweave.disagree.facts.values import Value

_BREAK = Token("¶", 0)
"""Between the lines of an item."""

Known = Callable[[str], bool]
"""Tells whether the code has a value of this name."""

_FENCE = lazy_pattern(r"\s{0,8}(?:```+|~~~+)[ \t]*\{?(\w*)")
_HEADING = lazy_pattern(r"(?:#{1,6}|={1,5})[ \t]+(\S.*)")
_UNDERLINE = lazy_pattern(r"([=\-~^*+.\"'#])\1{2,}[ \t]*$")
_DIRECTIVE = lazy_pattern(r"\s{0,12}\.\. (?:[\w-]+:)?[\w-]+:: ?([A-Za-z_][\w.-]{1,60})\s*$")
_BULLET = lazy_pattern(r"(\s{0,16})(?:[-*+•]|\d{1,3}[.)])[ \t]+(?=\S)")
_RULE = lazy_pattern(r"[\s|:+=-]+$")
_CELL = lazy_pattern(r"(?<!\\)\|")
_TAG = lazy_pattern(r"<(?:/?(code|tt)|/?[a-z][^<>\n]{0,300})>", re.IGNORECASE)
_DOCSTRING = lazy_pattern(
    r"^[ \t]*(?:async )?(?:def|class) (?P<name>\w+)[^\n]*\n(?:[^\n\"']{0,200}\n){0,40}?"
    r"[ \t]*[rRuU]?(?P<mark>\"{3}|'{3})(?P<text>[\s\S]{1,20000}?)(?P=mark)",
    re.MULTILINE,
)
_HAS_LITERAL = lazy_pattern(r"\d|[`\"']|\b(?:true|false|none|null|nil)\b", re.IGNORECASE)
CONTEXT = 3
"""Tokens before a literal that belong to its template."""
CARRIED = 8
"""Tokens of earlier lines of an item that a literal may follow."""
NEAR = 3
"""A name within so many tokens is next to the literal."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A literal near a name.

    Attributes:
        line: of the literal, from 0; ``start`` and ``end`` its offsets in the text.
        template: how it stands there.
        owner: headings above it.
    """

    name: str
    value: Value
    line: int
    start: int
    end: int
    template: str
    owner: str


@dataclass
class _Page:
    known: Known
    headings: list[str] = field(default_factory=list)
    head: str | None = None
    item: tuple[str, str] | None = None
    carried: list[Token] = field(default_factory=list)
    columns: list[str] | None = None
    fence: str | None = None
    is_underlined: bool = False

    def leave_block(self) -> None:
        self.item, self.carried, self.columns = None, [], None


def statements_of(text: str, known: Known, subject: str = "") -> Iterator[Statement]:
    """Yield each literal of a page with each name that it may belong to: the nearest, its item's, its heading's.

    Args:
        subject: what the text is about, as a heading says it.
    """
    page = _Page(known, head=subject if subject and known(subject) else None)
    lines = lines_of(text)
    offset = 0
    for at, line in enumerate(lines):
        if len(line) <= MAX_LINE:
            below = lines[at + 1] if at + 1 < len(lines) else ""
            for found in _line(page, _without_tags(line), below):
                start = offset + found.token.start
                end = start + len(found.token.text)
                owner = " ".join(page.headings[-2:])
                yield Statement(found.name, found.value, at, start, end, found.template, owner)
        offset = text.find("\n", offset) + 1 or len(text)


def comment_statements(text: str, path: str, known: Known) -> Iterator[Statement]:
    """Yield the literals of the comments and docstrings of a program, each below what it documents."""
    for start, end, subject in _comments(text, path):
        part = text[start:end]
        if not _HAS_LITERAL.search(part):
            continue
        first = text.count("\n", 0, start)
        for one in statements_of(surface_of(part, comment=True), known, subject):
            yield replace(
                one, line=one.line + first, start=one.start + start, end=one.end + start, template=f"C{one.template}"
            )


def _comments(text: str, path: str) -> Iterator[tuple[int, int, str]]:
    for fragment in fragments_of(text, path):
        yield fragment.start, fragment.end, fragment.subject
    for match in _DOCSTRING.finditer(text):
        yield match.start("text"), match.end("text"), match["name"]


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    value: Value
    token: Token
    template: str


def _without_tags(line: str) -> str:
    """Replace markup of the same length: ``<code>`` by a backtick, other tags by blanks."""
    if "<" not in line:
        return line
    return _TAG.sub(lambda tag: ("`" if tag[1] else " ").rjust(len(tag[0])), line)


def _line(page: _Page, line: str, below: str) -> Iterator[_Found]:
    if page.is_underlined:
        page.is_underlined = False
        return
    fence = _FENCE.match(line)
    if fence:
        page.fence = None if page.fence is not None else fence[1] or "-"
        return
    if page.fence is not None:
        yield from _near(page, list(tokens_of(line)), f"F{page.fence}", [])
        return
    if not line.strip():
        page.columns = None
        return
    if _heading(page, line, below):
        return
    if line.lstrip().startswith("|") or (page.columns is not None and line.count("|") > 1):
        yield from _row(page, line)
        return
    yield from _text(page, line)


def _heading(page: _Page, line: str, below: str) -> bool:
    """Take a heading, or a directive that names something, as what the following is about."""
    match = _HEADING.match(line)
    directive = _DIRECTIVE.match(line)
    page.is_underlined = match is directive is None and bool(_UNDERLINE.match(below)) and line[0] not in " |=~"
    if directive is None and match is None and not page.is_underlined:
        return False
    title = directive[1] if directive else match[1] if match else line
    tokens = list(tokens_of(title))
    names = [one.text for one in tokens if page.known(one.text) and (one.is_identifier or len(tokens) <= CONTEXT)]
    page.head = names[0] if names else None
    page.headings = [*page.headings[-2:], title]
    page.leave_block()
    return True


def _row(page: _Page, line: str) -> Iterator[_Found]:
    cells, start = [], 0
    for bar in [*_CELL.finditer(line), None]:
        end = bar.start() if bar else len(line)
        if line[start:end].strip() or start:
            cells.append((start, line[start:end]))
        start = end + 1
    cells = cells[1:] if cells and not cells[0][1].strip() else cells
    if page.columns is None:
        page.columns = [re.sub(r"[^a-z ]", "", cell.lower()).strip() for _, cell in cells]
        return
    if _RULE.match(line) or not cells:
        return
    columns = page.columns
    first = next((one.text for one in tokens_of(cells[0][1]) if page.known(one.text)), None)
    for at, (start, cell) in enumerate(cells[1:], 1):
        tokens = [one for one in tokens_of(cell, start) if one.text not in "`<>"]
        column = columns[at] if at < len(columns) else ""
        if first and len(tokens) == 1:
            only = tokens[0]
            value = only.value or Token(only.text, only.start, quoted=True).value
            if value is not None:
                yield _Found(first, value, only, f"T{columns[0] if columns else ''}|{column}=V")
        else:
            yield from _near(page, tokens, f"T{column}", [], first and ("row", first))


def _text(page: _Page, line: str) -> Iterator[_Found]:
    bullet = _BULLET.match(line)
    tokens = list(tokens_of(line[bullet.end() :] if bullet else line, bullet.end() if bullet else 0))
    is_indented = line[:1] in " \t"
    words = [one for one in tokens if one.text not in "`:<>("]
    lead = words[0] if words and page.known(words[0].text) else None
    is_term = len(words) == 1 and not is_indented
    is_term = is_term or (len(tokens) > 1 and tokens[0] is lead and tokens[1].text == ":")
    if lead and (lead.quoted or lead.is_identifier or is_term):
        page.item, page.carried = ("L" if bullet else "P", lead.text), []
    elif bullet and not is_indented:
        page.item, page.carried = None, []
    role = "X" if not bullet else "XL"
    yield from _near(page, tokens, role, page.carried, page.item)
    page.carried = [*page.carried, *tokens][-CARRIED:]


def _near(
    page: _Page,
    tokens: Sequence[Token],
    role: str,
    carried: Sequence[Token],
    item: tuple[str, str] | None | str = None,
) -> Iterator[_Found]:
    """Yield each literal with the nearest name before it on its line, the name of its item and that of its section."""
    nearest: tuple[int, Token] | None = None
    row = [*carried, _BREAK, *tokens] if carried else tokens
    for at, token in enumerate(row):
        is_name = page.known(token.text) and (token.quoted or token.is_identifier)
        value = None if at < len(row) - len(tokens) or (is_name and row[at - 1].text != "=") else token.value
        if value is not None:
            names = {("item" + item[0], item[1])} if isinstance(item, tuple) else set()
            names |= {("head", page.head)} if page.head and not role.startswith(("F", "T")) else set()
            if nearest and nearest[1].text != token.text:
                names.add(("next" if at - nearest[0] <= NEAR else "line", nearest[1].text))
            around = _around(row, at)
            for relation, name in sorted(names):
                yield _Found(name, value, token, f"{role} {relation} {around}")
        if is_name:
            nearest = at, token


def _around(row: Sequence[Token], at: int) -> str:
    before = [one.shape for one in row[max(0, at - CONTEXT) : at] if one.text not in "`<>"]
    after = [one.shape for one in row[at + 1 : at + 3]]
    behind = " ".join(after) if "default" in after or after[:1] == ["by"] else ""
    return f"{' '.join(before)} V {behind}".rstrip()
