"""Asset checks for each invariant and for quality, and metadata of evaluations: curves, tables, charts.

A check that fails blocks publication within its run.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from evals.evaluation import Evaluated, GenerationReport
from evals.gate import SHOWN_QUERIES, worse_queries
from evals.measures import MEASURES
from evals.results import ResultScope
from evals.trend import TrendPoint, trend
from nornweave.ask.views.evaluations import set_title
from nornweave.improve.records import LAST_STAGE, Evaluation, Verdict
from nornweave.ingest.records import INVARIANTS, Invariant
from orchestration.metadata import Metadata, nonempty_tables, table

QUALITY = "quality"


def quality_check(asset: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the check that refuses a candidate of lower quality."""
    return dg.AssetCheckSpec(
        QUALITY,
        asset=asset,
        blocking=True,
        description="No measure of the domain's judged sets dropped beyond its margin, or below its floor; "
        "what is beyond chance as well, or below, is held back.",
    )


def quality_result(asset: dg.AssetKey, report: GenerationReport | None) -> dg.AssetCheckResult:
    """Return the check's result for a generation, with the queries that got worse.

    Without a report the check passes, because there is no candidate or the domain is not measured.
    """
    if report is None:
        untested = "nothing was measured: no candidate was built, or the domain names no judged set"
        return dg.AssetCheckResult(passed=True, asset_key=asset, check_name=QUALITY, description=untested)
    reasons = "; ".join(report.reasons or report.warnings) or "no measure dropped beyond its margin"
    accepted = "a person has asked for it: " if report.reasons and report.accepted else ""
    return dg.AssetCheckResult(
        passed=not report.refused and not report.warnings,
        severity=dg.AssetCheckSeverity.ERROR if report.refused else dg.AssetCheckSeverity.WARN,
        asset_key=asset,
        check_name=QUALITY,
        description=accepted + reasons + _describe_gone(report),
        metadata=findings_metadata(report),
    )


def _describe_gone(report: GenerationReport) -> str:
    """Return a phrase about judged documents that are gone; empty if there are none.

    No measure shows that they are gone, because measures leave their judgments out.
    """
    if not report.judged_gone:
        return ""
    named = ", ".join(path for _, path in report.judged_gone[:SHOWN_QUERIES])
    more = ", …" if len(report.judged_gone) > SHOWN_QUERIES else ""
    return f"; {len(report.judged_gone)} judged documents went: {named}{more}"


