from __future__ import annotations

from nornweave.disagree.conflicts.decision import CandidatePair, conflict_of
from nornweave.disagree.drift.ranking import Affinity, ranked
from nornweave.disagree.facts.comparison import FactComparison
from tests.fact_support import located


def pair(page: str, file: str, name: str, *, agrees: bool) -> CandidatePair:
    sides = located(name, "1", file), located(name, "1" if agrees else "2", page)
    return CandidatePair(*sides, FactComparison.AGREE if agrees else FactComparison.DIFFER, 0.8)


def confidence(pairs: list[CandidatePair], files: int) -> float:
    subject = pair("a.md", "a.py", "limit", agrees=False)
    (found,) = ranked([conflict_of(subject, 0.8)], Affinity([subject, *pairs]), files)
    return found.confidence


def test_a_page_that_agrees_with_a_file_about_other_names_makes_a_disagreement_surer() -> None:
    friends = [pair("a.md", "a.py", name, agrees=True) for name in ("width", "height", "depth", "weight")]
    strangers = [pair("a.md", "a.py", name, agrees=False) for name in ("width", "height", "depth", "weight")]
    others = [pair("b.md", "a.py", name, agrees=True) for name in ("width", "height")]
    assert confidence(friends, 500) > confidence(others, 500) == confidence([], 500) > confidence(strangers, 500)


def test_affinity_counts_nothing_in_a_folder_of_two_files() -> None:
    assert confidence([], 2) == 0.8
