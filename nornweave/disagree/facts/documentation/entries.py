"""Read list entries, docstring fields and definitions that begin with the name that they describe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute
from nornweave.disagree.facts.documentation.literals import value_of_code, whole_value
from nornweave.disagree.facts.documentation.naming import CODE, identifier_of, is_like_identifier, is_type
from nornweave.disagree.facts.values import Value

Stated = tuple[Attribute, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedEntry:
    """The head of an entry.

    Attributes:
        names: as they are written; other spellings of the same come behind the first.
        stated: what the head itself says (``(int, optional)``, ``=2m``).
        members: values of the parts of a mapping that is the default: ``{ attempts = 12 }``.
        body: where the prose begins.
        owner: the function of which this is the only parameter.
    """

    names: tuple[str, ...]
    body: int
    stated: tuple[Stated, ...] = ()
    members: tuple[tuple[str, Value], ...] = ()
    owner: str = ""


_SPAN_NAME = lazy_pattern(r"(?P<name>[-@$:]{0,2}[A-Za-z_][\w.:\-/@]*)\??(?P<rest>.*)$")
_BARE = lazy_pattern(r"(?P<name>[-@$]{0,2}[A-Za-z_][\w.-]*\w)(?:\([^()\n]{0,80}\))?")
_MARKS = lazy_pattern(r"[*_]{0,3}")
_MORE = lazy_pattern(r"[*_]{0,2}\s*(?:,|/|\||\bor\b|\baka\b)\s*[*_]{0,2}(?=[`-])")
_ANNOTATION = lazy_pattern(
    r"\s*(?:`{0,2}\(([^()\n]{0,160}(?:\([^()\n]{0,60}\)[^()\n]{0,60})?)\)`{0,2}|`{1,2}([^`\n]{1,120})`{1,2}"
    r"|<([\w\[\]|. ]{2,40})>|\{([\w\[\]|.<> ]{2,60})\}|\[([\w|. ]{3,40})\])(?=[\s*_:,.–—-]|$)"
)
_LEAD = lazy_pattern(r"[*_]{0,2}\s?:(?=\s`)")
_REMARK = lazy_pattern(
    r"[^\n]*\b(?:optional|required)\b|\s*(?:advanced|experimental|deprecated|new|legacy)\b.{0,30}$", re.I
)
_SEPARATOR = lazy_pattern(
    r"[*_]{0,3}\s*(?::(?!:)|::|-{1,2}(?=\s)|–|—|,(?=\s)|=(?=\s)|\.(?=\s)|$|(?=\n)|(?=\())[*_]{0,3}\s*"
)


def read_entry(text: str, start: int, end: int) -> DocumentedEntry | None:
    """Read the head of an entry; ``None`` if it begins with no name."""
    at = _MARKS.match(text, start, end)
    begin = at.end() if at else start
    span = CODE.match(text, begin, end)
    if span is not None:
        return _spanned(text, span, end)
    bare = _BARE.match(text, begin, end)
    if bare is not None and is_like_identifier(bare["name"]):
        is_marked = begin > start and text[bare.end() : bare.end() + 2] in {"**", "__"}
        is_identifier = bool(re.search(r"[_-]|[a-z][A-Z]|\w\.\w", bare["name"]))
        rest = _annotated(text, bare.end() + (2 if is_marked else 0), end)
        separator = _SEPARATOR.match(text, rest.body, end)
        if separator is not None:
            is_divided = separator[0].strip(" *_") in {":", "-", "--", "–", "—", "::"}
            if is_divided or ((is_marked or is_identifier) and (separator[0].strip() or rest.is_annotated)):
                return DocumentedEntry(
                    names=(bare["name"],), body=separator.end(), stated=rest.stated, members=rest.members
                )
    return None


def _spanned(text: str, span: re.Match[str], end: int) -> DocumentedEntry | None:
    inner = _SPAN_NAME.match(span[2].strip())
    if inner is None:
        return None
    name = identifier_of(inner["name"].rstrip(":"))
    if not name:
        return None
    names, stated, owner = [name], list(_assigned(inner["rest"])), ""
    only = re.fullmatch(r"\(\{?\s*([A-Za-z_]\w*)\??\s*(?:[:=][^,]{1,40})?\}?\)", inner["rest"])
    at = span.end()
    for _ in range(3):
        more = _MORE.match(text, at, end)
        following = CODE.match(text, more.end(), end) if more else None
        other = _SPAN_NAME.match(following[2].strip()) if following else None
        if following is None or other is None or not identifier_of(other["name"]):
            break
        names.append(identifier_of(other["name"]))
        stated += _assigned(other["rest"])
        at = following.end()
    marks = _MARKS.match(text, at, end)
    rest = _annotated(text, marks.end() if marks else at, end)
    separator = _SEPARATOR.match(text, rest.body, end)
    body = separator.end() if separator else rest.body
    if not name.startswith("-") and not (separator and separator[0].strip()) and text[body:end].strip():
        stated = [one for one in stated if one[0] != "default"]  # ``x=None`` selects …: no default
    if separator is None and re.match(r"\s*(?:and|or|&|\+|/|->|→|=>)\s", text[rest.body : rest.body + 5]):
        return None
    if only is not None and re.search(r"\bdefaults?\b", text[body:end], re.IGNORECASE):
        names, owner = [only[1]], name
    names.sort(key=len, reverse=True)
    return DocumentedEntry(
        names=tuple(names), body=body, stated=(*stated, *rest.stated), members=rest.members, owner=owner,
    )  # fmt: skip


def _assigned(rest: str) -> Iterator[Stated]:
    """Read what stands behind a name in its code span: ``=2m``, ``: number = 30``."""
    text = rest.strip()
    if text.startswith(":"):
        text = f"={text.partition('=')[2]}"
    value = value_of_code(text[1:].strip("= "), strings=False) if text.startswith("=") else None
    yield from _default(value)


@dataclass(frozen=True, slots=True)
class _Annotations:
    body: int
    stated: tuple[Stated, ...] = ()
    members: tuple[tuple[str, Value], ...] = ()
    is_annotated: bool = False


def _annotated(text: str, at: int, end: int) -> _Annotations:
    """Read what stands between a name and its prose: types, ``optional``, defaults; at most three of them."""
    stated: list[Stated] = []
    members: list[tuple[str, Value]] = []
    is_annotated = False
    lead = _LEAD.match(text, at, end)
    stop = lead.end() if lead else at
    for _ in range(3):
        match = _ANNOTATION.match(text, stop, end)
        if match is None:
            break
        content = next((group for group in match.groups() if group is not None), "")
        found = annotation(content)
        inner = list(mapping(content))
        if found is None and not (inner or _REMARK.match(content)):
            if match[1] is not None and not stated:
                stop = match.end()
            break
        is_annotated = True
        stated += found or ()
        members += inner
        stop = match.end()
    if lead and stop == lead.end():
        stop = at
    return _Annotations(stop, tuple(stated), tuple(members), is_annotated)


_TYPED_DEFAULT = lazy_pattern(r"\s*`?([A-Za-z][\w<>\[\]|. ]{1,40}?)`?\s*:\s*(.+)$", re.DOTALL)
_DEFAULT_PART = lazy_pattern(r"(?:^|[,;]\s*|\s)defaults?(?:\s+(?:to|is|value))?\s*[:=]?\s*(.+)$", re.IGNORECASE)


def annotation(content: str) -> tuple[Stated, ...] | None:
    """Read ``int, optional``, ``bool: false``, ``string, default `x```; ``None`` for other words."""
    text = content.strip()
    typed = _TYPED_DEFAULT.match(text)
    if typed is not None and not text.lower().startswith(("default", "optional", "required")):
        rest = typed[2].strip()
        is_word = "required" in rest.lower() or "optional" in rest.lower() or rest.startswith("{")
        value = whole_value(rest) if not is_word else None
        return _default(value) if is_type(typed[1]) else None
    default = _DEFAULT_PART.search(text)
    stated = _default(whole_value(default[1])) if default else ()
    bare = text[: default.start()] if default else text
    bare = re.sub(r"\b(?:optional|required|default)\b|`", "", bare).strip(" ,;")
    return stated if stated or (len(bare) <= 60 and is_type(bare)) else None


def _default(value: Value | None) -> tuple[Stated, ...]:
    return (("default", value),) if value is not None else ()


_MEMBER = lazy_pattern(r"([A-Za-z_]\w{1,40})\s*[=:]\s*(\"[^\"\n]{0,60}\"|[\w.]{1,20})")


def mapping(content: str) -> Iterator[tuple[str, Value]]:
    """Yield the members of a mapping that a head gives as its default."""
    brace = content.find("{")
    if brace < 0 or not re.match(r"\s*[\w<>, ]{1,30}:\s*\{", content):
        return
    for match in _MEMBER.finditer(content, brace):
        value = value_of_code(match[2], strings=False)
        if value is not None:
            yield match[1], value
