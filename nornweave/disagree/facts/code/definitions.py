"""Extract facts from definitions: constants, fields, parameters and assignments."""

from __future__ import annotations

import re

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Form, Qualifier
from nornweave.disagree.facts.code.members import default_by_place, is_naming, read_key, wraps_another
from nornweave.disagree.facts.code.options import KEYS
from nornweave.disagree.facts.code.reading import Reading
from nornweave.disagree.facts.code.scopes import function_of, is_maker, says_default
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.values import Value

_CONSTANT = lazy_pattern(
    r"\b(?:static\s+(?:\w+\s+)?final|final\s+static|const|constexpr|static\s+let|static\s+readonly)\b"
)
_UPPER = lazy_pattern(r"^[A-Z][A-Z0-9_]+$")
_MEMBER = lazy_pattern(r"^(?:self|this|cls|\$this)(?:\.|->|\?\.)|^@")
_FALLS_BACK = lazy_pattern(r"\|\||\?|\bor\b|\belse\b|[gG]et|fetch|[eE]nv|default|pop\(")
_TAG = lazy_pattern(r"(\w{1,40}):\"([^\"]{0,200})\"")
_DEFAULT_TAGS = frozenset({"default", "envDefault", "env-default"})
_NAME_TAGS = frozenset({"json", "yaml", "hcl", "mapstructure", "toml", "env", "koanf", "koan", "cty", "xml", "long"})


def is_constant(site: ValueSite, reading: Reading) -> bool:
    """Tell whether a place defines a constant: by its role, its name, or the words before it."""
    if site.role == "const":
        return True
    return bool(_UPPER.match(site.bare_name)) or bool(_CONSTANT.search(reading.before(site)))


def read_declared(site: ValueSite, reading: Reading) -> None:
    """Read a parameter, a field or a constant: its default or value."""
    text = reading.value_text(site)
    value = reading.constants.read(text) if text else None
    form: Form = "fallback" if value is not None and value.is_fallback else "definition"
    if site.role == "const":
        qualifiers: tuple[Qualifier, ...] = ("local",) if function_of(site) and not _UPPER.match(site.name) else ()
        reading.add(site, value, "value", form, qualifiers=qualifiers)
        return
    names = [(site.bare_name, value), *(_tagged(site, reading) if site.tag else ())]
    for name, found in names:
        if site.role == "field" and name == site.bare_name and read_key(site, found, reading):
            continue
        reading.add(site, found, "value" if is_constant(site, reading) else "default", form, name=name)


def _tagged(site: ValueSite, reading: Reading) -> list[tuple[str, Value | None]]:
    """Read the tag of a field in Go: other names of it, and its default."""
    tags = dict(_TAG.findall(site.tag[:1000]))
    value = next((reading.constants.read(_quoted(tags[key])) for key in _DEFAULT_TAGS if key in tags), None)
    names = dict.fromkeys(tags[key].split(",")[0] for key in tags if key in _NAME_TAGS)
    own: list[tuple[str, Value | None]] = [(site.name, value)] if value else []
    return own + [(name, value) for name in names if name and name not in {"-", site.name}]


def _quoted(text: str) -> str:
    return text if re.match(r"^-?\d|^(?:true|false)$", text) else f'"{text}"'


def read_assignment(site: ValueSite, reading: Reading) -> None:
    """Read an assignment: a constant, a field, or what a variable is if nobody gives it."""
    if site.name.startswith(("{", "[", "(", "__")) or "(" in site.name:
        return
    text = reading.value_text(site).rstrip()
    if not text:
        return
    function = function_of(site)
    is_argument = text.endswith(",") or reading.text[site.end : site.end + 1] == ","
    if function is None and reading.base.is_part and is_argument and reading.language == "python":
        if site.name not in KEYS:
            reading.add(site, reading.constants.read(text.rstrip(", ")), "default")
        return
    is_given = _is_for_unset(site, reading)
    if function is not None and not is_given and not _may_state(site, function, text):
        return
    value = reading.constants.read(text)
    if value is None or wraps_another(site, text):
        return
    if is_given and value.kind != "none":
        reading.add(site, value, "default", "fallback")
    elif function is not None:
        _in_function(site, function, value, text, reading)
    elif not (site.parent and site.parent.role in {"if", "call"}):
        _outside(site, value, reading)


def _is_for_unset(site: ValueSite, reading: Reading) -> bool:
    """Tell whether an operator gives a value only because there is none yet."""
    operator = reading.text[site.name_start + len(site.name) : site.value[0]][:20] if site.value else ""
    return "||=" in operator or "??=" in operator


def _may_state(site: ValueSite, function: ValueSite, text: str) -> bool:
    """Tell cheaply whether an assignment inside a function can state more than what a variable holds for a while."""
    name = site.name
    return (
        _FALLS_BACK.search(text) is not None
        or name.isupper()
        or (_MEMBER.match(name) is not None and (is_maker(function.name) or function.name[:1].isupper()))
        or ("." in name and says_default(function.name))
    )


def _in_function(site: ValueSite, function: ValueSite, value: Value, text: str, reading: Reading) -> None:
    is_member = bool(_MEMBER.match(site.name))
    if is_member and (is_maker(function.name) or function.name[:1].isupper()):
        reading.add(site, value, "default", "fallback" if value.is_fallback else "definition")
    elif (says_default(function.name) and ("." in site.name or is_member)) or _falls_back(site, value, text):
        reading.add(site, value, "default", "fallback")
    elif _UPPER.match(site.name):
        reading.add(site, value, "value", qualifiers=("local",))


def _falls_back(site: ValueSite, value: Value, text: str) -> bool:
    """Tell whether a value is the fallback of something of a like name."""
    is_like = not set(words_of(site.bare_name)).isdisjoint(words_of(text))
    return value.is_fallback and is_like and not text.startswith("new ")


def _outside(site: ValueSite, value: Value, reading: Reading) -> None:
    in_class = next((place for place in site.ancestors() if place.role in {"class", "assign", "pair"}), None)
    is_member = bool(_MEMBER.match(site.name))
    form: Form = "fallback" if value.is_fallback else "definition"
    in_body = in_class is not None and in_class.role == "class"
    if in_body and (read_key(site, value, reading) or is_naming(site, value)):
        return
    if reading.base.is_part and "." in site.name and not is_member:
        return  # of something that the part does not show
    constant = is_constant(site, reading)
    if not constant and (in_class is not None or is_member or (reading.base.is_part and _declares(site, reading))):
        reading.add(site, value, "default", form)
    elif value.is_fallback:
        if _falls_back(site, value, reading.value_text(site)):
            reading.add(site, value, "default", form)
    elif reading.base.is_body and not constant:
        reading.add(site, value, "value", form, qualifiers=("local",))
    else:
        reading.add(site, value, default_by_place(site, reading) or "value", form)


def _declares(site: ValueSite, reading: Reading) -> bool:
    """Tell whether a line of a part of a class is a field of it, not a variable of a function."""
    return reading.base.is_class or bool(re.search(r"\b(?:private|public|protected|internal)\b", reading.before(site)))
