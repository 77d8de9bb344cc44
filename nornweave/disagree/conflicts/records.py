"""Records of conflict detection, and the kinds of contradiction.

Of the ledger an answer uses the authors of facts' lines, and dismissed pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from nornweave.core.types import Fact, Origin, digest
from nornweave.disagree.facts.names import singular, words_of

# Words of places and headings that tell nothing apart: every repository has a ``src``, every page an ``Options``.
PLACE_WORDS = frozenset(
    """
    docs doc documentation reference references api guide guides manual user userguide usage website content source src
    lib main java org com io net index readme md rst txt html py js ts go rb rs kt c h cpp cs php swift mdx adoc
    configuration config configure settings setting options option default defaults init parameters parameter
    params args arguments field fields property properties class module package packages core internal common utils
    util the a an of and for to in on with by command line commands example examples overview introduction getting
    started topics advanced general misc other help constants namespaces types type how using factory base abstract impl
    implementation interface block section object struct all default
    """.split()  # noqa: SIM905
)

LineKey: TypeAlias = tuple[str, str, str, int, str]
"""Domain, source, path, where the fact starts, its value: a line that moved or changed is another one."""

Origins: TypeAlias = Mapping[LineKey, Origin]
"""Lines of which git says who wrote them when."""

NO_ORIGINS: Origins = MappingProxyType({})


def lists_names(title: str) -> bool:
    """Tell whether the title of a code passage lists several definitions in it."""
    return ", " in title


@dataclass(frozen=True, kw_only=True)
class LocatedFact:
    """A fact with its place, author and date.

    Attributes:
        domain, source_id, path: the place of its document.
        section: the headings above it, ``A > B``. In code it is the enclosing symbol, if known.
        updated_at, revision, author: the values of its line if they are known, else the values of the document.
        line_range: the first and the last line to cite, from 1.
    """

    fact: Fact
    domain: str
    source_id: str = ""
    path: str = ""
    section: str | None = None
    title: str | None = None
    updated_at: datetime | None = None
    revision: str | None = None
    author: str | None = None
    chunk_id: str = ""
    line_range: tuple[int, int] | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        """Return the key of the fact's document: domain, source and path."""
        return self.domain, self.source_id, self.path

    @cached_property
    def context(self) -> frozenset[str]:
        """The distinctive words of the fact's owner, headings and path, in the singular, without the fact's name."""
        words = {*self.fact.owner.split(), *words_of(self.section or ""), *words_of(self._around)}
        words |= set(words_of(self.path))
        return frozenset(map(singular, words)) - PLACE_WORDS - set(self.name_words)

    @cached_property
    def near(self) -> frozenset[str]:
        """The words of the innermost thing around the fact: its class or function, its last heading, or its file."""
        for text in (self.fact.owner, (self.section or "").rpartition(">")[2], self._around, self._file):
            words = frozenset(singular(word) for word in words_of(text)) - PLACE_WORDS - set(self.name_words)
            if words:
                return words
        return frozenset()

    @property
    def _around(self) -> str:
        """The title of the fact's passage; empty if the title only lists several definitions."""
        is_list = self.fact.side == "code" and lists_names(self.title or "")
        return "" if is_list else self.title or ""

    @cached_property
    def name_words(self) -> tuple[str, ...]:
        """The words of the fact's name, in the singular."""
        return tuple(map(singular, self.fact.name.split()))

    @cached_property
    def file_words(self) -> frozenset[str]:
        """The distinctive words of the file's name without its suffix: ``webhook`` for ``webhooks.md``."""
        return frozenset(singular(word) for word in words_of(self._file)) - PLACE_WORDS

    @property
    def _file(self) -> str:
        return self.path.rpartition("/")[2].partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactConflict:
    """Two facts about one thing that cannot both be true.

    Attributes:
        first: the side that probably describes the running system: code, then configuration, documentation, people.
        confidence: the probability, in [0, 1], that an engineer who reads both calls it a contradiction.
        name, attribute: the subject, in words for people.
        explanation: one sentence that names both values.
        also: other places with the same value as one of the two facts.
    """

    first: LocatedFact
    second: LocatedFact
    confidence: float
    name: str
    attribute: str
    explanation: str
    also: tuple[LocatedFact, ...] = ()


def pair_id(one: Fact, other: Fact) -> str:
    """Return an id of two statements that disagree. It depends on their texts, names and values, not on the places."""
    return digest(*sorted(digest(fact.statement, fact.name, fact.value, fact.unit or "") for fact in (one, other)))[:16]


class Detector(StrEnum):
    """The kind of contradiction that a conflict is."""

    SAME_ENTITY_DIVERGENCE = "same_entity_divergence"
    TEMPORAL_CONTRADICTION = "temporal_contradiction"
    NEGATION = "negation"
    SEMANTIC_OPPOSITION = "semantic_opposition"


def detector_of(conflict: FactConflict) -> Detector:
    """Return the kind of a contradiction.

    It is temporal if one event has two dates, a negation if one side denies what the other side says, and an opposition
    if one side switches on what the other side switches off. In all other cases one thing has two values.
    """
    if conflict.attribute == "date":
        return Detector.TEMPORAL_CONTRADICTION
    sides = (conflict.first.fact, conflict.second.fact)
    if sides[0].negated != sides[1].negated:
        return Detector.NEGATION
    if all(fact.kind == "boolean" for fact in sides):
        return Detector.SEMANTIC_OPPOSITION
    return Detector.SAME_ENTITY_DIVERGENCE


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
