"""Extract facts from definitions: parameters, fields, constants, assignments, members of literals and calls."""

from __future__ import annotations

import re
from dataclasses import replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Form
from nornweave.disagree.facts.code.members import default_by_place, read_key
from nornweave.disagree.facts.code.options import KEYS, STORES
from nornweave.disagree.facts.code.reading import Reading, function_of, is_maker, says_default
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.names import is_other_of, read_name, words_of
from nornweave.disagree.facts.values import FALSE, TRUE, Value

_CONSTANT = lazy_pattern(
    r"\b(?:static\s+(?:\w+\s+)?final|final\s+static|const|constexpr|static\s+let|static\s+readonly)\b"
)
_UPPER = lazy_pattern(r"^[A-Z][A-Z0-9_]+$")
_UNNAMED = lazy_pattern(r"[{\[(]|__|[^(]*\(")
_MEMBER = lazy_pattern(r"^(?:self|this|cls|\$this)(?:\.|->|\?\.)|^@")
_EMPTY = lazy_pattern(
    r"\b(?P<asked>\w+)\)?(?:\s*(?:={2,3}|is)\s*(?:\"\"|''|0|None|null|nil|['\"]?undefined)"
    r"|\.(?:is_?[eE]mpty|empty|is_none|nil))(?!\w)"
    r"|(?:!|\bnot )\s*(?:[\w$]+(?:\.|->))*(?P<denied>\w+)\s*[){:\n]"
)
_CONDITION = 200
"""Characters between the word *if* and the first thing that is set under it."""
_FALLS_BACK = lazy_pattern(r"\|\||\?|\bor\b|\belse\b|[gG]et|fetch|[eE]nv|default|pop\(")
_ASKED = lazy_pattern(r"\(?(?P<cast>!!\s*)?(?:(?P<of>[\w$]+)(?:\?\.|\.|->|\[['\"]))*(?P<name>[\w$]+)(?:['\"]\])?"
                      r"(?(cast)|\s*(?:!==?\s*(?P<on>false)|===?\s*true))\)?$")  # fmt: skip
"""A switch that is asked for by its name: ``options.trace !== false``, ``opts.trace === true``, ``!!opts.trace``."""
_SOURCE = lazy_pattern(r"[\w$.>?-]+(?=\s*(?:\|\||\?\?))")
"""What a value is taken from, if it is there."""
_MEMBERS = frozenset({"pair", "kwarg"})
_CONFIGURES = re.compile(r"\.(?:config|conf)\.[cm]?[jt]s$")
_GROUPS = frozenset({"class", "assign", "pair"})


def read_statement(site: ValueSite, reading: Reading) -> None:
    """Add the default or value that a place states for its name. Most assignments in functions state neither."""
    text = reading.value_text(site).strip()
    if not text or (site.role == "assign" and _UNNAMED.match(site.name)):
        return
    function = function_of(site)
    is_default = _is_default(site, function, reading)
    asked = _asked(site, text)
    if site.role == "assign" and function is not None and not (asked or is_default or _FALLS_BACK.search(text)):
        return  # most: cheap to tell
    value = asked or reading.constants.read(text.rstrip(", "))
    if value is None or (site.role in _MEMBERS and read_key(site, value, reading)):
        return
    if value.is_fallback and _is_of_another(site, text):
        return
    is_fallback = value.is_fallback and (site.role != "assign" or _is_like(site, text))
    attribute: Attribute | None = "default"
    if not (is_default or is_fallback):
        attribute = None if value.is_fallback else _stated(site, function, reading)
    if attribute is not None:
        is_set = site.role == "assign" and function is not None and not _MEMBER.match(site.name)
        form: Form = "example" if _is_in_use(site, attribute, reading) else "definition"
        reading.add(site, value, attribute, "fallback" if is_fallback or is_set else form)


