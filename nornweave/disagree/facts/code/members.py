"""Extract facts from members of literals and calls, and from the keys that describe an option: ``default=5``."""

from __future__ import annotations

from nornweave.disagree.facts.code.options import KEYS, NAMING_KEYS
from nornweave.disagree.facts.code.reading import Reading, is_maker, owner_of, says_default
from nornweave.disagree.facts.code.sites import NAMED_ROLES, ValueSite
from nornweave.disagree.facts.values import Value


def default_by_place(site: ValueSite, reading: Reading) -> bool:
    """Tell whether the code around a place shows that its values are defaults."""
    for place in site.ancestors():
        is_made = place.role == "function" and is_maker(place.name)
        if (place.role in NAMED_ROLES and says_default(place.name)) or is_made:
            return True
        if place.role == "class" or (place.role == "call" and site.role == "pair"):  # ``post(url, {retry: true})``
            break
    return reading.base.is_default


def name_groups(reading: Reading) -> None:
    """Store in the ``tag`` of each group and call the name that a member gives it: ``{key: 'sameSite', …}``."""
    for site in reading.sites:
        parent = site.parent
        if parent is None or parent.role not in {"group", "call"} or site.role not in {"pair", "kwarg"}:
            continue
        if site.bare_name.lower() in NAMING_KEYS:
            text = reading.value_text(site)
            value = reading.constants.read(text) if len(text) < 100 else None
            if value is not None and value.kind == "string":
                parent.tag = parent.tag or value.text


def read_key(site: ValueSite, value: Value | None, reading: Reading) -> bool:
    """Add the fact of a key such as ``default=5``. Return whether the key describes an option."""
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
    """Return the name of the option that a key describes, and its place; an empty name and ``None`` without an option.

    The name is stated in the group of the key (``key: 'sameSite'``), or else the group is the value of the name.
    """
    for place in site.ancestors():
        if place.tag:
            return place.tag, place
        if place.role in {"assign", "pair", "kwarg", "field", "param", "const"}:
            return place.bare_name, place
        if place.role in {"class", "function"}:
            break
    return "", None
