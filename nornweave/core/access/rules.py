"""Which groups may see a document: every statement about it has to be met.

A statement is a list of groups, of which a viewer needs one. Statements come from the source, from the document itself
(front matter) and from what is known of it besides (side file, inbox). Whoever meets all of them sees the document: the
people that one statement allows and the other does not are left out, so that no statement can loosen another.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from nornweave.core.types import JsonValue

KEY = "access"
"""The key of metadata that holds a statement."""
ACCESS_NOTICE, VALUE_NOTICE = "access_notice", "value_notice"
"""The keys of metadata that say what of a document's statements is not understood, and which other values are none."""
MAX_GROUPS = 1_000
_EVERY = "every_of"
"""The key of a document's several statements; what a person writes as a mapping never gets this far."""

Statement: TypeAlias = frozenset[str]
"""Groups of which a viewer needs one; an empty one is met by nobody."""
Rule: TypeAlias = tuple[Statement, ...]
"""Statements that must all be met; an empty one is met by everybody."""

EVERYBODY: Rule = ()
NOBODY: Statement = frozenset()


def read_statement(value: JsonValue) -> Statement | None:
    """Read a statement out of metadata: one group as text, or a list of groups.

    Returns:
        ``None`` if nothing is stated. What is no list of groups (a number, an empty list, a blank name) is met by
        nobody: somebody meant to restrict the document, and how is not known.
    """
    if value is None:
        return None
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Sequence) or not 1 <= len(value) <= MAX_GROUPS:
        return NOBODY
    names = [group_name(each) if isinstance(each, str) else "" for each in value]
    return frozenset(names) if all(names) else NOBODY


def every_of(values: Iterable[JsonValue]) -> JsonValue:
    """Return several statements as one value of metadata, which ``read_rule`` takes apart; ``None`` for none."""
    distinct = tuple(dict.fromkeys(values))
    return (distinct[0] if len(distinct) == 1 else {_EVERY: distinct}) if distinct else None


def group_name(text: str) -> str:
    """Return a group's name as it is compared: composed (NFC), without blanks around it, in its own case."""
    return unicodedata.normalize("NFC", text).strip()


def read_rule(*values: JsonValue) -> Rule:
    """Return the rule of several statements; equal ones count once."""
    single = [each for value in values for each in single_statements(value)]
    return all_of([statement for value in single if (statement := read_statement(value)) is not None])


def all_of(*rules: Iterable[Statement]) -> Rule:
    """Return the rule that is met where all of these are; equal statements count once."""
    return tuple(dict.fromkeys(statement for rule in rules for statement in rule))


def rule_of(source_id: str, own: Rule, *sources: Mapping[str, Statement]) -> Rule:
    """Return the rule of a document: its own, with what is stated of its source here and there."""
    return all_of(own, [known[source_id] for known in sources if source_id in known])


def single_statements(value: JsonValue) -> Sequence[JsonValue]:
    """Return the statements of a value of metadata, each as one value."""
    several = value.get(_EVERY) if isinstance(value, Mapping) else None
    return several if isinstance(several, list | tuple) and len(several) > 1 else (value,)


def is_met(rule: Iterable[Statement], groups: frozenset[str]) -> bool:
    """Tell whether somebody in these groups meets a rule."""
    return all(not statement.isdisjoint(groups) for statement in rule)


def encode_rule(rule: Rule) -> str | None:
    """Write a rule as JSON; ``None`` for one that everybody meets. Equal rules, equal text."""
    return json.dumps(sorted(sorted(statement) for statement in rule), ensure_ascii=False) if rule else None


def decode_rule(stored: str | None) -> Rule:
    """Read a rule that ``encode_rule`` wrote.

    Raises:
        ValueError: it is something else.
    """
    if stored is None:
        return EVERYBODY
    loaded = json.loads(stored)
    if not isinstance(loaded, list) or not all(isinstance(groups, list) for groups in loaded):
        raise ValueError(f"no rule of access: {stored[:80]!r}")
    return tuple(frozenset(map(str, groups)) for groups in loaded)


def encode_source_rules(groups: Mapping[str, Sequence[str]]) -> str:
    """Write the statements of sources as JSON, by source id; equal ones, equal text."""
    names = {source: sorted(map(group_name, named)) for source, named in groups.items() if named}
    return json.dumps(names, ensure_ascii=False, sort_keys=True)


def decode_source_rules(stored: str) -> dict[str, Statement]:
    """Read what ``encode_source_rules`` wrote.

    Raises:
        ValueError: it is something else.
    """
    loaded = json.loads(stored)
    if not isinstance(loaded, dict) or not all(isinstance(groups, list) for groups in loaded.values()):
        raise ValueError(f"no rules of sources: {stored[:80]!r}")
    return {source: frozenset(map(str, groups)) for source, groups in loaded.items()}
