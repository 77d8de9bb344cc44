from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from fact_support import located

from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.decision import CandidatePair, conflict_of
from nornweave.disagree.drift.ranking import DOUBTFUL, FEW_FILES, RIGHT, SHOWN_FROM, Affinity, ranked
from nornweave.disagree.facts.comparison import FactComparison

OTHERS = ("pool width", "pool height", "pool depth", "pool weight")


def pair(page: str, file: str, name: str, *, agrees: bool, value: str = "1") -> CandidatePair:
    sides = located(name, value, file), located(name, value if agrees else "2", page)
    return CandidatePair(*sides, FactComparison.AGREE if agrees else FactComparison.DIFFER, 0.8)


def confidence(
    pairs: list[CandidatePair], page: str = "a.md", name: str = "pool limit", code: str = "1", alone: float = 0.8
) -> float:
    return scanned(pair(page, "a.py", name, agrees=False, value=code), pairs, alone)


def scanned(subject: CandidatePair, pairs: Sequence[CandidatePair], alone: float = 0.8) -> float:
    """Return the confidence in a pair of a folder of many files, which a template reads as well."""
    (found,) = ranked([conflict_of(subject, alone)], Affinity([subject, *pairs]), 500, [subject])
    return found.confidence


def friends(page: str = "a.md") -> list[CandidatePair]:
    return [pair(page, "a.py", name, agrees=True) for name in OTHERS]


def test_a_pair_is_shown_where_its_section_agrees_with_its_code_about_more_than_it_differs() -> None:
    differing = [
        pair("a.md", "a.py", f"lane {name}", agrees=False) for name in ("width", "height", "depth", "age", "tax")
    ]
    assert confidence(friends()) == confidence([*friends(), *differing[:4]]) == RIGHT
    assert confidence([*friends(), *differing]) == 0


def test_a_pair_that_does_not_convince_alone_is_not_shown() -> None:
    assert confidence(friends(), alone=0.7) == RIGHT
    assert confidence(friends(), alone=0.69) == DOUBTFUL < SHOWN_FROM
    assert confidence([], alone=0.69) == 0


@pytest.mark.parametrize(
    ("page", "beside", "shown"),
    [
        ("tools/probe/README.md", "tools/probe/src/main.py", 0),
        ("tools/probe/README.md", "web/main.py", RIGHT),
        ("apps/docs/a.md", "apps/web/main.py", RIGHT),
    ],
)
def test_a_page_beside_code_is_about_that_code(page: str, beside: str, shown: float) -> None:
    subject = pair(page, "core/a.py", "pool limit", agrees=False)
    known = [pair(page, "core/a.py", name, agrees=True) for name in OTHERS]
    affinity = Affinity([subject, *known], [page, beside, "core/a.py"])
    (found,) = ranked([conflict_of(subject, 0.8)], affinity, 500, [subject])
    assert found.confidence == shown

    manifest, said = (
        located("python", "1", path, attribute="requires", kind="version", value=value, side=side)
        for path, value, side in (("core/setup.py", ">=3.9", "configuration"), (page, "3.6", "documentation"))
    )
    page_says = replace(said, fact=replace(said.fact, owner="installation"))
    requires = CandidatePair(manifest, page_says, FactComparison.DIFFER, 0.8)
    (found,) = ranked([conflict_of(requires, 0.8)], Affinity([requires], affinity.paths), 500, [])
    assert found.confidence == shown


@pytest.mark.parametrize(("page", "shown"), [("docs/java/a.md", 0), ("docs/java_and_python.md", RIGHT)])
def test_a_page_about_another_language_is_not_about_the_code(page: str, shown: float) -> None:
    assert confidence(friends(page), page) == shown


def test_another_section_of_the_page_and_another_part_of_the_file_say_nothing() -> None:
    friend = friends()
    other_section = [
        replace(one, other=replace(one.other, fact=replace(one.other.fact, owner="lanes"))) for one in friend
    ]
    other_class = [replace(one, code=replace(one.code, fact=replace(one.code.fact, owner="lane"))) for one in friend]
    assert confidence(other_section) == confidence(other_class) == 0 < confidence(friend)


def test_what_a_page_does_not_know_is_not_shown() -> None:
    assert confidence([]) == confidence(friends("b.md")) == confidence(friends()[:1]) == 0


def test_what_no_template_reads_is_shown_on_request_only() -> None:
    subject = pair("a.md", "a.py", "pool limit", agrees=False)
    others = [pair("a.md", "b.py", "pool limit", agrees=False), pair("a.md", "a.py", "pool limits", agrees=False)]
    affinity = Affinity([subject, *friends()])
    (found,) = ranked([conflict_of(subject, 0.8)], affinity, 500, others)
    assert found.confidence == DOUBTFUL
    (few,) = ranked([conflict_of(subject, 0.8)], affinity, FEW_FILES - 1, [])
    assert few.confidence == pytest.approx(0.8 * RIGHT)


def test_what_some_code_has_as_the_page_says_is_not_shown() -> None:
    assert confidence([*friends(), pair("c.md", "c.py", "pool limit", agrees=True, value="7")]) == RIGHT
    assert confidence([*friends(), pair("c.md", "c.py", "pool limit", agrees=True, value="2")]) == 0
    for strength, shown in ((0.15, RIGHT), (0.25, 0)):
        far = replace(pair("c.md", "c.py", "pool limit", agrees=True, value="2"), strength=strength)
        assert confidence([*friends(), far]) == shown


