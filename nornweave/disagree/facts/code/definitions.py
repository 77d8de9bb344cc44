"""Extract facts from definitions: constants, fields, parameters and assignments."""

from __future__ import annotations

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Form, Qualifier
from nornweave.disagree.facts.code.members import default_by_place, read_key
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
_UNSET = lazy_pattern(r"\b(?:None|null|nil|undefined)\b|\belse\s*[{:]?\s*$")
"""Before an assignment under a condition: it is made where nothing was given."""
_FALLS_BACK = lazy_pattern(r"\|\||\?|\bor\b|\belse\b|[gG]et|fetch|[eE]nv|default|pop\(")


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
    if site.role != "field" or not read_key(site, value, reading):
        reading.add(site, value, "value" if is_constant(site, reading) else "default", form)


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
    if value is None:
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
    is_sometimes = (
        site.parent is not None
        and site.parent.role == "if"
        and not _UNSET.search(reading.text[site.parent.start : site.start])
    )
    if is_member and not is_sometimes and (is_maker(function.name) or function.name[:1].isupper()):
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
    if in_body and read_key(site, value, reading):
        return
    if reading.base.is_part and "." in site.name and not is_member:
        return  # of something that the part does not show
    constant = is_constant(site, reading)
    if not constant and (in_class is not None or is_member or (reading.base.is_part and reading.base.is_class)):
        reading.add(site, value, "default", form)
    elif value.is_fallback:
        if _falls_back(site, value, reading.value_text(site)):
            reading.add(site, value, "default", form)
    elif reading.base.is_body and not constant:
        reading.add(site, value, "value", form, qualifiers=("local",))
    else:
        reading.add(site, value, default_by_place(site, reading) or "value", form)
