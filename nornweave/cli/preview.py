"""``nornweave sync --dry-run``: print what a sync would read and remove, without storing anything in the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.text import Text

from nornweave.cli.options import messages, output
from nornweave.cli.progress import ProgressBars
from nornweave.config import Settings
from nornweave.core.text.terminal import print_json
from nornweave.core.types import Domain
from nornweave.ingest.diff import Changes, DueDocument
from nornweave.ingest.pipeline import DomainSync
from nornweave.ingest.records import Progress, SyncOptions
from nornweave.ingest.wiring import domain_parts

SHOWN = 20


def preview_sync(settings: Settings, domains: Sequence[Domain], options: SyncOptions, *, as_json: bool) -> int:
    """Print what a sync of these domains would do; return the exit code."""
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
    """List a domain's sources and compare them with what is stored.

    What a remote source has changed is read into its mirror, as by a sync; nothing is indexed, removed or published.

    Raises:
        DomainBusyError: another process is writing the domain.
        EncoderError: the model cannot be used; documents depend on its tokenizer.
    """
    parts = domain_parts(settings, domain)
    with DomainSync(parts, options, progress, confirm=lambda *_: False) as sync:
        return sync.list_changes()


def _as_json(changes: Changes) -> dict[str, Any]:
    """Return what would be done, as JSON; documents by source, then path."""
    return {
        "read": [{"source_id": each.source_id, "path": each.entry.path, "why": _why(each)} for each in changes.due],
        "removed": [{"source_id": stored.source_id, "path": stored.path} for stored in changes.removed],
        "held": [{"source_id": held.source_id, "reason": held.reason, "paths": held.paths} for held in changes.held],
        "unavailable": dict(changes.unavailable),
        "unchanged": changes.unchanged,
    }


def _why(wanted: DueDocument) -> str:
    """Say why a document would be read."""
    if wanted.stored is None:
        return "new"
    if wanted.stored.outcome == "transient":
        return "could not be read before"
    return "changed" if wanted.stored.gate != wanted.entry.gate else "read by another version"
