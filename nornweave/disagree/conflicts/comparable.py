"""The choice of facts to compare, which share a name and state the same property, and the comparison of their values.

``index/fact_pairs.py`` does the join of ``pairs`` in SQL over whole generations.

A file that contradicts no other, because it is about itself or another version, is recognised by its path. Tests and
examples set values of their own, changelogs and upgrade guides describe other versions, translations lag behind. They
are shown in answers but never raise an alarm.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Domain, Fact
from nornweave.disagree.conflicts.records import LocatedFact
from nornweave.disagree.facts.comparison import FactComparison, compare
from nornweave.disagree.facts.configuration import is_configuration
from nornweave.disagree.facts.names import is_generic, join_keys, singular, words_of
from nornweave.disagree.facts.values import Value
from nornweave.read.chunking.languages import language_of

SIDES = ("code", "configuration", "documentation", "conversation", "research")
"""Who knows best what runs, first."""

WORD_ATTRIBUTES: frozenset[Attribute] = frozenset(("status",))
"""Stated of things in words, seldom by the name that the code gives them: any word in common will do."""
_VALUES: frozenset[Attribute] = frozenset(("default", "value", "setting"))
_COMPARED: frozenset[Attribute] = _VALUES | {"status", "requires"}
"""Facts of an older version may state something else; the next sync reads them again."""

OF_FILES = frozenset({Domain.CODE, Domain.DOCUMENTATION})
"""Domains in which paths say so."""


_PATH = lazy_pattern(r"(?<![\w./-])[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*){2,}(?![\w./-])")
"""A setting as a path of three names or more."""


class NameMatch(Enum):
    """How the names of two facts match."""

    SAME = "same"
    OWNED = "completed by the owner"
    """One is the end of the other; its first words are words of the other's owner: ``timeout`` of a webhook."""
    LONGER = "longer"
    """One is the end of the other, and nothing explains its first words."""
    OTHER = "other"


def match_names(one: LocatedFact, other: LocatedFact) -> NameMatch:
    """Return how the names of two facts match, by their words."""
    left, right = one.name_words, other.name_words
    if left == right:
        return NameMatch.SAME
    short, long, owner = (left, right, one) if len(left) < len(right) else (right, left, other)
    if not short or long[-len(short) :] != short:
        return NameMatch.OTHER
    return NameMatch.OWNED if owner.context.issuperset(long[: -len(short)]) else NameMatch.LONGER


def comparable(one: LocatedFact, other: LocatedFact) -> bool:
    """Tell whether two facts of one name state the same property, so that different values are a contradiction.

    Code and configuration are never compared, because a configuration is there to change the code's defaults. Two
    facts of one side are compared only if their domains differ and neither domain is ``code``.
    """
    a, b = one.fact, other.fact
    if a.side == b.side and (one.domain == other.domain or "code" in {one.domain, other.domain}):
        return False
    if {a.side, b.side} == {"code", "configuration"}:
        return False
    if ("min" in one.name_words) != ("min" in other.name_words):
        return False
    if any("hedged" in fact.qualifiers and fact.side in {"conversation", "research"} for fact in (a, b)):
        return False  # what people recommend is no value that something has
    if _is_nested_below(one, other) or _is_nested_below(other, one):
        return False
    match = match_names(one, other)
    if "research" in {a.side, b.side} and (is_generic(a.name) or is_generic(b.name) or match is NameMatch.LONGER):
        return False  # a paper's timeout is that of its own experiment
    if match is NameMatch.LONGER and one.place == other.place:
        return False  # a comment of a program names what stands below it in full
    if a.attribute not in WORD_ATTRIBUTES and match is NameMatch.OTHER:
        return False
    if a.attribute == b.attribute:
        return a.attribute in _COMPARED
    return a.attribute in _VALUES and b.attribute in _VALUES


def _is_nested_below(one: LocatedFact, other: LocatedFact) -> bool:
    """Tell whether a fact is written as a path that goes on below the owner of another fact of its name.

    ``pool.init.mode`` is not the ``mode`` of ``pool``. It may be if something around the other fact says ``init``.
    """
    for written in _PATH.findall(one.fact.statement):
        *owners, last = map(words_of, written.split("."))
        above = tuple(other.fact.owner.split())
        if tuple(map(singular, last)) != other.name_words:
            continue
        for place, words in enumerate(owners[:-1]):
            below = {singular(word) for parts in owners[place + 1 :] for word in parts}
            if words and above[-len(words) :] == words and below.isdisjoint(other.context):
                return True
    return False


