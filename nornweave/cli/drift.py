"""The command ``nornweave drift``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nornweave.cli.options import JsonOption, messages
from nornweave.core.errors import ConfigError

if TYPE_CHECKING:
    from nornweave.disagree.drift.records import Report
    from nornweave.disagree.drift.scan import DriftOptions

FORMAT_NAMES = ("text", "json", "sarif", "github", "markdown")


def drift(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="The folder to check.")] = Path(),
    diff: Annotated[
        str,
        typer.Option(
            metavar="BASE..HEAD", help="Report only what these commits introduced (BASE...HEAD: since they diverged)."
        ),
    ] = "",
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Report only what this file, written by --write-baseline, does not list."),
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all findings to this file as known, and exit with 0.")
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str, typer.Option(metavar="F", help=f"One of {', '.join(FORMAT_NAMES)}.")
    ] = "text",
    min_confidence: Annotated[
        float | None, typer.Option(help="Leave out findings with a lower confidence, 0 to 1.", min=0, max=1)
    ] = None,
    verify: Annotated[
        bool, typer.Option(help="Ask the configured language model about each finding; it removes none.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show where documentation and code disagree; ends with 1 if they do."""
    name = "json" if as_json else format
    if name not in FORMAT_NAMES:
        raise ConfigError(f"--format {name!r}; allowed are: {', '.join(FORMAT_NAMES)}")
    if write_baseline is not None and diff:
        raise ConfigError("--write-baseline takes all that is found, not only what --diff brings; leave out one")
    options = _options(diff, baseline if write_baseline is None else None, min_confidence)
    report = _report(path, options, context, verify=verify)
    if write_baseline is not None:
        _write_known(report, write_baseline)
        sys.exit(0)
    _print(report, name)
    sys.exit(1 if report.findings else 0)


def _options(diff: str, baseline: Path | None, min_confidence: float | None) -> DriftOptions:
    from nornweave.disagree.drift.baseline import read_baseline
    from nornweave.disagree.drift.scan import DriftOptions

    options = DriftOptions(diff=diff, baseline=read_baseline(baseline) if baseline else None)
    return options if min_confidence is None else replace(options, min_confidence=min_confidence)


def _report(path: Path, options: DriftOptions, context: typer.Context, *, verify: bool) -> Report:
    """Check the folder, and say what could not be read."""
    from nornweave.disagree.drift.formats.words import one_line
    from nornweave.disagree.drift.scan import scan

    scanned = scan(path, options)
    report = scanned.report
    if verify and report.findings:
        from nornweave.disagree.drift.verify import second_reader, verified

        report = verified(report, second_reader(context.obj), scanned.text_of)
    for failed in report.failed:
        _say(f"not read: {one_line(failed.path)}: {one_line(failed.reason)}")
    for notice in report.notices:
        _say(notice)
    return report


def _write_known(report: Report, file: Path) -> None:
    from nornweave.disagree.drift.baseline import write_baseline
    from nornweave.disagree.drift.formats.words import one_line
    from nornweave.disagree.drift.scan import all_findings

    known = all_findings(report)
    write_baseline(file, known)
    _say(f"{len(known)} known disagreements written to {one_line(str(file))}")


def _print(report: Report, name: str) -> None:
    from nornweave.disagree.drift.formats import FORMATS

    # Not through rich: foreign text must not be taken for markup, nor lines be wrapped.
    sys.stdout.write(FORMATS[name](report))
    sys.stdout.flush()


def _say(text: str) -> None:
    messages.print(text, soft_wrap=True)
