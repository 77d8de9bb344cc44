"""The state while one passage of code is read: text, places, constants, facts so far; and the scope of a place.

Expressions are evaluated with the constants of the same file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact, Form
from nornweave.disagree.facts.code.sites import NAMED_ROLES, ValueSite
from nornweave.disagree.facts.expressions import MAX_EXPRESSION, read_value
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.passage import Passage, fact_of
from nornweave.disagree.facts.values import Value

_DEFAULT_WORDS = frozenset({"default", "defaults", "initial", "fallback", "fallbacks", "canonicalize"})
_MAKERS = frozenset({"__init__", "__new__", "__construct", "__post_init__", "constructor", "initialize", "init", "new"})
_NEW = lazy_pattern(r"New|new[A-Z_]")
_DEFINITIONS = frozenset({"class", "function"})
_PREFIX = lazy_pattern(
    r"@\w*(?:Properties|Config\w*|Mapping)\(\s*(?:(?:prefix|value)\s*=\s*)?\"(?P<prefix>[\w.-]{1,80})\""
)
"""Before a class: of the keys that set its fields."""
_SYMBOL = lazy_pattern(r"^[\w.:#$@!?<>\[\]() -]{1,120}$")
_DECLARED = lazy_pattern(
    r"\b(?:class|struct|interface|trait|impl|enum|object|module|def|fn|func|function|record)\s+([A-Za-z_]\w{0,80})"
)

MAX_FOLLOWED = 6
"""Constants that are defined by constants, one behind the other."""
_KNOWN = lazy_pattern(r"['\"`\d\[{(]|true|false|none|null|nil|undefined|infinity|empty|absent|unlimited|\binf\b", re.I)
_LONG = 300
"""Characters from which an expression that is no literal is not worth reading."""
_WORD = lazy_pattern(r"[A-Za-z_]\w*")


_read = lru_cache(maxsize=1 << 13)(read_value)


@dataclass(frozen=True, slots=True)
class Base:
    """Knowledge about a passage from outside its text.

    Attributes:
        owner: the names of classes and functions in the passage's title and context.
        function: the function around the passage, if the title ends in one.
        is_class: whether the title shows that the passage is directly in a class.
        is_part: whether the passage begins inside a definition, because its first line is indented.
        is_body: whether the title and the context show that the passage is in a function.
        is_default: whether the title or the file name shows that the passage holds defaults.
    """

    owner: str
    function: str
    is_class: bool
    is_part: bool
    is_body: bool
    is_default: bool


def base_of(passage: Passage) -> Base:
    """Return the base of a passage from its title and context."""
    title = (passage.title or "").strip()
    if not _SYMBOL.match(title) or ("." in title and title == passage.path.rpartition("/")[2]):
        title = ""
    declared = _DECLARED.findall(passage.context[:2000])
    last = re.split(r"[.:#\s]+", title.strip(".:#()"))[-1] if title else (declared[-1] if declared else "")
    first = next((line for line in passage.text[:2000].splitlines() if line.strip()), "")
    is_class = last[:1].isupper() and not last.isupper()
    is_body = not is_class and (bool(re.search(r"[.#:]\w+\W*$", title)) or last in declared)
    owner = " ".join((*declared, title))
    is_default = says_default(owner) or says_default(passage.path.rpartition("/")[2])
    return Base(owner, "" if is_class else last, is_class, first[:1] in {" ", "\t"}, is_body, is_default)


@lru_cache(maxsize=1 << 13)
def says_default(name: str) -> bool:
    """Tell whether a name shows that it holds defaults: ``DEFAULTS``, ``defaultOptions``."""
    return not _DEFAULT_WORDS.isdisjoint(words_of(name))


def is_maker(name: str) -> bool:
    """Tell whether a function makes objects, so that the values it sets are their defaults."""
    last = name.rpartition(".")[2]
    return last in _MAKERS or bool(_NEW.match(last))


def owner_of(site: ValueSite, base: Base, text: str = "") -> str:
    """Return the names of all definitions around a place, outermost first; a class with its prefix of keys, if any."""
    roles = NAMED_ROLES if site.role in NAMED_ROLES else _DEFINITIONS
    named = [place for place in site.ancestors() if place.role in roles and place.bare_name not in {"", *_MAKERS}][:12]
    prefixes = (_PREFIX.search(text, place.start, max(place.start, place.name_start)) for place in named)
    names = [
        f"{found['prefix'] if found else ''} {place.bare_name}" for place, found in zip(named, prefixes, strict=True)
    ]
    return " ".join((base.owner, *reversed(names)))


def function_of(site: ValueSite) -> ValueSite | None:
    """Return the innermost function around a place; ``None`` if the place is outside of functions."""
    return next((place for place in site.ancestors() if place.role == "function"), None)


MAX_FACTS = 4_000
MAX_SPAN = 2_000
MAX_STRING = 120
"""Of a value: longer ones are messages and templates."""


@dataclass(slots=True)
class Reading:
    """The state that all rules for reading code share. The rules add facts to it."""

    passage: Passage
    language: str
    base: Base
    sites: list[ValueSite]
    constants: Constants
    deadline: float
    facts: dict[tuple[object, ...], Fact] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of the passage."""
        return self.passage.text

    @property
    def is_over(self) -> bool:
        """Whether there are enough facts or no time is left."""
        return len(self.facts) >= MAX_FACTS or time.thread_time() > self.deadline

    def value_text(self, site: ValueSite) -> str:
        """Return the value of a place as it is written; empty if the place has no value or a very long one."""
        if site.value is None or site.value[1] - site.value[0] > MAX_SPAN:
            return ""
        return self.text[site.value[0] : site.value[1]].removeprefix("=>")  # a property of C#

    def before(self, site: ValueSite) -> str:
        """Return the text before the name of a place: modifiers, annotations, its type."""
        return self.text[max(site.start, site.name_start - 300) : site.name_start]

    def add(
        self,
        site: ValueSite,
        value: Value | None,
        attribute: Attribute,
        form: Form = "definition",
        *,
        name: str = "",
        owner: str | None = None,
    ) -> None:
        """Add a fact of a place, unless its value is unknown or too long, or there are too many facts.

        ``name`` and ``owner`` replace those of the place.
        """
        if value is None or len(self.facts) >= MAX_FACTS:
            return
        if value.kind == "string" and len(value.text) > MAX_STRING:
            return
        end = site.value[1] if site.value and site.value[1] - site.start <= MAX_SPAN else site.end
        start = site.name_start if 0 <= site.name_start < end else site.start
        fact = fact_of(
            self.passage,
            name=name or site.bare_name,
            value=value,
            attribute=attribute,
            side="code",
            form=form,
            start=start,
            end=max(start, min(end, start + MAX_SPAN)),
            owner=owner_of(site, self.base, self.text) if owner is None else owner,
        )
        if fact is not None:
            line = 0 if attribute == "status" else fact.line  # a function answers a status once
            self.facts.setdefault((fact.name, fact.owner, fact.attribute, fact.kind, fact.value, line), fact)


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
