"""Read docstring fields: ``:param int limit: …``, ``@param {number} [limit=5]``, ``@default``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.entries import Stated
from nornweave.disagree.facts.documentation.literals import whole_value
from nornweave.disagree.facts.documentation.naming import CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field.

    Attributes:
        name: of the parameter; empty: the field is about what the docstring is of.
        stated: what its head says.
        body: where its prose begins.
    """

    body: int
    name: str = ""
    stated: tuple[Stated, ...] = ()


_COLON = lazy_pattern(r":(?P<tag>\w+)(?:\s+(?P<argument>[^:\n]{1,80}))?:[ \t]*")
_AT = lazy_pattern(r"[@\\](?P<tag>\w+)[ \t]*(?:\{[^{}\n]{1,120}\})?[ \t]*(?P<rest>[^\n]*)")
_JS_NAME = lazy_pattern(r"\[?`?(?P<name>[A-Za-z_$][\w.$-]*)`?(?:\s?=\s?(?P<default>[^\]\n]{1,80}))?\]?[ \t]*-?[ \t]*")
_PARAMETERS = frozenset("param parameter arg argument key keyword ivar cvar property prop option".split())  # noqa: SIM905


def read_field(text: str, start: int, end: int) -> Field | None:
    """Read a field; ``None`` if it says nothing that is compared."""
    if text[start] == ":":
        match = _COLON.match(text, start, end)
        return _colon(text, match, end) if match else None
    match = _AT.match(text, start, end)
    return _at(match, end) if match else None


def _colon(text: str, match: re.Match[str], end: int) -> Field | None:
    tag, argument = match["tag"].lower(), (match["argument"] or "").strip()
    first_line = text[match.end() : end].split("\n", 1)[0].strip()
    if tag in _PARAMETERS:
        words = argument.replace("*", "").split()
        return Field(name=words[-1], body=match.end()) if words else None
    if tag == "default":
        value = whole_value(first_line)
        return Field(stated=(("default", value),) if value else (), body=end)
    return None


def _at(match: re.Match[str], end: int) -> Field | None:
    tag, rest = match["tag"].lower(), match["rest"]
    if tag in _PARAMETERS:
        name = _JS_NAME.match(rest)
        if name is None:
            return None
        value = whole_value(name["default"]) if name["default"] else None
        stated: tuple[Stated, ...] = (("default", value),) if value is not None else ()
        return Field(name=name["name"], stated=stated, body=match.start("rest") + name.end())
    if tag in {"default", "defaultvalue"}:
        value = whole_value(_unquoted(rest))
        return Field(stated=(("default", value),) if value else (), body=end)
    return None


def _unquoted(text: str) -> str:
    match = CODE.match(text.strip())
    return match[0] if match else text
