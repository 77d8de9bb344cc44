"""Documented defaults that agree with the code, found by literals alone; nothing is shared with the extractors.

A default counts as documented when code says ``name = literal``, and a page or a comment has the
name and, at most three lines below, the same literal on a line with the word *default*. In a table whose
header has the word, the literal opens the cell of that column. Tests and examples define nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from lab.conflicts.repositories import Role

Kind = Literal["number", "measure", "boolean", "string", "list", "version"]
KINDS: tuple[Kind, ...] = ("number", "measure", "boolean", "string", "list", "version")

Known = Mapping[str, Mapping[str, str]]
Line = tuple[int, str]
"""Offset in the text, and the line."""

LINES_BELOW = 3
"""A default stands at most so many lines with text below its name."""
MAX_BEFORE = 16
MAX_BEHIND = 60
"""Characters between a literal and the word *default* behind or before it."""
MAX_VALUES = 3
"""A name that code defines with more values says nothing by itself."""

_STRING = r"\"[^\"\n\\]{1,60}\"|'[^'\n\\]{1,60}'"
_LIST = r"\[[^\[\]\n]{1,120}\]"
_NUMBER = r"-?\d[\d_]*(?:\.\d+)?(?:[eE]\d{1,2})?(?:[ ]*\*[ ]*\d[\d_]*){0,3}"
_MAKER = r"(?:(?:new )?[A-Z]\w{0,30}(?:\.(?P<maker>[a-z]\w{1,20}))?\((?:default=)?)?"
_LITERAL = (
    rf"(?P<literal>{_STRING}|{_LIST}|{_NUMBER}|[Tt]rue\b|[Ff]alse\b)(?:[ ]*\*[ ]*(?:time\.)?(?P<unit>[A-Z][a-z]+)\b)?"
)
_END = r"(?=[ \t]*(?:[,;)}\]#]|//|\.freeze|$))"
_DEFINITIONS = tuple(
    re.compile(rf"{opening}(?P<name>[A-Za-z_][\w-]{{2,60}}){joint}{_MAKER}{_LITERAL}{_END}", re.MULTILINE)
    for opening, joint in (
        ("", r"[\"']?(?:[ ]?:[ ]?[A-Za-z][\w. |\[\]]{0,40})?[ ]*(?:=|:=|=>|:)[ ]*"),
        ("", r"[\"'],\s{1,40}(?![\"'])"),
        (r"(?:get|getenv|fetch)\([\"']", r"[\"'],[ ]"),
        ("", r"[ ]?(?:\|\||\?\?|!= null \? \w{1,60} :)[ ]?"),
    )
)
_NAME = re.compile(r"(?P<mark>[`*\"'])?(?P<name>[A-Za-z_][\w-]{2,60})")
# A name that opens a line: a heading, an entry of a list, a row, a field, a directive.
_OPENING = re.compile(
    r"[ \t>|*+#/:`'\"-]{0,40}(?:\.\. [\w:]{2,20}:: ?|:?param (?:\w+ )?|@param )?[`*'\":-]{0,3}"
    r"(?P<name>[A-Za-z_][\w-]{2,60})"
    r"(?=[`*'\"]|[ \t]*(?:[:|(\n]|[ ]{2}|$))"
)
_WRITTEN = re.compile(
    rf"(?P<quoted>(?![\"'](?:-?\d+|true|false)[\"']){_STRING})|(?P<list>{_LIST})|(?<![\w.-])(?P<number>-?\d[\d_,]*(?:\.\d+)?(?:e\d)?)"
    r"(?:[ ]?(?P<unit>ms|s|m|h|sec\w*|min\w*|hour\w*|days?|milli\w*|[kKmMgG]i?[bB]|bytes))?(?![\w.]\w|[\w-])|"
    r"\b(?P<switch>[Tt]rue|[Ff]alse|(?:[Oo]n|[Oo]ff|[Ee]nabled|[Dd]isabled)(?= by default)|"
    r"(?<=is )(?:enabled|disabled)|(?<=[`\"'])(?:on|off)(?=[`\"']))\b"
)
_DEFAULT = re.compile(r"(?<![\w.\"'])default(?:s|ed|ing)?(?![\w.(])", re.IGNORECASE)
_RULE = re.compile(r"\s*[|+]?[ :]*(?:={3,}|-{3,})[-=|+: ]*$")
_NO_NAMES = frozenset(("default", "defaults", "value", "true", "false"))
_ITEM = re.compile(rf"{_STRING}|[^,\s]+")
_MEASURED = frozenset(
    ("timeout", "interval", "delay", "ttl", "age", "seconds", "ms", "size", "bytes", "length", "time", "wait")
)
_UNITS = (
    "millis ms",
    "min m",
    "s",
    "h",
    "d",
    "kib kibi",
    "kb kilo",
    "mib mebi",
    "mb mega",
    "gib gibi",
    "gb giga",
    "byte",
)
_SWITCHES = {"true": "true", "on": "true", "enabled": "true", "false": "false", "off": "false", "disabled": "false"}
_COMMENT = re.compile(r"^[ \t]*(?:#(?!\w)|//)[^\n]*|\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|/\*[\s\S]*?\*/", re.MULTILINE)
_REQUIRED = re.compile(r"requir|support|newer|higher|later|work on|\d\+", re.IGNORECASE)
_VERSIONS = (
    (r"requires-python *= *[\"']>= ?(\d+\.\d+)", r"\bPython *(?:>=)? *(\d+\.\d+)(?!\.?\d)"),
    (r"python_requires *= *[\"']>= ?(\d+\.\d+)", r"\bPython *(?:>=)? *(\d+\.\d+)(?!\.?\d)"),
    (r"\"node\" *: *\">= ?(\d+(?:\.\d+){0,2})", r"\bNode(?:\.js)? *(?:>=|version)? *v?(\d+(?:\.\d+){0,2})"),
    (r"required_ruby_version *= *[\"']>= ?(\d+\.\d+)", r"\bRuby *(?:>=)? *(\d+\.\d+)(?!\.?\d)"),
    (r"<maven\.compiler\.release>(\d+)<", r"\bJava *(?:>=)? *(\d+)(?!\.?\d)"),
)


@dataclass(frozen=True, slots=True)
class Documented:
    """A value that a page states, and code as well.

    Attributes:
        start, end: of the literal in the page's text.
        top: offset of the name above it.
        code: where code says the same: ``path:line``.
        taken: all values that code gives to the name, in canonical form.
    """

    kind: Kind
    name: str
    path: str
    top: int
    start: int
    end: int
    literal: str
    code: str
    taken: frozenset[str] = frozenset()


def words(name: str) -> str:
    """Return a name as lower-case words."""
    return " ".join(part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))


def canonical(literal: str, unit: str | None = None) -> str:
    """Return a literal without its spelling: quotes, separators, case of switches, products, names of units."""
    text = literal.strip()
    if text[:1] in {'"', "'"}:
        return text[1:-1]
    if text.startswith("["):
        return "[" + ",".join(item.strip("\"'`") for item in _ITEM.findall(text[1:-1])) + "]"
    if text.lower() in _SWITCHES or text.count(".") > 1:  # a version
        return _SWITCHES.get(text.lower(), text)
    product = 1.0
    for factor in text.replace("_", "").replace(",", "").split("*"):
        product *= float(factor)
    lower = (unit or "").lower()
    known = next(
        (names.split()[0] for names in _UNITS if lower in names.split() or lower.startswith(names.split()[-1])), ""
    )
    return f"{product:.12g}{known if lower else ''}"


def definitions(files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return name → canonical literal → first place, of the programs given by path."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path, text in files.items():
        program = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text.partition("#[cfg(test)]")[0])
        for pattern in _DEFINITIONS:
            for match in pattern.finditer(program):
                place = f"{path}:{program.count(chr(10), 0, match.start()) + 1}"
                value = canonical(match["literal"], match["unit"] or match["maker"])
                name = words(match["name"])
                for known in {name, name.removeprefix("default ")}:
                    found[known].setdefault(value, place)
    return found


def documented(files: Iterable[tuple[str, Role, str]], manifests: Mapping[str, str]) -> Iterator[Documented]:
    """Yield the values that pages and comments of a repository state and its code as well, by path and place."""
    listed = list(files)
    known = definitions({path: text for path, role, text in listed if role == "code" and not path.startswith("doc")})
    for path, role, text in listed:
        yield from _defaults(path, text, role, known)
        if role == "documentation":
            yield from _versions(path, text, manifests)


def _defaults(path: str, text: str, role: Role, known: Known) -> Iterator[Documented]:
    for start, end in _prose(text, role):
        lines = _lines(text, start, end)
        # What follows a comment is what it is about, unless the comment names something itself.
        below = [_lines(text, end, min(len(text), end + 400))[:2]] if role == "code" else []
        subject = next((line for line in (below[0] if below else []) if line[1].strip()), None)
        column: int | None = None
        for at, line in enumerate(lines):
            word = _DEFAULT.search(line[1])
            if word and at + 1 < len(lines) and _RULE.match(lines[at + 1][1]):
                column = line[1].count("|", 0, word.start())
                continue
            column = column if line[1].strip() else None
            if word is None and column is None:
                continue
            above = [other for other in lines[max(0, at - 2 * LINES_BELOW) : at] if other[1].strip()][-LINES_BELOW:]
            named = (above, subject) if column is None else ([], None)
            found = _default(path, line, *named, known, column or 0)
            if found:
                yield found


def _lines(text: str, start: int, end: int) -> list[Line]:
    lines = []
    for line in text[start:end].splitlines(keepends=True):
        lines.append((start, line))
        start += len(line)
    return lines


def _prose(text: str, role: Role) -> Iterator[tuple[int, int]]:
    """Yield where people write: a whole page, or comments and docstrings of a program, joined where they touch."""
    if role == "documentation":
        yield 0, len(text)
        return
    start = end = -1
    for match in _COMMENT.finditer(text):
        if end >= 0 and text[end : match.start()].strip():
            yield start, end
            start = match.start()
        start = match.start() if start < 0 else start
        end = match.end()
    if end >= 0:
        yield start, end


def _default(path: str, line: Line, above: list[Line], subject: Line | None, known: Known,
             column: int) -> Documented | None:  # fmt: skip
    """Read the literal next to the word or in the column, if the nearest name before it is defined with the same."""
    offset, text = line
    word = _DEFAULT.search(text)
    at = word.start() if word else 0
    literals = [match for match in _WRITTEN.finditer(text) if (_opens(text, column, match) if column else
                word is None or _belongs(text, word, match))]  # fmt: skip
    for match in sorted(literals, key=lambda one: (one.start() < at, abs(one.start() - at))):
        top, name = offset, _nearest(text, match.start(), known)
        for start, other in reversed(above) if name is None else ():
            opening = _OPENING.match(other)
            if opening and not _NO_NAMES.issuperset(words(opening["name"]).split()):
                top, name = start, _known(opening["name"], known)
                break
        else:
            if name is None and subject:
                name = next(filter(None, (_known(one["name"], known) for one in _NAME.finditer(subject[1]))), None)
        place = _code(name, match, known[name]) if name else None
        if name and place:
            group = next(group for group in ("quoted", "list", "number", "switch") if match[group])
            start, end = match.span(group)
            return Documented(_kind(group, name, match["unit"]), name, path, top, offset + start, offset + end,
                              match[group], place, frozenset(known[name]))  # fmt: skip
    return None


def _opens(line: str, column: int, literal: re.Match[str]) -> bool:
    """Tell whether a literal is the first thing in a cell of a row."""
    before = line[: literal.start()]
    return before.count("|") == column and not re.search(r"\w", before.rpartition("|")[2])


def _belongs(line: str, word: re.Match[str], literal: re.Match[str]) -> bool:
    """Tell whether a literal is what the word *default* is about: right before it, or behind it in its sentence."""
    if literal.end() <= word.start():
        return word.start() - literal.end() <= MAX_BEFORE
    between = line[word.end() : literal.start()]
    return len(between) <= MAX_BEHIND and ". " not in between


def _nearest(line: str, before: int, known: Known) -> str | None:
    """Return the last known name of a line that is spelt or marked as one."""
    for match in reversed(list(_NAME.finditer(line, 0, before))):
        is_marked = match["mark"] and line[match.end() : match.end() + 1] == match["mark"]
        if is_marked or re.search(r"_|[a-z][A-Z]", match["name"]):
            name = _known(match["name"], known)
            if name:
                return name
    opening = _OPENING.match(line)
    return _known(opening["name"], known) if opening and opening.end() <= before else None


def _known(written: str, known: Known) -> str | None:
    """Return the name as code has it: all of its words, or without words in front, as long as two are left."""
    name = words(written)
    while name and name not in _NO_NAMES:
        if name in known:
            return name
        name = name.partition(" ")[2] if name.count(" ") > 1 else ""
    return None


def _code(name: str, match: re.Match[str], values: Mapping[str, str]) -> str | None:
    """Return where code says the same, unless it says many other things elsewhere."""
    written = next(match[group] for group in ("quoted", "list", "number", "switch") if match[group])
    spelt = {canonical(written), canonical(written, match["unit"])}
    same = sorted(spelt & set(values))
    return values[same[0]] if same and len(values) <= (MAX_VALUES if " " in name else 1) else None


def _kind(group: str, name: str, unit: str | None) -> Kind:
    if group == "number":
        return "measure" if unit or not _MEASURED.isdisjoint(name.split()) else "number"
    named: dict[str, Kind] = {"quoted": "string", "list": "list", "switch": "boolean"}
    return named[group]


def _versions(path: str, text: str, manifests: Mapping[str, str]) -> Iterator[Documented]:
    for manifest, content in manifests.items():
        for required, stated in _VERSIONS:
            needed = re.search(required, content)
            for match in re.finditer(stated, text) if needed else ():
                around = text[max(0, match.start() - 40) : match.end() + 20]
                if needed and match[1] == needed[1] and _REQUIRED.search(around):
                    name = f"{path} {stated[2:6].lower()}"
                    yield Documented("version", name, path, match.start(), *match.span(1), match[1], manifest)
                    break
