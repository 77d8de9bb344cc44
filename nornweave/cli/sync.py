"""The work of ``nornweave sync`` after its options are read: run with progress on stderr, or preview the changes."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from nornweave.ask.views.status import hidden_notices
from nornweave.cli.options import messages, output
from nornweave.config import Settings
from nornweave.core.files.writing import check_folder, translate_full_disk, write_whole
from nornweave.core.text.terminal import Terminal, print_json
from nornweave.core.types import Domain
from nornweave.ingest.alarms import JUDGED_GONE
from nornweave.ingest.diff import Changes, DueDocument
from nornweave.ingest.pipeline import DomainSync
from nornweave.ingest.records import Progress, SyncOptions, SyncReport
from nornweave.ingest.run_status import UNITS, Pace, report_as_json
from nornweave.ingest.wiring import domain_parts

INTERRUPTED = (
    "interrupted: what was read and encoded is kept, and what was published answers as before; "
    "`nornweave sync` goes on from here"
)
PAUSE_S = 0.5
Outcomes = Mapping[Domain, SyncReport | str]
"""Per domain the report of its sync, or the error that ended it."""

SHOWN_FAILURES = 20
DOCUMENTS_FAILED = 3
"""The exit code of ``sync --strict`` when single documents failed and nothing else did."""


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        unit = task.fields["unit"]
        return Text(f"{task.speed:,.0f} {unit}/s" if task.speed and task.total != 1 else "")


class ProgressBars:
    """One bar per domain and step; silent if stderr is no terminal. Called as ``sync.Progress``."""

    def __init__(self, console: Terminal) -> None:
        self._bars = RichProgress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Speed(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal or not logging.getLogger().isEnabledFor(logging.WARNING),  # --quiet
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` are finished in a step: ``domain step`` or ``domain step source``."""
        if name not in self._tasks:
            unit = UNITS.get(name.split()[1], "")
            self._tasks[name] = self._bars.add_task(f"{name} {unit}", total=total or None, unit=unit)
        self._bars.update(self._tasks[name], completed=done, total=total or None)


class ProgressFile:
    """Writes the last step into a file as JSON, for other processes to show; called as ``sync.Progress``."""

    def __init__(self, file: Path, show: Callable[[str, int, int], None]) -> None:
        self._file = file
        self._show = show
        self._pace = Pace()
        self._step, self._written_at = "", 0.0

    def __call__(self, name: str, done: int, total: int) -> None:
        """Show the progress, and write it at most twice a second. Each step is written at least once."""
        self._show(name, done, total)
        pace = self._pace.describe_step(name, done, total)
        if pace is None:
            return
        now = time.monotonic()
        if name != self._step or now - self._written_at >= PAUSE_S:
            self._step, self._written_at = name, now
            with contextlib.suppress(OSError):  # progress that nobody sees fails no sync
                write_whole(self._file, json.dumps({"step": name, "done": done, "total": total, "pace": pace}))


SHOWN = 20


def run_sync(
    settings: Settings,
    domains: Sequence[Domain],
    options: SyncOptions,
    progress_file: Path | None,
    *,
    strict: bool,
    as_json: bool,
) -> int:
    """Sync the domains and print the outcomes. Return 0 after success, 1 after a failure, and 130 after Ctrl-C.

    With ``strict``, return ``DOCUMENTS_FAILED`` if nothing but documents failed.
    """
    check_folder(settings.data_dir, make=True)
    with translate_full_disk(settings.data_dir), ProgressBars(messages) as bars:
        progress = ProgressFile(progress_file, bars) if progress_file else bars
        try:
            bars("start Dagster", 0, 1)  # seconds, in which a person would see nothing
            from orchestration.runs import sync_here

            bars("start Dagster", 1, 1)
            run = sync_here(settings, domains, options, progress)
        except KeyboardInterrupt:
            messages.print(INTERRUPTED, style="yellow", soft_wrap=True)
            return 130
    if run.unrecorded:
        _say(f"this sync is in no history: {run.unrecorded}", "yellow")
    code = _report(run.outcomes, run.failed_after, strict=strict, as_json=as_json)
    for domain in domains:
        for source_id, notice in hidden_notices(settings, domain).items():
            _say(f"{domain.value}: source {source_id}: {notice}", "yellow")
    if notice := settings.principals_notice:
        _say(f"access: {notice}", "yellow")
    return code