@pytest.mark.parametrize(
    ("code", "shown"), [("2000", 0), ("2048", 0), ("1/512", 0), ("262144/125000", 0), ("1999", RIGHT)]
)
def test_one_number_in_two_units_is_not_shown(code: str, shown: float) -> None:
    assert confidence(friends(), code=code) == shown


@pytest.mark.parametrize(("value", "said"), [("3", FactComparison.DIFFER), ("1", FactComparison.AGREE)])
def test_a_name_to_which_a_page_gives_several_values_is_not_shown(value: str, said: FactComparison) -> None:
    again = CandidatePair(located("pool limit", "1", "a.py"), located("pool limit", value, "a.md"), said, 0.8)
    assert confidence([*friends(), again]) == 0 < confidence(friends())


def test_a_rounded_number_is_the_same() -> None:
    def read(documented: str) -> float:
        sides = located("pool limit", "1/3", "a.py"), located("pool limit", documented, "a.md")
        return scanned(CandidatePair(*sides, FactComparison.DIFFER, 0.8), friends())

    assert read("33/100") == 0 < read("3/10")


def test_a_default_that_is_decided_elsewhere_is_not_shown() -> None:
    assert confidence(friends()) > confidence(friends(), code="-1") == 0


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("- None, to use the default 2 pools", 0),
        ("- `pool_limit`, 2 by default, on Linux 1", 0),
        ("- `pool_limit`, 2 * PoolWidth by default", 0),
        ("- `pool_limit`, PoolWidth × 2 by default", 0),
        ("- `pool_limit`, 2 * time.Nanosecond by default", RIGHT),
        ("- `pool_limit`, 2 by default", RIGHT),
    ],
)
def test_what_a_special_value_does_or_a_statement_with_both_numbers_is_no_default(written: str, shown: float) -> None:
    subject = pair("a.md", "a.py", "pool limit", agrees=False)
    fact = replace(subject.other.fact, statement=written, form="list")
    subject = replace(subject, other=replace(subject.other, fact=fact))
    assert scanned(subject, friends()) == shown


def test_a_comment_is_about_its_own_file() -> None:
    sides = located("pool limit", "1", "a.py"), located("pool limit", "2", "a.py", side="documentation", form="field")
    subject = CandidatePair(*sides, FactComparison.DIFFER, 0.8)
    for friend, expected in (("a.py", RIGHT), ("b.py", 0)):
        known = CandidatePair(
            located("pool depth", "1", friend),
            located("pool depth", "1", friend, side="documentation", form="field"),
            FactComparison.AGREE,
            0.8,
        )
        assert scanned(subject, [known]) == expected


def test_a_name_of_one_word_has_one_value_in_code() -> None:
    assert confidence(friends(), name="limit") == RIGHT
    assert confidence([*friends(), pair("c.md", "c.py", "limit", agrees=True, value="7")], name="limit") == 0


@pytest.mark.parametrize(
    ("page", "heading", "name", "said", "shown"),
    [
        ("README.md", "", "go", "1.14", RIGHT),
        ("README.md", "Pool > Installation", "go", "1.14", RIGHT),
        ("README.md", "Pool > Getting started", "go", "1.14", RIGHT),
        ("README.md", "Pool > Comparison", "go", "1.14", 0),
        ("docs/a.md", "Build > Go", "go", "1.14", RIGHT),
        ("docs/a.md", "Derby driver", "go", "1.14", 0),
        ("README.md", "", "java", "1.14", 0),
        ("README.md", "", "go", "1.26", RIGHT),
        ("README.md", "Development > Go", "go", "1.26", 0),
        ("CONTRIBUTING.md", "", "go", "1.26", 0),
        ("CONTRIBUTING.md", "", "go", "1.14", RIGHT),
    ],
)
def test_a_requirement_is_the_projects_where_the_page_is_about_building_it(
    page: str, heading: str, name: str, said: str, shown: float
) -> None:
    def requires(version: str, path: str, **changes: Any) -> LocatedFact:
        return located(name, "1", path, attribute="requires", kind="version", value=f">={version}", **changes)

    sides = (
        requires("1.25", "go.mod", side="configuration", form="manifest"),
        requires(said, page, form="sentence", owner=heading.lower().replace(" >", "")),
    )
    subject = CandidatePair(*sides, FactComparison.DIFFER, 0.8)
    assert scanned(subject, []) == scanned(subject, [], alone=0.5) == shown

    newest = requires("1.25", page, form="sentence")
    of_versions = CandidatePair(sides[0], newest, FactComparison.AGREE, 0.8)
    assert scanned(subject, [of_versions]) == 0, "what each of several versions requires"


@pytest.mark.parametrize(("file", "shown"), [("charts/web/values.yaml", RIGHT), ("deploy/values.yaml", 0)])
def test_a_page_speaks_of_the_configuration_below_it(file: str, shown: float) -> None:
    def both(name: str, code: str) -> tuple[LocatedFact, LocatedFact]:
        return located(name, code, file, side="configuration", form="setting", attribute="default"), located(
            name, "2", "charts/README.md"
        )

    subject = CandidatePair(*both("pool limit", "1"), FactComparison.DIFFER, 0.8)
    known = [CandidatePair(*both(name, "2"), FactComparison.AGREE, 0.8) for name in OTHERS]
    assert scanned(subject, known) == shown
