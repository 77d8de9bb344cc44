"""Every value that stands near a name which the code has, with how it stands there: its template.

No notation is known here. A template is the kind of block (table, item, code, line), how the name stands to the
literal, and the tokens around the literal, abstracted. ``learning`` decides which templates state values.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.drift.induced.tokens import MAX_LINE, Token, tokens_of
from nornweave.disagree.facts.code import Comment
from nornweave.disagree.facts.documentation.blocks import DocumentedBlock, blocks_of
from nornweave.disagree.facts.documentation.surface import surface_of
from nornweave.disagree.facts.documentation.tables import Cell, read_table
from nornweave.disagree.facts.values import Value

_BREAK = Token("¶", 0)
"""Between the lines of an item."""

Known = Callable[[str], bool]
"""Tells whether the code has a value of this name."""

_LINE = lazy_pattern(r"[^\n]+")
_TAG = lazy_pattern(r"<(?:/?(code|tt)|/?[a-z][^<>\n]{0,300})>", re.IGNORECASE)
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
    """What stands above the line at hand: headings, the name in the last of them, the item and its last tokens."""

    known: Known
    head: str | None = None
    headings: list[str] = field(default_factory=list)
    item: tuple[str, str] | None = None
    carried: list[Token] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    value: Value
    token: Token
    template: str


def statements_of(text: str, known: Known, subject: str = "") -> Iterator[Statement]:
    """Yield each literal of a page with each name that it may belong to: the nearest, its item's, its heading's.

    Args:
        subject: what the text is about, as a heading says it.
    """
    plain = _TAG.sub(lambda tag: ("`" if tag[1] else " ").rjust(len(tag[0])), text) if "<" in text else text
    page = _Page(known, head=subject if subject and known(subject) else None)
    starts = [0, *(at.end() for at in re.finditer("\n", text))]
    for block in blocks_of(plain, plain):
        for found in _block(page, plain, block):
            start = found.token.start
            yield Statement(
                found.name, found.value, bisect_right(starts, start) - 1, start, start + len(found.token.text),
                found.template, " ".join(page.headings[-2:]),
            )  # fmt: skip


def comment_statements(text: str, comments: Iterable[Comment], known: Known) -> Iterator[Statement]:
    """Yield the literals of the comments and docstrings of a program, each below what it documents."""
    for comment in comments:
        start, part = comment.start, text[comment.start : comment.end]
        if not _HAS_LITERAL.search(part):
            continue
        first = text.count("\n", 0, start)
        for one in statements_of(surface_of(part, comment=True), known, comment.subject):
            yield replace(
                one, line=one.line + first, start=one.start + start, end=one.end + start, template=f"C{one.template}"
            )


def _block(page: _Page, text: str, block: DocumentedBlock) -> Iterator[_Found]:
    if block.kind in {"heading", "directive"}:
        _head(page, text[block.body : block.end].partition("\n")[0], is_directive=block.kind == "directive")
    elif block.kind == "table":
        yield from _table(page, text, block)
    else:
        for match in _LINE.finditer(text, text.rfind("\n", 0, block.start) + 1, block.end):
            begin = block.body if match.start() <= block.body < match.end() else match.start()
            tokens = list(tokens_of(text[begin : match.end()], begin)) if match.end() - begin <= MAX_LINE else []
            if block.kind == "code":
                yield from _near(page, tokens, f"F{block.info}", [])
            else:
                is_indented = block.kind != "item" and match[0][:1] in " \t"
                is_bullet = block.kind == "item" and begin == block.body
                yield from _text(page, tokens, is_bullet=is_bullet, is_indented=is_indented or block.indent > 0)


def _head(page: _Page, title: str, *, is_directive: bool) -> None:
    """Take a heading, or a directive that names something, as what the following is about."""
    tokens = list(tokens_of(title))
    names = [one.text for one in tokens if page.known(one.text) and (one.is_identifier or len(tokens) <= CONTEXT)]
    if is_directive and len(tokens) != 1:
        return
    page.head = names[0] if names else None
    page.headings = [*page.headings[-2:], title]
    page.item, page.carried = None, []


def _table(page: _Page, text: str, block: DocumentedBlock) -> Iterator[_Found]:
    rows, header = read_table(text, block)
    columns = [re.sub(r"[^a-z ]", "", cell.text.lower()).strip() for cell in header or ()]
    for row in rows:
        first = next((one.text for one in _tokens_of(text, row[0]) if page.known(one.text)), None)
        for at, cell in enumerate(row[1:], 1):
            tokens = [one for one in _tokens_of(text, cell) if one.text not in "`<>"]
            column = columns[at] if at < len(columns) else ""
            if not first or len(tokens) != 1:
                yield from _near(page, tokens, f"T{column}", [], first and ("row", first))
                continue
            value = tokens[0].value or Token(tokens[0].text, tokens[0].start, quoted=True).value
            if value is not None:
                yield _Found(first, value, tokens[0], f"T{columns[0] if columns else ''}|{column}=V")


def _tokens_of(text: str, cell: Cell) -> Iterator[Token]:
    return tokens_of(text[cell.start : cell.end].replace("\n", " "), cell.start)


def _text(page: _Page, tokens: Sequence[Token], *, is_bullet: bool, is_indented: bool) -> Iterator[_Found]:
    words = [one for one in tokens if one.text not in "`:<>("]
    lead = words[0] if words and page.known(words[0].text) else None
    is_term = len(words) == 1 and not is_indented
    is_term = is_term or (len(tokens) > 1 and tokens[0] is lead and tokens[1].text == ":")
    if lead and (lead.quoted or lead.is_identifier or is_term):
        page.item, page.carried = ("L" if is_bullet else "P", lead.text), []
    elif is_bullet and not is_indented:
        page.item, page.carried = None, []
    yield from _near(page, tokens, "XL" if is_bullet else "X", page.carried, page.item)
    page.carried = [*page.carried, *tokens][-CARRIED:]


def _near(
    page: _Page, tokens: Sequence[Token], role: str, carried: Sequence[Token],
    item: tuple[str, str] | None | str = None,
) -> Iterator[_Found]:  # fmt: skip
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