def _report(outcomes: Outcomes, failed_after: Mapping[str, str], *, strict: bool, as_json: bool) -> int:
    """Print the outcomes of a sync, and its problems on stderr. Return the exit code, as ``run_sync`` does.

    In JSON a domain that failed as a whole has ``error`` instead of its report.

    Args:
        failed_after: asset → error, for steps that failed after the domains.
    """
    if as_json:
        print_json(
            {
                domain.value: report_as_json(outcome) if isinstance(outcome, SyncReport) else {"error": outcome}
                for domain, outcome in outcomes.items()
            }
        )
    else:
        _print_outcomes(outcomes)
    if _sync_failed(outcomes, failed_after):
        return 1
    # A document that an older version of it answers for could not be read either.
    has_unread = any(isinstance(outcome, SyncReport) and outcome.failed for outcome in outcomes.values())
    return DOCUMENTS_FAILED if strict and has_unread else 0


def _print_outcomes(outcomes: Outcomes) -> None:
    """Print one row per domain."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("domain", no_wrap=True)
    for name in ("added", "changed", "removed", "unchanged", "failed", "chunks", "embedded", "reused", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("generation", no_wrap=True)
    for domain, report in outcomes.items():
        if isinstance(report, SyncReport):
            numbers = (report.added, report.changed, report.removed, report.unchanged, len(report.failed),
                       report.chunks, report.embedded, report.reused)  # fmt: skip
            table.add_row(
                domain.value,
                *(f"{number:,}" for number in numbers),
                f"{report.seconds:.1f}",
                f"{report.generation or '-'} {'published' if report.published else '(no change)'}",
            )
    if table.row_count:
        output.print(table)
    for report in outcomes.values():
        for source_id, reading in report.sources.items() if isinstance(report, SyncReport) else ():
            more = f"; nornweave status --left-out {source_id} lists them" if reading.left_out else ""
            output.print(f"{source_id}  {reading.summary()}{more}", soft_wrap=True, markup=False, highlight=False)


def _sync_failed(outcomes: Outcomes, failed_after: Mapping[str, str]) -> bool:  # noqa: C901
    """Print problems on stderr. Return whether a domain, a source, a judged set or a step after the domains failed."""
    failed = False
    for domain, outcome in outcomes.items():
        if not isinstance(outcome, SyncReport):
            _say(f"{domain.value}: {outcome}", "red")
            failed = True
            continue
        for source_id, reason in outcome.unavailable.items():
            _say(f"{domain.value}: source {source_id}: {reason}; its documents stay as they were", "red")
            failed = True
        for held in outcome.held:
            _say(
                f"{domain.value}: source {held.source_id}: {held.reason}; {len(held.paths)} removals are held: "
                "if they are meant, run `nornweave sync --confirm-deletes`",
                "yellow",
            )
        for source_id, reading in outcome.sources.items():
            for notice in (*reading.notices, *filter(None, [reading.warning()])):
                _say(f"{domain.value}: source {source_id}: {notice}", "yellow")
        if outcome.not_copied:
            _say(f"{domain.value}: is published here, not in the object store: {outcome.not_copied}", "red")
            failed = True
        for name, path in outcome.judged_gone:
            _say(f"{domain.value}: judged set {name}: {path}: {JUDGED_GONE}", "yellow")
        for warning in outcome.quality_warnings:
            _say(f"{domain.value}: published, and worse: {warning}", "yellow")
        for wrong in outcome.judged_wrong:
            _say(f"{domain.value}: {wrong}", "red")
            failed = True
        for failure in outcome.failed[:SHOWN_FAILURES]:
            kept = " (its stored version keeps answering)" if failure.stale else ""
            _say(f"{domain.value}: {failure.source_id}/{failure.path}: {failure.reason}{kept}", "yellow")
        if len(outcome.failed) > SHOWN_FAILURES:
            _say(f"{domain.value}: … {len(outcome.failed)} in all: `nornweave status` lists them", "yellow")
    for asset, reason in failed_after.items():
        _say(f"{asset}: {reason}", "red")
        failed = True
    return failed


def _say(line: str, style: str) -> None:
    messages.print(line, style=style, soft_wrap=True)


def preview_sync(settings: Settings, domains: Sequence[Domain], options: SyncOptions, *, as_json: bool) -> int:
    """Print the changes that a sync of these domains would make. Return 1 if a source cannot be listed, else 0."""
    with ProgressBars(messages) as bars:
        changes = {domain: _changes(settings, domain, options, bars) for domain in domains}
    if as_json:
        print_json({domain.value: _as_json(each) for domain, each in changes.items()})
    else:
        for domain, each in changes.items():
            _print(domain, each)
    for domain, each in changes.items():
        for source_id, reason in each.unavailable.items():
            messages.print(Text(f"{domain.value}: source {source_id}: {reason}", style="red"), soft_wrap=True)
    return 1 if any(each.unavailable for each in changes.values()) else 0


def _print(domain: Domain, changes: Changes) -> None:
    held = sum(len(each.paths) for each in changes.held)
    said = f"{domain.value}: {len(changes.due):,} to read, {len(changes.removed):,} to remove"
    output.print(
        f"{said}{f' ({held:,} more wait for --confirm-deletes)' if held else ''}, {changes.unchanged:,} as they are"
    )
    _lines(f"  read    {wanted.source_id}/{wanted.entry.path} ({_why(wanted)})" for wanted in changes.due)
    _lines(f"  remove  {stored.source_id}/{stored.path}" for stored in changes.removed)
    _lines(f"  held    {each.source_id}/{path}: {each.reason}" for each in changes.held for path in each.paths)


def _lines(lines: Iterable[str]) -> None:
    rest = 0
    for number, line in enumerate(lines):
        if number < SHOWN:
            output.print(Text(line), soft_wrap=True)
        else:
            rest += 1
    if rest:
        output.print(f"  … and {rest:,} more (--json lists them all)")


def _changes(settings: Settings, domain: Domain, options: SyncOptions, progress: Progress) -> Changes:
    """Return what a sync would do, by comparing a domain's sources with the stored documents.

    Changes of remote sources are read into their mirrors, as by a sync. Nothing is indexed, removed or published.

    Raises:
        DomainBusyError: another process is writing the domain.
        EncoderError: the model cannot be used; documents depend on its tokenizer.
    """
    parts = domain_parts(settings, domain)
    with DomainSync(parts, options, progress, confirm=lambda *_: False) as sync:
        return sync.list_changes()


def _as_json(changes: Changes) -> dict[str, Any]:
    """Return the planned changes as JSON; documents are sorted by source, then path."""
    return {
        "read": [{"source_id": each.source_id, "path": each.entry.path, "why": _why(each)} for each in changes.due],
        "removed": [{"source_id": stored.source_id, "path": stored.path} for stored in changes.removed],
        "held": [{"source_id": held.source_id, "reason": held.reason, "paths": held.paths} for held in changes.held],
        "unavailable": dict(changes.unavailable),
        "unchanged": changes.unchanged,
    }


def _why(wanted: DueDocument) -> str:
    """Return why a document would be read, such as ``new`` or ``changed``."""
    if wanted.stored is None:
        return "new"
    if wanted.stored.outcome == "transient":
        return "could not be read before"
    return "changed" if wanted.stored.gate != wanted.entry.gate else "read by another version"
