"""Table of the keys by which a declaration describes its option: ``default=5``, ``choices: […]``."""

from __future__ import annotations

from nornweave.disagree.facts.code.options import KEYS, NAMING_KEYS
from nornweave.disagree.facts.code.reading import Reading
from nornweave.disagree.facts.code.scopes import owner_of
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.values import Value

SPREAD = ("...", "**")
"""How the last member of a group begins that takes in what a user gave: those before it are defaults."""


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
    """Read ``default=5``, ``choices: […]`` as statements about what they are keys of; ``False`` if the key is none."""
    key = site.bare_name.strip("#$").lower()
    attribute = KEYS.get(key)
    if key not in KEYS or value is None:
        return False
    subject, place = _subject(site)
    if not subject or place is None:
        return False
    if attribute is None:
        return True
    if attribute != "choices" or value.kind == "list":
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


def is_naming(site: ValueSite, value: Value) -> bool:
    """Tell whether a pair only names the group it is in (``key: 'sameSite'``)."""
    holder = site.parent
    is_name = site.bare_name.lower() in NAMING_KEYS and value.kind == "string" and holder is not None
    return bool(is_name and holder is not None and holder.tag and holder.tag == value.text)
