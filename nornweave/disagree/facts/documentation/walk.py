"""Walk over a page and yield each literal with its context: its line, its entry, its row, its headings.

No notation is known here. Seed templates (``defaults``) decide which literals state values, and templates that a
repository teaches (``drift/induced``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.blocks import Cell, DocumentedBlock, Row, read_table
from nornweave.disagree.facts.documentation.tokens import MAX_LINE, Token, tokens_of
from nornweave.disagree.facts.values import Value

BREAK = Token("¶", 0, 0)
"""Between the lines of an item."""
CARRIED = 8
"""Tokens of earlier lines of an item that a literal may follow."""
_LINE = lazy_pattern(r"[^\n]+")
_RUNS_ON = lazy_pattern(r"\n[a-z]")
_TERM = lazy_pattern(r"(?P<indent>[ \t]*)(?P<term>\S)[^\n]*\n(?P=indent)[ \t]+\S")
"""A line above one that is indented deeper: what a list of definitions explains."""
_FIELD = lazy_pattern(
    r":(?:param|parameter|arg|argument|key|keyword|ivar|cvar)\s+(?:[^:\n]{1,80}\s)?\*{0,2}(?P<sphinx>[\w.]+):"
    r"|[@\\](?:param|arg|argument|property|prop|option)\s+(?:\{[^{}\n]{1,120}\}\s*)?\[?`?(?P<tag>[A-Za-z_$][\w.$-]*)"
    r"|\*{0,2}(?P<entry>[A-Za-z_][\w.-]*)"
)
_HELP = lazy_pattern(r"[ \t]*(?P<head>-{1,2}\w(?:[^ \t\n]|[ \t](?![ \t])|[ \t]+(?=-))*)")
_FLAGS = lazy_pattern(r"(?<![\w-])--?[a-zA-Z][\w-]*")
_ROW = lazy_pattern(r"[ \t]*--?\w[^\n]*?[ \t]{2,}\S")
"""A flag with its explanation beside it."""
_PLACEHOLDER = lazy_pattern(r"-\w[ =][<\[]?(\w+_\w+)")
_TAKES = lazy_pattern(r"(?<=\w)[= ]?<[^<>`\n]*>|(?<=\w)=\w+(?:\|\w+)+")
"""What an option in a heading takes: ``--color=<auto|never>``."""
_OF_PARTS = lazy_pattern(r"[\s`\"'<>\[({]")
_BESIDE = frozenset(("and", "or", "&", "+", "/", "→"))
"""Behind a name that does not stand for what follows."""
HEADING = "H"
"""The role of what stands in a heading."""
MARKS = "`<>"
_OF_VALUES = lazy_pattern(r"default|value|min|max|limit|least|most")
_OF_CHOICES = lazy_pattern(
    r"\b(?:values|allowed|accepted|accepts|possible|valid|choices|options|range|types?|examples?|samples?|responses?|requests?)\b"
    r"(?!.*default)"
)
"""Heads of columns that say what a thing takes, what sort it is, or what somebody sends."""
_EXCHANGED = lazy_pattern(
    r"\b(?:response|request|reply|payload|endpoint)s?\b[^\n]*(?:\n[^\n]*)?$"
    r"|\b(?:HTTP/\d|curl |(?:GET|POST|PUT|PATCH|DELETE) /)[^\n]*$",
    re.IGNORECASE,
)
_VERB = lazy_pattern(
    r"\W*(?:(?:GET|POST|PUT|PATCH|DELETE|HTTP/\d[.\d]*) |(?:sample |example )?(?:request|response)\b)", re.IGNORECASE
)
_OPENS = lazy_pattern(r"(?:^|\n)[ \t]*(?:```|~~~|-{4,}|\.{4,})[^\n]*\n[ \t]*$")
"""What a heading, or the text above a block of JSON, says where it shows what is sent."""
_DEFAULT = lazy_pattern(r"[\W_]*defaults?(?: value)?[\W_]*$", re.IGNORECASE)
_PROPERTY = lazy_pattern(r"[\W_]*(?:defaults?(?: value)?|types?|required|mandatory|optional)[\W_]*$", re.IGNORECASE)
_UNSET = lazy_pattern(r"[\W_]*(?:n[/.]?a\.?)?[\W_]*$", re.IGNORECASE)
PROPERTIES = 2
"""Rows with names of properties that make a table one of properties, if it has so many."""
MAX_CELL = 40
"""Characters of a name in plain words."""
PLAIN = 3
"""Words of a heading that may be known names without a mark."""
BESIDE = 2
"""Words of a heading beside the name in it: *The `rows` option*."""
VALUED = 2
"""Words of a heading that gives a value beside its name: *rows `50`*."""


@dataclass(frozen=True, slots=True)
class Item:
    """The name that an entry is about. ``role`` is ``L`` in a bullet, ``P`` in a paragraph, ``row`` in a table."""

    role: str
    name: str
    start: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal and its place.

    Attributes:
        row: the tokens of some lines before it, then the tokens of its line or cell. ``at`` is its index in ``row``.
        role: a letter for the kind of block in which it is, such as ``F`` for code.
        column: the words of the header above it in a table; empty outside of tables.
    """

    row: Sequence[Token]
    at: int
    value: Value
    role: str
    item: Item | None
    column: str = ""

    @property
    def token(self) -> Token:
        """The literal itself."""
        return self.row[self.at]


