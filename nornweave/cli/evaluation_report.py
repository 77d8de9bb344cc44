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
    for evaluation in evaluations:
        served = evaluation["stages"].get(LAST_STAGE, {})
        figures = [_figure(served[measure]) if measure in served else "" for measure in SHOWN_MEASURES]
        remark = f" {evaluation['verdict']}" if evaluation["verdict"] in {Verdict.REFUSED, Verdict.OUTDATED} else ""
        names = (
            set_title(evaluation["domain"], evaluation["set"]),
            evaluation["scope"],
            evaluation["generation"] + remark,
            evaluation["plan"],
        )
        table.add_row(evaluation["at"][:16].replace("T", " "), *names, *figures)
    console.print(table)


def print_comparison(console: Terminal, compared: ComparisonDocument) -> None:
    """Print the differences, largest losses first, with the queries that got worse."""
    console.print(f"{compared['domain']}: {compared['before']} → {compared['after']}")
    table = _table("set", "scope", "stage", "measure")
    for name in ("queries", "before", "after", "difference 95 %", "p", "better", "worse"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("worst")
    for measure in compared["measures"]:
        low, high = measure["interval"]
        worst = ", ".join(query["query_id"] for query in measure["worse"][:SHOWN_WORSE])
        table.add_row(
            measure["set"],
            measure["scope"],
            measure["stage"],
            measure["measure"],
            str(measure["queries"]),
            f"{measure['before']:.3f}",
            f"{measure['after']:.3f}",
            f"{low:+.3f} … {high:+.3f}",
            f"{measure['p_value']:.3f}",
            str(measure["better"]),
            str(len(measure["worse"])),
            worst,
        )
    console.print(table)


def print_plans(console: Terminal, documents: Sequence[Mapping[str, Any]]) -> None:
    """Print what each subject answers with, and the plans that there are."""
    for document in documents:
        console.print(f"{document['subject']}: {document['in_force']}")
        if document["problem"]:
            console.print(f"  {document['problem']}", style="yellow")
        for plan in document["plans"]:
            if "problem" in plan:
                console.print(f"  {plan['plan']}: {plan['problem']}", style="yellow")
            else:
                console.print(f"  {plan['plan']}, {plan['made_at'][:16]}, {plan['queries']} queries: {plan['reason']}")


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, no_wrap=True)
    return table


def _figure(metric: Mapping[str, Any]) -> str:
    low, high = metric["interval"]
    return f"{metric['mean']:.3f} {low:.2f}–{high:.2f}"
