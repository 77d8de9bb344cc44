"""The commands that measure and compare quality."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nornweave.cli.options import DomainsOption, JsonOption, messages, output, settings_of
from nornweave.core.text.terminal import print_json
from nornweave.improve.records import LAST_STAGE, Verdict

if TYPE_CHECKING:
    from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationDocument

SHOWN_MEASURES = ("Recall@10", "RR@10")
SHOWN_WORSE = 10


def evaluate(
    context: typer.Context,
    domain: DomainsOption = None,
    judgments: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="A judged set: queries.jsonl and qrels.tsv; may be repeated. Without it the configured sets, and one "
            "made out of the corpus of every domain that has none.",
        ),
    ] = None,
    feedback: Annotated[
        bool, typer.Option(help="Also measure what users said of answers (`POST /feedback`), a set for each domain.")
    ] = False,
    count_missing: Annotated[
        bool, typer.Option(help="Count judged documents that are not published as misses.")
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full/--summary", "--no-summary", help="Show stages, controls and kinds of question."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure retrieval on judged sets. Compare the result with the last evaluation of each set."""
    from evals import report
    from evals.evaluation import evaluate_published
    from evals.feedback_set import sets_of_answers
    from evals.runs import SetToRun
    from evals.sets import configured_sets, read_sets
    from nornweave.ask.engine import Engine
    from nornweave.cli.sync import ProgressBars

    settings = settings_of(context)
    # Every domain is served, whichever are measured: else "all domains" would mean nothing.
    with Engine(settings, watch=False) as engine, ProgressBars(messages) as bars:
        named = [SetToRun(judged, tuple(domain or ())) for judged in read_sets(judgments or [])]
        sets = named or configured_sets(settings, engine, domain or ())
        if feedback:
            said = sets_of_answers(engine.path.feedback.judged())
            sets = (*sets, *(SetToRun(judged, (of,)) for of, judged in said.items() if of in (domain or said)))
        evaluated = evaluate_published(
            settings, engine, sets, count_missing=count_missing, controls=True, run_id=uuid.uuid4().hex, progress=bars
        )
    if as_json:
        print_json(report.as_json(evaluated))
    elif full:
        report.print_results(output, evaluated)
    else:
        report.print_summary(output, evaluated)
    sys.exit(1 if report.eval_failed(messages, evaluated) else 0)


def evaluations(
    context: typer.Context,
    domain: DomainsOption = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="BEFORE AFTER", help="Compare two generations of one domain, query by query."),
    ] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many evaluations, newest first.", min=1, max=1000)] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show the history of evaluations, newest first, or compare two generations."""
    from nornweave.ask.views.evaluations import comparison_document, evaluation_document
    from nornweave.improve.history import history_of

    history = history_of(settings_of(context))
    if compare:
        if len(domain or ()) != 1:
            raise typer.BadParameter("--compare needs one --domain, whose generations they are")
        compared = comparison_document(history, (domain or [])[0], *compare)
        if as_json:
            print_json(compared)
        else:
            _print_comparison(compared)
        for notice in compared["notices"]:
            messages.print(notice, style="yellow", soft_wrap=True)
        sys.exit(0 if compared["measures"] else 1)
    names: list[str | None] = [selected.value for selected in domain or ()] or [None]
    found = [
        evaluation
        for name in names
        for evaluation in map(evaluation_document, history.evaluations(domain=name, limit=limit))
    ]
    if as_json:
        print_json({"evaluations": found})
    else:
        _print_evaluations(found)


def _print_evaluations(evaluations: Sequence[EvaluationDocument]) -> None:
    """Print a row for each evaluation: its set, its generation, and the measures of the answers with intervals."""
    from nornweave.ask.views.evaluations import set_title

    if not evaluations:
        output.print("nothing was measured yet; `nornweave eval` does")
        return
    table = _table("at (UTC)", "set", "scope", "generation")
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
        )
        table.add_row(evaluation["at"][:16].replace("T", " "), *names, *figures)
    output.print(table)


def _print_comparison(compared: ComparisonDocument) -> None:
    """Print the differences, largest losses first, with the queries that got worse."""
    output.print(f"{compared['domain']}: {compared['before']} → {compared['after']}")
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
    output.print(table)


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, no_wrap=True)
    return table


def _figure(metric: Mapping[str, Any]) -> str:
    low, high = metric["interval"]
    return f"{metric['mean']:.3f} {low:.2f}–{high:.2f}"
