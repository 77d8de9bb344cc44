"""Evaluate judged sets and say how it went: a table for people, a JSON document for machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evals.judged_files import read_judgments
from evals.judgments import JudgmentError
from evals.measures import MEASURES
from evals.results import ITEMS, Scope, ScopeResult, SetResult, StageResult
from evals.runs import Progress, Searcher, evaluate, locate
from nornweave.types import Domain

SHOWN_NAMES = 20
WITH_INTERVAL = ("Recall@10", "RR@10")


def run_eval(
    searcher: Searcher,
    folders: Sequence[Path],
    domains: Sequence[Domain] | None = None,
    progress: Progress | None = None,
) -> tuple[SetResult, ...]:
    """Evaluate judged sets on the published generations, in the order of ``folders``.

    Every set is read and found in the index before the first one runs: a mistake in the last one costs nobody minutes.

    Args:
        searcher: what is measured.
        folders: judged sets, see ``judgments.read_judgments``.
        domains: those that the sets may belong to; all of them unless given.
        progress: told after each query.

    Raises:
        JudgmentError: no folder, a broken set, two sets of one name, or a set whose documents are not published.
    """
    if not folders:
        raise JudgmentError("no judged set; name a folder with --judgments")
    judged = [read_judgments(folder) for folder in folders]
    names = [one.name for one in judged]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise JudgmentError(f"two judged sets are named {repeated[0]!r}; results are told apart by the folder's name")
    allowed = tuple(domains or ())
    for one in judged:
        locate(searcher, one, allowed)
    return tuple(evaluate(searcher, one, domains=allowed, progress=progress) for one in judged)


def as_json(results: Sequence[SetResult]) -> dict[str, Any]:
    """Return the measures per domain, set, scope and stage.

    ``{domain: {set: {…, "scopes": {scope: {…, "stages": {stage: {"Recall@10": mean, …, "intervals": {…}}}}}}}}``.
    ``ir_measures`` knows the measures by these names. Stages of ``all domains`` have ``of_domain``, their share of the
    domain's figure without filters.
    """
    document: dict[str, Any] = {}
    for result in results:
        document.setdefault(result.domain.value, {})[result.name] = _set_json(result)
    return document


def eval_failed(console: Console, results: Sequence[SetResult]) -> bool:
    """Say on stderr what the measures do not show; return whether a run got no answer to any query."""
    failed = False
    for result in results:
        for line in _remarks(result):
            _say(console, f"{result.name}: {line}", "yellow")
        for run in result.scopes:
            whole = len(run.failures) == result.measured
            failed = failed or whole
            for failure in run.failures[: 1 if whole else SHOWN_NAMES]:
                of = "every query" if whole else f"query {failure.query_id}"
                _say(console, f"{result.name}, {run.scope.value}: {of}: {failure.reason}", "red")
            if not whole and len(run.failures) > SHOWN_NAMES:
                _say(console, f"{result.name}, {run.scope.value}: … {len(run.failures)} queries failed in all", "red")
    return failed


def print_results(console: Console, results: Sequence[SetResult]) -> None:
    """Print a table for each scope of each set, a row for each stage."""
    for result in results:
        title = Text(f"{result.name} ({result.domain.value})", style="bold")
        title.append(f"  queries: {result.measured:,}, judgments: {result.judgments:,}", style="not bold")
        console.print(title)
        for run in result.scopes:
            console.print(_table(result, run))
            console.print()


def _table(result: SetResult, run: ScopeResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(run.scope.value, min_width=len(Scope.UNFILTERED), no_wrap=True)
    with_items = any(ITEMS in stage.metrics for stage in run.stages)
    everywhere = run.scope is Scope.EVERYWHERE
    columns = ["answered", *MEASURES, *(["by item"] if with_items else []), *(["of domain"] if everywhere else [])]
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for stage in run.stages:
        cells = [f"{stage.answered:,}", *_figures(stage)]
        cells += [_number(stage.metrics[ITEMS].mean)] if with_items else []
        cells += [" ".join(map(_number, _of_domain(result, run, stage).values()))] if everywhere else []
        table.add_row(stage.stage, *cells)
    if run.p50_ms is not None and run.p95_ms is not None:
        table.caption = f"p50 {run.p50_ms:.1f} ms, p95 {run.p95_ms:.1f} ms"
        table.caption_justify = "left"
    return table


def _figures(stage: StageResult) -> list[str]:
    cells = []
    for name in MEASURES:
        metric = stage.metrics[name]
        interval = f" {_number(metric.low)}–{_number(metric.high)}" if name in WITH_INTERVAL else ""
        cells.append(_number(metric.mean) + interval)
    return cells


def _number(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _of_domain(result: SetResult, run: ScopeResult, stage: StageResult) -> dict[str, float]:
    """Return the share of the domain's figure that is left when no domain is named; empty where there is none."""
    baseline = result.baseline
    other = baseline.stage(stage.stage) if baseline and run.scope is Scope.EVERYWHERE else None
    if other is None:
        return {}
    return {
        name: stage.metrics[name].mean / other.metrics[name].mean
        for name in WITH_INTERVAL
        if other.metrics[name].mean > 0
    }


def _set_json(result: SetResult) -> dict[str, Any]:
    return {
        "queries": result.queries,
        "measured": result.measured,
        "judgments": result.judgments,
        "unjudged_queries": list(result.unjudged),
        "missing_documents": list(result.missing),
        "documents_elsewhere": list(result.elsewhere),
        "scopes": {run.scope.value: _scope_json(result, run) for run in result.scopes},
    }


def _scope_json(result: SetResult, run: ScopeResult) -> dict[str, Any]:
    return {
        "latency_ms": {"p50": _rounded(run.p50_ms), "p95": _rounded(run.p95_ms)},
        "failed": [{"query_id": failure.query_id, "reason": failure.reason} for failure in run.failures],
        "stages": {stage.stage: _stage_json(result, run, stage) for stage in run.stages},
    }


def _stage_json(result: SetResult, run: ScopeResult, stage: StageResult) -> dict[str, Any]:
    document: dict[str, Any] = {"queries": result.measured, "answered": stage.answered}
    document |= {name: _rounded(metric.mean) for name, metric in stage.metrics.items()}
    document["intervals"] = {
        name: [_rounded(metric.low), _rounded(metric.high)] for name, metric in stage.metrics.items()
    }
    if shares := _of_domain(result, run, stage):
        document["of_domain"] = {name: _rounded(share) for name, share in shares.items()}
    return document


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _remarks(result: SetResult) -> list[str]:
    remarks = []
    if result.unjudged:
        remarks.append(_listed("queries without a relevant judgment, not measured", result.unjudged))
    if result.missing:
        remarks.append(_listed("judged documents in no published generation, counted as misses", result.missing))
    if result.elsewhere:
        remarks.append(_listed(f"judged documents in another domain than {result.domain.value}", result.elsewhere))
    return remarks


def _listed(what: str, names: Sequence[str]) -> str:
    more = ", …" if len(names) > SHOWN_NAMES else ""
    return f"{what} ({len(names):,}): {', '.join(names[:SHOWN_NAMES])}{more}"


def _say(console: Console, line: str, style: str) -> None:
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
