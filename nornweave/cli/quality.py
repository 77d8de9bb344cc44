"""The commands that measure, compare and tune quality."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nornweave.cli.options import DOMAIN, DomainsOption, JsonOption, messages, output, settings_of
from nornweave.core.text.terminal import print_json
from nornweave.core.types import Domain
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
    count_missing: Annotated[
        bool, typer.Option(help="Count judged documents that are not published as misses.")
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full/--summary", "--no-summary", help="Show stages, controls and kinds of question."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure retrieval on judged sets, against what is published and against the last time."""
    from evals import report
    from evals.evaluation import evaluate_published
    from evals.runs import SetToRun
    from evals.sets import configured_sets, read_sets
    from nornweave.ask.engine import Engine
    from nornweave.cli.sync import ProgressBars

    settings = settings_of(context)
    # Every domain is served, whichever are measured: else "all domains" would mean nothing.
    with Engine(settings, watch=False) as engine, ProgressBars(messages) as bars:
        named = [SetToRun(judged, tuple(domain or ())) for judged in read_sets(judgments or [])]
        sets = named or configured_sets(settings, engine, domain or ())
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
    """Look back: what was measured, newest first, or two generations beside each other."""
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


def tune(
    context: typer.Context,
    domain: DomainsOption = None,
    dry_run: Annotated[bool, typer.Option(help="Print what would be kept, and change nothing.")] = False,
    minutes: Annotated[float, typer.Option(help="Minutes for each domain, at most.", min=0.1)] = 15,
    as_json: JsonOption = False,
) -> None:
    """Fit plans to what was judged, and keep one only if it is better beyond chance on queries it was not fitted to."""
    from rich.markdown import Markdown

    from evals.tuning.results import as_markdown
    from evals.tuning.tune import TuningError, retune
    from nornweave.cli.sync import ProgressBars

    settings = settings_of(context)
    documents, failed = [], False
    for subject in domain or settings.served_domains:
        try:
            with ProgressBars(messages) as bars:
                result, plan = retune(settings, subject, keeps=not dry_run, deadline_s=minutes * 60, progress=bars)
        except TuningError as error:
            failed = True
            messages.print(f"{subject.value}: {error}", style="yellow", soft_wrap=True)
            continue
        documents.append({**asdict(result), "plan": plan and plan.name})
        if not as_json:
            output.print(Markdown(as_markdown(result)))
            output.print(f"{subject.value}: {f'answers by {plan.name} now' if plan else 'nothing changes'}")
    if as_json:
        print_json({"tuned": documents})
    sys.exit(1 if failed and not documents else 0)


def plan(
    context: typer.Context,
    domain: Annotated[
        Domain | None, typer.Argument(metavar="DOMAIN", help="Only this domain's plans.", **DOMAIN)
    ] = None,
    back: Annotated[bool, typer.Option(help="Go back to the plan before the current one.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what the domains answer with: the configured plan or a tuned one, each with its evidence."""
    from nornweave.config.tuned_plans import plan_files, plan_in_force, plans_document

    settings = settings_of(context)
    if back:
        if domain is None:
            raise typer.BadParameter("--back needs a domain")
        moved = {"subject": domain.value, "from": plan_in_force(settings, domain).name}
        plan_files(settings, domain).back()
        moved["plan"] = plan_in_force(settings, domain).name
        if as_json:
            print_json(moved)
        else:
            output.print(f"{moved['subject']}: {moved['from']} → {moved['plan']}")
        return
    documents = [plans_document(settings, each) for each in ([domain] if domain else settings.served_domains)]
    if as_json:
        print_json({"plans": documents})
    else:
        _print_plans(documents)


def _print_evaluations(evaluations: Sequence[EvaluationDocument]) -> None:
    """Print a row for each evaluation: what was served, with intervals."""
    from nornweave.ask.views.evaluations import set_title

    if not evaluations:
        output.print("nothing was measured yet; `nornweave eval` does")
        return
    table = _table("at (UTC)", "set", "scope", "generation", "plan")
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


def _print_plans(documents: Sequence[Mapping[str, Any]]) -> None:
    """Print what each subject answers with, and the plans that there are."""
    for document in documents:
        output.print(f"{document['subject']}: {document['in_force']}")
        if document["problem"]:
            output.print(f"  {document['problem']}", style="yellow")
        for plan in document["plans"]:
            if "problem" in plan:
                output.print(f"  {plan['plan']}: {plan['problem']}", style="yellow")
            else:
                made_at = f"{plan['made_at'][:16].replace('T', ' ')} UTC"
                output.print(f"  {plan['plan']}, {made_at}, {plan['queries']} queries: {plan['reason']}")


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, no_wrap=True)
    return table


def _figure(metric: Mapping[str, Any]) -> str:
    low, high = metric["interval"]
    return f"{metric['mean']:.3f} {low:.2f}–{high:.2f}"
