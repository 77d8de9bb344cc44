"""The results of a full scan: values that differ although almost all signs show that both are about one thing.

In a repository with good documentation, most differing values belong to two things of one name. The other names
distinguish them: a table or section about a class, a function or a file agrees with it about the other names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact
from nornweave.disagree.conflicts import MIN_CONFIDENCE, FactConflict, LocatedFact
from nornweave.disagree.conflicts.comparable import DOC_FOLDERS, NameMatch, match_names
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.documentation.tokens import tokens_of
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.versions import read_requirement
from nornweave.read.chunking.languages import EXTENSIONS, language_of

CANDIDATES_FROM = 0.05
"""Conflicts below this confidence are not looked at."""
AGREEING = 2
"""Other names about which a section has to agree with what it is about."""
SHOWN_FROM = 0.5
SETTLED_SHARE = 0.25
"""Where code has what the page says, and matches it so well compared with what differs, the page means that."""
RIGHT = 0.8
"""The share of what is shown that is right, in repositories that nothing was chosen on (docs/figures.md)."""
DOUBTFUL = 0.4
"""Confidence in pairs that do not convince alone, or that no template reads as well; shown if somebody asks."""
FEW_FILES = 5
"""So few files say little about each other; there the pair decides. Of folders of six to nine none of ten such alarms
was right (docs/figures.md)."""
ROUNDED = Fraction(102, 100)
_STATED: frozenset[Attribute] = frozenset(("default", "value", "setting"))
_COMPARED = frozenset(("number", "boolean"))
"""Strings and lists have spellings, places to be filled in and translations: most that differ are no drift."""
_FACTORS = frozenset(
    (1_000, 1_024, 1_000_000, 1_024**2, *(Fraction(1_024**power, 1_000**power) for power in (1, 2, 3)))
)
"""Between a number with a unit and one without, or between MB and MiB."""
_SPECIAL = lazy_pattern(r"[\W_]*(?:none|null|nil|true|false|-?\d+)`*(?:,|:| means\b)", re.IGNORECASE)
"""A statement about a special value: ``None, to use the default 3-fold cross validation``."""
_COMPUTED = lazy_pattern(r"\d(?: \* | ?× ?)(?!time\.)[A-Za-z_]|[A-Za-z_)\]](?: [*+/] | ?× ?)\d")
"""A statement that computes its value from another: ``2 * RelaxedTimeout``."""
_OF_PAGES = DOC_FOLDERS | {"book", "wiki"}
"""Words of folders that hold the pages of a whole project."""
_OF_PROJECT = frozenset(
    """install installation installing build building requirement requirements prerequisite prerequisites
    contributing development""".split()  # noqa: SIM905
)
"""Words of the pages and headings that say what a project requires; elsewhere a part of it does."""
_OF_README = _OF_PROJECT | {"setup", "started", "usage", "supported", "platforms"}
"""Of the headings of a README: it has sections about parts as well."""
_FOR_DEVELOPERS = frozenset(("build", "building", "contributing", "development"))
"""Words of those that are about changing a project: that may need a newer version than running it."""
_COMPILED_FOR = "java"
"""Its manifests name the version that a project is compiled for, which is not the one that builds it."""

_Places: TypeAlias = tuple[str, str, str, str]
"""Page and section, file and the class or function in it."""


@dataclass
class Affinity:
    """The agreements and differences between each section of a page and each part of a code file.

    Attributes:
        pairs: the documented values, each with a value of the code.
        paths: the paths of all files.
    """

    pairs: Iterable[CandidatePair]
    paths: Iterable[str] = ()

    def __post_init__(self) -> None:
        """Count the names, each once, and the values that the code and each page give to a name."""
        self._agreeing: dict[_Places, set[str]] = defaultdict(set)
        self._differing: dict[_Places, set[str]] = defaultdict(set)
        self._values: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._stated: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        self._right: dict[tuple[str, str, str], float] = defaultdict(float)
        self._folders = {folder for path in self.paths if language_of(path) for folder in _folders(path)}
        for pair in self.pairs:
            code, page = pair.code.fact, pair.other.fact
            kind = self._differing
            if pair.outcome is FactComparison.AGREE:
                kind = self._agreeing
                key = (page.name, *_value(page))
                self._right[key] = max(self._right[key], pair.strength)
            kind[_places(pair.code, pair.other)].add(page.name)
            self._values[code.name].add(_value(code))
            self._stated[pair.other.path, page.name].add(_value(page))

    def has_one_value(self, code: LocatedFact) -> bool:
        """Tell whether the code gives a fact's name only one value."""
        return len(self._values[code.fact.name]) == 1

    def is_stated_once(self, page: LocatedFact) -> bool:
        """Tell whether a page gives a fact's name only one value. Several values would belong to several things."""
        return len(self._stated[page.path, page.fact.name]) == 1

    def is_of_one_thing(self, one: FactConflict) -> bool:
        """Tell whether a section is about a part of the code, because they agree on at least ``AGREEING`` other names.

        They must not differ on more names. The result is ``False`` if the page gives the name several values, or if
        other code has the page's value, because there are then several things. A comment is about its own file, which
        counts as one more name. Comments in a file of declarations (``client.d.ts``) are about other files.
        """
        code, page, fact = one.first, one.second, one.second.fact
        is_own = page.path == code.path
        is_comment = language_of(page.path) is not None and not page.path.endswith(".d.ts")
        is_right = self._right[fact.name, *_value(fact)] >= SETTLED_SHARE * one.confidence
        if is_right or not self.is_stated_once(page) or (is_comment and not is_own):
            return False
        if not self.is_of_its_package(code, page):
            return False
        agreeing = self._agreeing[_places(code, page)] - {fact.name}
        differing = self._differing[_places(code, page)] - agreeing - {fact.name}
        return len(agreeing) + is_own >= max(AGREEING, len(differing))

    def is_of_its_package(self, code: LocatedFact, page: LocatedFact) -> bool:
        """Tell whether code is in the package nearest to a page: a tool's README is about that tool."""
        if not _OF_PAGES.isdisjoint(words_of(page.path)):
            return True
        nearest = next((folder for folder in _folders(page.path) if folder in self._folders), "")
        return code.path.startswith(nearest)


