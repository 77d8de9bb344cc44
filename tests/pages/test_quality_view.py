"""Charts and comparisons: the stage that readers get, an axis from 0 to 1, what is sure and what is not."""

import json
from pathlib import Path
from typing import Any

from api.pages.question_form import JudgedQuestions, QuestionWithPlaces
from api.pages.state_view import (
    HEIGHT,
    WIDTH,
    chart_of,
    compared_of,
    generations_of,
    headline_of,
    histories_of,
    last_refusal,
    published_before,
    rows_of,
    worst_of,
)
from nornweave.connect.connectors import load_settings


def evaluation(at: str, *, generation: str = "gen-000001", verdict: str = "published", **fields: Any) -> Any:
    measures = {"Recall@10": {"mean": 0.7, "interval": [0.6, 0.8]}, "RR@10": {"mean": 0.5, "interval": [0.4, 0.6]}}
    return {
        "at": at,
        "domain": "code",
        "set": "code",
        "scope": "domain",
        "origin": "people",
        "generation": generation,
        "verdict": verdict,
        "measured": 25,
        "stages": {"dense": {"Recall@10": {"mean": 0.1, "interval": [0.0, 0.2]}}, "fused": measures},
        **fields,
    }


def test_a_chart_goes_from_old_to_new_within_its_frame() -> None:
    series: Any = [
        (evaluation(f"2026-01-0{day}"), {"mean": mean, "interval": [mean - 0.1, mean + 0.1]})
        for day, mean in ((1, 0.2), (2, 0.9))
    ]
    chart = chart_of(series, "Recall@10")
    first, last = chart["points"]
    assert first["x"] < last["x"] <= WIDTH
    assert first["y"] > last["y"], "higher is better, and higher up"
    assert 0 <= last["high"] <= last["y"] <= last["low"] <= HEIGHT
    assert chart["days"] == ["2026-01-01", "2026-01-02"]
    assert chart["description"].startswith("Recall@10: 2 measurements, the last 0.900 (95 % interval 0.800 to 1.000)")
    alone = chart_of(series[:1], "MRR")
    assert alone["band"] == ""
    assert WIDTH / 3 < alone["points"][0]["x"] < WIDTH * 2 / 3


def test_what_readers_get_is_shown_set_by_set() -> None:
    newest_first = [
        evaluation("2026-01-02", generation="gen-000002"),
        evaluation("2026-01-01", domain="all", set="answers", scope="all domains"),
        evaluation("2026-01-01"),
        evaluation("2026-01-01", verdict="refused"),
    ]
    over_all, code = histories_of(newest_first)
    assert (over_all["title"], over_all["newest"]["scope"]) == ("answers", "all domains")
    assert (code["title"], code["stage"], code["newest"]["generation"]) == ("code", "fused", "gen-000002")
    recall, mrr = code["charts"]
    assert (recall["name"], recall["last"]) == ("Recall@10", {"mean": 0.7, "interval": [0.6, 0.8]})
    assert (mrr["name"], mrr["last"]) == ("MRR", {"mean": 0.5, "interval": [0.4, 0.6]})
    assert len(recall["points"]) == 2, "what was refused never answered"
    assert generations_of(newest_first) == {"code": ("gen-000002", "gen-000001")}


def test_the_last_refusal_is_held_against_what_was_published_then() -> None:
    refused = evaluation("2026-01-03", generation="gen-000003", verdict="refused")
    newest_first = [
        evaluation("2026-01-04", generation="gen-000004"),
        refused,
        evaluation("2026-01-02", generation="gen-000002"),
        evaluation("2026-01-01"),
    ]
    assert last_refusal(newest_first) is refused
    assert published_before(newest_first, refused) == "gen-000002"
    assert last_refusal(newest_first[:1]) is None
    assert published_before([refused], refused) is None