@dataclass
class Walk:
    """The context of the current line: the headings, the name in the last heading, the item and its last tokens.

    Attributes:
        is_name: a function that tells whether a token is a name.
        is_strict: whether only a bullet or the first line of a block may begin an item.
        headings: the level and words of each heading above, outermost first.
    """

    is_name: Callable[[Token], bool]
    is_strict: bool = False
    headings: list[tuple[int, str]] = field(default_factory=list)
    head: str = ""
    item: Item | None = None
    carried: list[Token] = field(default_factory=list)

    def literals(self, text: str, block: DocumentedBlock) -> Iterator[Literal]:
        """Yield the literals of a block, which may be a heading."""
        if block.kind == "heading":
            yield from self._line(list(tokens_of(text[block.body : block.end], block.body)), HEADING, [], None)
            return
        if block.kind == "table":
            yield from self._table(text, block)
            return
        if block.kind == "code":
            yield from self._code(text, block)
            return
        if self.is_strict:
            self.carried = []
        start = self._field(text, block) if block.kind in {"field", "entry"} else block.body
        first = text.rfind("\n", 0, block.start) + 1
        for match in _LINE.finditer(text, first, block.end):
            begin = start if match.start() <= start < match.end() else match.start()
            term = _TERM.match(text, match.start(), block.end) if block.kind == "paragraph" else None
            is_term = term is not None and len(term["indent"]) == block.start - first
            begin = term.start("term") if term and is_term else begin
            tokens = list(tokens_of(text[begin : match.end()], begin)) if match.end() - begin <= MAX_LINE else []
            is_set = bool(tokens) and text.startswith("=**", tokens[0].end)  # **rows=** *NUMBER*
            is_bold = is_set or (bool(tokens) and text.startswith("**", tokens[0].end))
            is_bold = is_bold and text.startswith("**", begin)
            if is_bold or (text[begin] == "`" and tokens[1:2] and tokens[1].text in "=:"):  # `limit = (integer)`
                tokens[0] = replace(tokens[0], quoted=True)
            is_drawn = match.start() < begin == block.body and not block.indent  # below the picture before a name
            is_indented = block.kind != "item" and match[0][:1] in " \t" and not is_drawn
            is_bullet = block.kind == "item" and begin == block.body
            is_inside = is_indented or block.indent > 0 or _RUNS_ON.match(text, match.end(), block.end) is not None
            is_set = is_set and is_bold and is_term
            if self.is_strict and (is_term or _ROW.match(match[0])) and (flag := flag_of(match[0])):  # --color <when>
                self.item, self.carried = Item("P", flag.text, match.start() + flag.start), []
            yield from self._text(tokens, is_bullet=is_bullet, is_indented=is_inside and not is_term, is_set=is_set)

    def _code(self, text: str, block: DocumentedBlock) -> Iterator[Literal]:
        """Yield the literals of a code block. In a command's help, the lines below a flag are about that flag."""
        if self._is_exchanged(text, block):
            return
        above, flag_indent = (self.item, self.carried), 0
        self.item = None
        for match in _LINE.finditer(text, text.rfind("\n", 0, block.start) + 1, block.end):
            tokens = list(tokens_of(match[0], match.start())) if len(match[0]) <= MAX_LINE else []
            indent = len(match[0]) - len(match[0].lstrip())
            if flag := flag_of(match[0]):
                flag_indent = indent
                self.item = Item("L", flag.text, match.start() + flag.start)
            elif indent <= flag_indent:
                self.item = None
            elif self.item:
                yield from self._line(tokens, "X", [], self.item)
                continue
            yield from self._line(tokens, f"F{block.info}", [], None)
        self.item, self.carried = above

    def _is_exchanged(self, text: str, block: DocumentedBlock) -> bool:
        """Tell whether a block of JSON shows a request or a response, whose values are not defaults."""
        if text[block.body : block.body + 1] not in "{[" and not _VERB.match(text, block.body):
            return False
        above = _OPENS.sub("", text[max(0, block.start - 200) : block.start]).rstrip().rpartition("\n\n")[2]
        heading = self.headings[-1][1] if self.headings else ""
        return bool(_EXCHANGED.search(above) or _VERB.match(heading) or _VERB.match(text, block.body))

    def leave(self) -> None:
        """Forget the item and its tokens, because another section begins."""
        self.item, self.carried = None, []

    def enter(self, heading: str, level: int) -> None:
        """Store a heading as the subject of the following text."""
        self.leave()
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        self.headings.append((level, heading))
        tokens = list(tokens_of(_TAKES.sub("", heading)))
        has_value = len(tokens) == VALUED and tokens[1].shape == "#"
        if has_value or len(tokens) <= (1 if self.is_strict else PLAIN):
            tokens = [replace(one, quoted=one.quoted or one.text[0].islower() or not self.is_strict) for one in tokens]
        named = [one for one in tokens if self.is_name(one) and (one.quoted or one.is_identifier)]
        names = [one.name for one in named if len(tokens) == 1 or not (one.text.isalpha() and one.text.isupper())]
        beside = [one for one in tokens if one.text[0].isalpha() and one.name not in names]
        self.head = "" if len(beside) > BESIDE else max(names, key=lambda name: name.startswith("-"), default="")

    def _field(self, text: str, block: DocumentedBlock) -> int:
        """Store the name of a field as the subject. Return the offset of the name, or of the block without a name."""
        match = _FIELD.match(text, block.start, block.end)
        if match is None:
            return block.start
        group = match.lastgroup or ""
        self.item, self.carried = Item("L", match[group], match.start(group)), []
        return match.start(group)

    def _table(self, text: str, block: DocumentedBlock) -> Iterator[Literal]:
        rows, header = read_table(text, block)
        if own := [*_own_defaults(rows, header)]:
            for cell in own:
                tokens = [one for one in _cell(text, cell) if one.text not in MARKS]
                value = (tokens[0].value or replace(tokens[0], quoted=True).value) if tokens else None
                if value is not None:
                    yield Literal(tokens, 0, value, "T", self.item, "default")
            return
        columns = [re.sub(r"[^a-z ]", "", cell.text.lower()).strip() for cell in header or ()]
        has_defaults = any("default" in column for column in columns[1:])
        item: Item | None = None
        carried: dict[int, list[Token]] = {}
        is_drawn = block.info == "simple" or text[block.start] == "+"
        for row in rows:
            # A row of a drawn table may go over several lines.
            is_continued = is_drawn and item is not None and not row[0].text
            names = [one for one in _cell(text, row[0]) if self.is_name(one)]
            first = max(names, key=lambda one: len(one.text), default=None)
            if not is_continued:
                item, carried = Item("row", first.name, first.start) if first else None, {}
            if item is None and self.is_strict and 3 <= len(row[0].text) <= MAX_CELL and "`" not in row[0].text:
                item = Item("row", row[0].text.strip("*_ "), row[0].start)
            for at, cell in enumerate(row[1:], 1):
                lead = carried.get(at, [])
                tokens = [one for one in _cell(text, cell) if one.text not in MARKS]
                if len(tokens) > 1 and not _OF_PARTS.search(cell.text):  # localhost:8125
                    tokens = [Token(cell.text, cell.start, cell.end, quoted=True)]
                column = columns[at] if at < len(columns) else ""
                # Beside a column of defaults, others say types, units and scopes.
                is_beside = has_defaults and not _OF_VALUES.search(column) and "default" not in cell.text.lower()
                if not self.is_strict and (is_beside or _OF_CHOICES.search(column)):
                    continue
                carried[at] = [*lead, *tokens][-CARRIED:]
                if lead or not item or len(tokens) != 1:
                    yield from (replace(one, column=column) for one in self._line(tokens, f"T{column}", lead, item))
                    continue
                value = tokens[0].value or replace(tokens[0], quoted=True).value
                if value is not None:
                    yield Literal(tokens, 0, value, f"T{columns[0] if columns else ''}|{column}", item, column)

    def _text(self, tokens: Sequence[Token], *, is_bullet: bool, is_indented: bool, is_set: bool) -> Iterator[Literal]:
        words = [one for one in tokens if one.text not in "`:<>(_"]
        lead = words[0] if words and self.is_name(words[0]) else None
        is_typed = [one.text for one in tokens[1:]].count("(") == 1 and tokens[1].text == "(" and tokens[-1].text == ")"
        is_term = is_set or ((len(words) == 1 or is_typed) and not is_indented)
        is_term = is_term or (len(tokens) > 1 and tokens[0] is lead and tokens[1].text == ":")
        is_entry = lead is not None and (lead.quoted or lead.is_identifier or is_term)
        is_alone = is_term or (is_bullet and len(words) > 1 and words[1].text not in _BESIDE)
        runs_on = bool(self.carried) and self.carried[-1].text.isalpha() and not is_bullet
        is_inside = runs_on and len(tokens) > 1 and tokens[1].text == ","  # *commands such as* ¶ *NOTICE, SQUIT etc.*
        if lead and is_entry and (is_alone or not self.is_strict) and (lead.quoted or not is_inside):
            self.item, self.carried = Item("L" if is_bullet else "P", lead.name, lead.start), []
        elif is_bullet and not is_indented:
            self.item, self.carried = None, []
        yield from self._line(tokens, "XL" if is_bullet else "X", self.carried, self.item)
        self.carried = [*self.carried, *tokens][-CARRIED:]

    def _line(
        self, tokens: Sequence[Token], role: str, carried: Sequence[Token], item: Item | None
    ) -> Iterator[Literal]:
        row = [*carried, BREAK, *tokens] if carried else tokens
        for at in range(len(row) - len(tokens), len(row)):
            value = row[at].value
            if value is None and (
                _is_bracketed(row, at) or _is_set(tokens, row[at], role) or (self.is_strict and _is_last(row, at))
            ):
                value = replace(row[at], quoted=True).value
            if value is not None:
                yield Literal(row, at, value, role, item)


