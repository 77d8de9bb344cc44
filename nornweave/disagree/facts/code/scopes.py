"""Find the scope of a place in code: its owner, its function, and whether values there are defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.code.sites import NAMED_ROLES, ValueSite
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.passage import Passage

_DEFAULT_WORDS = frozenset({"default", "defaults", "initial", "fallback", "fallbacks", "canonicalize"})
_MAKERS = frozenset({"__init__", "__new__", "__construct", "__post_init__", "constructor", "initialize", "init", "new"})
_DEFINITIONS = frozenset({"class", "function"})
_SYMBOL = lazy_pattern(r"^[\w.:#$@!?<>\[\]() -]{1,120}$")
_DECLARED = lazy_pattern(
    r"\b(?:class|struct|interface|trait|impl|enum|object|module|def|fn|func|function|record)\s+([A-Za-z_]\w{0,80})"
)


@dataclass(frozen=True, slots=True)
class Base:
    """What is known of a passage from outside its text.

    Attributes:
        owner: words of its title and context that are names of classes and functions.
        function: the function that it is a part of, if the title ends in one.
        is_class: it stands directly in a class, as far as the title tells.
        is_part: it begins inside something: its first line is indented.
        is_body: it stands in a function, as far as title and context tell.
        is_default: its title, or the name of its file, says that what it holds are defaults.
    """

    owner: str
    function: str
    is_class: bool
    is_part: bool
    is_body: bool
    is_default: bool


def _is_go_function(passage: Passage, title: str) -> bool:
    """Tell whether a title with a capital is that of a function."""
    is_method = passage.language in {"go", "csharp"} and "." in title
    return is_method or (passage.language == "go" and f"func {title}" in passage.context)


def base_of(passage: Passage) -> Base:
    """Read title and context of a passage."""
    title = (passage.title or "").strip()
    if not _SYMBOL.match(title) or ("." in title and title == passage.path.rpartition("/")[2]):
        title = ""
    declared = _DECLARED.findall(passage.context[:2000])
    last = re.split(r"[.:#\s]+", title.strip(".:#()"))[-1] if title else (declared[-1] if declared else "")
    first = next((line for line in passage.text[:2000].splitlines() if line.strip()), "")
    is_class = last[:1].isupper() and not last.isupper() and not _is_go_function(passage, title)
    is_body = not is_class and (bool(re.search(r"[.#:]\w+\W*$", title)) or last in declared)
    owner = " ".join((*declared, title))
    is_default = says_default(owner) or says_default(passage.path.rpartition("/")[2])
    return Base(owner, "" if is_class else last, is_class, first[:1] in {" ", "\t"}, is_body, is_default)


@lru_cache(maxsize=1 << 13)
def says_default(name: str) -> bool:
    """Tell whether a name says that what it holds are defaults: ``DEFAULTS``, ``defaultOptions``."""
    return not _DEFAULT_WORDS.isdisjoint(words_of(name))


def is_maker(name: str) -> bool:
    """Tell whether a function makes objects: what it sets are their defaults."""
    last = name.rpartition(".")[2]
    return last in _MAKERS or last.startswith("New") or last.startswith("new_")


def owner_of(site: ValueSite, base: Base) -> str:
    """Return the names of everything that a place stands in, outermost first."""
    roles = NAMED_ROLES if site.role in NAMED_ROLES else _DEFINITIONS
    names = [place.bare_name for place in site.ancestors() if place.role in roles and place.name]
    return " ".join((base.owner, *reversed([name for name in names if name not in _MAKERS][:12])))


def function_of(site: ValueSite) -> ValueSite | None:
    """Return the function around a place."""
    return next((place for place in site.ancestors() if place.role == "function"), None)


def last_part(name: str) -> str:
    """Return the last component of a dotted name."""
    return re.split(r"[.:>]+", name.strip("@#$&*! ()"))[-1].strip("[]'\"@#$")
