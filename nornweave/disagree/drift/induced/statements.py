"""Every value near a name of the code, with the template that describes its place.

No notation is known here. A template is the kind of block (table, item, code, line), the position of the name to the
literal, and the tokens around the literal, abstracted. ``learning`` decides which templates state values.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.code import Comment
from nornweave.disagree.facts.documentation.blocks import INNERMOST, blocks_of
from nornweave.disagree.facts.documentation.defaults import ANNOUNCES, announced, gives_defaults, only_value
from nornweave.disagree.facts.documentation.tokens import QUOTES, Token, surface_of
from nornweave.disagree.facts.documentation.walk import MARKS, Literal, Walk
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import PRODUCTS

Known = Callable[[str], bool]
"""Tells whether the code has a value of this name."""

_HAS_LITERAL = lazy_pattern(r"\d|[`\"']|\b(?:true|false|none|null|nil)\b", re.IGNORECASE)
KEY_MARKS = frozenset((":", "=", "=>"))
"""Behind a string that is a name."""
_ALTERNATIVES = lazy_pattern(
    r"\[?=?<[\w.-]+(?:\|[\w.-]+)+>\]?|[\[({]=?[\w.-]+(?:\|[\w.-]+)+[\])}]|(?<=[ =])\{[\w.-]+(?:,[\w.-]+)+\}"
)
"""What an option takes: ``--hidden[=<false|true>]``, ``--mode {fast,slow}``. None of them is its value."""
_EXAMPLE, EXAMPLE = (
    lazy_pattern(r"\b(?:e\.?g\b\.?|for (?:example|instance)|such as),?:?[ \n(`\"']*$", re.IGNORECASE),
    24,
)
"""Before a literal that is only an example, and within how many characters."""
_SIGNATURE = lazy_pattern(r"\s*[\w.]+\((?P<taken>[^()]{0,2000}(?:\([^()]{0,200}\)[^()]{0,2000}){0,20})\)")
_PARAMETER = lazy_pattern(r"(?<![\w.])(?P<name>\w+)(?::[^,=()]{1,60})?[ ]?=[ ]?(?P<value>[^\s,()=][^,()=\n\\]{0,80})")
"""What a directive of reStructuredText describes, and a default in it: ``.. class:: Lamp(port=8025)``."""
_SINCE = frozenset(("since", "starting", "before", "until"))
CONTEXT = 3
"""Tokens before a literal that belong to its template."""
NEAR = 3
"""A name within so many tokens is next to the literal."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A literal near a name.

    Attributes:
        line: the line of the literal, from 0; ``start`` and ``end`` are its offsets in the text.
        template: describes the place of the literal.
        owner: the headings above the literal.
    """

    name: str
    value: Value
    line: int
    start: int
    end: int
    template: str
    owner: str


def statements_of(text: str, known: Known, subject: str = "", *, is_comment: bool = False) -> Iterator[Statement]:
    """Yield each literal of a page with each name to which it may belong: the nearest, its item's and its heading's.

    Args:
        subject: the name that the text is about. It counts like the name in a heading.
    """
    plain = _ALTERNATIVES.sub(lambda match: " " * len(match[0]), surface_of(text, comment=is_comment))
    walk = Walk(lambda token: known(token.name), head=subject if subject and known(subject) else "")
    starts = [0, *(at.end() for at in re.finditer("\n", text))]
    section: list[Statement] = []
    for block in blocks_of(plain, plain):
        if block.kind == "heading":
            yield from section
            section = []
            walk.enter(plain[block.body : block.end].partition("\n")[0], block.level)
        elif block.kind == "code" and walk.head and ANNOUNCES.search(plain[max(0, block.start - 80) : block.start]):
            # The block is the default of the heading: nothing else in the section is.
            section = [one for one in section if one.name != walk.head]
            word = only_value(plain, block)
            if word is not None and (value := word.value) is not None:
                line = bisect_right(starts, word.start) - 1
                owner = " ".join(title for _, title in walk.headings[-2:])
                section.append(Statement(walk.head, value, line, word.start, word.end, "F head default : V", owner))
            walk.head = ""
        if block.level == INNERMOST and (signature := _SIGNATURE.match(plain, block.body)):
            for match in _PARAMETER.finditer(plain, *signature.span("taken")):
                value = read_value(match["value"].strip())
                if value is not None and value.is_literal and known(match["name"]):
                    place = bisect_right(starts, match.start("value")) - 1, *match.span("value")
                    section.append(Statement(match["name"], value, *place, "F head default = V", ""))
            continue
        is_default = block.kind == "code" and not is_comment and gives_defaults(plain, block.start)
        for literal in walk.literals(plain, block):
            start = literal.token.start
            if _EXAMPLE.search(plain[max(0, start - EXAMPLE) : start]):
                continue
            required = (
                () if is_comment or block.kind == "heading" else _required(known, literal)
            )  # a comment says what a line needs
            for name, value, template in (*required, *_named(walk, literal)):
                section.append(Statement(
                    name, value, bisect_right(starts, start) - 1, start, literal.token.end,
                    template.replace(" ", " default ", 1) if is_default else template,
                    " ".join(title for _, title in walk.headings[-2:]),
                ))  # fmt: skip
    yield from section


def comment_statements(text: str, comments: Iterable[Comment], known: Known) -> Iterator[Statement]:
    """Yield the literals of a program's comments and docstrings, with the documented definition as heading."""
    for comment in comments:
        start, part = comment.start, text[comment.start : comment.end]
        if not _HAS_LITERAL.search(part):
            continue
        first = text.count("\n", 0, start)
        for one in statements_of(part, known, comment.subject, is_comment=True):
            yield replace(
                one, line=one.line + first, start=one.start + start, end=one.end + start, template=f"C{one.template}"
            )


