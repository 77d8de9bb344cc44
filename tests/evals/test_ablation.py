"""Ablation: every function of the table exists, and is really gone while it is taken out."""

from __future__ import annotations

import pytest

from lab.ablation.__main__ import OTHERS, brings, table
from lab.ablation.measuring import Row, conflict_row, duplicate_row, feature_rows, without
from lab.ablation.targets import DUPLICATE_RULES, EXTRACTORS
from lab.conflicts.pairs import OWN, Outcome, judge, load_pairs
from lab.conflicts.shares import Figures, Share
from lab.duplicates import read_pairs


def own_outcomes(ids: frozenset[str] | None = None) -> dict[str, list[Outcome]]:
    pairs = [pair for pair in load_pairs(OWN) if ids is None or pair.pair_id in ids]
    return {"own": list(judge(pairs))}


@pytest.fixture(scope="module")
def found() -> frozenset[str]:
    """The pairs that detection finds with everything."""
    return frozenset(one.pair.pair_id for one in own_outcomes()["own"] if one.is_alarm and one.pair.is_conflict)


def test_every_function_of_the_table_exists_and_is_put_back(found: frozenset[str]) -> None:
    before = conflict_row("", own_outcomes(found))
    for target in (*EXTRACTORS.values(), *DUPLICATE_RULES.values()):
        with without(target):
            pass
    assert conflict_row("", own_outcomes(found)) == before


@pytest.mark.parametrize(
    "name", ["documentation.prose.prose_facts", "documentation.properties.limit", "code.definitions.read_assignment"]
)
def test_without_an_extractor_facts_are_gone_and_without_one_that_matters_pairs_too(
    name: str, found: frozenset[str]
) -> None:
    whole = conflict_row("", own_outcomes(found))
    assert whole.sets["own"].recall.hits == len(found) > 10
    with without(EXTRACTORS[name]):
        row = conflict_row(name, own_outcomes(found))
    assert whole.facts - row.facts
    if name != "documentation.properties.limit":  # a reader in a table, bound to its attribute
        assert brings(whole, row)[1] > 0


def test_without_its_heaviest_features_the_model_finds_fewer_pairs(found: frozenset[str]) -> None:
    outcomes = own_outcomes(found)
    rows = {row.name: row for row in feature_rows(outcomes)}
    assert rows["same_owner"].sets["own"].recall.hits < len(found)
    assert rows["same_owner"].facts == conflict_row("", outcomes).facts


def test_without_the_rule_of_contained_texts_fewer_duplicates_are_merged() -> None:
    pairs = read_pairs()[:60]
    whole = duplicate_row("", pairs, [None] * len(pairs))
    with without(DUPLICATE_RULES["equivalence._contained"]):
        row = duplicate_row("", pairs, [None] * len(pairs))
    assert row.sets["own dev"].recall.hits < whole.sets["own dev"].recall.hits


def test_a_missing_function_is_an_error() -> None:
    with (
        pytest.raises(AttributeError, match="read_nothing"),
        without(("nornweave.disagree.facts.code.calls", "read_nothing")),
    ):
        pass


def row_of(name: str, others: tuple[int, int], own: tuple[int, int]) -> Row:
    """A row of two sets of 10 conflicts; of each how many are found, and how many alarms there are."""
    sets = {OTHERS: others, "own dev": own}
    return Row(name, {part: Figures(Share(hits, of), Share(hits, 10)) for part, (hits, of) in sets.items()})


def test_what_brings_most_to_other_repositories_comes_first() -> None:
    rows = [
        row_of("nothing removed", (5, 5), (4, 5)),
        row_of("useless", (5, 5), (4, 5)),
        row_of("own only", (5, 5), (1, 1)),  # 4 - 1 found, 1 - 0 false alarms
        row_of("useful", (3, 4), (4, 5)),  # 5 - 3 found, 0 - 1 false alarms
    ]
    assert list(table(rows))[2:] == [
        "| nothing removed | |  | 5: 1.00, 0.50 | 4: 0.80, 0.40 |",
        "| useful | others +2, false alarms prevented +1 |  | 3: 0.75, 0.30 | = |",
        "| own only | own +3, false alarms prevented -1 |  | = | 1: 1.00, 0.10 |",
        "| useless | **nothing** |  | = | = |",
    ]
