"""The commands that measure, compare and tune quality."""

from __future__ import annotations

import sys
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nornweave.cli.options import DOMAIN, DomainsOption, JsonOption, messages, output, settings_of
from nornweave.core.text.terminal import print_json
from nornweave.core.types import Domain


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
    summary: Annotated[bool, typer.Option(help="Show only the answers as they are served, one row per set.")] = False,
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
    elif summary:
        report.print_summary(output, evaluated)
    else:
        report.print_results(output, evaluated)
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
    from nornweave.ask.views.evaluations import EvaluationsQuery, comparison_document, evaluations_document
    from nornweave.cli.evaluation_report import print_comparison, print_evaluations
    from nornweave.improve.history import history_of

    history = history_of(settings_of(context))
    if compare:
        if len(domain or ()) != 1:
            raise typer.BadParameter("--compare needs one --domain, whose generations they are")
        compared = comparison_document(history, (domain or [])[0], *compare)
        if as_json:
            print_json(compared)
        else:
            print_comparison(output, compared)
        for notice in compared["notices"]:
            messages.print(notice, style="yellow", soft_wrap=True)
        sys.exit(0 if compared["measures"] else 1)
    names: list[str | None] = [selected.value for selected in domain or ()] or [None]
    found = [
        evaluation
        for name in names
        for evaluation in evaluations_document(history, EvaluationsQuery(domain=name, limit=limit))["evaluations"]
    ]
    if as_json:
        print_json({"evaluations": found})
    else:
        print_evaluations(output, found)


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
    from nornweave.cli.evaluation_report import print_plans
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
        print_plans(output, documents)