def _stated(site: ValueSite, function: ValueSite | None, reading: Reading) -> Attribute | None:
    """Return what a place states if nothing marks it as a default: ``value``, ``default``, or ``None`` for neither."""
    if site.role in _MEMBERS:
        return None if (function is not None and not is_maker(function.name)) or _is_loose(site) else "value"
    if site.role == "assign" and (function is not None or (site.parent and site.parent.role in {"if", "call"})):
        return None
    if site.role == "const" or _UPPER.match(site.bare_name) or _CONSTANT.search(reading.before(site)):
        return "value"
    base = reading.base
    is_in_group = (base.is_part and base.is_class) or any(place.role in _GROUPS for place in site.ancestors())
    if site.role != "assign" or is_in_group or _MEMBER.match(site.name):
        return "default"
    return None if base.is_body else "value"


def _is_default(site: ValueSite, function: ValueSite | None, reading: Reading) -> bool:
    """Tell whether a place or the code around it marks the place's value as a default."""
    if site.role != "assign":
        return site.role == "param" or (site.role in _MEMBERS and default_by_place(site, reading))
    if function is None:
        is_argument = reading.value_text(site).endswith(",") or reading.text[site.end : site.end + 1] == ","
        if reading.base.is_part and is_argument and reading.language == "python" and site.name not in KEYS:
            return True  # a signature that was cut
        return default_by_place(site, reading)
    condition = reading.text[site.parent.start : site.start] if site.parent and site.parent.role == "if" else ""
    is_member = bool(_MEMBER.match(site.name)) or _is_own_field(site, function, reading)
    is_made = not condition and is_member and (is_maker(function.name) or function.name[:1].isupper())
    return is_made or (says_default(function.name) and ("." in site.name or is_member)) or _is_unset(site, condition)


def _is_own_field(site: ValueSite, function: ValueSite, reading: Reading) -> bool:
    """Tell whether a constructor sets a field of its class without ``this.``."""
    owner = function.parent
    if owner is None or owner.role != "class" or owner.bare_name != function.bare_name:
        return False
    return any(other.role == "field" and other.name == site.name and other.parent is owner for other in reading.sites)


def _is_unset(site: ValueSite, condition: str) -> bool:
    """Tell whether an assignment directly follows a check that its own target is empty."""
    last = re.split(r"\W+", site.bare_name)[-1]
    if not last or len(condition) > _CONDITION or "else" in condition:
        return False
    return any(last in match.groups() for match in _EMPTY.finditer(condition))


def _is_like(site: ValueSite, text: str) -> bool:
    """Tell whether the expression before a fallback shares a word with the name."""
    return not text.startswith("new ") and not set(words_of(site.bare_name)).isdisjoint(words_of(text))


def _asked(site: ValueSite, text: str) -> Value | None:
    """Return the value that a switch has until somebody sets it; ``None`` if the text tests no switch of this name."""
    found = _ASKED.match(text.rstrip(", ")) if text[-1] in "e)" or text[:2] == "!!" else None
    is_same = found and words_of(found["name"]) == words_of(re.split(r"\W+", site.bare_name)[-1])
    if not found or not is_same or not (found["of"] is None or STORES.search(found["of"])):
        return None
    return replace(TRUE if found["on"] else FALSE, is_fallback=True)


def _is_of_another(site: ValueSite, text: str) -> bool:
    """Tell whether the expression before a fallback names another option, to which the default then belongs."""
    name, source = read_name(site.bare_name), _SOURCE.match(text)
    return name is not None and source is not None and is_other_of(source[0], name.name)


def _is_in_use(site: ValueSite, attribute: Attribute, reading: Reading) -> bool:
    """Tell whether a member of an object literal is set for one use and is nobody's default.

    This is so if the literal has no name, as in ``run({retries: 3})`` and ``export default {…}``, or if it is in the
    configuration file of a program, such as ``bundler.config.mjs``.
    """
    if attribute != "value" or site.role != "pair":
        return False
    is_nameless = all(place.role in {"pair", "group"} or place.name == "module.exports" for place in site.ancestors())
    return bool(_CONFIGURES.search(reading.passage.path)) or (is_nameless and not reading.base.is_part)


def _is_loose(site: ValueSite) -> bool:
    """Tell whether a place is a keyword argument without an assignment, a field or the like around it."""
    named = {"assign", "field", "const", "pair", "kwarg", "param"}
    return site.role == "kwarg" and not any(place.role in named for place in site.ancestors())
