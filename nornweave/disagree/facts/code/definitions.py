"""Extract facts from definitions: constants, fields, parameters and assignments."""

from __future__ import annotations

import re

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Form
from nornweave.disagree.facts.code.members import default_by_place
from nornweave.disagree.facts.code.options import KEYS
from nornweave.disagree.facts.code.reading import Reading, function_of, is_maker, says_default
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import Value

_CONSTANT = lazy_pattern(
    r"\b(?:static\s+(?:\w+\s+)?final|final\s+static|const|constexpr|static\s+let|static\s+readonly)\b"
)
_UPPER = lazy_pattern(r"^[A-Z][A-Z0-9_]+$")
_MEMBER = lazy_pattern(r"^(?:self|this|cls|\$this)(?:\.|->|\?\.)|^@")
_EMPTY = lazy_pattern(
    r"\b(?P<asked>\w+)\)?(?:\s*(?:={2,3}|is)\s*(?:\"\"|''|0|None|null|nil|['\"]?undefined)"
    r"|\.(?:is_?[eE]mpty|empty|is_none|nil))(?!\w)"
    r"|(?:!|\bnot )\s*(?:[\w$]+(?:\.|->))*(?P<denied>\w+)\s*[){:\n]"
)
_CONDITION = 200
"""Characters between the word *if* and the first thing that is set under it."""
_FALLS_BACK = lazy_pattern(r"\|\||\?|\bor\b|\belse\b|[gG]et|fetch|[eE]nv|default|pop\(")


def _form(value: Value | None) -> Form:
    return "fallback" if value is not None and value.is_fallback else "definition"


def _is_constant(site: ValueSite, reading: Reading) -> bool:
    """Tell whether a place defines a constant: by its role, its name, or the words before it."""
    return site.role == "const" or bool(_UPPER.match(site.bare_name) or _CONSTANT.search(reading.before(site)))


def read_declared(site: ValueSite, reading: Reading) -> None:
    """Read a parameter, a field or a constant: its default or value."""
    text = reading.value_text(site)
    value = reading.constants.read(text) if text else None
    if site.role == "const" and function_of(site) and not _UPPER.match(site.name):
        return
    reading.add(site, value, "value" if _is_constant(site, reading) else "default", _form(value))


def read_assignment(site: ValueSite, reading: Reading) -> None:
    """Read an assignment: a constant, a field, or what a variable is if nobody gives it."""
    text = reading.value_text(site).rstrip()
    if not text or site.name.startswith(("{", "[", "(", "__")) or "(" in site.name:
        return
    function = function_of(site)
    if function is not None:
        _in_function(site, function, text, reading)
        return
    is_argument = text.endswith(",") or reading.text[site.end : site.end + 1] == ","
    if reading.base.is_part and is_argument and reading.language == "python":
        if site.name not in KEYS:
            reading.add(site, reading.constants.read(text.rstrip(", ")), "default")
        return
    value = reading.constants.read(text)
    if value is not None and not (site.parent and site.parent.role in {"if", "call"}):
        _outside(site, value, text, reading)


def _in_function(site: ValueSite, function: ValueSite, text: str, reading: Reading) -> None:
    """Read what a function sets: the fields of what it makes, defaults, or what nobody has given."""
    is_member = bool(_MEMBER.match(site.name)) or _is_own_field(site, function, reading)
    condition = reading.text[site.parent.start : site.start] if site.parent and site.parent.role == "if" else ""
    is_made = not condition and is_member and (is_maker(function.name) or function.name[:1].isupper())
    is_default = says_default(function.name) and ("." in site.name or is_member)
    is_default = is_default or _is_unset(site, condition)
    if not (is_made or is_default or _FALLS_BACK.search(text)):  # most: cheap to tell
        return
    value = reading.constants.read(text)
    if value is not None and (is_made or is_default or _falls_back(site, value, text)):
        reading.add(site, value, "default", _form(value) if is_made else "fallback")


def _is_own_field(site: ValueSite, function: ValueSite, reading: Reading) -> bool:
    """Tell whether a constructor sets a field of its class without ``this.``."""
    owner = function.parent
    if owner is None or owner.role != "class" or owner.bare_name != function.bare_name:
        return False
    return any(other.role == "field" and other.name == site.name and other.parent is owner for other in reading.sites)


def _is_unset(site: ValueSite, condition: str) -> bool:
    """Tell whether an assignment stands right behind the question whether its own target is empty."""
    last = re.split(r"\W+", site.bare_name)[-1]
    if not last or len(condition) > _CONDITION or "else" in condition:
        return False
    return any(last in match.groups() for match in _EMPTY.finditer(condition))


def _falls_back(site: ValueSite, value: Value, text: str) -> bool:
    """Tell whether a value is the fallback of something of a like name."""
    is_like = not set(words_of(site.bare_name)).isdisjoint(words_of(text))
    return value.is_fallback and is_like and not text.startswith("new ")


def _outside(site: ValueSite, value: Value, text: str, reading: Reading) -> None:
    in_class = next((place for place in site.ancestors() if place.role in {"class", "assign", "pair"}), None)
    is_member = bool(_MEMBER.match(site.name))
    if reading.base.is_part and "." in site.name and not is_member:
        return  # of something that the part does not show
    constant = _is_constant(site, reading)
    if not constant and (in_class is not None or is_member or (reading.base.is_part and reading.base.is_class)):
        reading.add(site, value, "default", _form(value))
    elif value.is_fallback:
        if _falls_back(site, value, text):
            reading.add(site, value, "default", "fallback")
    elif constant or not reading.base.is_body:
        reading.add(site, value, default_by_place(site, reading) or "value")
