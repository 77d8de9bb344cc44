"""Reports of evaluations: tables for people, a JSON document for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from evals.confidence import as_json as confidence_json
from evals.controls import Control, controls_json
from evals.evaluation import Evaluated
from evals.measures import MEASURES
from evals.results import ITEMS, ResultScope, ScopeResult, SetResult, StageResult
from nornweave.ask.views.evaluations import set_title
from nornweave.core.text.terminal import Terminal
from nornweave.improve.comparison import EvaluationComparison
from nornweave.improve.records import LAST_STAGE

SHOWN_NAMES = 20
WITH_INTERVAL = ("Recall@10", "RR@10")
SIGNIFICANT = 0.05


def as_json(evaluated: Sequence[Evaluated]) -> dict[str, Any]:
    """Return the measures per domain, set, scope and stage.

    ``{domain: {set: {…, "scopes": {scope: {…, "stages": {stage: {"Recall@10": mean, …, "intervals": {…}}}}}}}}``.
    The measures have the names of ``ir_measures``. Stages of ``all domains`` have ``of_domain``, their share of the
    domain's figure without filters. A scope that ran before has ``compared``, with what was and what got worse.
    """
    document: dict[str, Any] = {}
    for evaluation in evaluated:
        document.setdefault(evaluation.result.subject, {})[evaluation.result.name] = _set_json(evaluation)
    return document


def eval_failed(console: Terminal, evaluated: Sequence[Evaluated]) -> bool:
    """Print problems on stderr; return whether a run got no answer to any query."""
    failed = False
    for result in (evaluation.result for evaluation in evaluated):
        for line in _remarks(result):
            _say(console, f"{result.name}: {line}", "yellow")
        for run in result.scopes:
            whole = len(run.failures) == result.measured + result.unanswerable
            failed = failed or whole
            for failure in run.failures[: 1 if whole else SHOWN_NAMES]:
                of = "every query" if whole else f"query {failure.query_id}"
                _say(console, f"{result.name}, {run.scope.value}: {of}: {failure.reason}", "red")
            if not whole and len(run.failures) > SHOWN_NAMES:
                _say(console, f"{result.name}, {run.scope.value}: … {len(run.failures)} queries failed in all", "red")
    return failed


def print_results(console: Terminal, evaluated: Sequence[Evaluated]) -> None:
    """Print a table for each scope of each set, with a row for each stage."""
    for evaluation in evaluated:
        result = evaluation.result
        title = Text(f"{result.name} ({result.subject}, {result.origin.value})", style="bold")
        searched = evaluation.generation
        facts = f"queries: {result.measured:,}, judgments: {result.judgments:,}, {searched}"
        title.append(f"  {facts}", style="not bold")
        console.print(title)
        for run in result.scopes:
            console.print(_table(evaluation, run))
            for line in _footnotes(evaluation, run):
                console.print(line, style="dim")
            console.print()
    console.print(f"{STAGES}\n{LEGEND}", style="dim")


STAGES = (
    "Rows: what dense (meaning), sparse (words), fulltext (word pairs) and structured (names) find alone; combined in\n"
    "one ranking; expanded with variants of the question; merged without duplicates; fused as it is served; then by\n"
    "kind of question. answered: questions with any item. by item: Recall@10 if only the first ten items count.\n"
    "of domain: what is left of Recall@10 and RR@10 when no domain is named."
)
LEGEND = (
    "Recall@10: the share of right places that are among the first ten. RR@10: 1 / rank of the first right one.\n"
    "nDCG@10: ranks weighted by grade. P@5: right ones of the first five. Success@1: the first is right."
)


def print_summary(console: Terminal, evaluated: Sequence[Evaluated]) -> None:
    """Print one row for each set and scope: the served stage, with intervals, against the last time."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("set", overflow="fold")  # a long name takes a second line, not the digits' room
    table.add_column("scope", no_wrap=True)
    for name in ("queries", *MEASURES, "p50 ms"):
        table.add_column(name, justify="right", no_wrap=True)
    for evaluation in evaluated:
        for run in evaluation.result.scopes:
            served = run.stage(LAST_STAGE)
            if served is None:
                continue
            figures = _figures(evaluation, run, served)
            p50 = "" if run.p50_ms is None else f"{run.p50_ms:.0f}"
            names = (set_title(evaluation.result.subject, evaluation.result.name), run.scope.value)
            table.add_row(*names, f"{evaluation.result.measured:,}", *figures, p50)
    console.print(table)
    console.print(LEGEND, style="dim")