def value_of(fact: Fact) -> Value:
    """Return the value of a fact for comparison."""
    return Value(fact.kind, fact.value, fact.unit)


def outcome(a: Fact, b: Fact) -> FactComparison:
    """Compare the values of two comparable facts. A denied value differs only from the same value that is not denied.

    If the code's default is empty, such as ``None``, the value usually comes from elsewhere. The result is undecided.
    """
    if any(fact.side == "code" and fact.kind == "none" for fact in (a, b)) and a.kind != b.kind:
        return FactComparison.UNDECIDED
    found = compare(value_of(a), value_of(b))
    if a.negated == b.negated:
        return FactComparison.UNDECIDED if a.negated else found
    return FactComparison.DIFFER if found is FactComparison.AGREE else FactComparison.UNDECIDED


def ordered(a: LocatedFact, b: LocatedFact) -> tuple[LocatedFact, LocatedFact]:
    """Return the two facts. The first is from the side that is closer to the running system."""
    first, second = sorted((a, b), key=lambda one: (SIDES.index(one.fact.side), one.place, one.fact.span))
    return first, second


MAX_BLOCK = 400
"""Facts of one key that are compared: a name that stands in more places says nothing."""


def keys_of(fact: Fact) -> frozenset[str]:
    """Return the join keys of a fact.

    A name that only gives the kind of value (``timeout``) has further keys with a word of its owner (``webhook
    timeout``). Statuses have a key for each word of the name. Examples have no keys.
    """
    if fact.form == "example":
        return frozenset()
    keys = set(join_keys(fact.name))
    if fact.attribute in WORD_ATTRIBUTES:
        keys |= {f"{fact.attribute} {word}" for word in fact.name.split() if len(word) > 3 and not is_generic(word)}
    if fact.form == "topic" or is_generic(fact.name):
        for word in fact.owner.split()[-4:]:
            keys.add(f"{singular(word)} {fact.name}")
    return frozenset(keys)


