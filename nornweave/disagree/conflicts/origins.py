"""The parts of the ledger that an answer uses: authors of facts' lines, and dismissed pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from nornweave.core.types import Fact, Origin
from nornweave.disagree.conflicts.records import LocatedFact

LineKey: TypeAlias = tuple[str, str, str, int, str]
"""Domain, source, path, where the fact starts, its value: a line that moved or changed is another one."""

Origins: TypeAlias = Mapping[LineKey, Origin]
"""Lines of which git says who wrote them when."""

NO_ORIGINS: Origins = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LedgerNotes:
    """The parts of the ledger that an answer uses.

    Attributes:
        origins: the origin (author, date, revision) of each line that git knows.
        dismissed: the ``pair_id`` of each pair of statements of which somebody said that they do not conflict.
    """

    origins: Origins = field(default_factory=lambda: NO_ORIGINS)
    dismissed: frozenset[str] = frozenset()


NO_NOTES = LedgerNotes()


def key_of(place: tuple[str, str, str], fact: Fact) -> LineKey:
    """Return the key of a fact's line in a document (domain, source, path)."""
    return (*place, fact.span.start, fact.value)


def with_origin(one: LocatedFact, origins: Origins) -> LocatedFact:
    """Return a fact with date, revision and author of its line; unchanged if they are unknown."""
    origin = origins.get(key_of(one.place, one.fact))
    if origin is None:
        return one
    return replace(one, updated_at=origin.written_at, revision=origin.revision, author=origin.author or None)


@dataclass(frozen=True, slots=True)
class KnownLine:
    """A line whose author git has named.

    Attributes:
        version: the document's ``version_of`` when git named the author. If it has changed, git is asked again.
    """

    key: LineKey
    version: str
    origin: Origin


def version_of(one: LocatedFact) -> str:
    """Return the version of a fact's document: its revision and its date."""
    return f"{one.revision or ''} {one.updated_at.isoformat() if one.updated_at else ''}"


def origins_of(lines: Iterable[KnownLine]) -> Origins:
    """Return the origins of lines by the lines' keys."""
    return {line.key: line.origin for line in lines}
