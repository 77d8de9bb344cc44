"""Labelled pairs are read as they are written, shares have honest intervals, fitting finds what is there."""

import hashlib
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.conflicts.alarms import by_turns, precision, with_labels
from lab.conflicts.fitting import Bag, FittingCase, confidence_of, cross_validate, fit
from lab.conflicts.pairs import OWN, group_of, load_pairs
from lab.conflicts.shares import Share, figures, reliability
from nornweave.core.types import Domain
from nornweave.disagree.conflicts.decision import Model

ROWS: list[dict[str, Any]] = [json.loads(line) for line in OWN.read_text(encoding="utf-8").splitlines()]


def test_every_own_pair_is_complete_and_stands_there_once() -> None:
    for row in ROWS:
        sides = row["a"], row["b"]
        assert row["note"].strip(), row["id"]
        assert all(side["text"].strip() and side["path"] for side in sides), row["id"]
        assert {side["domain"] for side in sides} <= set(Domain), row["id"]
        assert sides[0]["domain"] != sides[1]["domain"], f"{row['id']}: domains are compared"
    assert len({row["id"] for row in ROWS}) == len(ROWS) >= 240
    texts = Counter(tuple(sorted((row["a"]["text"], row["b"]["text"]))) for row in ROWS)
    assert [pair for pair, count in texts.items() if count > 1] == []


def test_the_split_of_the_own_pairs_is_a_hash_of_the_id() -> None:
    for row in ROWS:
        odd = int(hashlib.sha256(row["id"].encode()).hexdigest(), 16) % 2
        assert row["split"] == ("fresh" if row["id"].startswith("fresh-") else ("dev", "test")[odd]), row["id"]


def test_a_pair_is_read_with_its_headings_and_its_repository(tmp_path: Path) -> None:
    row = {
        "id": "lamp-1", "kind": "timeout", "label": "conflict", "why": "30 and 60", "source": "acme/lamp @ 1f2e3d^",
        "a": {"domain": "documentation", "title": "Settings > Lamp > fade", "path": "docs/lamp.md",
              "date": "2024-05-06", "text": "Defaults to 30."},
        "b": {"domain": "code", "title": "Lamp", "path": "src/lamp.py", "date": "", "text": "fade = 60"},
    }  # fmt: skip
    file = tmp_path / "pairs.jsonl"
    file.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    (pair,) = load_pairs(file)
    page, code = pair.sides
    assert (pair.group, pair.is_conflict, pair.is_named_setting) == ("acme/lamp", True, True)
    assert (page.section, page.title, page.format) == ("Settings > Lamp > fade", "fade", "markdown")
    assert page.timestamp is not None
    assert page.timestamp.isoformat() == "2024-05-06T00:00:00+00:00"
    assert (code.language, code.title, code.section, code.timestamp) == ("python", "Lamp", None, None)


def test_a_source_names_its_repository() -> None:
    assert group_of("acme/lamp#245") == "acme/lamp"
    assert group_of("acme/lamp (page before, code after 12ab)") == "acme/lamp"
    assert group_of("A paper, section 5.2") == "A paper"


def test_wilsons_interval_by_hand() -> None:
    # 8 of 10 at 95 %: (0.8 + 0.19207 ± 1.959964·√(0.016 + 0.0096036)) / 1.384146
    low, high = Share(8, 10).interval
    assert (low, high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert Share(0, 0).interval == (0.0, 1.0)


@given(st.integers(0, 200), st.integers(1, 200))
def test_an_interval_holds_its_share(hits: int, of: int) -> None:
    share = Share(min(hits, of), of)
    low, high = share.interval
    assert 0 <= low <= share.value + 1e-9
    assert share.value - 1e-9 <= high <= 1


def test_figures_and_reliability_by_hand() -> None:
    measured = figures([(True, True), (True, True), (True, False), (False, False), (False, True)])
    assert (measured.precision.hits, measured.precision.of) == (2, 3)
    assert (measured.recall.hits, measured.recall.of) == (2, 3)
    bins = list(reliability([(0.55, True), (0.57, False), (1.0, True)]))
    assert [(low, high, round(mean, 2), share.hits, share.of) for low, high, mean, share in bins] == [
        (0.5, 0.6, 0.56, 1, 2),
        (0.9, 1.0, 1.0, 1, 1),
    ]


def synthetic(count: int, weight: float, offset: float) -> list[Bag]:
    """Make bags of two candidates: one with a feature that decides, one that is always wrong and says so."""
    numbers = np.random.default_rng(7)
    bags = []
    for _ in range(count):
        x = float(numbers.normal())
        right = bool(numbers.random() < 1 / (1 + math.exp(-(offset + weight * x))))
        bags.append(Bag(right, ({"x": x, "wrong": 0.0}, {"x": float(numbers.normal()), "wrong": 1.0})))
    return bags


def test_fitting_finds_the_weights_that_made_the_bags() -> None:
    model = fit(synthetic(4_000, 2.0, -0.5), l2=0.01)
    assert model.weights["x"] == pytest.approx(2.0, abs=0.2)
    assert model.intercept == pytest.approx(-0.5, abs=0.15)
    assert model.weights["wrong"] < -3


def test_fitting_is_deterministic_and_bears_separable_and_empty_bags() -> None:
    bags = [Bag(True, ({"x": 1.0},)), Bag(False, ({"x": 0.0},)), Bag(True), Bag(False)]
    model = fit(bags)
    assert fit(bags) == model
    assert 0 < model.weights["x"] < 5
    assert confidence_of(bags[2], model) == 0
    assert fit([Bag(True)]) == Model(0.0, {})


def test_a_group_is_measured_by_a_model_that_never_saw_it() -> None:
    def case(group: str, positive: bool, name: str) -> FittingCase:
        return FittingCase(group, positive, lambda _model: [{name: 1.0}])

    cases = [
        case("seen", True, "a"),
        case("seen", False, "b"),
        case("other", True, "a"),
        case("left", False, "only left"),
    ]
    confidences = cross_validate(cases)
    without = fit([one.bag(Model(0.0, {})) for one in cases[:3]])
    assert confidences[3] == pytest.approx(without.probability({"only left": 1.0}))
    assert "only left" not in without.weights


def test_alarms_go_by_turns_and_keep_their_labels() -> None:
    first = [{"fingerprint": "a", "real": None, "why": ""}, {"fingerprint": "b", "real": None, "why": ""}]
    second = [{"fingerprint": "c", "real": None, "why": ""}]
    rows = by_turns([first, second], 3)
    assert [row["fingerprint"] for row in rows] == ["a", "c", "b"]
    labelled = [{"fingerprint": "c", "real": True, "why": "5 and 6"}, {"fingerprint": "b", "real": False, "why": "two"}]
    merged = with_labels(rows, labelled)
    assert [row["real"] for row in merged] == [None, True, False]
    assert merged[1]["why"] == "5 and 6"
    assert (precision(merged).hits, precision(merged).of) == (1, 2)
