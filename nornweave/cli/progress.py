"""Show progress bars of a sync on stderr: documents, chunks per second, time left."""

from __future__ import annotations

from types import TracebackType
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

from nornweave.text.terminal import Terminal

UNITS = {"load": "model", "store": "documents", "embed": "chunks", "build": "generation"}


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        unit = task.fields["unit"]
        return Text(f"{task.speed:,.0f} {unit}/s" if task.speed and task.total and task.total > 1 else "")


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
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` are through the step ``name`` (``domain step``)."""
        if name not in self._tasks:
            unit = UNITS.get(name.rpartition(" ")[2], "")
            self._tasks[name] = self._bars.add_task(f"{name} {unit}", total=total, unit=unit)
        self._bars.update(self._tasks[name], completed=done, total=total)
