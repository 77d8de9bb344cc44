"""Print the history of evaluations and the tuned plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationDocument, set_title
from nornweave.core.text.terminal import Terminal
from nornweave.improve.records import LAST_STAGE, Verdict

SHOWN_MEASURES = ("Recall@10", "RR@10")
SHOWN_WORSE = 10


def print_evaluations(console: Terminal, evaluations: Sequence[EvaluationDocument]) -> None:
    """Print a row for each evaluation: what was served, with intervals."""
    if not evaluations:
        console.print("nothing was measured yet; `nornweave eval` does")
        return
    table = _table("at", "set", "scope", "generation", "plan")
    for measure in SHOWN_MEASURES:
        table.add_column(measure, justify="right", no_wrap=True)
    for one in evaluations:
        served = one["stages"].get(LAST_STAGE, {})
        figures = [_figure(served[measure]) if measure in served else "" for measure in SHOWN_MEASURES]
        remark = f" {one['verdict']}" if one["verdict"] in {Verdict.REFUSED, Verdict.OUTDATED} else ""
        names = (set_title(one["domain"], one["set"]), one["scope"], one["generation"] + remark, one["plan"])
        table.add_row(one["at"][:16].replace("T", " "), *names, *figures)
    console.print(table)


def print_comparison(console: Terminal, compared: ComparisonDocument) -> None:
    """Print the differences, largest losses first, with the queries that got worse."""
    console.print(f"{compared['domain']}: {compared['before']} → {compared['after']}")
    table = _table("set", "scope", "stage", "measure")
    for name in ("queries", "before", "after", "difference 95 %", "p", "better", "worse"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("worst")
    for one in compared["measures"]:
        low, high = one["interval"]
        worst = ", ".join(query["query_id"] for query in one["worse"][:SHOWN_WORSE])
        table.add_row(
            one["set"],
            one["scope"],
            one["stage"],
            one["measure"],
            str(one["queries"]),
            f"{one['before']:.3f}",
            f"{one['after']:.3f}",
            f"{low:+.3f} … {high:+.3f}",
            f"{one['p_value']:.3f}",
            str(one["better"]),
            str(len(one["worse"])),
            worst,
        )
    console.print(table)


def print_plans(console: Terminal, documents: Sequence[Mapping[str, Any]]) -> None:
    """Print what each subject answers with, and the plans that there are."""
    for one in documents:
        console.print(f"{one['subject']}: {one['in_force']}")
        if one["problem"]:
            console.print(f"  {one['problem']}", style="yellow")
        for plan in one["plans"]:
            if "problem" in plan:
                console.print(f"  {plan['plan']}: {plan['problem']}", style="yellow")
            else:
                console.print(
                    f"  {plan['plan']}, {plan['made_at'][:16]}, {plan['queries']} queries: {plan['reason']}",
                )


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, no_wrap=True)
    return table


def _figure(metric: Mapping[str, Any]) -> str:
    low, high = metric["interval"]
    return f"{metric['mean']:.3f} {low:.2f}–{high:.2f}"
