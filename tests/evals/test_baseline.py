"""A record of figures: what counts as worse, what is printed, and a run over the example corpus."""

from pathlib import Path

import pytest
from configurations import configured

from lab.baseline import conflict_pairs, example_corpus, index_facts, is_worse, rankings, report, worse
from lab.conflicts.pairs import OWN
from nornweave.ask.engine import Engine
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

NO_MODELS = {"embedding": {"model": "hash:64", "dimensions": 64}, "reranking": {"model": None}}


def judged(recall: float, mrr: float, queries: int = 50) -> dict[str, float]:
    return {"queries": queries, "Recall@10": recall, "MRR": mrr}


@pytest.mark.parametrize(("row", "figure", "before", "after", "expected"), [
    ("code, domain", "Recall@10", 0.800, 0.795, False),  # .005 less is allowed
    ("code, domain", "Recall@10", 0.800, 0.794, True),
    ("code, domain", "MRR", 0.500, 0.4949, True),
    ("sum", "MRR", 1.500, 1.4999, True),  # no sum may fall
    ("sum", "MRR", 1.500, 1.501, False),
    ("conflicts, all", "precision", 0.90, 0.899, True),
    ("conflicts, all", "F1", 0.90, 0.80, False),  # shown, not judged
    ("code, domain", "nDCG@10", 0.90, 0.80, False),
    ("code, domain", "queries", 50, 49, True),
    ("code, domain", "MRR", 0.5, None, True),
    ("code, domain", "MRR", None, 0.5, False),
])  # fmt: skip
def test_what_is_worse(row: str, figure: str, before: float | None, after: float | None, expected: bool) -> None:
    assert is_worse(row, figure, before, after) is expected


def test_small_drops_of_many_sets_show_in_their_sum() -> None:
    before = {"golden sets": {"code": judged(0.80, 0.50), "research": judged(0.60, 0.40)}}
    after = {"golden sets": {"code": judged(0.80, 0.497), "research": judged(0.60, 0.397)}}
    # .5 + .4 = .9 and .497 + .397 = .894
    assert list(worse(before, after)) == ["golden sets, sum, MRR: 0.9000 → 0.8940 (-0.0060)"]
    assert not list(worse(before, before))


def test_parts_that_were_not_measured_are_not_worse_but_told() -> None:
    before = {"code": "a", "parts": {"judged sets": {"x": judged(1, 1)}, "golden sets": {"y": judged(0.5, 0.5)}}}
    after = {"code": "b", "parts": {"golden sets": {"y": judged(0.75, 0.5)}}}
    told = report(after, before)
    assert "Nothing is worse." in told
    assert "Not measured this time: judged sets." in told
    assert "0.5000 → 0.7500 (+0.2500)" in told


def test_the_own_pairs_are_measured_by_split() -> None:
    measured = conflict_pairs(OWN)
    assert set(measured) == {f"conflicts, {split}" for split in ("all", "dev", "test", "fresh")}
    assert measured["conflicts, all"]["positive"] == sum(
        measured[f"conflicts, {one}"]["positive"] for one in ("dev", "test", "fresh")
    )


@pytest.mark.slow
def test_golden_sets_are_run_in_every_scope(tmp_path: Path) -> None:
    corpus = example_corpus()
    settings = configured(tmp_path, *(one for one in corpus.sources if one["domain"] == "code"), domain=NO_MODELS)
    run(domain_parts(settings, Domain.CODE), SyncOptions(run_id="test", wait_s=0))
    with Engine(settings, watch=False) as engine:
        facts = index_facts(engine)
        measured = rankings(engine, [one for one in corpus.sets if one.name == "code"])
    assert facts["code"].startswith("31 documents")
    assert set(measured) == {"code, domain", "code, domain, no filter", "code, all domains"}
    for figures in measured.values():
        assert figures["failed"] == 0
        assert 0 < figures["MRR"] < 1
        assert 0 < figures["Recall@10"] < 1