def pairs(facts: Sequence[LocatedFact]) -> Iterator[tuple[int, int]]:
    """Yield each pair of comparable facts that share a key, once, as their two indices in ascending order."""
    blocks: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(facts):
        for key in keys_of(one.fact):
            blocks[key].append(place)
    seen: set[tuple[int, int]] = set()
    for key in sorted(blocks):
        places = blocks[key]
        if len(places) < 2 or len(places) > MAX_BLOCK:
            continue
        for at, first in enumerate(places):
            for second in places[at + 1 :]:
                if (first, second) not in seen and comparable(facts[first], facts[second]):
                    seen.add((first, second))
                    yield first, second


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OWN_FOLDERS = _words("""
    t test tests testing integration smoke unittests __tests__ spec specs e2e fixtures fixture testdata test-data mocks
    __mocks__ __snapshots__ snapshots golden example examples sample samples demo demos playground benchmark benchmarks
    certification conformance benches bench migrations locale locales i18n translations lang langs dist htmlcov
""")
_HISTORY_FOLDERS = _words("""
    changelog changelogs changes release-notes releasenotes release_notes releases news newsfragments blog posts rfc
    rfcs adr adrs pep peps sep seps kep keps jep jeps tep teps proposals design designs archive archived
    legacy versioned_docs whatsnew upgrading upgrade migration issue_template pull_request_template
""")
_HISTORY_FILES = lazy_pattern(
    r"change-?_?logs?|changes|history|news|releases?|release[-_ ]?notes?|whats?[-_ ]?new|upgrad|migrat|deprecations|"
    r"security|code[-_]of[-_]conduct|licen[sc]e|copying|notice|authors|contributors|maintainers|credits|(?:.*[-_])?roadmap|todo|"
    r"v?\d+[-_.]to[-_.]v?\d",
    re.IGNORECASE,
)
_OF_EXAMPLES = lazy_pattern(r"(?:^|[-_.])(?:demos?|examples?|samples?)[-_.]|[-_.](?:demos?|examples?|samples)$")
_TEST_FILE = lazy_pattern(
    r"^test_|^tests?\.|_tests?\.|[.-](?:test|spec|stories|bench|test-d)\.[cm]?[jt]sx?$|(?:Test|Tests|TestCase|IT)\.\w{1,6}$|_spec\.rb$|"
    r"^conftest\.py$|^bench_|_bench(?:mark)?\.|^(?:examples?|demo|sample)\."
)
_TOOL_FILE = lazy_pattern(
    r"^(?:grunt|gulp)file\b|^(?:babel|commitlint|cypress|eslint|jest|karma|playwright|postcss|prettier|protractor|rollup"
    r"|stylelint|tailwind|tsup|vite|vitest|wdio|webpack)\.[\w.]*conf(?:ig)?\b",
    re.IGNORECASE,
)
"""What runs or configures the tools of a project calls things with values of its own."""
_OLD_VERSION = lazy_pattern(r"^(?:version-|v)?\d{1,3}(?:\.(?:\d{1,3}|x)){1,3}$")
_LANGUAGES = """
    ar bg bn ca cs da de el es fa fi fr he hi hr hu id it ja ko lt nl no pl pt ro ru sk sl sr sv sw ta te th
    tr uk ur vi zh
"""
_LANGUAGE = lazy_pattern(rf"(?:{'|'.join(_LANGUAGES.split())})(?:[-_](?:[A-Za-z]{{2,4}}|\d{{3}})){{0,2}}")
_LANGUAGE_SUFFIX = lazy_pattern(rf"(?:[._]|^readme-)(?:{_LANGUAGE.pattern})$", re.IGNORECASE)
_ENVIRONMENT = lazy_pattern(
    r"\b(?:prod(?:uction)?|staging|dev(?:elopment)?|test(?:ing)?|sandbox|preview|pilot|local(?:ly|host)?|ci|[cgt]pu)\b",
    re.IGNORECASE,
)
_ASIDE = _words("tes sta san pil")
"""Beginnings of environments that nobody means who names none."""
DOC_FOLDERS = _words("docs doc documentation site website manual man www guide guides content")


def is_sample(path: str) -> bool:
    """Tell whether a path is of a configuration among documentation: it shows values that somebody might choose.

    A schema there states the defaults.
    """
    *folders, name = path.lower().split("/")
    return is_configuration("", path) and "schema" not in name and not DOC_FOLDERS.isdisjoint(folders)


@lru_cache(maxsize=4096)
def stands_apart(path: str) -> bool:
    """Tell whether facts of a file with this path contradict no other file.

    Such a file is about itself, as a test or an example is, or about another version or in another language.
    """
    pure = PurePosixPath(path)
    folders = {folder.lower() for folder in pure.parts[:-1]}
    if (
        not _OWN_FOLDERS.isdisjoint(folders)
        or any(map(_OF_EXAMPLES.search, folders))
        or _TEST_FILE.search(pure.name)
        or _TOOL_FILE.match(pure.name)
    ):
        return True
    if language_of(path) is not None or is_configuration("", path):
        # What lies beside the pages builds them, or shows how to use the program.
        return not DOC_FOLDERS.isdisjoint(folders)
    if not _HISTORY_FOLDERS.isdisjoint(folders) or _HISTORY_FILES.match(pure.stem):
        return True
    if any(_OLD_VERSION.match(folder) or _LANGUAGE.fullmatch(folder) for folder in folders):
        return True
    return bool(_LANGUAGE_SUFFIX.search(pure.stem) or _LANGUAGE.fullmatch(pure.stem.lower()))


def are_of_two_environments(one: str, other: str, *known: str) -> bool:
    """Tell whether two sentences are about two environments: production and a sandbox, CPU and GPU.

    Args:
        known: the text around ``other``, then the text around ``one``. If it does not name the sandbox that the other
            sentence names, it means production.
    """
    first, second = ({found[:3] for found in _ENVIRONMENT.findall(text.lower())} for text in (one, other))
    if first and second:
        return first.isdisjoint(second)
    named = known and (known[0] if first else known[1]).lower()
    return bool(named) and any(each not in named for each in (first | second) & _ASIDE)
