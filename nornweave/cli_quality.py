"""The commands about quality: measure, look back, tune."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Annotated

import typer

from nornweave.cli_parts import DomainsOption, JsonOption, messages, output, print_json, settings_of


def add_quality_commands(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command("eval")(evaluate)


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
    summary: Annotated[bool, typer.Option(help="Only the answers as they are served, a row for each set.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure retrieval on judged sets, against what is published and against the last time."""
    from evals import report
    from evals.evaluation import configured_sets, evaluate_published
    from evals.runs import SetToRun
    from evals.sets import read_sets
    from nornweave.engine import Engine
    from nornweave.progress import ProgressBars

    settings = settings_of(context)
    # Every domain is served, whichever are measured: else "all domains" would mean nothing.
    with Engine(settings, watch=False) as engine, ProgressBars(messages) as bars:
        sets = [SetToRun(one, tuple(domain or ())) for one in read_sets(judgments or [])]
        evaluated = evaluate_published(
            settings,
            engine,
            sets or configured_sets(settings, engine, domain or ()),
            count_missing=count_missing,
            run_id=uuid.uuid4().hex,
            progress=bars,
        )
    if as_json:
        print_json(report.as_json(evaluated))
    elif summary:
        report.print_summary(output, evaluated)
    else:
        report.print_results(output, evaluated)
    sys.exit(1 if report.eval_failed(messages, evaluated) else 0)