def _table(evaluation: Evaluated, run: ScopeResult) -> Table:
    result = evaluation.result
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(run.scope.value, min_width=len(ResultScope.UNFILTERED), no_wrap=True)
    with_items = any(ITEMS in stage.metrics for stage in run.stages)
    everywhere = run.scope is ResultScope.EVERYWHERE
    columns = ["answered", *MEASURES, *(["by item"] if with_items else []), *(["of domain"] if everywhere else [])]
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for stage in run.stages:
        cells = [f"{stage.answered:,}", *_figures(evaluation, run, stage)]
        cells += [_number(stage.metrics[ITEMS].mean)] if with_items else []
        cells += [" ".join(map(_number, _of_domain(result, run, stage).values()))] if everywhere else []
        table.add_row(stage.stage, *cells)
    for kind in run.kinds:
        cells = [f"{kind.queries:,}", *(_number(kind.metrics[name].mean) for name in MEASURES)]
        table.add_row(f"  {kind.kind}", *cells, style="dim")
    return table


def _footnotes(evaluation: Evaluated, run: ScopeResult) -> list[str]:
    lines = []
    if run.p50_ms is not None and run.p95_ms is not None:
        lines.append(f"p50 {run.p50_ms:.1f} ms, p95 {run.p95_ms:.1f} ms")
    if run.confidence and (held_out := run.confidence.held_out):
        best = run.confidence.best_min_score
        lines.append(
            f"without an answer: {run.confidence.unanswerable} questions; told by their scores with balanced accuracy "
            f"{_number(held_out.value)} {_number(held_out.low)}–{_number(held_out.high)} held out"
            + ("" if best is None else f"; min_score {best:.3f} tells most")
        )
    if controls := [*run.controls, *(evaluation.controls if run.scope is ResultScope.DOMAIN else ())]:
        lines.append("must be low: " + "; ".join(_control(control) for control in controls))
    if before := evaluation.before.get(run.scope):
        then = before.evaluation
        lines.append(
            f"↑ ↓ beyond chance (p < {SIGNIFICANT:g}), ↗ ↘ within it, against {then.generation}, "
            f"{then.at:%Y-%m-%d %H:%M} UTC"
        )
    return lines


def _control(control: Control) -> str:
    verdict = "" if control.holds else ", TOO HIGH: this set tells little"
    return f"{control.name} {control.measure} {_number(control.control.mean)} of {_number(control.real.mean)}{verdict}"


def _figures(evaluation: Evaluated, run: ScopeResult, stage: StageResult) -> list[str]:
    cells = []
    for name in MEASURES:
        metric = stage.metrics[name]
        interval = f" {_number(metric.low)}–{_number(metric.high)}" if name in WITH_INTERVAL else ""
        cells.append(_number(metric.mean) + _arrow(evaluation.comparison(run.scope, stage.stage, name)) + interval)
    return cells


def _arrow(compared: EvaluationComparison | None) -> str:
    """Return an arrow for a change; vertical if the change is beyond chance."""
    if compared is None or abs(compared.difference) < 0.0005:
        return ""
    if compared.p_value < SIGNIFICANT:
        return "↑" if compared.difference > 0 else "↓"
    return "↗" if compared.difference > 0 else "↘"


