"""The kind of a question, and the domains' order of authority for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from nornweave.core.types import Domain


class QueryType(StrEnum):
    """The kind of a query. The strategy ``SOURCE_AUTHORITY`` ranks the domains by it."""

    CURRENT_BEHAVIOUR = "current_behaviour"
    INTENDED_DESIGN = "intended_design"
    HISTORICAL_DECISION = "historical_decision"
    AMBIGUOUS = "ambiguous"


_TYPE_SIGNALS: tuple[tuple[QueryType, re.Pattern[str]], ...] = (
    (
        QueryType.HISTORICAL_DECISION,
        re.compile(
            r"\b(?:decided?|decisions?|agreed|agreements?|discuss(?:ed|ions?)?|chose|chosen|approved|rejected"
            r"|did (?:we|the team|they|you all)|who (?:said|suggested|proposed|wanted))\b"
        ),
    ),
    (
        QueryType.INTENDED_DESIGN,
        re.compile(r"\b(?:why|design(?:s|ed)?|intend(?:s|ed)?|intention|rationale|supposed to|meant to)\b"),
    ),
    (
        QueryType.CURRENT_BEHAVIOUR,
        re.compile(
            r"\bhow (?:do|does|is|are)\b.{1,120}\b(?:works?|handled?|done|implemented|computed|behaves?|validated?)\b"
            r"|\bwhat (?:do|does)\b.{1,120}\b(?:do|return|raise|happens?|send|accept|output)s?\b"
            r"|\bwhat happens\b|\bcurrent(?:ly)?\b|\bactual(?:ly)?\b|\bright now\b"
        ),
    ),
)
_DEFAULT_ORDER = (Domain.CODE, Domain.DOCUMENTATION, Domain.CONVERSATIONS, Domain.RESEARCH)
_AUTHORITY: Mapping[QueryType, tuple[Domain, ...]] = MappingProxyType(
    {
        QueryType.CURRENT_BEHAVIOUR: _DEFAULT_ORDER,
        QueryType.INTENDED_DESIGN: (Domain.DOCUMENTATION, Domain.CODE, Domain.CONVERSATIONS, Domain.RESEARCH),
        QueryType.HISTORICAL_DECISION: (Domain.CONVERSATIONS, Domain.DOCUMENTATION, Domain.CODE, Domain.RESEARCH),
        QueryType.AMBIGUOUS: _DEFAULT_ORDER,
    }
)


def query_type(text: str) -> QueryType:
    """Return the kind of a query by its words.

    If several kinds match, a decision comes before a design, and a design before behaviour. For example, ``why did we
    decide …`` asks for a decision.
    """
    lowered = text.lower()
    return next((kind for kind, pattern in _TYPE_SIGNALS if pattern.search(lowered)), QueryType.AMBIGUOUS)


def authority_order(kind: QueryType) -> tuple[Domain, ...]:
    """Return the domains in order of authority for a kind of query, highest first."""
    return _AUTHORITY[kind]
