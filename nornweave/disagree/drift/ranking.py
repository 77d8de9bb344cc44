"""What a full scan shows: values that differ where nearly everything says that both are about one thing.

In a repository whose documentation is kept well, most values that differ are two things of one name. What tells them
apart is affinity: a page that speaks of a file agrees with it about other names.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nornweave.core.types import Attribute
from nornweave.disagree.conflicts import FactConflict, LocatedFact
from nornweave.disagree.conflicts.comparable import NameMatch, match_names
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.read.chunking.languages import language_of

CANDIDATES_FROM = 0.05
"""Conflicts below this confidence are not looked at."""
AGREEING = 2
"""Other names about which a page has to agree with a file."""
SHOWN_FROM = 0.5
RIGHT = 0.72
"""What is left of the evidence as a probability: of 37 pairs of unseen repositories with .81 on average, 18 were right,
and most of the others would not be shown any more (docs/figures.md, "The ledger")."""
FEW_FILES = 10
"""So few files say little about each other; there the pair decides alone."""
_STATED: frozenset[Attribute] = frozenset(("default", "value", "setting"))
_COMPARED = frozenset(("number", "boolean", "list"))
"""Strings have spellings, places to be filled in and translations: most that differ are no drift."""


@dataclass
class Affinity:
    """What each page and each file of code agree and differ about."""

    pairs: Iterable[CandidatePair]

    def __post_init__(self) -> None:
        """Count names, each once, and the values that code and each page give to each."""
        self._agreeing: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._differing: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._values: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._stated: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        for pair in self.pairs:
            kind = self._agreeing if pair.outcome is FactComparison.AGREE else self._differing
            kind[pair.other.path, pair.code.path].add(pair.other.fact.name)
            self._values[pair.code.fact.name].add((pair.code.fact.kind, pair.code.fact.value))
            self._stated[pair.other.path, pair.other.fact.name].add((pair.other.fact.kind, pair.other.fact.value))

    def has_one_value(self, code: LocatedFact) -> bool:
        """Tell whether code gives the name one value."""
        return len(self._values[code.fact.name]) == 1

    def confidence(self, code: LocatedFact, page: LocatedFact) -> float:
        """Return the share of the other names of a page and a file about which they agree, with one more of either.

        0 if they agree about fewer than ``AGREEING``, or the name has several values in code or on the page: then
        these are several things. A comment speaks of its own file, which counts as a name;
        those of a file of declarations (``client.d.ts``) of others.
        """
        is_comment = language_of(page.path) is not None and not page.path.endswith(".d.ts")
        agreeing = self._agreeing[page.path, code.path] - {page.fact.name}
        is_one = self.has_one_value(code) and len(self._stated[page.path, page.fact.name]) == 1
        known = len(agreeing) + (page.path == code.path)
        if known < AGREEING or not is_one or (is_comment and page.path != code.path):
            return 0.0
        differing = self._differing[page.path, code.path] - agreeing - {page.fact.name}
        return (known + 1) / (known + len(differing) + 2)


def ranked(conflicts: Sequence[FactConflict], affinity: Affinity, files: int) -> list[FactConflict]:
    """Return conflicts with the confidence that a full scan has in them, the most confident first.

    Args:
        files: how many were read.
    """
    scored = [replace(one, confidence=confidence_in(one, affinity, files)) for one in conflicts]
    return sorted(scored, key=lambda one: (-one.confidence, one.second.place, one.first.place, one.name))


def confidence_in(one: FactConflict, affinity: Affinity, files: int) -> float:
    """Return the probability that a conflict of so many files is one, in [0, ``RIGHT``]."""
    return round(RIGHT * _evidence(one, affinity, files), 4)


def _evidence(one: FactConflict, affinity: Affinity, files: int) -> float:
    is_required = one.second.fact.attribute == "requires"  # by the project, not by a file of it
    if files < FEW_FILES or (is_required and affinity.has_one_value(one.first)):
        return one.confidence
    return affinity.confidence(one.first, one.second) if _is_of_one_thing(one) else 0.0


def _is_of_one_thing(one: FactConflict) -> bool:
    """Tell whether code declares a default, and a page states one of the same kind for the same full name."""
    code, page = one.first.fact, one.second.fact
    if page.attribute not in _STATED or code.attribute != "default" or page.qualifiers:
        return False
    if code.kind != page.kind or code.kind not in _COMPARED or (code.kind == "list" and _is_nested(code.value)):
        return False
    if code.value == "-1":  # it stands for a default that is decided elsewhere
        return False
    is_full = match_names(one.first, one.second) is not NameMatch.LONGER
    return is_full and max(len(code.name.split()), len(page.name.split())) > 1


def _is_nested(items: str) -> bool:
    return any(item.startswith(("[", "{")) for item in json.loads(items))
