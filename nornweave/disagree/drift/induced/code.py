"""Every literal near a name in code, with the templates that describe its place.

No language and no framework is known here. A name is a string, a symbol, a tag, or an identifier, also one that says
*default* (``DEFAULT_PORT``). A template is the code between the name and the literal, and before them:
``->integerNode('size')->defaultValue(5)``, ``number_setting :port, 5672``, ``fn default_port() -> u16 { 5432 }``.
``learning`` decides which templates state values.

The constants of a repository are the values of names that are defined in one file, for all others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.drift.files import without_tests
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import Name, is_other_of, read_name, words_of
from nornweave.disagree.facts.values import FALSE, NONE, TRUE, Value

AHEAD, BEHIND = 30, 16
"""Tokens between a name and its literal, at most, behind and before the name."""
LINES_AHEAD, LINES_BEHIND = 3, 2
TESTED, DECLARED = 0, 2
"""How a value stands beside a name; what lies between says nothing of it."""
CLOSE = 3
"""Within so many tokens another name does not take the literals that follow."""
MAX_VALUE = 160
"""Characters of an expression."""
MAX_STRING = 60
MAX_TOKENS = 60_000
"""Of a file: a larger one is data."""
HASH_COMMENTS = frozenset(
    ".py .rb .sh .bash .php .pl .yaml .yml .toml .ini .cfg .conf .ex .exs .r .tf .cmake .properties".split()  # noqa: SIM905
) | {""}
_TOKEN = lazy_pattern(
    r"""
    (?P<comment>/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)|//[^\n]*)
    |(?P<hash>\#[^\n]*)
    |(?P<string>\"\"\"(?:[^"]|"(?!""))*(?:\"\"\"|\Z)|'''(?:[^']|'(?!''))*(?:'''|\Z)
       |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.){0,80}'|(?<==\s)["'][\w:. -]{1,80}(?=\n))
    |(?P<number>0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?[a-zA-Z%]{0,4}\d{0,2})
    |(?P<name>[@$:]?[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*)
    |(?P<line>\n)
    |(?P<mark>\|\||&&|\?\?|=>|->|::|===?|!==?|<=|>=|:=|[-+*/%()\[\]{}<>,;:?=!&|.~^@\\])
    """,
    re.VERBOSE,
)
_OPENS = frozenset("( , ; { } [ ] = : ? || ?? => := return -> default or".split())  # noqa: SIM905
"""What a value may stand behind."""
_ENDS = frozenset(", ) ; } ] = : => := ?".split())  # noqa: SIM905
_LEFT, _RIGHT = frozenset("([{"), frozenset(")]}")
_WORDS = frozenset("true false none null nil undefined yes no on off".split())  # noqa: SIM905
_DECLARES = frozenset("class struct interface enum trait namespace package module protocol typedef union".split())  # noqa: SIM905
"""What a type or a package is declared with."""
_TESTS = frozenset("match switch case if elif unless when while until assert enum".split())  # noqa: SIM905
_BRANCHES = frozenset("match switch case when".split())  # noqa: SIM905
_DESCRIBES = frozenset("metavar value_name placeholder dest".split())  # noqa: SIM905
"""What a program calls a value in its help."""
_COMPARES = frozenset("== != === !== <= >=".split())  # noqa: SIM905
"""What looks at a value, or lists those that there can be."""
_GIVES = frozenset(("=", ":", "=>", ":="))
"""Behind a name that takes a value itself."""
_SAYS_DEFAULT = frozenset("default defaults fallback initial missing convention".split())  # noqa: SIM905
_MEMBER = lazy_pattern(r"[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)*(?:\.|::)[A-Z]\w*$|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
"""A member of an enumeration, or a constant that is one: ``Size::Human``, ``HASH_MD5``."""
_DEFAULTS: dict[tuple[str, ...], Value] = {
    ("default", "true"): TRUE,
    ("default", "false"): FALSE,
    ("default", "null"): NONE,
}
"""Words of a method that says a default itself: ``->defaultFalse()``."""
_TAGS, _TAG_OPTIONS = lazy_pattern(r"`([^`\n]*)`"), lazy_pattern(r"(\w+:\"[^\",\n]+),([\w,=]*)\"")
_DASHES = lazy_pattern(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(--(?:\[\[[\s\S]*?\]\]|[^\n]*))")
_MODULE_DOC = lazy_pattern(r"@(?:module|type)?doc\s+(?:~[sS])?\"\"\"[\s\S]*?\"\"\"")
_COPIED = lazy_pattern(r"\b(str[ln]?cpy[ \t]*\()([ \t]*[\w.>-]+[ \t]*),(?=[ \t]*[\"A-Z])")
"""Comments of Lua, what Elixir documents a module or a function with, and in C ``strcpy(name, "glow")``."""

_SET = lazy_pattern(
    r"\"(?=[\w-]+[._]|[^\"]*\\n\")(?P<name>[A-Za-z][\w.-]*)[ ]?(?P<sign>=)[ ]?(?P<value>[^\s\"#;\\][^\"#;\\\n]*?)"
    r"[ ]*(?:#[^\"\n]*)?(?:\\n)?\""
)
"""A string that is a line of a configuration: ``"rows.size=5  # of a page\\n"``."""

MAX_FOLLOWED = 4
"""Constants that are defined by constants, one behind the other."""
_DEFINED = lazy_pattern(
    r"(?:^[ \t]*\#[ \t]*define[ \t]+(?P<macro>[A-Z]\w{2,})[ \t]+"
    r"|(?<![\w.$])(?P<name>[A-Z][A-Z0-9_]{3,}|[dD]efault[A-Z]\w*|(?<=const )[a-z]\w{3,})"
    r"(?:[ \t]*:[ \t]*[^=\n;,(){}]{1,40}|[ \t]+[\w.]{2,30})?"
    r"[ \t]*:?=(?![=>])[ \t]*)(?P<value>(?:\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[^\n;\"'#]){1,120}?)"
    r"[ \t]*(?:;|,?[ \t]*(?://|/\*|\#[^\w])[^\n]*|,?$)",
    re.MULTILINE,
)
_GROUP, _GROUPED = (
    lazy_pattern(r"^const \($[\s\S]*?^\)$", re.MULTILINE),
    lazy_pattern(r"^[ \t]+(?P<name>[A-Za-z]\w{3,})(?:[ \t]+[\w.]+)?[ \t]*=[ \t]*(?P<value>\"[^\"\n]*\"|\w+)[ \t]*(?://.*)?$",
                 re.MULTILINE),
)  # fmt: skip
"""A group of constants in Go, and a line of it."""
_MEANT = lazy_pattern(r"\benum (?P<name>\w+)\s*\{[^}]*?#\[default\](?:\s|#\[[^\]\n]*\]|//[^\n]*)*(?P<value>\w+)")
_OPTIONAL = lazy_pattern(r"(:[ ]*)Option<(\w+)>")
"""In Rust: the member of an enumeration that is its default, and the type of a field that may have none."""
_ALONE = lazy_pattern(r"[A-Za-z_]\w*(?:(?:\.|::)\w+)*$")


@dataclass(frozen=True, slots=True)
class CodeStatement:
    """A literal near a name.

    Attributes:
        written: the name as it is written; ``name`` is the same name, split into its parts.
        line: the line of the literal, from 0; ``start`` and ``end`` are its offsets in the text.
        templates: descriptions of the place of name and literal, from general to special.
        path: the file that defines the constant in this place; empty for a literal of the text itself.
        standing: ``DECLARED`` if the code calls it a default, ``TESTED`` if the code only tests a value.
    """

    written: str
    name: Name
    value: Value
    line: int
    start: int
    end: int
    templates: tuple[str, str, str]
    path: str = ""
    standing: int = 1


@dataclass(frozen=True, slots=True)
class _Found:
    """A literal expression. ``last`` is the index of its last token.

    ``place`` is the definition of the constant that stands for the literal; ``None`` if there is no constant.
    """

    last: int
    value: Value
    place: Definition | None = None


@dataclass(frozen=True, slots=True)
class CodeToken:
    """A word, a literal or a mark of a program. ``line`` counts from 0."""

    kind: str
    text: str
    start: int
    end: int
    line: int

    @property
    def shape(self) -> str:
        """The token in a template: ``S`` for a string, ``0`` for a number, otherwise the text of the token."""
        return {"string": "S", "number": "0"}.get(self.kind, self.text)

    @property
    def written(self) -> str:
        """The token as a name; empty if it cannot be a name."""
        if self.kind == "string":
            text = self.text.strip("\"'")
            return text if len(text) <= MAX_STRING and " " not in text else ""
        return self.text.lstrip("@$:") if self.kind == "name" else ""


def code_statements(
    text: str, path: str, wanted: Callable[[Name], Name | None], constants: Definitions
) -> Iterator[CodeStatement]:
    """Yield each literal of a program, and each constant that holds a literal, with each name to which it may belong.

    Args:
        path: the path of the file.
        wanted: a function that returns the name that is looked for and that a name of the program means, or ``None``.
        constants: the constants of the repository.
    """
    suffix = PurePosixPath(path).suffix
    tokens = tokens_of_code(text, suffix)
    named: dict[int, Name] = {}
    for at, token in enumerate(tokens):
        held = constants.name(token.written, path) if token.kind == "name" else ""
        name = read_name(held or token.written)
        thing, _, method = token.written.rpartition(".")
        is_call = tokens[at + 1 : at + 2] and tokens[at + 1].text == "("
        words = words_of(method)
        if thing and is_call and ("or" in words[1:] or not _SAYS_DEFAULT.isdisjoint(words)):  # retries.convention(60)
            name = read_name(f"{thing}_default")
        if name is not None and (meant := wanted(name)) is not None:
            named[at] = meant
    if not named:
        return
    values: dict[int, _Found | None] = {}
    for at, name in named.items():
        for place in (*_behind(tokens, at, named), *_before(tokens, at, named)):
            if place not in values:
                values[place] = _value_at(tokens, place, text, lambda written: constants.find(written, path))
            found = values[place]
            if found is not None and (place > at or found.last < at) and not _is_of_another(tokens, place, name.name):
                yield _statement(tokens, at, name, place, found)


def code_uses(text: str, suffix: str) -> Iterator[tuple[str, Literal["type", "function", "value"]]]:
    """Yield the names and strings of a program, outside of comments, each with its role."""
    tokens = tokens_of_code(text, suffix)
    for at, token in enumerate(tokens):
        if token.kind in {"name", "string"}:
            is_function = token.kind == "name" and at + 1 < len(tokens) and tokens[at + 1].text == "("
            before = tokens[at - 1].text if at and token.kind == "name" else ""
            yield (token.text.strip("\"'`@$:"),
                   "type" if before in _DECLARES else "function" if is_function else "value")  # fmt: skip


def _is_of_another(tokens: Sequence[CodeToken], place: int, name: str) -> bool:
    """Tell whether a value is the default of a longer name: ``timeout = opts.rollingTimeout || 20``."""
    first = place - 2 if place > 1 and tokens[place - 1].text in {"||", "??"} else place
    return tokens[first].kind == "name" and is_other_of(tokens[first].written, name)


def code_words(text: str, suffix: str) -> Iterator[tuple[str, int]]:
    """Yield the names and the strings of a program, outside of comments, each with its line, from 0."""
    for token in tokens_of_code(text, suffix):
        if token.kind in {"name", "string"}:
            yield token.text.strip("\"'`@$:"), token.line


def tokens_of_code(text: str, suffix: str) -> list[CodeToken]:
    """Return the tokens of a program without its comments."""
    tokens: list[CodeToken] = []
    text = without_tests(text, suffix)
    if suffix == ".go":  # the tags of a field hold names and defaults
        text = _TAGS.sub(lambda match: f" {_TAG_OPTIONS.sub(_without_options, match[1])} ", text)
    if suffix == ".rs":
        text = _OPTIONAL.sub(lambda match: f"{match[1]}{match[2]}".ljust(len(match[0])), text)
    if suffix in {".c", ".cc", ".cpp", ".h"}:
        text = _COPIED.sub(lambda match: f"{' ' * len(match[1])}{match[2]}=", text)
    if suffix == ".lua":
        text = _DASHES.sub(lambda match: match[0] if match[1] is None else re.sub(r"[^\n]", " ", match[0]), text)
    if suffix in {".ex", ".exs"}:
        text = _MODULE_DOC.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    line, at = 0, 0
    while (found := _TOKEN.search(text, at)) is not None and len(tokens) < MAX_TOKENS:
        at = found.end()
        kind = found.lastgroup or ""
        if kind == "hash" and suffix not in HASH_COMMENTS:
            at = found.start() + 1
        elif kind == "string" and (set_ := _SET.fullmatch(text, *found.span())):
            for part, of in (("name", "string"), ("sign", "mark"), ("value", "string")):
                tokens.append(CodeToken(of, set_[part] if of == "mark" else f'"{set_[part]}"', *set_.span(part), line))
        elif kind not in {"line", "comment", "hash"}:
            tokens.append(CodeToken(kind, found[0], found.start(), found.end(), line))
        line += text.count("\n", found.start(), at)
    return tokens


def _without_options(match: re.Match[str]) -> str:
    """Return the tag of a field with its name alone: ``json:"lamp"`` for ``json:"lamp,omitempty"``."""
    return f'{match[1]}" '.ljust(len(match[0]))


def _value_at(
    tokens: Sequence[CodeToken], at: int, text: str, constant: Callable[[str], Definition | None]
) -> _Found | None:
    """Return the literal expression that begins at a token; ``None`` if there is none."""
    token, before = tokens[at], tokens[at - 1] if at else None
    begins = before is None or before.text in _OPENS or before.line < token.line
    if not begins or (token.kind == "mark" and token.text not in "-[{"):
        return None
    end = _end_of(tokens, at)
    written = text[token.start : tokens[end - 1].end]
    if end == at or len(written) > MAX_VALUE:
        return None
    if said := _DEFAULTS.get(words_of(token.text)):
        return _Found(at, said)
    place = None
    if end == at + 1 and token.kind == "name" and token.text.lower() not in _WORDS:
        place = constant(token.text)
        value = (
            Value("string", token.text[1:]) if token.text[0] == ":"
            else place.value if place
            else Value("symbol", token.text) if _MEMBER.match(token.text)
            else None
        )  # fmt: skip
    else:
        value = read_value(written)
        value = value if value is not None and value.is_literal else None
    is_text = value is not None and value.kind == "string" and len(value.text) > MAX_STRING
    return _Found(end - 1, value, place) if value is not None and not is_text else None


def _end_of(tokens: Sequence[CodeToken], at: int) -> int:
    """Return the index of the token after the expression that begins at a token."""
    depth = 0
    for place in range(at, min(at + AHEAD, len(tokens))):
        token = tokens[place]
        if depth == 0 and place > at:
            is_behind_operand = tokens[place - 1].kind != "mark"
            is_apart = token.kind != "mark" or token.line > tokens[place - 1].line
            if token.text in _ENDS or token.text == "{" or (is_behind_operand and is_apart):
                return place
        depth += (token.text in _LEFT) - (token.text in _RIGHT)
        if depth < 0:
            return place
    return min(at + AHEAD, len(tokens))


def _behind(tokens: Sequence[CodeToken], at: int, named: dict[int, Name]) -> Iterator[int]:
    """Yield the indices of the tokens after a name that may begin its literal, up to the next name."""
    depth, is_key = 0, _is_key(tokens, at)
    for place in range(at + 1, min(at + AHEAD, len(tokens))):
        token = tokens[place]
        is_next = place in named and token.kind == tokens[at].kind and place - at > CLOSE
        is_past = is_key and depth <= 0 and token.text == ","
        if token.text == ";" or token.line - tokens[at].line > LINES_AHEAD or is_next or is_past:
            return
        depth += (token.text in _LEFT) - (token.text in _RIGHT)
        yield place
        if place == at + 2 and is_key and len(tokens[at].text) > tokens[at].end - tokens[at].start:  # "rows=5"
            return


def _before(tokens: Sequence[CodeToken], at: int, named: dict[int, Name]) -> Iterator[int]:
    """Yield the indices of the tokens before a name that may begin its literal; for a key, only in an annotation."""
    depth, is_key = 0, _is_key(tokens, at)
    for place in range(at - 1, max(-1, at - BEHIND), -1):
        token = tokens[place]
        is_next = place in named and token.kind == tokens[at].kind
        if token.text in {";", "}"} or tokens[at].line - token.line > LINES_BEHIND or is_next:
            return
        depth += (token.text in _RIGHT) - (token.text in _LEFT)
        if depth > 0 or not is_key:
            yield place


def _is_key(tokens: Sequence[CodeToken], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].text in _GIVES


def _standing(tokens: Sequence[CodeToken], at: int, name: Name, place: int, last: int) -> int:
    """Return the role of a value: ``DECLARED`` as a default, ``TESTED`` in a condition or a branch, otherwise 1."""
    between = tokens[at + 1 : place] if place > at else tokens[last + 1 : at]
    around = {one.text for one in tokens[max(0, min(at, place) - 4) : min(at, place)]}
    behind = tokens[last + 1].text if last + 1 < len(tokens) else ""
    is_arm = behind == "=>" and place > at and any(one.text == "{" for one in between)
    is_tested = not _TESTS.isdisjoint(around) and not any(one.text in {"=", "?", "||", "??"} for one in between)
    if (
        is_arm
        or is_tested
        or not _BRANCHES.isdisjoint(one.text for one in between)
        or (between and between[-1].text in _COMPARES)
        or (place < at and ("let" in around or not _TESTS.isdisjoint(one.text for one in between)))
        or (place > 1 and tokens[place - 2].text in _DESCRIBES)
        or _is_bound(tokens, at)
    ):
        return TESTED
    first = next((one for one in range(place - 1, -1, -1) if tokens[one].text not in _OPENS), place)
    said = {word for one in (first, *range(max(0, at - 2), at)) for word in words_of(tokens[one].text)}
    is_fallback = tokens[at].kind == "string" and [one.text for one in between] == [","]  # value("lanes", 5)
    is_default = name.attribute == "default" or not said.isdisjoint(_SAYS_DEFAULT)
    if place > at and tokens[at].text.startswith(("self.", "this.")) and "or" in words_of(tokens[at].text)[2:]:
        return DECLARED + 2  # self.rows.unwrap_or(5): an own field, whatever other types set
    return DECLARED if is_fallback or is_default else 1


def _is_bound(tokens: Sequence[CodeToken], at: int) -> bool:
    """Tell whether a name is set because its own value is too low or too high: ``if (rows < 5) { rows = 5; }``."""
    for place in range(at - 1, max(0, at - AHEAD), -1):
        if tokens[place].text == "}":
            return False
        if tokens[place].text in {"<", ">", "<=", ">="} and tokens[place - 1].text == tokens[at].text:
            return any(one.text in {"if", "unless"} for one in tokens[max(0, place - 3) : place])
    return False


def _statement(tokens: Sequence[CodeToken], at: int, name: Name, place: int, found: _Found) -> CodeStatement:
    kind = "D" if name.attribute == "default" else "S" if tokens[at].kind == "string" else "N"
    if place > at:
        lead = [one.shape for one in tokens[max(0, at - 2) : at]]
        between = _shapes(_without_groups(tokens[at + 1 : place]))
        templates = (
            f"> {' '.join(between[-2:])}",
            f"> {kind} {' '.join(between[:1])} … {' '.join(between[-3:])}",
            f"> {' '.join(lead)} {kind} {' '.join(between[-6:])}",
        )
    else:
        lead = [one.shape for one in tokens[max(0, place - 3) : place]]
        between = _shapes(_without_groups(tokens[found.last + 1 : at]))
        templates = (
            f"< {' '.join(lead[-2:])}",
            f"< {' '.join(lead)} … {' '.join(between[-2:])} {kind}",
            f"< {' '.join(lead)} … {' '.join(between[-5:])} {kind}",
        )
    standing = _standing(tokens, at, name, place, found.last)
    there = found.place or Definition("", "", tokens[place].line, tokens[place].start, tokens[found.last].end)
    return CodeStatement(
        tokens[at].written, name, found.value, there.line, there.start, there.end, templates, there.path, standing
    )


def _shapes(tokens: Sequence[CodeToken]) -> list[str]:
    """Return the forms of tokens in a template. All type names have the same form: ``-> u64 {``, ``: int =``."""
    shapes = [one.shape for one in tokens]
    for at in range(1, len(tokens)):
        is_behind = tokens[at - 1].text == "->" or (tokens[at - 1].text == ":" and shapes[at + 1 : at + 2] == ["="])
        if is_behind and tokens[at].kind == "name":
            shapes[at] = "T"
    return shapes


def _without_groups(tokens: Sequence[CodeToken]) -> list[CodeToken]:
    """Return the tokens without the content of closed brackets."""
    kept: list[CodeToken] = []
    for token in tokens:
        kept.append(token)
        if token.text in _RIGHT:
            depth = 0
            for place in range(len(kept) - 1, -1, -1):
                depth += (kept[place].text in _RIGHT) - (kept[place].text in _LEFT)
                if depth == 0:
                    del kept[place + 1 : -1]
                    break
    return kept


@dataclass(frozen=True, slots=True)
class Definition:
    """The value of a constant as it is written, and its place. ``line`` counts from 0."""

    written: str
    path: str
    line: int
    start: int
    end: int

    @property
    def value(self) -> Value | None:
        """The literal that the constant holds; ``None`` if it holds another expression."""
        value = read_value(self.written)
        return value if value is not None and value.is_literal else None


class Definitions:
    """Constants by the last part of their names."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        """Take the constants of programs, each given as path and text."""
        self._by_name: dict[str, list[Definition]] = defaultdict(list)
        for path, text in texts:
            line = at = 0
            for match in _DEFINED.finditer(text):
                line, at = line + text.count("\n", at, match.start("value")), match.start("value")
                name = match["macro"] or match["name"]
                self._by_name[name].append(Definition(match["value"].strip(), path, line, at, match.end("value")))
            groups = _GROUP.finditer(text) if path.endswith(".go") else ()
            for match in _MEANT.finditer(text) if path.endswith(".rs") else ():
                line = text.count("\n", 0, match.start("value"))
                self._by_name[match["name"]].append(Definition(f'"{match["value"]}"', path, line, *match.span("value")))
            for match in (one for group in groups for one in _GROUPED.finditer(text, *group.span())):
                line = text.count("\n", 0, match.start("value"))
                self._by_name[match["name"]].append(Definition(match["value"], path, line, *match.span("value")))

    def find(self, written: str, path: str) -> Definition | None:
        """Return the definition that a name means in the file ``path``; ``None`` if it is missing or uncertain.

        If several definitions differ, the one in this file is preferred, or the one in the file named like the class.
        """
        for _ in range(MAX_FOLLOWED):
            owner, name = _parts(written)
            found = self._by_name.get(name, [])
            near = [one for one in found if one.path == path] or [
                one for one in found if owner and PurePosixPath(one.path).stem == owner
            ]
            chosen = near or found
            if len({one.written for one in chosen}) != 1:
                return None
            if chosen[0].value is not None:
                return chosen[0]
            if not _ALONE.match(chosen[0].written):
                return None
            written, path = chosen[0].written, chosen[0].path
        return None

    def name(self, written: str, path: str) -> str:
        """Return the string that a constant holds, if it is a name (``RETRIES = "attempts"``); empty otherwise."""
        found = self.find(written, path)
        value = found.value if found else None
        return value.text if value is not None and value.kind == "string" and words_of(value.text) else ""


def _parts(written: str) -> tuple[str, str]:
    """Return the class that is written before a constant, and its own name. The class is empty if none is written."""
    parts: Sequence[str] = re.split(r"\.|::|->", written)
    return (parts[-2] if len(parts) > 1 else ""), parts[-1]