def invariant_checks(asset: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return a blocking check for each invariant."""
    return [
        dg.AssetCheckSpec(name, asset=asset, blocking=True, description=meaning) for name, meaning in INVARIANTS.items()
    ]


def check_results(asset: dg.AssetKey, invariants: Sequence[Invariant]) -> list[dg.AssetCheckResult]:
    """Return the results of all checks. If there is no candidate, the invariants of a candidate pass."""
    by_name = {invariant.name: invariant for invariant in invariants}
    return [_result(asset, name, by_name.get(name)) for name in INVARIANTS]


def _result(asset: dg.AssetKey, name: str, invariant: Invariant | None) -> dg.AssetCheckResult:
    if invariant is None:
        untested = "nothing to publish: no candidate was built"
        return dg.AssetCheckResult(passed=True, asset_key=asset, check_name=name, description=untested)
    return dg.AssetCheckResult(
        passed=invariant.holds,
        asset_key=asset,
        check_name=name,
        description=str(invariant),
        metadata={
            "found": invariant.found,
            "expected": invariant.expected,
            "difference": invariant.found - invariant.expected,
        },
    )


CURVES = {"Recall@10": "Recall@10", "MRR": "RR@10"}
"""What is plotted, by its name in the UI."""


def evaluated_metadata(evaluated: Sequence[Evaluated], scope: ResultScope) -> Metadata:
    """Return a figure for each curve of each set, the number of queries, and a table of all measures."""
    numbers: dict[str, float | int | str] = {}
    for place, evaluation in enumerate(evaluated):
        run = evaluation.result.scope(scope)
        served = run.stage(LAST_STAGE) if run else None
        if run is None or served is None:
            continue
        for name, measure in CURVES.items():
            key = _curve(name, place, evaluation.result.subject, evaluation.result.name)
            numbers[key] = round(served.metrics[measure].mean, 4)
        if place == 0 and run.p50_ms is not None:
            numbers["p50_ms"] = round(run.p50_ms, 2)
    return {
        **numbers,
        "queries": sum(evaluation.result.measured for evaluation in evaluated),
        **nonempty_tables({"measures": measures_table(evaluated, scope)}),
    }


def known_metadata(known: Sequence[Evaluation]) -> Metadata:
    """Return the curves of earlier evaluations, named as in ``evaluated_metadata``.

    Args:
        known: the newest evaluation of each set, in the order of the sets.
    """
    numbers: dict[str, float | int | str] = {}
    for place, evaluation in enumerate(known):
        for name, measure in CURVES.items():
            if metric := evaluation.metric(LAST_STAGE, measure):
                numbers[_curve(name, place, evaluation.domain, evaluation.set_name)] = round(metric.mean, 4)
    return {**numbers, **({"queries": sum(each.measured for each in known)} if known else {})}


def _curve(name: str, place: int, domain: str, set_name: str) -> str:
    """Return the name of a curve: ``MRR`` for the first set (``place`` 0), ``code tickets MRR`` for another set."""
    return f"{set_title(domain, set_name)} {name}" if place else name


def measures_table(evaluated: Sequence[Evaluated], scope: ResultScope) -> str:
    """Return a table of what the last stage measured, one row per set, with intervals and the previous values."""
    rows = []
    for evaluation in evaluated:
        run = evaluation.result.scope(scope)
        served = run.stage(LAST_STAGE) if run else None
        if served is None:
            continue
        cells = []
        for measure in MEASURES:
            metric, compared = served.metrics[measure], evaluation.comparison(scope, LAST_STAGE, measure)
            was = f", was {compared.before:.3f}" if compared and abs(compared.difference) >= 0.0005 else ""
            cells.append(f"{metric.mean:.3f} ({metric.low:.3f}–{metric.high:.3f}{was})")
        title = set_title(evaluation.result.subject, evaluation.result.name)
        rows.append((title, str(evaluation.result.measured), evaluation.generation, *cells))
    return table(("set", "queries", "generation", *MEASURES), rows)


def findings_metadata(report: GenerationReport) -> Metadata:
    """Return metadata about what the gate compared, and about the queries that got worse."""
    rows = [
        ("refuses" if finding.refuses else "warns" if finding.warns else "passes", finding.text)
        for finding in report.findings
    ]
    worse = [
        (name, query, measure, f"{before:.3f}", f"{after:.3f}")
        for name, query, measure, before, after in worse_queries(report.findings)
    ]
    return {
        "candidate": report.generation,
        "refusals": len(report.reasons),
        "judged_documents_gone": len(report.judged_gone),
        "worse_queries": len({(name, query) for name, query, *_ in worse}),
        **nonempty_tables(
            {
                "what was compared": table(("verdict", "finding"), rows),
                "queries that got worse": table(("set", "query", "measure", "before", "after"), worse),
                "judged documents that went": table(("set", "document"), report.judged_gone),
                "problems": table(("problem",), [(problem,) for problem in report.problems]),
            }
        ),
    }


def trend_metadata(set_name: str, found: Sequence[Evaluation]) -> Metadata:
    """Return a chart of a set's history for the UI."""
    points = [
        TrendPoint(
            at=record.at,
            generation=record.generation,
            recall=recall.mean,
            mrr=rank.mean,
            refused=record.verdict is Verdict.REFUSED,
        )
        for record in found
        if (recall := record.metric(LAST_STAGE, "Recall@10")) and (rank := record.metric(LAST_STAGE, "RR@10"))
    ]
    return nonempty_tables({f"trend of {set_name}": trend(points)})
