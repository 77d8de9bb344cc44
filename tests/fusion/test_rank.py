"""Stage 5: weighted signals and tie-breaks."""

import math
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from fusion_support import citation, day, fused, item
from hypothesis import given
from hypothesis import strategies as st

from nornweave.ask.fuse.rank import length_signal, rank, recency_signal
from nornweave.ask.fuse.records import FusedItem
from nornweave.config.workspace import CALIBRATED_WEIGHTS, STRETCHED_WEIGHTS, FusionSettings, RankWeights

NOW = day("2026-01-23")


def ranked(*items: FusedItem, weights: RankWeights = STRETCHED_WEIGHTS, **signals: float) -> tuple[FusedItem, ...]:
    return rank(items, weights=weights, domain_signals=signals, now=NOW)


def ids(items: tuple[FusedItem, ...]) -> list[str]:
    return [one.chunk_id for one in items]


def test_every_signal_by_hand() -> None:
    """0.5·0.8 + 0.15·1 + 0.15·e^(−9/90) + 0.1·0.85 + 0.1·0.4 (four words of ten)."""
    one = replace(
        fused(item("a", "four words are here", 0.8, written="2026-01-14")),
        corroborated_by=(citation("documentation", "a.md"),),
    )
    (only,) = ranked(one, code=0.85)
    assert only.signals == pytest.approx(
        {"score": 0.4, "corroboration": 0.15, "recency": 0.15 * math.exp(-0.1), "domain": 0.085, "length": 0.04}
    )
    assert only.score == pytest.approx(math.fsum(only.signals.values()))


def test_the_same_domain_corroborates_nothing() -> None:
    """Corroboration is agreement across domains."""
    one = replace(fused(item("a")), corroborated_by=(citation("code", "b.py"),))
    assert ranked(one)[0].signals["corroboration"] == 0


def test_recency() -> None:
    assert recency_signal(NOW - timedelta(days=90), NOW) == pytest.approx(1 / math.e)
    assert recency_signal(NOW, NOW) == 1
    assert recency_signal(NOW + timedelta(days=400), NOW) == 1, "a clock that is wrong earns nothing extra"
    assert recency_signal(None, NOW) == 0
    assert recency_signal(datetime(2026, 1, 23), NOW) == 1, "without a zone it is UTC"  # noqa: DTZ001


def test_length() -> None:
    assert length_signal("") == length_signal("a") == 0.2
    assert length_signal("a b c d e f g") == 0.7
    assert length_signal("w " * 10) == length_signal("w " * 500) == 1.0
    assert length_signal("w " * 501) == 0.7


def test_ties_go_by_the_agents_score_then_time_then_domain() -> None:
    base = item("a", score=0.5)
    better = fused(replace(base, chunk_id="b", score=0.6), 0.5)  # type: ignore[arg-type]
    assert ids(ranked(fused(base), better)) == ["b", "a"]
    # Recency counts nothing here, or it would be no tie.
    flat = RankWeights(score=1, corroboration=0, recency=0, domain=0, length=0)
    old, new = fused(item("old", written="2026-01-01")), fused(item("new", written="2026-01-02"))
    undated = fused(item("undated"))
    assert ids(ranked(undated, old, new, weights=flat)) == ["new", "old", "undated"]
    talk, code = fused(item("x", domain="conversations")), fused(item("y"))
    assert ids(ranked(talk, code, weights=flat)) == ["y", "x"]


def test_a_difference_below_a_millionth_is_a_tie() -> None:
    flat = RankWeights(score=1, corroboration=0, recency=0, domain=0, length=0)
    low, high = fused(item("low", score=0.9), 0.5), fused(item("high", score=0.1), 0.5 + 5e-7)
    assert ids(ranked(high, low, weights=flat)) == ["low", "high"]
    clear = fused(item("high", score=0.1), 0.5 + 5e-6)
    assert ids(ranked(clear, low, weights=flat)) == ["high", "low"]


def test_the_weights_of_the_settings() -> None:
    assert FusionSettings().rank_weights("minmax") == STRETCHED_WEIGHTS
    assert FusionSettings().rank_weights("calibrated") == CALIBRATED_WEIGHTS
    stated = FusionSettings(rank_weight_recency=0.4)
    assert stated.rank_weights("minmax") == replace(STRETCHED_WEIGHTS, recency=0.4)
    assert stated.rank_weights("calibrated") == replace(CALIBRATED_WEIGHTS, recency=0.4)


ITEMS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 0.5 + 4e-7, 0.5 + 8e-7, 1.0]), st.sampled_from(["code", "research"])),
    max_size=10,
)


@given(ITEMS, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_input(drawn: list[tuple[float, str]], random: object) -> None:
    items = [fused(item(f"{place}", domain=domain, score=score)) for place, (score, domain) in enumerate(drawn)]
    shuffled = list(items)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    ordered = ranked(*items)
    assert ids(ranked(*shuffled)) == ids(ordered)
    assert sorted(ids(ordered)) == sorted(f"{place}" for place in range(len(drawn)))
    for one, other in zip(ordered, ordered[1:], strict=False):
        assert one.score >= other.score - 1e-6
