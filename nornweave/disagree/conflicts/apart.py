"""Recognise by its path a file that contradicts no other, because it is about itself or another version.

Tests and examples set values of their own, changelogs and upgrade guides describe other versions, translations lag
behind. They are shown in answers but never raise an alarm.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Domain
from nornweave.disagree.facts.configuration import is_configuration
from nornweave.read.chunking.languages import language_of

OF_FILES = frozenset({Domain.CODE, Domain.DOCUMENTATION})
"""Domains in which paths say so."""


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
