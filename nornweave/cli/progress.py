"""Show progress bars of a sync on stderr: documents, chunks per second, time left."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from nornweave.core.files.atomic_write import write_whole
from nornweave.core.text.terminal import Terminal
from nornweave.ingest.pace import UNITS, Pace

PAUSE_S = 0.5


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        unit = task.fields["unit"]
        return Text(f"{task.speed:,.0f} {unit}/s" if task.speed and task.total != 1 else "")


class ProgressBars:
    """One bar per domain and step; silent when stderr is no terminal. Callable as ``sync.Progress``."""

    def __init__(self, console: Terminal) -> None:
        self._bars = Progress(
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
        """Show that ``done`` of ``total`` are through the step ``name``: ``domain step`` or ``domain step source``."""
        if name not in self._tasks:
            unit = UNITS.get(name.split()[1], "")
            self._tasks[name] = self._bars.add_task(f"{name} {unit}", total=total or None, unit=unit)
        self._bars.update(self._tasks[name], completed=done, total=total or None)


class ProgressFile:
    """Writes the last step into a file as JSON, for whoever shows it elsewhere; callable as ``sync.Progress``."""

    def __init__(self, file: Path, show: Callable[[str, int, int], None]) -> None:
        self._file = file
        self._show = show
        self._pace = Pace()
        self._step, self._written_at = "", 0.0

    def __call__(self, name: str, done: int, total: int) -> None:
        """Pass it on, and write it at most twice a second; each step at least once."""
        self._show(name, done, total)
        pace = self._pace.told(name, done, total)
        if pace is None:
            return
        now = time.monotonic()
        if name != self._step or now - self._written_at >= PAUSE_S:
            self._step, self._written_at = name, now
            with contextlib.suppress(OSError):  # progress that nobody sees fails no sync
                write_whole(self._file, json.dumps({"step": name, "done": done, "total": total, "pace": pace}))
