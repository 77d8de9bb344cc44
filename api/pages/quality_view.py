"""Measured quality as its page shows it: a picture a set, the last refusal, two generations beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.pages.addresses import ask_address, why_address
from api.pages.chart import Chart, ChartPoint, chart_of
from api.pages.citations import day_of
from api.pages.judged import QuestionWithPlaces
from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationDocument, set_title

STAGES = ("fused", "merged", "reranked", "expanded", "combined")
"""The last of these that was measured is what a reader gets."""
MEASURES = (("Recall@10", "Recall@10"), ("RR@10", "MRR"))
MAX_COMPARED = 40
MAX_WORST, MAX_PLACES = 10, 2
HEADLINE, FIRST_RIGHT = "Recall@10", "RR@10"
_MEASURED = frozenset({"published", "outdated"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHistory:
    """One judged set in one scope, over time."""

    title: str
    scope: str
    origin: str
    queries: int
    stage: str
    figures: tuple[tuple[str, str, str], ...]
    charts: tuple[tuple[str, Chart], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One measure of one set, before and after."""

    title: str
    measure: str
    before: str
    after: str
    change: str
    interval: str
    is_sure: bool
    direction: str
    better: int
    worse: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The one number: how much of what answers is among the first ten, of the first set, newest measurement."""

    title: str
    percent: str
    interval: str
    queries: int
    day: str
    trend: str
    direction: str
    target: str
    is_reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstQuestion:
    """A question that is answered badly: where the first right place stands, and where it should be looked for."""

    text: str
    rank: str
    places: tuple[tuple[str, str], ...]
    ask: str


def headline_of(
    evaluations: Sequence[EvaluationDocument], floors: Mapping[str, Mapping[str, float]]
) -> Headline | None:
    """Return the headline; ``None`` where nothing was measured.

    Args:
        evaluations: newest first.
        floors: what is asked for, by domain and measure.
    """
    series = [
        each for group in _groups(evaluations)[:1] for each in group if HEADLINE in each["stages"][stage_of(each)]
    ]
    if not series:
        return None
    newest, metrics = series[-1], [each["stages"][stage_of(each)][HEADLINE] for each in series]
    change = metrics[-1]["mean"] - metrics[-2]["mean"] if len(series) > 1 else 0.0
    floor = floors.get(newest["domain"], {}).get(HEADLINE)
    return Headline(
        title=_title(newest),
        percent=f"{metrics[-1]['mean']:.0%}",
        interval="{:.0%} to {:.0%}".format(*metrics[-1]["interval"]),
        queries=newest["measured"],
        day=day_of(newest["at"]),
        trend="measured once"
        if len(series) == 1
        else f"{f'{change * 100:+.1f} points' if change else 'unchanged'} since {day_of(series[-2]['at'])}",
        direction=_direction(change),
        target="" if floor is None else f"{floor:.0%}",
        is_reached=floor is None or metrics[-1]["mean"] >= floor,
    )


def headline_evaluation(evaluations: Sequence[EvaluationDocument]) -> EvaluationDocument | None:
    """Return what the headline is taken of."""
    return next((group[-1] for group in _groups(evaluations)), None)


def worst_of(
    evaluation: EvaluationDocument, ranks: Mapping[str, float], questions: Mapping[str, QuestionWithPlaces]
) -> tuple[WorstQuestion, ...]:
    """Return the questions whose first right place stands lowest.

    Args:
        evaluation: that measured them.
        ranks: by query, one through the rank of the first right place; 0: it is not among the ten.
        questions: of its set, by query.
    """
    scope = [("domain", evaluation["domain"])] if evaluation["domain"] != "all" else []
    bad = sorted((value, query) for query, value in ranks.items() if value < 1 and query in questions)[:MAX_WORST]
    return tuple(
        WorstQuestion(
            text=questions[query].text,
            rank=f"rank {round(1 / value)}" if value else "not among ten",
            places=tuple(
                (place, why_address([("q", questions[query].text), *scope, ("path", place)]))
                for place in questions[query].places[:MAX_PLACES]
            ),
            ask=ask_address([("q", questions[query].text), *scope]),
        )
        for value, query in bad
    )


def histories_of(evaluations: Sequence[EvaluationDocument]) -> tuple[SetHistory, ...]:
    """Return every set with its charts: sets over all domains first, then by name."""
    return tuple(map(_history, _groups(evaluations)))


def _groups(evaluations: Sequence[EvaluationDocument]) -> list[list[EvaluationDocument]]:
    """Return the measurements of each set in each scope, oldest first."""
    groups: dict[tuple[str, str, str], list[EvaluationDocument]] = {}
    for evaluation in reversed(evaluations):  # they come newest first
        if evaluation["verdict"] in _MEASURED and stage_of(evaluation):
            groups.setdefault((evaluation["domain"], evaluation["set"], evaluation["scope"]), []).append(evaluation)
    return [groups[key] for key in sorted(groups, key=lambda key: (key[0] != "all", key))]


def last_refusal(evaluations: Sequence[EvaluationDocument]) -> EvaluationDocument | None:
    """Return the newest measurement of a candidate that was not published."""
    return next((evaluation for evaluation in evaluations if evaluation["verdict"] == "refused"), None)


def published_before(evaluations: Sequence[EvaluationDocument], refused: EvaluationDocument) -> str | None:
    """Return the generation that a refused candidate was held against."""
    older = (
        evaluation["generation"]
        for evaluation in evaluations
        if (evaluation["domain"], evaluation["set"]) == (refused["domain"], refused["set"])
        and evaluation["verdict"] == "published"
        and evaluation["at"] <= refused["at"]
    )
    return next(older, None)


def generations_of(evaluations: Sequence[EvaluationDocument]) -> dict[str, tuple[str, ...]]:
    """Return per domain the generations that were measured, newest first."""
    found: dict[str, dict[str, None]] = {}
    for evaluation in evaluations:
        if evaluation["domain"] != "all":
            found.setdefault(evaluation["domain"], {})[evaluation["generation"]] = None
    return {domain: tuple(names) for domain, names in sorted(found.items())}


def compared_of(comparison: ComparisonDocument) -> tuple[Compared, ...]:
    """Return the measures that readers look at, of what readers get, largest losses first."""
    stages: dict[tuple[str, str], set[str]] = {}
    for measure in comparison["measures"]:
        stages.setdefault((measure["set"], measure["scope"]), set()).add(measure["stage"])
    last = {key: next((stage for stage in STAGES if stage in names), "") for key, names in stages.items()}
    names = dict(MEASURES)
    return tuple(
        Compared(
            title=f"{set_title(comparison['domain'], measure['set'])}, {measure['scope']}",
            measure=names[measure["measure"]],
            before=f"{measure['before']:.3f}",
            after=f"{measure['after']:.3f}",
            change=f"{measure['after'] - measure['before']:+.3f}",
            interval="{:+.3f} to {:+.3f}".format(*measure["interval"]),
            is_sure=measure["interval"][0] > 0 or measure["interval"][1] < 0,
            direction=_direction(measure["after"] - measure["before"]),
            better=measure["better"],
            worse=tuple((one["query_id"], f"{one['before']:.2f}", f"{one['after']:.2f}") for one in measure["worse"]),
        )
        for measure in comparison["measures"]
        if measure["stage"] == last[measure["set"], measure["scope"]] and measure["measure"] in names
    )[:MAX_COMPARED]


def stage_of(evaluation: EvaluationDocument) -> str:
    """Return the last stage that was measured; empty where none of those was."""
    return next((stage for stage in STAGES if stage in evaluation["stages"]), "")


def _history(evaluations: Sequence[EvaluationDocument]) -> SetHistory:
    newest = evaluations[-1]
    stage = stage_of(newest)
    figures, charts = [], []
    for measure, name in MEASURES:
        series = [
            ChartPoint(
                mean=metric["mean"],
                low=metric["interval"][0],
                high=metric["interval"][1],
                day=day_of(evaluation["at"]),
                generation=evaluation["generation"],
            )
            for evaluation in evaluations
            if (metric := evaluation["stages"].get(stage_of(evaluation), {}).get(measure))
        ]
        if series:
            figures.append((name, f"{series[-1].mean:.3f}", f"{series[-1].low:.3f}–{series[-1].high:.3f}"))
            charts.append((name, chart_of(series, name)))
    return SetHistory(
        title=_title(newest),
        scope=newest["scope"],
        origin=newest["origin"],
        queries=newest["measured"],
        stage=stage,
        figures=tuple(figures),
        charts=tuple(charts),
    )


def _title(evaluation: EvaluationDocument) -> str:
    is_own = evaluation["domain"] != "all"
    return set_title(evaluation["domain"], evaluation["set"]) if is_own else evaluation["set"]


def _direction(change: float) -> str:
    return "same" if abs(change) < 0.0005 else "better" if change > 0 else "worse"