def test_a_comparison_says_what_is_sure() -> None:
    def measure(stage: str, after: float, interval: list[float]) -> dict[str, Any]:
        return {
            "set": "code",
            "scope": "domain",
            "stage": stage,
            "measure": "Recall@10",
            "queries": 25,
            "before": 0.8,
            "after": after,
            "interval": interval,
            "p_value": 0.01,
            "better": 1,
            "worse": [{"query_id": "q7", "before": 1.0, "after": 0.0}],
        }

    comparison: Any = {
        "domain": "code",
        "before": "gen-000001",
        "after": "gen-000002",
        "measures": [measure("fused", 0.6, [-0.3, -0.1]), measure("dense", 0.2, [-0.9, -0.1])],
        "notices": [],
    }
    (worse,) = compared_of(comparison)
    assert (round(worse["change"], 3), worse["direction"], worse["is_sure"]) == (-0.2, "worse", True)
    comparison["measures"] = [measure("fused", 0.79, [-0.1, 0.08])]
    assert not compared_of(comparison)[0]["is_sure"]


def test_the_headline_has_a_trend_and_a_target() -> None:
    better = {"fused": {"Recall@10": {"mean": 0.8, "interval": [0.7, 0.9]}}}
    measured = [evaluation("2026-01-02", stages=better), evaluation("2026-01-01")]
    headline = headline_of(measured, {"code": {"Recall@10": 0.85}})
    assert headline is not None
    assert (headline["trend"], headline["direction"]) == ("+10.0 points since 2026-01-01", "better")
    assert (headline["metric"]["mean"], headline["target"], headline["is_reached"]) == (0.8, 0.85, False)
    once = headline_of(measured[1:], {})
    assert once is not None
    assert (once["trend"], once["target"], once["is_reached"]) == ("measured once", None, True)
    elsewhere = {**measured[0], "domain": "all", "set": "first"}
    rows = rows_of([*measured, elsewhere], {"code": {"Recall@10": 0.85}})
    assert [row["newest"]["domain"] for row in rows] == ["all", "code"]
    assert rows[1] == headline, "a row a domain, as its headline is"
    assert headline_of([], {}) is None


def test_the_worst_questions_come_first_with_where_their_answer_is() -> None:
    questions = {
        "a": QuestionWithPlaces("far below", ("src/a.py:4",)),
        "b": QuestionWithPlaces("not there", ("b.md", "c.md", "d.md")),
        "c": QuestionWithPlaces("right", ("c.md",)),
    }
    first, second = worst_of(evaluation("2026-01-01"), {"a": 0.125, "b": 0.0, "c": 1.0, "gone": 0.0}, questions)
    assert (first["text"], first["rank"], len(first["places"])) == ("not there", "not among ten", 2)
    assert second["rank"] == "rank 8"
    assert second["places"] == [("src/a.py:4", "/why?q=far+below&domain=code&path=src%2Fa.py%3A4")]


def test_examples_are_questions_in_words_that_have_an_answer(tmp_path: Path) -> None:
    folder = tmp_path / "judged"
    folder.mkdir()
    texts = ["KEYWORD", "what is one", "unanswered question", *(f"what is number {number}" for number in range(20))]
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(texts)]
    (folder / "queries.jsonl").write_text("\n".join(lines), "utf-8")
    judged = [f"{number}\ta.md#L3-4\t1\n{number}\tb.json#17.2\t2" for number in range(len(texts)) if number != 2]
    (folder / "qrels.tsv").write_text("query_id\tdoc_id\tgrade\n" + "\n".join(judged), "utf-8")
    file = tmp_path / "nornweave.yaml"
    file.write_text("sources: []\nevaluation: {judgments: [judged, nowhere]}\n", "utf-8")
    questions = JudgedQuestions(load_settings(file))
    assert questions.sets["judged"]["1"] == QuestionWithPlaces("what is one", ("b.json", "a.md:3"))
    assert len(questions.examples) == 5
    assert not {"KEYWORD", "unanswered question"} & set(questions.examples)
