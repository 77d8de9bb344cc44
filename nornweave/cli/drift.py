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


Folder = Annotated[Path, typer.Argument(help="The folder to check.")]
Range = Annotated[
    str,
    typer.Option(
        metavar="BASE..HEAD", help="Report only what these commits introduced (BASE...HEAD: since they diverged)."
    ),
]
Known = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Report only what this file, written by --write-baseline, does not list."),
]
NewlyKnown = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write all findings to this file as known, and exit with 0.")
]
Format = Annotated[str, typer.Option(metavar="F", help=f"One of {', '.join(FORMAT_NAMES)}.")]
Confidence = Annotated[
    float | None, typer.Option(help="Leave out findings with a lower confidence, 0 to 1.", min=0, max=1)
]
Exclude = Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Leave out files that match; may be repeated.")]
Lock = Annotated[bool, typer.Option("--lock", help="Check the agreements in drift.lock; without that file, write it.")]
Update = Annotated[bool, typer.Option("--update", help="Write drift.lock anew: what changed was changed on purpose.")]
Accept = Annotated[
    bool, typer.Option("--accept", help="With --update: also where a page still says what the code said before.")
]
Listed = Annotated[
    bool, typer.Option("--list", help="Print every documented option: held, differs, or not compared and why.")
]
MinHeld = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="Exit with 3 if less of the documented options is held, 0 to 1.", min=0, max=1),
]
Fail = Annotated[bool, typer.Option("--fail", help="Exit with 1 if a full scan finds something.")]


def drift(
    path: Folder = Path(), diff: Range = "", baseline: Known = None,
    write_baseline: NewlyKnown = None, format: Format = "text",  # noqa: A002 - the option's name
    min_confidence: Confidence = None, exclude: Exclude = None, lock: Lock = False,
    update: Update = False, accept: Accept = False, fail: Fail = False,
    listed: Listed = False, min_held: MinHeld = None, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show where documentation and code disagree.

    Exits with 1 if an agreement broke (--diff, --lock) or something is new (--baseline); a full scan needs --fail.
    Exits with 3 if less than --min-held is held and nothing broke.
    """
    name = "json" if as_json else format
    if name not in FORMAT_NAMES:
        raise ConfigError(f"--format {name!r}; allowed are: {', '.join(FORMAT_NAMES)}")
    if diff and (write_baseline is not None or lock or update):
        other = "--write-baseline takes" if write_baseline is not None else "--lock and --update take"
        raise ConfigError(f"{other} the whole folder, not only what --diff brings; leave out one")
    from nornweave.disagree.drift.scan import DriftOptions
    from nornweave.disagree.drift.settings import read_settings

    settings = read_settings(path)
    options = DriftOptions(diff=diff, exclude=tuple(exclude or ()), only_lock=lock, settings=settings)
    if min_confidence is not None:
        options = replace(options, min_confidence=min_confidence)
    if update or (lock and not _has_lock(path)):
        sys.exit(_write_lock(path, options, accept=accept))
    options = _with_baseline(baseline, options, is_written=write_baseline is not None)
    report = _report(path, options)
    if write_baseline is not None:
        _write_known(report, write_baseline)
        return
    if listed and name == "text":
        from nornweave.disagree.drift.formats import listing

        sys.stdout.write(listing(report))
    _print(report, name)
    fails_from = 0.0 if diff or baseline is not None or fail else settings.fail_from
    fails = (one.moved or (fails_from is not None and one.confidence >= fails_from) for one in report.findings)
    share = report.coverage.held_share if report.coverage else None
    is_little = min_held is not None and share is not None and share < min_held
    if is_little:
        _say(f"{share:.2f} of the documented options are held; --min-held asks for {min_held:g}")
    sys.exit(1 if any(fails) else 3 if is_little else 0)


def _with_baseline(baseline: Path | None, options: DriftOptions, *, is_written: bool) -> DriftOptions:
    """Return the options with the baseline from a file; without a baseline for ``None``.

    If a baseline is to be written, use neither an older baseline nor the lock.
    """
    from nornweave.disagree.drift.lock import read_baseline

    if is_written:
        return replace(options, use_lock=False)
    return replace(options, baseline=read_baseline(baseline) if baseline else None)


def _has_lock(path: Path) -> bool:
    from nornweave.disagree.drift.lock import FILE_NAME

    return (path / FILE_NAME).exists()


def _write_lock(path: Path, options: DriftOptions, *, accept: bool) -> int:
    """Write the lock, and print the entries that the old lock had and the new one lacks.

    Args:
        accept: write the lock although a page still states an entry that it drops.

    Returns:
        The exit status: 1 if the lock was left as it was, else 0.
    """
    from nornweave.disagree.drift.formats import coverage_sentence, one_line
    from nornweave.disagree.drift.lock import FILE_NAME, dropped, locked, read_lock, write_lock
    from nornweave.disagree.drift.scan import scan

    old = read_lock(path) or []
    scanned = scan(path, replace(options, use_lock=False, only_lock=False))
    entries = locked(scanned.pairs, scanned.text_of)
    gone = dropped(old, entries, scanned.pairs)
    for one in gone:
        _say(f"no longer held: {one_line(one.sentence)}")
    still = sum(one.is_still_said for one in gone)
    if still and not accept:
        _say(f"{FILE_NAME} is left as it was: {still} of these {'is' if still == 1 else 'are'} still said on a page; "
             "mend the pages, or give --accept")  # fmt: skip
        return 1
    write_lock(path, entries)
    if scanned.report.coverage:
        _say(coverage_sentence(scanned.report.coverage))
    _say(f"{len(entries):,} agreements written to {FILE_NAME}")
    return 0


def _report(path: Path, options: DriftOptions) -> Report:
    """Check the folder, print which files could not be read, and return the report."""
    from nornweave.disagree.drift.formats import one_line
    from nornweave.disagree.drift.scan import scan

    report = scan(path, options).report
    for failed in report.failed:
        _say(f"not read: {one_line(failed.path)}: {one_line(failed.reason)}")
    for notice in report.notices:
        _say(one_line(notice))
    return report


def _write_known(report: Report, file: Path) -> None:
    from nornweave.disagree.drift.formats import one_line
    from nornweave.disagree.drift.lock import write_baseline

    write_baseline(file, report.findings)
    _say(f"{len(report.findings)} known disagreements written to {one_line(str(file))}")


def _print(report: Report, name: str) -> None:
    from nornweave.disagree.drift.formats import FORMATS

    # Not through rich: foreign text must not be taken for markup, nor lines be wrapped.
    sys.stdout.write(FORMATS[name](report))
    sys.stdout.flush()


def _say(text: str) -> None:
    messages.print(text, soft_wrap=True)