def _folders(path: str) -> Iterator[str]:
    """Yield the folders around a path, innermost first, each with ``/``."""
    while path := path.rpartition("/")[0]:
        yield f"{path}/"


def _value(fact: Fact) -> tuple[str, str]:
    return fact.kind, fact.value


def _places(code: LocatedFact, page: LocatedFact) -> _Places:
    section = "" if page.path == code.path else page.fact.owner
    return page.path, section, code.path, code.fact.owner


def ranked(
    conflicts: Sequence[FactConflict], affinity: Affinity, files: int, learned: Iterable[CandidatePair]
) -> list[FactConflict]:
    """Return conflicts with their confidence in a full scan, highest first.

    A value read by the extractors is certain if a template of the repository reads it too.

    Args:
        files: the number of files.
        learned: the values read by templates.
    """
    read = {
        _reading(one.code, one.other, name) for one in learned for name in (one.code.fact.name, one.other.fact.name)
    }

    def confidence(one: FactConflict) -> float:
        found = confidence_in(one, affinity, files)
        is_read_twice = _reading(one.first, one.second, one.second.fact.name) in read
        is_alone = one.second.fact.attribute == "requires" or files < FEW_FILES
        return found if is_alone or is_read_twice else min(found, DOUBTFUL)

    scored = [replace(one, confidence=confidence(one)) for one in conflicts]
    return sorted(scored, key=lambda one: (-one.confidence, one.second.place, one.first.place, one.name))


def _reading(code: LocatedFact, page: LocatedFact, name: str) -> tuple[str, ...]:
    return code.path, page.path, name, *_value(page.fact)


def confidence_in(one: FactConflict, affinity: Affinity, files: int) -> float:
    """Return the probability of a conflict in a scan of this many files, in [0, ``RIGHT``]."""
    if files < FEW_FILES and one.second.fact.attribute != "requires":
        return round(RIGHT * one.confidence, 4) if _is_plain(one, affinity) else 0.0
    if one.second.fact.attribute == "requires":
        return RIGHT if _is_requirement(one, affinity) else 0.0
    is_own = one.first.path == one.second.path
    is_one = is_own or not _is_of_another_language(one)
    is_right = is_one and _is_default(one) and _is_plain(one, affinity) and affinity.is_of_one_thing(one)
    right = RIGHT if one.confidence >= MIN_CONFIDENCE or is_own else DOUBTFUL
    return right if is_right else 0.0