def _required(known: Known, literal: Literal) -> Iterator[tuple[str, Value, str]]:
    """Yield name, value and template of a product's version (``Python 3.10+``), unless it only dates a feature."""
    row, at = literal.row, literal.at
    words = [one.text.lower() for one in row[:at] if one.text[0].isalnum()][-NEAR:]
    product = next((PRODUCTS[word] for word in reversed(words) if word in PRODUCTS), "")
    if known(product) and row[at].text[:1].isdigit() and _SINCE.isdisjoint(words):
        yield product, Value("version", row[at].text), f"{literal.role} version {_around(row, at)}"


def _named(walk: Walk, literal: Literal) -> Iterator[tuple[str, Value, str]]:
    """Yield name, value and template for the nearest name on a literal's line, its item's name and its section's."""
    row, at, role, item = literal.row, literal.at, literal.role, literal.item
    if "|" in role and item:  # all that stands in a cell
        yield item.name, literal.value, f"{role}=V"
        return
    is_help = role[0] == "F" and row[0].text[0] == "-"  # of a flag: words of its explanation name nothing
    is_name = [
        walk.is_name(one) and (one.text[0] == "-" if is_help else one.quoted or one.is_identifier)
        for one in row[: at + 1]
    ]
    behind = row[at + 1].text if at + 1 < len(row) else ""
    is_key = not row[at].text.startswith(QUOTES) or behind in KEY_MARKS
    if is_name[at] and is_key and row[at - 1].text != "=" and announced(row, at) is None:
        return
    names = {(f"item{item.role}", item.name)} if item and role[0] != "F" else set()
    is_below = role[0] not in "FT" or (
        role[0] == "F" and "default" in (one.text.lower() for one in row[max(0, at - 2) : at])
    )
    names |= {("head", walk.head)} if walk.head and is_below else set()
    nearest = next((one for one in range(at - 1, -1, -1) if is_name[one] or row[one].text.startswith("--")), None)
    before = [one.text for one in row[:at]]
    if role[0] == "F" and is_name[0] and before[1:2] == ["="] and "#" in before:
        nearest = 0  # slow_wait = 4 # more than quick_wait. Default: 4
    said = announced(row, at)
    if nearest is not None and item and said and said.place and row[said.place - 1].text in ".?!":
        is_marked = row[nearest].text[0] == "-" or (row[nearest].quoted and row[nearest].text[0] not in QUOTES)
        nearest = nearest if is_marked else None  # a word of the sentence before it: *as in NOTICE. Default: no.*
    if nearest is not None and is_name[nearest] and row[nearest].text != row[at].text:
        names.add(("next" if at - nearest <= NEAR else "line", row[nearest].name))
    around = _around(row, at)
    for relation, name in sorted(names):
        yield name, literal.value, f"{role} {relation} {around}"


def _around(row: Sequence[Token], at: int) -> str:
    before = [one.shape for one in row[max(0, at - CONTEXT) : at] if one.text not in MARKS]
    after = [one.shape for one in row[at + 1 : at + 3]]
    behind = " ".join(after) if "default" in after or after[:1] == ["by"] else ""
    return f"{' '.join(before)} V {behind}".rstrip()
