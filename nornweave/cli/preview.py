"""``nornweave sync --dry-run``: print what a sync would read and remove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from nornweave.cli.options import messages, output
from nornweave.cli.progress import ProgressBars
from nornweave.config import Settings
from nornweave.core.text.terminal import print_json
from nornweave.core.types import Domain
from nornweave.ingest.diff import Changes
from nornweave.ingest.preview import preview, preview_as_json, why
from nornweave.ingest.records import SyncOptions

SHOWN = 20


def preview_sync(settings: Settings, domains: Sequence[Domain], options: SyncOptions, *, as_json: bool) -> int:
    """Print what a sync of these domains would do; return the exit code."""
    with ProgressBars(messages) as bars:
        changes = {domain: preview(settings, domain, options, bars) for domain in domains}
    if as_json:
        print_json({domain.value: preview_as_json(each) for domain, each in changes.items()})
    else:
        for domain, each in changes.items():
            _print(domain, each)
    for domain, each in changes.items():
        for source_id, reason in each.unavailable.items():
            messages.print(Text(f"{domain.value}: source {source_id}: {reason}", style="red"), soft_wrap=True)
    return 1 if any(each.unavailable for each in changes.values()) else 0


def _print(domain: Domain, changes: Changes) -> None:
    held = sum(len(each.paths) for each in changes.held)
    said = f"{domain.value}: {len(changes.looks):,} to read, {len(changes.removed):,} to remove"
    output.print(
        f"{said}{f' ({held:,} more wait for --confirm-deletes)' if held else ''}, {changes.unchanged:,} as they are"
    )
    _lines(f"  read    {look.source_id}/{look.entry.path} ({why(look)})" for look in changes.looks)
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
