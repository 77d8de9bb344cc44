"""The history of evaluations as ``GET /evaluations`` and ``nornweave evaluations`` show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from nornweave.ask.views.shaping import in_shape
from nornweave.core.types import Domain
from nornweave.improve.comparison import EvaluationComparison, compare
from nornweave.improve.history import EvaluationHistory
from nornweave.improve.records import Evaluation, Verdict

WORST = 50
"""Queries of one set and measure that a comparison names."""
_LEAST = {Verdict.REFUSED: 0, Verdict.OUTDATED: 1}


class MetricDocument(TypedDict):
    """One measure over all queries."""

    mean: float
    interval: Annotated[list[float], Field(description="95 %, of the mean, by bootstrap")]


class EvaluationDocument(TypedDict):
    """One judged set, run in one scope."""

    evaluation_id: str
    run_id: str
    at: Annotated[str, Field(description="ISO 8601, UTC")]
    domain: str
    set: str
    origin: Annotated[str, Field(description="who judged: people, public, generated, feedback")]
    scope: str
    generation: str
    verdict: Annotated[str, Field(description="published, outdated: measured; passed, refused: a candidate")]
    commit: Annotated[str, Field(description="of NornWeave itself")]
    queries: int
    measured: int
    missing_documents: int
    failed_queries: int
    latency_ms: dict[str, float | None]
    stages: Annotated[dict[str, dict[str, MetricDocument]], Field(description="stage -> measure -> metric")]


class EvaluationsDocument(TypedDict):
    """Evaluations, newest first."""

    evaluations: list[EvaluationDocument]


class QueryChangeDocument(TypedDict):
    """A query that got worse."""

    query_id: str
    before: float
    after: float


class MeasureComparisonDocument(TypedDict):
    """One measure of one set, before and after."""

    set: str
    scope: str
    stage: str
    measure: str
    queries: Annotated[int, Field(description="that are the same in both")]
    before: float
    after: float
    interval: Annotated[list[float], Field(description="95 %, of the difference")]
    p_value: Annotated[float, Field(description="two-sided, paired randomisation test")]
    better: int
    worse: Annotated[list[QueryChangeDocument], Field(description="worst first")]


class ComparisonDocument(TypedDict):
    """Two generations of a domain; largest losses first."""

    domain: str
    before: str
    after: str
    measures: list[MeasureComparisonDocument]
    notices: list[str]


def evaluations_document(evaluations: Iterable[Evaluation]) -> EvaluationsDocument:
    """Return evaluations as JSON, in the given order."""
    return {"evaluations": [evaluation_document(each) for each in evaluations]}


def evaluation_document(evaluation: Evaluation) -> EvaluationDocument:
    """Return one evaluation as JSON."""
    stages: dict[str, dict[str, MetricDocument]] = {}
    for metric in evaluation.metrics:
        stages.setdefault(metric.stage, {})[metric.measure] = {
            "mean": round(metric.mean, 4),
            "interval": [round(metric.low, 4), round(metric.high, 4)],
        }
    return in_shape(
        EvaluationDocument,
        evaluation,
        at=evaluation.at.isoformat(),
        set=evaluation.set_name,
        missing_documents=evaluation.missing,
        failed_queries=evaluation.failed,
        latency_ms={"p50": _round_measure(evaluation.p50_ms), "p95": _round_measure(evaluation.p95_ms)},
        stages=stages,
    )


def comparison_document(
    history: EvaluationHistory, domain: Domain, before: str, after: str, set_name: str | None = None
) -> ComparisonDocument:
    """Compare the newest evaluations of two generations, set by set.

    Every measure of every stage is compared over the queries that both have; largest losses first. ``set_name`` limits
    the comparison to one judged set.
    """
    measures: list[MeasureComparisonDocument] = []
    notices: list[str] = []
    then, now = (_newest(history, domain, generation, set_name) for generation in (before, after))
    for generation, found in ((before, then), (after, now)):
        if not found:
            notices.append(f"{domain.value}: {generation} was never measured; `nornweave evaluations` lists what was")
    for key in then.keys() & now.keys():
        compared = list(_compare_measures(history, then[key], now[key]))
        measures += compared
        if not compared:
            notices.append(f"{key[0]}, {key[1]}: the single queries' values are not kept any more, or none is the same")
    measures.sort(
        key=lambda one: (one["after"] - one["before"], one["set"], one["scope"], one["stage"], one["measure"])
    )
    return {"domain": domain.value, "before": before, "after": after, "measures": measures, "notices": sorted(notices)}


def _newest(
    history: EvaluationHistory, domain: Domain, generation: str, set_name: str | None
) -> dict[tuple[str, str], Evaluation]:
    found = history.evaluations(domain=domain.value, set_name=set_name, generation=generation)
    # A refused candidate's name goes to the next one, which may be published: that is what the name means then.
    # One that newer code has measured says less of it than what it was published with.
    ordered = sorted(found, key=lambda one: (_LEAST.get(one.verdict, len(_LEAST)), one.at))
    return {(one.set_name, one.scope): one for one in ordered}


def _compare_measures(
    history: EvaluationHistory, before: Evaluation, after: Evaluation
) -> Iterator[MeasureComparisonDocument]:
    then, now = history.values(before.evaluation_id), history.values(after.evaluation_id)
    for key in then.keys() & now.keys():
        was, is_now = then[key], now[key]
        same = was.keys() & is_now.keys()
        compared = compare({query: was[query, digest] for query, digest in same},
                           {query: is_now[query, digest] for query, digest in same})  # fmt: skip
        if compared is not None:
            yield _measure_document(after, *key, compared)


def _measure_document(
    evaluation: Evaluation, stage: str, measure: str, compared: EvaluationComparison
) -> MeasureComparisonDocument:
    return in_shape(
        MeasureComparisonDocument,
        compared,
        set=evaluation.set_name,
        scope=evaluation.scope,
        stage=stage,
        measure=measure,
        before=round(compared.before, 4),
        after=round(compared.after, 4),
        interval=[round(compared.low, 4), round(compared.high, 4)],
        p_value=round(compared.p_value, 4),
        worse=[
            {"query_id": one.query, "before": round(one.before, 4), "after": round(one.after, 4)}
            for one in compared.worse[:WORST]
        ],
    )


def _round_measure(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def set_title(domain: str, set_name: str) -> str:
    """Return the title of a judged set: its name, with the domain in front unless both are the same."""
    return domain if domain == set_name else f"{domain} {set_name}"
