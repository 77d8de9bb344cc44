"""Read the heads of entries: list items, docstring fields and definitions that begin with the name they describe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.literals import value_of_code, whole_value
from nornweave.disagree.facts.documentation.naming import CODE, identifier_of, is_like_identifier
from nornweave.disagree.facts.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedEntry:
    """The head of an entry.

    Attributes:
        names: as they are written, the longest first; empty: it is about what the docstring is of.
        defaults: what the head itself says (``(int, default 5)``, ``=2m``).
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
_ANNOTATION = lazy_pattern(
    r"\s*(?:`{0,2}\(([^()\n]{0,160}(?:\([^()\n]{0,60}\)[^()\n]{0,60})?)\)`{0,2}|(?::\s?)?`{1,2}([^`\n]{1,120})`{1,2}"
    r"|<([\w\[\]|. ]{2,40})>|\{([\w\[\]|.<> ]{2,60})\}|\[([\w|. ]{3,40})\])(?=[\s*_:,.–—-]|$)"
)
_SEPARATOR = lazy_pattern(
    r"[*_]{0,3}\s*(?::(?!:)|::|-{1,2}(?=\s)|–|—|,(?=\s)|=(?=\s)|\.(?=\s)|$|(?=\n)|(?=\())[*_]{0,3}\s*"
)
_DIVIDERS = frozenset((":", "-", "--", "–", "—", "::"))


def read_entry(text: str, start: int, end: int) -> DocumentedEntry | None:
    """Read the head of an entry; ``None`` if it begins with no name."""
    marks = _MARKS.match(text, start, end)
    begin = marks.end() if marks else start
    span = CODE.match(text, begin, end)
    if span is not None:
        return _spanned(text, span, end)
    bare = _BARE.match(text, begin, end)
    if bare is None or not is_like_identifier(bare["name"]):
        return None
    is_marked = begin > start and text[bare.end() : bare.end() + 2] in {"**", "__"}
    is_identifier = bool(re.search(r"[_-]|[a-z][A-Z]|\w\.\w", bare["name"]))
    after = bare.end() + (2 if is_marked else 0)
    rest = _annotated(text, after, end)
    separator = _SEPARATOR.match(text, rest.body, end)
    if separator is None:
        return None
    mark = separator[0].strip()
    if mark.strip("*_") in _DIVIDERS or ((is_marked or is_identifier) and (mark or rest.body > after)):
        return DocumentedEntry(
            names=(bare["name"],), body=separator.end(), defaults=rest.defaults, members=rest.members
        )
    return None


def _spanned(text: str, span: re.Match[str], end: int) -> DocumentedEntry | None:
    names: list[str] = []
    assigned: list[Value] = []
    at, following = span.end(), span
    for _ in range(4):
        inner = _SPAN_NAME.match(following[2].strip())
        name = identifier_of(inner["name"].rstrip(":")) if inner else ""
        if inner is None or not name:
            break
        names.append(name)
        assigned += _assigned(inner["rest"])
        at = following.end()
        more = _MORE.match(text, at, end)
        another = CODE.match(text, more.end(), end) if more else None
        if another is None:
            break
        following = another
    if not names:
        return None
    marks = _MARKS.match(text, at, end)
    rest = _annotated(text, marks.end() if marks else at, end)
    separator = _SEPARATOR.match(text, rest.body, end)
    body = separator.end() if separator else rest.body
    if not names[0].startswith("-") and not (separator and separator[0].strip()) and text[body:end].strip():
        assigned = []  # ``x=None`` selects …: no default
    if separator is None and re.match(r"\s*(?:and|or|&|\+|/|->|→|=>)\s", text[rest.body : rest.body + 5]):
        return None
    defaults = (*assigned, *rest.defaults)
    only = _ONLY_PARAMETER.fullmatch(span[2].strip())
    if only is not None and re.search(r"\bdefaults?\b", text[body:end], re.IGNORECASE):
        return DocumentedEntry(names=(only["name"],), body=body, defaults=defaults, owner=only["owner"])
    return DocumentedEntry(
        names=tuple(sorted(names, key=len, reverse=True)), body=body, defaults=defaults, members=rest.members
    )


def _assigned(rest: str) -> Iterator[Value]:
    """Read what stands behind a name in its code span: ``=2m``, ``: number = 30``."""
    text = rest.strip()
    if text.startswith(":"):
        text = f"={text.partition('=')[2]}"
    value = value_of_code(text[1:].strip("= "), strings=False) if text.startswith("=") else None
    if value is not None:
        yield value


def _annotated(text: str, at: int, end: int) -> DocumentedEntry:
    """Read what stands between a name and its prose: types, ``optional``, defaults; at most three of them."""
    defaults: list[Value] = []
    members: list[tuple[str, Value]] = []
    for _ in range(3):
        match = _ANNOTATION.match(text, at, end)
        if match is None:
            break
        content = next((group for group in match.groups() if group is not None), "")
        defaults += _annotation(content)
        members += _mapping(content)
        at = match.end()
    return DocumentedEntry(body=at, defaults=tuple(defaults), members=tuple(members))


_DEFAULT_PART = lazy_pattern(
    r"(?:^|[,;]\s*|\s)defaults?(?:\s+(?:to|is|value))?\s*[:=]?\s*(?P<told>.+)$"
    r"|^\s*`?(?!optional|required)[a-z][\w<>\[\]|.]{1,40}`?\s*:\s*(?!\{|.*\b(?:required|optional)\b)(?P<typed>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_MEMBER = lazy_pattern(r"([A-Za-z_]\w{1,40})\s*[=:]\s*(\"[^\"\n]{0,60}\"|[\w.]{1,20})")


def _annotation(content: str) -> Iterator[Value]:
    """Read the default of ``bool: false`` or ``string, default `x```."""
    found = _DEFAULT_PART.search(content)
    value = whole_value(found["told"] or found["typed"]) if found else None
    if value is not None:
        yield value


def _mapping(content: str) -> Iterator[tuple[str, Value]]:
    """Yield the members of a mapping that a head gives as its default."""
    if re.match(r"\s*[\w<>, ]{1,30}:\s*\{", content):
        for match in _MEMBER.finditer(content, content.index("{")):
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
