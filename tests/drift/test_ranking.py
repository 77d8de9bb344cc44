from __future__ import annotations

import pytest
from fact_support import located

from nornweave.disagree.conflicts.decision import CandidatePair, conflict_of
from nornweave.disagree.drift.ranking import RIGHT, Affinity, ranked
from nornweave.disagree.facts.comparison import FactComparison

OTHERS = ("pool width", "pool height", "pool depth", "pool weight")


def pair(page: str, file: str, name: str, *, agrees: bool, value: str = "1") -> CandidatePair:
    sides = located(name, value, file), located(name, value if agrees else "2", page)
    return CandidatePair(*sides, FactComparison.AGREE if agrees else FactComparison.DIFFER, 0.8)


def confidence(pairs: list[CandidatePair], files: int = 500, name: str = "pool limit", code: str = "1") -> float:
    subject = pair("a.md", "a.py", name, agrees=False, value=code)
    (found,) = ranked([conflict_of(subject, 0.8)], Affinity([subject, *pairs]), files)
    return found.confidence


def friends(page: str = "a.md") -> list[CandidatePair]:
    return [pair(page, "a.py", name, agrees=True) for name in OTHERS]


def test_the_evidence_is_the_share_of_names_about_which_page_and_file_agree() -> None:
    differing = [pair("a.md", "a.py", name, agrees=False) for name in ("lane width", "lane height", "lane depth")]
    assert confidence(friends()) == round(RIGHT * 5 / 6, 4)
    assert confidence([*friends(), *differing]) == round(RIGHT * 5 / 9, 4)


def test_what_a_page_does_not_know_is_not_shown() -> None:
    assert confidence([]) == confidence(friends("b.md")) == confidence(friends()[:1]) == 0


def test_a_name_with_several_values_in_code_is_not_shown() -> None:
    assert confidence([*friends(), pair("c.md", "c.py", "pool limit", agrees=True, value="7")]) == 0


@pytest.mark.parametrize(("value", "said"), [("3", FactComparison.DIFFER), ("1", FactComparison.AGREE)])
def test_a_name_to_which_a_page_gives_several_values_is_not_shown(value: str, said: FactComparison) -> None:
    again = CandidatePair(located("pool limit", "1", "a.py"), located("pool limit", value, "a.md"), said, 0.8)
    assert confidence([*friends(), again]) == 0 < confidence(friends())


def test_a_default_that_is_decided_elsewhere_is_not_shown() -> None:
    assert confidence(friends()) > confidence(friends(), code="-1") == 0


def test_a_comment_is_about_its_own_file() -> None:
    sides = located("pool limit", "1", "a.py"), located("pool limit", "2", "a.py", side="documentation", form="field")
    subject = CandidatePair(*sides, FactComparison.DIFFER, 0.8)
    for friend, expected in (("a.py", RIGHT * 0.75), ("b.py", 0)):
        known = CandidatePair(
            located("pool depth", "1", friend),
            located("pool depth", "1", friend, side="documentation", form="field"),
            FactComparison.AGREE,
            0.8,
        )
        (found,) = ranked([conflict_of(subject, 0.8)], Affinity([subject, known]), 500)
        assert found.confidence == pytest.approx(expected)


def test_a_name_of_one_word_is_not_shown() -> None:
    assert confidence(friends(), name="limit") == 0


def test_in_a_folder_of_two_files_the_pair_decides_alone() -> None:
    assert confidence([], files=2) == pytest.approx(RIGHT * 0.8)