def _is_requirement(one: FactConflict, affinity: Affinity) -> bool:
    """Tell whether a page states what the project requires: the page and the manifests each name only one version."""
    path, heading = set(words_of(one.second.path)), set(one.second.fact.owner.split())
    is_one = affinity.has_one_value(one.first) and affinity.is_stated_once(one.second)
    is_its_own = affinity.is_of_its_package(one.first, one.second)
    is_readme = "readme" in path and (not heading or not heading.isdisjoint(_OF_README))
    is_of_project = one.name != _COMPILED_FOR and (is_readme or not (path | heading).isdisjoint(_OF_PROJECT))
    least, said = (read_requirement(side.fact.value) for side in (one.first, one.second))
    if least is None or said is None or least.least[:2] == said.least[:2]:  # pages seldom follow a patch
        return False
    is_newer = said.least > least.least and not (path | heading).isdisjoint(_FOR_DEVELOPERS)
    return is_one and is_its_own and is_of_project and not is_newer


def _is_of_another_language(one: FactConflict) -> bool:
    """Tell whether the page's path names programming languages and the code is in another language."""
    named = set(words_of(one.second.path)) & EXTENSIONS.keys()
    return bool(named) and language_of(one.first.path) not in {None, *named}


def _is_default(one: FactConflict) -> bool:
    """Tell whether code declares a default. A configuration declares one only for pages in or above its folder."""
    folder = one.second.path.rpartition("/")[0]
    is_declared = one.first.fact.side == "code" or (bool(folder) and one.first.path.startswith(f"{folder}/"))
    return is_declared and one.first.fact.attribute == "default"


def _is_plain(one: FactConflict, affinity: Affinity) -> bool:
    """Tell whether a page and the code give the same full name two values that can be compared simply."""
    code, page = one.first.fact, one.second.fact
    if page.attribute not in _STATED or page.qualifiers:
        return False
    if _COMPUTED.search(page.statement) or (page.form in {"list", "sentence"} and _SPECIAL.match(page.statement)):
        return False
    # -1 stands for a default that is decided elsewhere
    is_one_kind = code.kind == page.kind or (code.kind, page.kind) == ("number", "unlimited")
    if not is_one_kind or code.kind not in _COMPARED or code.value == "-1":
        return False
    if page.kind == "number" and (_are_one_number(code.value, page.value) or _says_both(page, code)):
        return False
    is_full = match_names(one.first, one.second) is not NameMatch.LONGER
    is_telling = min(len(code.name.split()), len(page.name.split())) > 1 or affinity.has_one_value(one.first)
    return is_full and is_telling


def _says_both(page: Fact, code: Fact) -> bool:
    """Tell whether the page's statement also has the code's number, as ``5, on Linux 10`` has both numbers."""
    return any(
        (one.value.kind, one.value.text) == (code.kind, code.value) for one in tokens_of(page.statement) if one.value
    )


def _are_one_number(one: str, other: str) -> bool:
    """Tell whether two numbers are equal after rounding (``.33`` and ``1/3``), or by a factor between usual units."""
    low, high = sorted((abs(Fraction(one)), abs(Fraction(other))))
    is_rounded = high.denominator > 1 and low.denominator > 1 and high < ROUNDED * low
    return low > 0 and (is_rounded or high / low in _FACTORS)


STALE_NAMES, STALE_SHARE = 6, 0.6
"""A page is stale if it names so many values of one file, and so many of these differ."""


def stale_pages(pairs: Iterable[CandidatePair]) -> list[tuple[float, list[CandidatePair]]]:
    """Return the pages of which most values differ from one code file. Such a page is about that file and out of date.

    A value with which another place of the code agrees is not counted.

    Returns:
        For each page the share of its values that differ, and a pair for each of them. The page with the most differing
        values comes first.
    """
    settled: set[tuple[str, str]] = set()
    by_name: dict[tuple[str, str], dict[str, list[CandidatePair]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        if pair.outcome is FactComparison.AGREE:
            settled.add((pair.other.path, pair.other.fact.name))
        is_default = pair.code.fact.attribute == "default" and pair.other.fact.attribute == "default"
        is_one = match_names(pair.code, pair.other) is NameMatch.SAME and pair.code.fact.kind == pair.other.fact.kind
        if is_default and is_one and pair.code.path != pair.other.path:
            by_name[pair.other.path, pair.code.path][pair.other.fact.name].append(pair)
    found = []
    for (page, _), names in by_name.items():
        differing = [max(of, key=lambda one: one.strength) for name, of in names.items() if (page, name) not in settled]
        if len(names) >= STALE_NAMES and len(differing) >= STALE_SHARE * len(names):
            found.append((len(differing) / len(names), differing))
    return sorted(found, key=lambda one: -len(one[1]))
