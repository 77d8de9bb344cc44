"""The state of the system for its two pages: measured quality, and the status of sources and domains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from api.pages.addresses import ask_address, day_of, original, why_address
from api.pages.answer_view import sentence
from api.pages.catalogue import DomainChoice
from api.pages.question_form import JudgedQuestions, QuestionWithPlaces
from api.syncs import Running
from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationDocument, MetricDocument, set_title
from nornweave.ask.views.status import ConfiguredSource, StatusDocument
from nornweave.core.errors import EMPTY
from nornweave.core.text.terminal import counted
from nornweave.core.types import JsonValue, Listing

STAGES = ("fused", "merged", "reranked", "expanded", "combined")
"""The last of these that was measured is what a reader gets."""
MEASURES = {"Recall@10": "Recall@10", "RR@10": "MRR"}
MAX_COMPARED = 40
MAX_WORST, MAX_PLACES = 10, 2
HEADLINE, FIRST_RIGHT = "Recall@10", "RR@10"
_MEASURED = frozenset({"published", "outdated"})
# Of a chart, in the coordinates of its picture.
WIDTH, HEIGHT = 260, 92
_LEFT, _RIGHT, _TOP, _BOTTOM = 28, 10, 8, 18


def quality_view(documents: Mapping[str, Any], judged: JudgedQuestions | None) -> dict[str, Any]:
    """Return the measured quality for the page, with the questions of the judged sets."""
    evaluations = documents["evaluations"]
    first = headline_evaluation(evaluations)
    questions = judged.sets.get(first["set"], {}) if judged and first else {}
    floors = judged.floors if judged else {}
    return {
        "headline": headline_of(evaluations, floors),
        "rows": rows_of(evaluations, floors),
        "worst": worst_of(first, documents["first_right"], questions) if first else (),
        "histories": histories_of(evaluations),
        "generations": generations_of(evaluations),
        "refused": documents["refused"],
        "refusal": compared_of(documents["refusal"]) if documents["refusal"] else (),
        "comparison": documents["comparison"],
        "compared": compared_of(documents["comparison"]) if documents["comparison"] else (),
        "query_map": documents["query_map"],
    }


def headline_of(
    evaluations: Sequence[EvaluationDocument], floors: Mapping[str, Mapping[str, float]]
) -> dict[str, Any] | None:
    """Return the headline figure of the first set, measured last; ``None`` if it was not measured.

    The figure is the share of right places among the first ten results.

    Args:
        evaluations: newest first.
        floors: the required values, by domain and measure.
    """
    series = [
        each for group in _groups(evaluations)[:1] for each in group if HEADLINE in each["stages"][stage_of(each)]
    ]
    if not series:
        return None
    newest, metrics = series[-1], [each["stages"][stage_of(each)][HEADLINE] for each in series]
    change = metrics[-1]["mean"] - metrics[-2]["mean"] if len(series) > 1 else 0.0
    floor = floors.get(newest["domain"], {}).get(HEADLINE)
    return {
        "newest": newest,
        "title": _title(newest),
        "metric": metrics[-1],
        "trend": "measured once"
        if len(series) == 1
        else f"{f'{change * 100:+.1f} points' if change else 'unchanged'} since {day_of(series[-2]['at'])}",
        "direction": _direction(change),
        "target": floor,
        "is_reached": floor is None or metrics[-1]["mean"] >= floor,
    }


def rows_of(
    evaluations: Sequence[EvaluationDocument], floors: Mapping[str, Mapping[str, float]]
) -> list[dict[str, Any]]:
    """Return the headline figure of each domain by its first set. All domains together come first."""
    domains = sorted({each["domain"] for each in evaluations}, key=lambda name: (name != "all", name))
    rows = (headline_of([each for each in evaluations if each["domain"] == name], floors) for name in domains)
    return [row for row in rows if row]


def headline_evaluation(evaluations: Sequence[EvaluationDocument]) -> EvaluationDocument | None:
    """Return the evaluation behind the headline figure; ``None`` if nothing was measured."""
    return next((group[-1] for group in _groups(evaluations)), None)


def worst_of(
    evaluation: EvaluationDocument, ranks: Mapping[str, float], questions: Mapping[str, QuestionWithPlaces]
) -> list[dict[str, Any]]:
    """Return the questions whose first right place has the worst rank, with their right places.

    Args:
        evaluation: the evaluation that asked the questions.
        ranks: query → 1 / rank of the first right place; 0 if it is not among the first ten.
        questions: query → question, for the set of the evaluation.
    """
    scope = [("domain", evaluation["domain"])] if evaluation["domain"] != "all" else []
    bad = sorted((value, query) for query, value in ranks.items() if value < 1 and query in questions)[:MAX_WORST]
    return [
        {
            "text": questions[query].text,
            "rank": f"rank {round(1 / value)}" if value else "not among ten",
            "places": [
                (place, why_address([("q", questions[query].text), *scope, ("path", place)]))
                for place in questions[query].places[:MAX_PLACES]
            ],
            "ask": ask_address([("q", questions[query].text), *scope]),
        }
        for value, query in bad
    ]


def histories_of(evaluations: Sequence[EvaluationDocument]) -> list[dict[str, Any]]:
    """Return every set with its charts. Sets over all domains come first, then the others by name."""
    return [
        {"newest": group[-1], "title": _title(group[-1]), "stage": stage_of(group[-1]), "charts": list(_charts(group))}
        for group in _groups(evaluations)
    ]


def _groups(evaluations: Sequence[EvaluationDocument]) -> list[list[EvaluationDocument]]:
    """Return the measurements of each set in each scope, oldest first."""
    groups: dict[tuple[str, str, str], list[EvaluationDocument]] = {}
    for evaluation in reversed(evaluations):  # they come newest first
        if evaluation["verdict"] in _MEASURED and stage_of(evaluation):
            groups.setdefault((evaluation["domain"], evaluation["set"], evaluation["scope"]), []).append(evaluation)
    return [groups[key] for key in sorted(groups, key=lambda key: (key[0] != "all", key))]


def last_refusal(evaluations: Sequence[EvaluationDocument]) -> EvaluationDocument | None:
    """Return the newest evaluation of a candidate that was not published; ``None`` if there is none."""
    return next((evaluation for evaluation in evaluations if evaluation["verdict"] == "refused"), None)


def published_before(evaluations: Sequence[EvaluationDocument], refused: EvaluationDocument) -> str | None:
    """Return the generation with which a refused candidate was compared; ``None`` if it is not known."""
    older = (
        evaluation["generation"]
        for evaluation in evaluations
        if (evaluation["domain"], evaluation["set"]) == (refused["domain"], refused["set"])
        and evaluation["verdict"] == "published"
        and evaluation["at"] <= refused["at"]
    )
    return next(older, None)


def generations_of(evaluations: Sequence[EvaluationDocument]) -> dict[str, tuple[str, ...]]:
    """Return the measured generations of each domain, newest first."""
    found: dict[str, dict[str, None]] = {}
    for evaluation in evaluations:
        if evaluation["domain"] != "all":
            found.setdefault(evaluation["domain"], {})[evaluation["generation"]] = None
    return {domain: tuple(names) for domain, names in sorted(found.items())}


def compared_of(comparison: ComparisonDocument) -> list[dict[str, Any]]:
    """Return the differences at the last measured stage, largest losses first."""
    stages: dict[tuple[str, str], set[str]] = {}
    for measure in comparison["measures"]:
        stages.setdefault((measure["set"], measure["scope"]), set()).add(measure["stage"])
    last = {key: next((stage for stage in STAGES if stage in names), "") for key, names in stages.items()}
    return [
        {
            **measure,
            "title": f"{set_title(comparison['domain'], measure['set'])}, {measure['scope']}",
            "measure": MEASURES[measure["measure"]],
            "change": measure["after"] - measure["before"],
            "is_sure": measure["interval"][0] > 0 or measure["interval"][1] < 0,
            "direction": _direction(measure["after"] - measure["before"]),
        }
        for measure in comparison["measures"]
        if measure["stage"] == last[measure["set"], measure["scope"]] and measure["measure"] in MEASURES
    ][:MAX_COMPARED]


def stage_of(evaluation: EvaluationDocument) -> str:
    """Return the last stage that was measured; empty if none of ``STAGES`` was."""
    return next((stage for stage in STAGES if stage in evaluation["stages"]), "")


def _charts(evaluations: Sequence[EvaluationDocument]) -> Iterator[dict[str, Any]]:
    for measure, name in MEASURES.items():
        series = [
            (evaluation, metric)
            for evaluation in evaluations
            if (metric := evaluation["stages"].get(stage_of(evaluation), {}).get(measure))
        ]
        if series:
            yield chart_of(series, name)


def chart_of(series: Sequence[tuple[EvaluationDocument, MetricDocument]], name: str) -> dict[str, Any]:
    """Return the chart of a measure over time as SVG points: a line of means in a band of intervals.

    The axis always goes from 0 to 1, so that no change looks larger than it is.
    """
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(series) - 1)
    points = [
        {
            "x": round(_LEFT + (place * step if len(series) > 1 else (WIDTH - _LEFT - _RIGHT) / 2), 1),
            "y": _height(metric["mean"]),
            "low": _height(metric["interval"][0]),
            "high": _height(metric["interval"][1]),
            "label": f"{day_of(measured['at'])} {measured['generation']}: {metric['mean']:.3f} ({_interval(metric)})",
        }
        for place, (measured, metric) in enumerate(series)
    ]
    last = series[-1][1]
    outline = [f"{point['x']},{point['high']}" for point in points]
    outline += [f"{point['x']},{point['low']}" for point in reversed(points)]
    days = [day_of(measured["at"]) for measured, _ in series]
    return {
        "name": name,
        "last": last,
        "width": WIDTH,
        "height": HEIGHT,
        "left": _LEFT,
        "right": WIDTH - _RIGHT,
        "points": points,
        "line": " ".join(f"{point['x']},{point['y']}" for point in points),
        "band": " ".join(outline) if len(points) > 1 else "",
        "rules": [(_height(value), f"{value:g}") for value in (0, 0.5, 1)],
        "days": [*dict.fromkeys((days[0], days[-1]))],
        "description": f"{name}: {len(series)} measurements, the last {last['mean']:.3f} "
        f"(95 % interval {_interval(last)}) on {days[-1]}",
    }


def _interval(metric: MetricDocument) -> str:
    return "{:.3f} to {:.3f}".format(*metric["interval"])


def _height(value: float) -> float:
    return round(_TOP + (1 - min(max(value, 0.0), 1.0)) * (HEIGHT - _TOP - _BOTTOM), 1)


def _title(evaluation: EvaluationDocument) -> str:
    is_own = evaluation["domain"] != "all"
    return set_title(evaluation["domain"], evaluation["set"]) if is_own else evaluation["set"]


def _direction(change: float) -> str:
    return "same" if abs(change) < 0.0005 else "better" if change > 0 else "worse"


# Steps of a sync as people call them.
STEPS = {
    "load": "loading the model",
    "list": "reading",
    "store": "reading documents",
    "embed": "computing vectors",
    "build": "building the generation",
    "evaluate": "measuring its answers",
}
PREVIEWED = 20
"""Paths of a source that may be added, at most."""


def domain_status(
    domain: str, document: StatusDocument, health: Mapping[str, JsonValue], running: Running | None
) -> dict[str, Any]:
    """Return a domain's status for the page.

    Args:
        document: the report of the domain's syncs.
        health: the health of the domain's agent in this process.
        running: the running sync of the domain; ``None`` if no sync runs.
    """
    return {
        "domain": domain,
        "document": document,
        "health": health,
        "running": running,
        "step": _step(running.step) if running else "",
        "only_empty": all(failure["reason"].startswith(EMPTY) for failure in document["failed"]),
        "held_count": sum(len(held["paths"]) for held in document["held"]),
        "runs": [{**run, "words": run_words(run)} for run in document["runs"]],
        "remedies": _remedies(domain, document),
    }


def source_rows(
    sources: Sequence[ConfiguredSource], status: Mapping[str, StatusDocument], catalogue: Sequence[DomainChoice]
) -> list[dict[str, Any]]:
    """Return the rows of the table in the order of the file, without sources of domains that are not served."""
    passages = {
        (choice.domain, value): count
        for choice in catalogue
        for each in choice.filters
        if each.key == "source"
        for value, count in each.values
    }
    return [
        {
            **source,
            "href": original(source["location"]),
            "state": "not synced yet" if source["state"] == "empty" else source["state"],
            "passages": passages.get((source["domain"], source["id"]), 0),
            "fresh": reported["sources"].get(source["id"]),
            "failed": sum(failure.get("source_id") == source["id"] for failure in reported["failed"]),
        }
        for source in sources
        if (reported := status.get(source["domain"]))
    ]


def run_words(run: Mapping[str, Any]) -> str:
    """Return a sentence about a run: its changes, or why it failed."""
    if "error" in run:
        return f"failed: {run['error']}"
    parts = [f"{run[name]} {name}" for name in ("added", "changed", "removed", "failed") if run.get(name)]
    published = f", published {run['generation']}" if run.get("published") else ""
    return f"{', '.join(parts) or 'no change'}{published} in {run.get('seconds', 0):.1f} s"


def preview_words(listing: Listing | None) -> tuple[str, tuple[str, ...]]:
    """Return a sentence about the documents of a new source, and its first paths.

    ``None`` stands for a remote source, which answers but is not listed. It has no paths.
    """
    if listing is None:
        return "It answers. What it holds is known once it is synced.", ()
    count, left_out = len(listing.entries), len(listing.skipped)
    if listing.problem:
        return f"{sentence(listing.problem)}.", ()
    said = f"A sync would read {counted(count, 'document')}" if count else "It names no document that this kind reads"
    rest = f"; {left_out:,} are left out" if left_out else ""
    return f"{said}{rest}.", tuple(entry.path for entry in listing.entries[:PREVIEWED])


def source_keys(fields: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the source's keys from the form. A place with ``://`` becomes ``url``, any other ``path``."""
    place = fields.get("place", "").strip()
    keys = {name: fields.get(name, "").strip() for name in ("id", "domain", "type")}
    return {**keys, "url" if "://" in place else "path": place}


def _step(step: str) -> str:
    _, name, source = (*step.split(), "", "", "")[:3]
    return f"{STEPS[name]} {source}" if name == "list" else STEPS.get(name, name)


def _remedies(domain: str, document: StatusDocument) -> list[tuple[str, str]]:
    """Return commands and what each does, the most useful first."""
    sync = f"nornweave sync --domain {domain}"
    remedies = (
        (document["held"], f"{sync} --confirm-deletes", "remove what is held, if that is meant"),
        (document["unavailable"], "nornweave sync", "read the sources again, once they can be reached"),
        (document["failed"], sync, "read changed documents again; mend or exclude them first"),
        (document["generation"] is None, sync, "publish a first generation"),
        (
            len(document["generations"]) > 1,
            f"nornweave rollback {domain}",
            "answer from the generation before this one",
        ),
    )
    return [(command, effect) for is_needed, command, effect in remedies if is_needed]