def _number(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _of_domain(result: SetResult, run: ScopeResult, stage: StageResult) -> dict[str, float]:
    """Return figures without a named domain as a share of those with it; empty if they do not compare."""
    baseline = result.baseline
    other = baseline.stage(stage.stage) if baseline and run.scope is ResultScope.EVERYWHERE else None
    if other is None:
        return {}
    return {
        name: stage.metrics[name].mean / other.metrics[name].mean
        for name in WITH_INTERVAL
        if other.metrics[name].mean > 0
    }


def _set_json(evaluation: Evaluated) -> dict[str, Any]:
    result = evaluation.result
    return {
        "origin": result.origin.value,
        "generation": evaluation.generation,
        "queries": result.queries,
        "measured": result.measured,
        "judgments": result.judgments,
        "unanswerable": result.unanswerable,
        "unjudged_queries": list(result.unjudged),
        "missing_documents": list(result.missing),
        "missing_counted": result.missing_counted,
        "unmeasured_queries": list(result.unmeasured),
        "documents_elsewhere": list(result.elsewhere),
        "moved_documents": dict(result.moved),
        "scopes": {run.scope.value: _scope_json(evaluation, run) for run in result.scopes},
    }


def _scope_json(evaluation: Evaluated, run: ScopeResult) -> dict[str, Any]:
    document: dict[str, Any] = {
        "latency_ms": {"p50": _round_measure(run.p50_ms), "p95": _round_measure(run.p95_ms)},
        "failed": [{"query_id": failure.query_id, "reason": failure.reason} for failure in run.failures],
        "stages": {stage.stage: _stage_json(evaluation.result, run, stage) for stage in run.stages},
    }
    if run.kinds:
        document["kinds"] = {
            kind.kind: {
                "queries": kind.queries,
                **{name: _round_measure(metric.mean) for name, metric in kind.metrics.items()},
            }
            for kind in run.kinds
        }
    if controls := [*run.controls, *(evaluation.controls if run.scope is ResultScope.DOMAIN else ())]:
        document["controls"] = controls_json(controls)
    if run.confidence:
        document["unanswerable"] = confidence_json(run.confidence)
    if before := evaluation.before.get(run.scope):
        document["compared"] = {
            "evaluation_id": before.evaluation.evaluation_id,
            "at": before.evaluation.at.isoformat(),
            "generation": before.evaluation.generation,
            **{name: _compared_json(evaluation.comparison(run.scope, LAST_STAGE, name)) for name in MEASURES},
        }
    return document


def _compared_json(compared: EvaluationComparison | None) -> dict[str, Any] | None:
    if compared is None:
        return None
    return {
        "queries": compared.queries,
        "before": _round_measure(compared.before),
        "after": _round_measure(compared.after),
        "interval": [_round_measure(compared.low), _round_measure(compared.high)],
        "p_value": _round_measure(compared.p_value),
        "better": compared.better,
        "worse": [
            {"query_id": change.query, "before": _round_measure(change.before), "after": _round_measure(change.after)}
            for change in compared.worse
        ],
    }


def _stage_json(result: SetResult, run: ScopeResult, stage: StageResult) -> dict[str, Any]:
    document: dict[str, Any] = {"queries": result.measured, "answered": stage.answered}
    document |= {name: _round_measure(metric.mean) for name, metric in stage.metrics.items()}
    document["intervals"] = {
        name: [_round_measure(metric.low), _round_measure(metric.high)] for name, metric in stage.metrics.items()
    }
    if shares := _of_domain(result, run, stage):
        document["of_domain"] = {name: _round_measure(share) for name, share in shares.items()}
    return document


def _round_measure(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _remarks(result: SetResult) -> list[str]:
    remarks = []
    if result.unjudged:
        remarks.append(_list_names("queries without a relevant judgment, not measured", result.unjudged))
    if result.missing:
        fate = "counted as misses" if result.missing_counted else "left out (--count-missing counts them as misses)"
        remarks.append(_list_names(f"judged documents in no published generation, {fate}", result.missing))
    if result.moved:
        moved = [f"{path} → {place}" for path, place in result.moved]
        remarks.append(
            _list_names("judged documents that moved, and their judgments with them; correct qrels.tsv", moved)
        )
    if result.unmeasured:
        remarks.append(_list_names("queries of which no judged document is published, not measured", result.unmeasured))
    if result.elsewhere:
        remarks.append(_list_names(f"judged documents in another domain than {result.domain.value}", result.elsewhere))
    return remarks


def _list_names(what: str, names: Sequence[str]) -> str:
    more = ", …" if len(names) > SHOWN_NAMES else ""
    return f"{what} ({len(names):,}): {', '.join(names[:SHOWN_NAMES])}{more}"


def _say(console: Terminal, line: str, style: str) -> None:
    console.print(line, style=style, soft_wrap=True)
