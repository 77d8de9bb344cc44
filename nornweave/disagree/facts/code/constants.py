"""Evaluate expressions with the constants of the same file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.expressions import MAX_EXPRESSION, read_value
from nornweave.disagree.facts.values import Value

MAX_FOLLOWED = 6
"""Constants that are defined by constants, one behind the other."""
_KNOWN = lazy_pattern(r"['\"`\d\[{(]|true|false|none|null|nil|undefined|infinity|empty|absent|unlimited|\binf\b", re.I)
_LONG = 300
"""Characters from which an expression that is no literal is not worth reading."""
_WORD = lazy_pattern(r"[A-Za-z_]\w*")


_read = lru_cache(maxsize=1 << 13)(read_value)


class Constants:
    """Reads values. A name that the file defines exactly once by a known value is replaced by that value."""

    def __init__(self, text: str, sites: Iterable[ValueSite]) -> None:
        self._text = text
        self._defined: dict[str, str | None] = {}
        self._values: dict[str, Value | None] = {}
        self._followed = 0
        for site in sites:
            if site.value and site.role in {"const", "assign", "field"} and not _is_local(site):
                self._define(site)

    def _define(self, site: ValueSite) -> None:
        if site.value is None or site.value[1] - site.value[0] > MAX_EXPRESSION:
            return
        name = re.split(r"[.>]", site.bare_name)[-1].lstrip("#$")
        text = self._text[slice(*site.value)]
        known = self._defined.get(name, text)
        self._defined[name] = text if known == text else None

    def resolve(self, name: str) -> Value | None:
        """Return the value of the constant with a name, or with its last part, in this file; ``None`` if unknown."""
        last = re.split(r"[.:>]+", name)[-1].lstrip("#$@")
        if last in self._values:
            return self._values[last]
        text = self._defined.get(last)
        if text is None or self._followed >= MAX_FOLLOWED:
            return None
        self._values[last] = None  # a constant that is defined by itself is not known
        self._followed += 1
        value = self.read(text)
        self._followed -= 1
        known = value if value is not None and value.is_literal else None
        self._values[last] = known
        return known

    def read(self, text: str) -> Value | None:
        """Return the value of an expression; ``None`` if it is not known."""
        text = text.strip()
        if not text or len(text) > MAX_EXPRESSION:
            return None
        if len(text) > _LONG and text[0] not in "[('\"`{":
            return None
        value = _read(text) if _KNOWN.search(text) else None
        if (value is None or not value.is_literal) and any(word in self._defined for word in _WORD.findall(text)):
            value = read_value(text, self.resolve)
        return value if value is not None and value.is_literal else None


def _is_local(site: ValueSite) -> bool:
    return any(place.role == "function" for place in site.ancestors())
