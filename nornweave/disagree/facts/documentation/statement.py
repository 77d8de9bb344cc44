"""The record of a statement whose subject is not known yet."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Qualifier
from nornweave.disagree.facts.values import Value

_EMPTY_NOUNS = frozenset("value values setting behavior behaviour one option it this which configuration".split())  # noqa: SIM905
LINE_START = lazy_pattern(r"[ \t>*_+•#\d.)(-]*$")
"""What may stand before the first word of a line: marks of quotes, lists and emphasis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A value that a text gives to an attribute of something.

    Attributes:
        start: of what announces it; ``end`` behind the value.
        name: what it says itself that it is about, as it is written; empty: its subject has to be looked for.
        is_phrase: the name is a noun phrase, no identifier.
        scope: whose it is, by its own words (``for Redis``).
        is_line: a line of its own (``Default: 5``), not a part of a sentence.
        is_bound: it can only be about the name right before it (``x must be at least 5``), or about the entry it is in.
    """

    attribute: Attribute
    value: Value
    start: int
    end: int
    name: str = ""
    is_phrase: bool = False
    scope: str = ""
    is_line: bool = False
    is_bound: bool = False
    negated: bool = False
    qualifiers: tuple[Qualifier, ...] = ()


def is_empty_noun(phrase: str) -> bool:
    """Tell whether a noun phrase names nothing (``the default value``)."""
    return not phrase or phrase.split()[-1].lower() in _EMPTY_NOUNS


def named(statement: Statement, noun: str) -> Statement:
    """Return a statement with a noun phrase or identifier as its name; as it is, where the phrase names nothing."""
    if is_empty_noun(noun):
        return statement
    is_identifier = " " not in noun and bool(re.search(r"_|[a-z][A-Z]", noun))
    return replace(statement, name=noun, is_phrase=not is_identifier)