def _own_defaults(rows: Sequence[Row], header: Row | None) -> Iterator[Cell]:
    """Yield the cells with the default of what a table stands below, if the table names nothing itself.

    Each of its rows is then a property (``Type | Int``, ``Default | 3``), or its one row has the properties' values.
    """
    lines = [*([header] if header else ()), *rows]
    if header and len(rows) == 1 and _PROPERTY.match(header[0].text) and not _PROPERTY.match(rows[0][0].text):
        lines = [[name, cell] for name, cell in zip(header, rows[0], strict=False)]
    elif sum(_PROPERTY.match(row[0].text) is not None for row in lines) < min(len(lines), PROPERTIES):
        return
    cells = (row[1] for row in lines if len(row) > 1 and _DEFAULT.match(row[0].text))
    yield from (cell for cell in cells if not _UNSET.match(cell.text))


def _is_last(row: Sequence[Token], at: int) -> bool:
    """Tell whether a word is the only word of a line after ``Default:``."""
    lead = [one.text.lower() for one in row[max(0, at - 2) : at]]
    return lead in (["default", ":"], ["default", "="]) and all(one.text in ".])*_" for one in row[at + 1 :])


def flag_of(line: str) -> Token | None:
    """Return the name that a line of help explains; ``None`` if there is none.

    It is ``--port`` for ``-p, --port N``, and ``limit`` for ``-T limit``.
    """
    head = _HELP.match(line)
    flags = list(_FLAGS.finditer(line, head.start("head"), head.end())) if head else []
    if not flags:
        return None
    longest = max(flags, key=lambda flag: len(flag[0]))
    taken = _PLACEHOLDER.match(line, longest.start()) if len(longest[0]) == len("-T") else None
    found, group = (taken, 1) if taken else (longest, 0)
    return Token(found[group], found.start(group), found.end(group), quoted=True)


def _is_set(line: Sequence[Token], token: Token, role: str) -> bool:
    """Tell whether a line only sets a name to this word: ``ui.color = green``; in code also ``color: green``."""
    if token is not line[-1] or len(line) not in {3, 4} or (len(line) == 4 and line[0].text not in "#-"):
        return False
    is_name = role[0] == "F" or line[-3].is_identifier
    return is_name and line[-2].text in ("=", ":") and token.text[0].isalpha()


def _is_bracketed(row: Sequence[Token], at: int) -> bool:
    """Tell whether a word stands alone in brackets after *default*: ``[default: green]``, ``(default 0.0.0.0)``."""
    lead, behind = [one.text.lower() for one in row[max(0, at - 3) : at]], row[at + 1 : at + 2]
    lead = lead if lead[-1:] == [":"] else [*lead[1:], ":"] if not row[at].text.isalpha() else []
    return lead in (["[", "default", ":"], ["(", "default", ":"]) and bool(behind) and behind[0].text in "])"


def _cell(text: str, cell: Cell) -> Iterator[Token]:
    return tokens_of(text[cell.start : cell.end].replace("\n", " "), cell.start)
