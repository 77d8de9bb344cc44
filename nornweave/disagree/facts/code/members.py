"""Extract facts from members of literals and calls, and from the keys that describe an option: ``default=5``."""

from __future__ import annotations

import re

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Form, Qualifier
from nornweave.disagree.facts.code.options import KEYS, NAMING_KEYS
from nornweave.disagree.facts.code.reading import Reading, function_of, is_maker, last_part, owner_of, says_default
from nornweave.disagree.facts.code.sites import NAMED_ROLES, ValueSite
from nornweave.disagree.facts.values import Value

SPREAD = ("...", "**")
"""How the last member of a group begins that takes in what a user gave: those before it are defaults."""
_MERGERS = lazy_pattern(r"(?:assign|merge|defaults|extend|deepmerge|defaultsDeep)$", re.I)


def read_pair(site: ValueSite, reading: Reading) -> None:
    """Read a pair of a mapping, a field of a literal, or a keyword argument."""
    text = reading.value_text(site)
    value = reading.constants.read(text) if text else None
    if read_key(site, value, reading) or value is None:
        return
    if any(place.role == "mark" for place in site.ancestors()) and site.name == "value":
        return
    attribute = default_by_place(site, reading)
    qualifiers: tuple[Qualifier, ...] = ()
    if attribute is None and not value.is_fallback:
        function = function_of(site)
        inner = function is not None and (_is_passed_on(site) or not is_maker(function.name))
        qualifiers = ("local",) if inner or (site.role == "kwarg" and not _is_bound(site)) else ()
    form: Form = "fallback" if value.is_fallback else "definition"
    reading.add(site, value, "default" if value.is_fallback else attribute or "value", form, qualifiers=qualifiers)


def default_by_place(site: ValueSite, reading: Reading) -> Attribute | None:
    """Return ``default`` if something around a place says that defaults stand in it."""
    for place in site.ancestors():
        if place.role in NAMED_ROLES and (
            says_default(place.name) or (place.role == "function" and is_maker(place.name))
        ):
            return "default"
        if place.role == "group" and place.tag.startswith(SPREAD):
            return "default"
        if place.role == "call" and _is_passed_on(site):
            return None
        if place.role == "class":
            break
    return "default" if reading.base.is_default else None


def _is_passed_on(site: ValueSite) -> bool:
    """Tell whether a pair stands in a literal that is handed to a call: ``super(url, {...options, retry: true})``."""
    if site.role != "pair":
        return False
    around = next((place for place in site.ancestors() if place.role != "group"), None)
    return around is not None and around.role == "call" and not _MERGERS.search(last_part(around.name))


def _is_bound(site: ValueSite) -> bool:
    """Tell whether what a keyword argument belongs to has a name of its own."""
    return any(place.role in {"assign", "field", "const", "pair", "kwarg", "param"} for place in site.ancestors())


def name_groups(reading: Reading) -> None:
    """Note in ``tag`` what groups call themselves, or that a group takes in others behind its own members."""
    for site in reading.sites:
        parent = site.parent
        if parent is None:
            continue
        if (
            parent.role in {"group", "call", "class"}
            and site.role in {"pair", "kwarg", "assign", "field"}
            and site.bare_name.lower() in NAMING_KEYS
        ):
            text = reading.value_text(site)
            value = reading.constants.read(text) if len(text) < 100 else None
            if value is not None and value.kind == "string" and value.text:
                parent.tag = value.text if parent.tag.startswith(SPREAD) else parent.tag or value.text


def read_key(site: ValueSite, value: Value | None, reading: Reading) -> bool:
    """Read ``default=5`` as a statement about what it is a key of; ``False`` if the key is none."""
    key = site.bare_name.strip("#$").lower()
    attribute = KEYS.get(key)
    if key not in KEYS or value is None:
        return False
    subject, place = _subject(site)
    if not subject or place is None:
        return False
    if attribute is not None:
        reading.add(site, value, attribute, "option", name=subject, owner=owner_of(place, reading.base))
    return True


def _subject(site: ValueSite) -> tuple[str, ValueSite | None]:
    """Return what a key of a group or a call speaks about, and the place that names it.

    A group may name itself (``key: 'sameSite'``); else it is what the group is the value of.
    """
    for place in site.ancestors():
        if place.role in {"group", "call", "class"} and place.tag and not place.tag.startswith(SPREAD):
            return place.tag, place
        if place.role in {"assign", "pair", "kwarg", "field", "param", "const"}:
            return place.bare_name, place
        if place.role in {"class", "function"}:
            break
    return "", None
