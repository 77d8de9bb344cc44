"""Values that code replaced by others while a page still says the old one beside the same words.

Agreements are believed by templates and votes, so that one more file can silence them. A change says more: at one
place of the code one literal replaced another, beside a name. A page that says the old value with all words of that
name, and not the new one, is about that place. So is a page that lists the old value among other choices of the code.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.terminal import lines_of
from nornweave.disagree.drift.files import SourceFile, is_for_tools
from nornweave.disagree.drift.gone import TextOf, aligned, page_finding
from nornweave.disagree.drift.induced.code import MAX_STRING, CodeToken, tokens_of_code
from nornweave.disagree.drift.options import documented_options
from nornweave.disagree.drift.records import Finding, Place
from nornweave.disagree.facts.configuration import is_configuration
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import Value

EXPRESSION = 5
"""Tokens on each side of a number that may be one expression with it."""
MAX_REPLACED = 200
"""Values of a range of commits that are looked for on pages."""
BACK, AROUND, NEAR, ENTRY_LINES, CLASS_BACK, COPIED = 8, 16, 3, 12, 400, 3
"""Tokens before a value that may name it; tokens beside a choice; lines around one on a page; lines of an entry; tokens
before a constant among which its class stands; lines that a copy of a configuration shares with it.
"""
_CLASSES = frozenset(("class", "module", "object", "struct", "trait", "interface"))
_SAYS_NOTHING = frozenset(
    """
    a an the of to in is it be by or and for with value val var let const int integer str string bool boolean float i64
    number uint long self this set get new option options opt opts config configuration setting settings convention i32
    default static final public private return if else func function def fn property flag arg version required min max
    type add pub case returns setdefault are not than less more supports u8 u16 u32 u64 usize duration seconds ms time
    """.split()  # noqa: SIM905
)
_LITERAL = lazy_pattern(
    r"(?i:true|false|yes|no|on|off)|:[a-z]\w+|[@$:]*(?:(?:\w+(?:\.|::|->))+[A-Z]\w*|[A-Z][A-Z\d_]+)"
)
_ENUMERATES, _BEHIND_MEMBER = frozenset(("enum", "union", "case")), frozenset(",=}(|;")
_BEFORE_MEMBER = frozenset(("{", ",", "|", "]", ")", "case"))
_VERSION, _BOUND = lazy_pattern(r"\d+(?:\.\d+){1,2}"), lazy_pattern(r"^[<>=~^! ]*v?(?=\d)")
_REQUIRES = lazy_pattern(r"newer|later|higher|above|at least|require|minim|support|[>^~]|\d\+", re.IGNORECASE)
_DEFAULT, _WORD = lazy_pattern(r"default", re.IGNORECASE), lazy_pattern(r"[A-Za-z_][\w-]*")
_SETTINGS = lazy_pattern(
    r"(?:^|/)(?:config|conf|etc|settings)/|(?:config|settings|defaults?|sample|example)\.", re.IGNORECASE
)
"""Paths of a configuration that a program reads or ships."""
_STATES = lazy_pattern(r"\w[\"']?\s*(?:=>?|:)\s*\S")
_LISTED = lazy_pattern(r"(?:^\s*|[`*\"':|\[(<{,+-] ?)([\w-]{3,})(?=[`*\"':|\])>},\n]|$|[ ]:)", re.MULTILINE)


@dataclass(frozen=True)
class _Replacement:
    """A value that replaced another.

    Attributes:
        line: the line of the new value at the head, from 0.
        key: the words of the name that has the value.
        lead: the token before the value.
        choices: the values of the same kind around it, in lower case; empty if it cannot be one of several choices.
        is_default: whether its line calls it a default.
        is_required: whether its line calls it a requirement.
        lines: the lines of a configuration file at the base; empty for other files. ``line_was`` is the value's line.
    """

    path: str
    line: int
    old: str
    new: str
    key: tuple[str, ...]
    lead: str
    choices: frozenset[str]
    is_default: bool
    is_required: bool
    lines: frozenset[str]
    line_was: str

    @property
    def said(self) -> re.Pattern[str]:
        """A pattern of the old value on a page. A text of several words stands in marks there."""
        return re.compile(rf"(?<=[`\"']){re.escape(self.old)}(?=[`\"'])") if " " in self.old else _pattern(self.old)


def replaced(old: Sequence[SourceFile], new: Sequence[SourceFile], text_of: TextOf) -> list[Finding]:
    """Return a finding for each value that code replaced and that pages still say in lines that did not change.

    Args:
        old, new: the files of both commits; their blobs show which files changed.
    """
    before, after = ({file.path: file for file in files} for files in (old, new))
    found = [
        one
        for path, file in before.items()
        if file.kind == "code" and not is_for_tools(path)
        if path in after and after[path].version != file.version
        for one in _replacements(path, text_of(file), text_of(after[path]))
    ][:MAX_REPLACED]
    pages = [_Page(file.path, text_of(file), text_of(before[file.path])) for file in new
             if found and file.kind == "documentation" and file.path in before]  # fmt: skip
    reports, told = [], set[tuple[str, int]]()
    for one in found:
        said = {(page.path, line): page for page in pages for line in page.says(one) if (page.path, line) not in told}
        if said and not _is_held(one, (file for file in new if file.kind == "code"), text_of):
            told |= said.keys()
            text = lines_of(text_of(after[one.path]))[one.line]
            code = Place(path=one.path, line=one.line + 1, side="code", value=one.new, text=text)
            places = [Place(path=path, line=line + 1, side="documentation", value=one.old, text=page.lines[line])
                      for (path, line), page in said.items()]  # fmt: skip
            (path, line), page = next(iter(said.items()))
            name = " ".join(one.key) if one.key and not page.is_choice(one, line) else one.old
            message = f"{name}: {path}:{line + 1} says {one.old}; {one.path}:{one.line + 1} did, and is {one.new} now"
            reports.append(page_finding("value", name, message, code, places, was=one.old))
    return reports


def _replacements(path: str, old: str, new: str) -> Iterator[_Replacement]:
    """Yield the values of a program that other values replaced. In JSON and the like only required versions count."""
    tokens, later = (tokens_of_code(text, PurePosixPath(path).suffix) for text in (old, new))
    lines = [line.strip() for line in lines_of(old)] if _SETTINGS.search(path) else []
    stated = frozenset(line for line in lines if _STATES.search(line))
    at_of, now = ([at for at, one in enumerate(side) if one.kind != "mark"] for side in (tokens, later))
    for i, k in aligned([tokens[at].text for at in at_of], [later[at].text for at in now]):
        if k is None:
            continue  # removed, not replaced
        at, token, other = at_of[i], tokens[at_of[i]], later[now[k]]
        before, after = _value(token), _value(other)
        is_member = token.kind == "name" and _is_enumerated(tokens, at)
        if token.kind == "name":
            stem = before.rpartition("_")[0] + "_"  # ``NOMAP_ERROR``, ``NOMAP_IGNORE``
            before, after = (one.removeprefix(stem) if after.startswith(stem) else one for one in (before, after))
            owners = {token.text.removesuffix(before), other.text.removesuffix(after)}
            if not is_member and (len(owners) > 1 or not all(_LITERAL.fullmatch(one.text) for one in (token, other))):
                continue
        value = read_value(before)  # ``10`` is ``10.0``, and ``state:`` still says ``state``
        is_same = _pattern(before).search(after) or (value and value.text and value == read_value(after))
        is_sentence = " " in before and (len(before) > MAX_STRING or token.kind != "string")
        if other.kind != token.kind or not before or is_sentence or is_same:
            continue
        if token.kind == "number" and _quantities(tokens, at, old) & _quantities(later, now[k], new):
            continue  # 10 hours and 600 minutes
        is_choice = is_member or token.kind == "string" or token.text[0] == ":"
        key = () if is_member else _key(tokens, at)
        if before.lower() in key:  # chunk_size = CHUNK_SIZE: a constant that only has another name
            continue
        row = [one for one in tokens[max(0, at - 2 * AROUND) : at + 2 * AROUND] if one.line == token.line]
        is_required = any(_REQUIRES.search(one.text) for one in row if one.kind != "mark")
        if is_required or not (_VERSION.fullmatch(before) or (is_configuration("", path) and not lines)):
            yield _Replacement(
                path, other.line, before, after, key,
                tokens[at - 1].text, _beside(tokens, at) if is_choice else frozenset(),
                any(_DEFAULT.search(one.text) for one in row), is_required,
                stated, lines[token.line] if lines else "",
            )  # fmt: skip


def _value(token: CodeToken) -> str:
    """Return the value of a token: a number, a string, or a member of an enumeration."""
    if token.kind == "string":
        return _BOUND.sub("", token.text.strip("\"'`"))
    return token.text.replace("_", "") if token.kind == "number" else re.split(r"\.|::|->|[@$:]", token.text)[-1]


def _quantities(tokens: Sequence[CodeToken], at: int, text: str) -> set[Value]:
    """Return the values with units of the expressions around a number: 36,000 s for ``timedelta(hours=10)``."""
    spans = ((tokens[first].start, tokens[last].end) for first in range(max(0, at - EXPRESSION), at + 1)
             for last in range(at, min(len(tokens), at + EXPRESSION)))  # fmt: skip
    read = (read_value(text[start:end]) for start, end in spans)
    return {value for value in read if value is not None and value.unit is not None}


def _beside(tokens: Sequence[CodeToken], at: int) -> frozenset[str]:
    """Return the values of the same kind around a value, in lower case."""
    is_literal = tokens[at].kind == "string" or tokens[at].text[0] == ":"
    reach = AROUND * (3 if is_literal else 1)  # ``#[serde(rename = "dim")]`` stands between two
    around = tokens[max(0, at - reach) : at + reach]
    return frozenset(_value(one).lower() for one in around if one.kind == tokens[at].kind and one is not tokens[at])


def _is_enumerated(tokens: Sequence[CodeToken], at: int) -> bool:
    """Tell whether a name is a member where an enumeration is declared, or a list of macros: ``A(SHADE_DIM, dim)``."""
    if at > 2 and [tokens[at - 3].text, tokens[at - 1].text] == ["(", ","]:
        return tokens[at - 2].text.upper().endswith(f"_{tokens[at].text.upper()}")
    ends = [one.text for one in (*tokens[at - 1 : at], *tokens[at + 1 : at + 2])]
    is_member = len(ends) == 2 and ends[0] in _BEFORE_MEMBER and ends[1] in _BEHIND_MEMBER
    return is_member and any(one.text in _ENUMERATES for one in tokens[max(0, at - 4 * AROUND) : at])


def _key(tokens: Sequence[CodeToken], at: int) -> tuple[str, ...]:
    """Return the words of the name to which a value belongs: the nearest telling name before it; empty if none."""
    for one in reversed(tokens[max(0, at - BACK) : at]):
        if tokens[at].line - one.line > 2 or one.text in {";", "}"}:
            break
        is_sentence = one.kind == "mark" or (one.kind == "string" and " " in one.text)  # help is no name
        for part in () if is_sentence else reversed(re.split(r"\.|::|->", one.text)):
            if words := tuple(word for word in words_of(part) if word not in _SAYS_NOTHING):
                return words
        if one.kind == "name" and one.text.isupper() and one.line == tokens[at].line:
            return _class_around(tokens, at)
    return ()


def _class_around(tokens: Sequence[CodeToken], at: int) -> tuple[str, ...]:
    """Return the words of the class around a constant with a name that says nothing, such as ``DEFAULT_VALUE``."""
    for place in range(at - 1, max(0, at - CLASS_BACK), -1):
        if tokens[place - 1].text in _CLASSES and tokens[place].kind == "name":
            return tuple(word for word in words_of(tokens[place].text) if word not in _SAYS_NOTHING)
    return ()


class _Page:
    """A page with the entries above its lines."""

    def __init__(self, path: str, text: str, before: str) -> None:
        """Take the text of a page at the head and at the base."""
        self.path, self.lines, self._text = path, lines_of(text), text.lower()
        self._known = {line for line in lines_of(before) if not re.match(r"\s*\[[^]]+\]:", line)}  # no link's address
        self._entries = sorted((line, written) for written, line in documented_options(text))
        self._subjects = {_telling(written) for _, written in self._entries}

    def entry(self, line: int) -> str:
        """Return the name of the entry to which a line belongs; empty if the line belongs to no entry."""
        at = bisect_right(self._entries, (line, "\uffff")) - 1
        return self._entries[at][1] if at >= 0 and line - self._entries[at][0] <= ENTRY_LINES else ""

    def says(self, one: _Replacement) -> Iterator[int]:
        """Yield the lines, from 0, that say the old value and said it at the base."""
        for line, text in enumerate(self.lines) if one.old.lower() in self._text else ():
            is_said = text in self._known and one.said.search(text)
            if is_said and (self.is_choice(one, line) or self._is_copied(one, line) or self._is_value(one, line)):
                yield line

    def _is_value(self, one: _Replacement, line: int) -> bool:
        """Tell whether a line states the old value, and states it for the name that had this value in the code."""
        text, old = self.lines[line], _pattern(one.old).pattern
        said = {word for written in _WORD.findall(text) for word in words_of(written)}
        entry = _telling(self.entry(line))
        if entry and entry != set(one.key) and frozenset(one.key) in self._subjects:
            return False  # the name has an entry of its own
        is_fenced = sum(before.lstrip().startswith(("```", "~~~")) for before in self.lines[:line]) % 2
        if not one.key or not all(_has(word, said if is_fenced else said | entry) for word in one.key):
            return False
        calls_default = self._is_in_column(line, one.old) or re.search(
            rf"default\w*\b[^.;\n]{{0,40}}?{old}|{old}[`\"'*)\]]{{0,3}}(?: \w+)?[ ]?\(?(?:by |as |the )?default",
            text, re.IGNORECASE,
        )  # fmt: skip
        if (is_fenced and not one.is_default) or (not calls_default and _pattern(one.new).search(text)):
            return False
        if _VERSION.fullmatch(one.old) and one.is_required:
            return _REQUIRES.search(text) is not None
        cells = [cell.strip(" `*\"'-+") for cell in text.split("|")]
        if one.old in cells and any(cell.isidentifier() and words_of(cell) == one.key for cell in cells):
            return True  # a table of states: | 4 | BRIGHT |
        is_named = len(one.key) > 1 or entry == set(one.key) or re.search(rf"\w[.]{one.key[0]}\b", text) is not None
        if not re.search(r"\d\d|\d\.\d", one.old) and not (one.old.isupper() and len(one.old) > 3 and one.old in text):
            return bool(calls_default or one.is_default) and is_named
        return bool(is_named or calls_default or (one.is_default and _DEFAULT.search(text)))

    def _is_copied(self, one: _Replacement, line: int) -> bool:
        """Tell whether a page copied a configuration: a code block has the line of the old value and other lines."""
        if not one.line_was or self.lines[line].strip() != one.line_was:
            return False
        fences = [at for at, text in enumerate(self.lines) if text.lstrip().startswith(("```", "~~~"))]
        first = bisect_right(fences, line)
        if first % 2 == 0 or first == len(fences):
            return False
        block = {text.strip() for text in self.lines[fences[first - 1] : fences[first]]}
        return len(block & one.lines) >= COPIED

    def _is_in_column(self, line: int, value: str) -> bool:
        """Tell whether a value is alone in a table's cell below a heading such as *Default*."""
        cells = [cell.strip(" `\"'") for cell in self.lines[line].split("|")]
        while line and "|" in self.lines[line - 1]:
            line -= 1
        heads = self.lines[line].split("|")
        return any(cell == value and _DEFAULT.search(head) for cell, head in zip(cells, heads, strict=False))

    def is_choice(self, one: _Replacement, line: int) -> bool:
        """Tell whether a page lists the old value near two of the values that are around it in the code."""
        near = "\n".join(self.lines[max(0, line - NEAR) : line + NEAR + 1]).lower()
        listed = set(_LISTED.findall(near)) if len(one.choices) > 1 else set()
        return one.old.lower() in listed and len(one.choices & listed) > 1 and not _pattern(one.new).search(near)


