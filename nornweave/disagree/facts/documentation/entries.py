"""Read the heads of entries: list items, docstring fields and definitions that begin with the name they describe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.literals import value_of_code, whole_value
from nornweave.disagree.facts.documentation.naming import CODE, identifier_of, is_like_identifier
from nornweave.disagree.facts.values import Value

_I = re.IGNORECASE | re.DOTALL


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedEntry:
    """The head of an entry.

    Attributes:
        names: as they are written, the longest first; empty: it is about what the docstring is of.
        defaults: what the head itself says (``(int: 5)``, ``=2m``).
        members: values of the parts of a mapping that is the default: ``{ attempts = 12 }``.
        body: where the prose begins.
        owner: the function of which this is the only parameter.
    """

    body: int
    names: tuple[str, ...] = ()
    defaults: tuple[Value, ...] = ()
    members: tuple[tuple[str, Value], ...] = ()
    owner: str = ""


_SPAN_NAME = lazy_pattern(r"(?P<json>\"?)(?P<name>[-@$:]{0,2}[A-Za-z_][\w.:\-/@]*)(?P=json)\??(?P<rest>.*)$")
_BARE = lazy_pattern(r"(?P<name>[-@$]{0,2}[A-Za-z_][\w.-]*\w)(?:\([^()\n]{0,80}\))?")
_MARKS = lazy_pattern(r"[*_]{0,3}")
_ONLY_PARAMETER = lazy_pattern(r"(?P<owner>[\w.]+)\(\{?\s*(?P<name>[A-Za-z_]\w*)\??\s*(?:[:=][^,]{1,40})?\}?\)")
_MORE = lazy_pattern(r"[*_]{0,2}\s*(?:,|/|\||\bor\b|\baka\b)\s*[*_]{0,2}(?=[`-])")
_FOLLOWED = lazy_pattern(r"[*_]{0,3}\s{0,2}(?:[({<\[`][^\n]{0,160}?[)}>\]`])?[*_]{0,3}\s{0,2}(?:::?(?!:)|-{1,2}\s|–|—)")
"""What follows the name of an entry: types, ``optional``, and a colon or a dash."""
_CLOSED = lazy_pattern(r"[*_]{0,3}\s*(?:[:.,–—(-]|$)|[*_]{0,3}\n")
_JOINED = lazy_pattern(r"\s*(?:and|or|&|\+|/|->|→|=>)\s")
MAX_TYPE = 200
_TYPED = lazy_pattern(
    r"[\s`]{0,3}\(\s*`?(?!optional|required)[a-z][\w<>\[\]|., ]{1,40}`?\s*:\s*"
    r"(?P<value>(?!required|optional)\{[^{}]{0,120}\}|[^(){}\n]{1,60})\)`{0,2}",
    _I,
)
_MEMBER = lazy_pattern(r"([A-Za-z_]\w{1,40})\s*[=:]\s*(\"[^\"\n]{0,60}\"|[\w.]{1,20})")


def read_entry(text: str, start: int, end: int) -> DocumentedEntry | None:
    """Read the head of an entry; ``None`` if it begins with no name."""
    begin = _end(_MARKS, text, start, end)
    names, assigned, at = _spanned(text, begin, end)
    is_span = bool(names)
    bare = None if is_span else _BARE.match(text, begin, end)
    if bare is not None and is_like_identifier(bare["name"]):
        names, at = [bare["name"]], bare.end()
    if not names:
        return None
    is_marked = begin > start and text[at : at + 2] in {"**", "__"}
    body = _end(_MARKS, text, at, end)
    if is_span:
        if not names[0].startswith("-") and not _CLOSED.match(text, body, end):
            assigned = []  # ``x=None`` selects …: no default
        is_entry = not _JOINED.match(text, body, end)
    else:
        is_sure = is_marked or re.search(r"[_-]|[a-z][A-Z]|\w\.\w", names[0])
        is_entry = bool(_FOLLOWED.match(text, at, end) or (is_sure and _CLOSED.match(text, body, end)))
    if not is_entry:
        return None
    typed = _TYPED.match(text, body, min(end, body + MAX_TYPE))
    members = tuple(_mapping(typed["value"])) if typed else ()
    value = whole_value(typed["value"]) if typed and not members else None
    defaults = (*assigned, *((value,) if value else ()))
    only = _ONLY_PARAMETER.match(text[begin:at].strip("`"))
    if is_span and only is not None and re.search(r"\bdefaults?\b", text[body:end], _I):
        return DocumentedEntry(names=(only["name"],), body=body, defaults=defaults, owner=only["owner"])
    ordered = tuple(sorted(names, key=len, reverse=True))
    return DocumentedEntry(names=ordered, body=typed.end() if typed else body, defaults=defaults, members=members)


def _end(pattern: re.Pattern[str], text: str, at: int, end: int) -> int:
    match = pattern.match(text, at, end)
    return match.end() if match else at


def _spanned(text: str, at: int, end: int) -> tuple[list[str], list[Value], int]:
    """Return the names in code spans that begin here, at most four, what they are set to, and where they end."""
    names: list[str] = []
    assigned: list[Value] = []
    following = CODE.match(text, at, end)
    while following is not None and len(names) < 4:
        inner = _SPAN_NAME.match(following[2].strip())
        name = identifier_of(inner["name"].rstrip(":")) if inner else ""
        if inner is None or not name:
            break
        names.append(name)
        assigned += _assigned(inner["rest"])
        at = following.end()
        more = _MORE.match(text, at, end)
        following = CODE.match(text, more.end(), end) if more else None
    return names, assigned, at


def _assigned(rest: str) -> Iterator[Value]:
    """Read what stands behind a name in its code span: ``=2m``, ``: number = 30``."""
    text = rest.strip()
    if text.startswith(":"):
        text = f"={text.partition('=')[2]}"
    value = value_of_code(text[1:].strip("= "), strings=False) if text.startswith("=") else None
    if value is not None:
        yield value


def _mapping(content: str) -> Iterator[tuple[str, Value]]:
    """Yield the members of a mapping that a head gives as its default."""
    for match in _MEMBER.finditer(content) if content.startswith("{") else ():
        value = value_of_code(match[2], strings=False)
        if value is not None:
            yield match[1], value


_COLON_FIELD = lazy_pattern(r":(?P<tag>\w+)(?:\s+(?P<argument>[^:\n]{1,80}))?:[ \t]*")
_AT_FIELD = lazy_pattern(r"[@\\](?P<tag>\w+)[ \t]*(?:\{[^{}\n]{1,120}\})?[ \t]*(?P<rest>[^\n]*)")
_JS_NAME = lazy_pattern(r"\[?`?(?P<name>[A-Za-z_$][\w.$-]*)`?(?:\s?=\s?(?P<default>[^\]\n]{1,80}))?\]?[ \t]*-?[ \t]*")
_PARAMETERS = frozenset("param parameter arg argument key keyword ivar cvar property prop option".split())  # noqa: SIM905


def read_field(text: str, start: int, end: int) -> DocumentedEntry | None:
    """Read ``:param int limit: …``, ``@param {number} [limit=5]``, ``@default 5``; ``None`` for other fields."""
    match = (_COLON_FIELD if text[start] == ":" else _AT_FIELD).match(text, start, end)
    tag = match["tag"].lower() if match else ""
    if match is None or tag not in {*_PARAMETERS, "default", "defaultvalue"}:
        return None
    if tag not in _PARAMETERS:
        line = text[match.end() : end].split("\n", 1)[0] if text[start] == ":" else match["rest"]
        code = CODE.match(line.strip())
        value = whole_value(code[0] if code else line)
        return DocumentedEntry(body=end, defaults=(value,) if value else ())
    if text[start] == ":":
        words = (match["argument"] or "").replace("*", "").split()
        return DocumentedEntry(names=(words[-1],), body=match.end()) if words else None
    name = _JS_NAME.match(match["rest"])
    if name is None:
        return None
    value = whole_value(name["default"]) if name["default"] else None
    body = match.start("rest") + name.end()
    return DocumentedEntry(names=(name["name"],), body=body, defaults=(value,) if value else ())