def _telling(written: str) -> frozenset[str]:
    return frozenset(word for word in words_of(written) if word not in _SAYS_NOTHING)


def _pattern(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./])(?<!\w-){re.escape(value)}(?!\w|[.-]\w)", re.IGNORECASE)


def _has(word: str, said: Iterable[str]) -> bool:
    """Tell whether the words ``said`` have a word, or a longer or shorter form of it: ``ext`` for ``extension``."""
    word = word.rstrip("0123456789") or word
    return any(
        one in {word, f"lib{word}"} or (min(len(word), len(one)) > 2 and (one.startswith(word) or word.startswith(one)))
        for one in said
    )


def _is_held(one: _Replacement, files: Iterable[SourceFile], text_of: TextOf) -> bool:
    """Tell whether a program still gives the name the old value, or has the old value among the same choices."""
    for file in files:
        text = text_of(file)
        tokens = tokens_of_code(text, file.suffix) if one.old in text else []
        for at, token in enumerate(tokens):
            if token.kind == "mark" or _value(token) != one.old:
                continue
            if one.key and at and tokens[at - 1].text == one.lead and _key(tokens, at) == one.key:
                return True
            if (token.kind != "name" or _is_enumerated(tokens, at)) and len(one.choices & _beside(tokens, at)) > 1:
                return True
    return False
