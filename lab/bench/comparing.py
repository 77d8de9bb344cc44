"""``POST /query`` of this code beside another checkout's: ``python -m lab.bench.comparing CHECKOUT --keep FOLDER``.

Both serve one index and are asked in turns, so that what else runs on the machine slows both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer
from rich.console import Console
from rich.table import Table

from lab.bench.fusing import CLIENTS, asked, four_domains, judged_questions, server

_HERE = Path(__file__).resolve().parents[2]
_WARM_UP = 20
_ALONE, _TOGETHER = 20, 80


@dataclass(slots=True)
class _Served:
    """A running server and what was measured of it."""

    name: str
    url: str
    process: psutil.Process
    alone_ms: list[float] = field(default_factory=list)
    slow_ms: list[float] = field(default_factory=list)
    together_ms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    failed: int = 0

    def family(self) -> list[psutil.Process]:
        """Return the processes that serve."""
        return [self.process, *self.process.children(recursive=True)]

    def cpu_seconds(self) -> float:
        """Return the CPU time that all of them took so far."""
        times = [process.cpu_times() for process in self.family()]
        return sum(time.user + time.system for time in times)


def main(
    other: Annotated[Path, typer.Argument(help="The other checkout; it must read the same generations.")],
    keep: Annotated[Path, typer.Option(help="Folder of the index; one that is there is used as it is.")],
    shared: Annotated[Path, typer.Option(help="Judged sets.")] = Path("../shared/evals"),
    rounds: Annotated[int, typer.Option(help="How often each is asked in turn.")] = 7,
) -> None:
    """Print latency, throughput, CPU time and memory of both, and the medians of the rounds' ratios."""
    work = keep / "fusion"
    config = work / "talking" / "nornweave.yaml"
    if not config.exists():
        config = four_domains(shared, work)
    texts = judged_questions(shared)
    per_round = _ALONE + _TOGETHER
    with _serving(config, other.resolve(), "other") as old, _serving(config, _HERE, "this") as new:
        for served in (old, new):
            _ask(served, texts[:_WARM_UP], 2)
        for number in range(rounds):
            start = _WARM_UP + number * per_round
            part = [texts[(start + place) % len(texts)] for place in range(per_round)]
            for served in (old, new) if number % 2 else (new, old):
                _measure(served, part)
        table = Table(title=f"POST /query, four domains, {rounds} rounds in turns", title_justify="left")
        for title in ("code", "1 client p50 ms", "p95", f"{CLIENTS} clients p50 / p95 ms", "q/s", "CPU ms a query",
                      "MB a process", "failed"):  # fmt: skip
            table.add_column(title, justify="right")
        for served in (old, new):
            table.add_row(*_row(served))
    console = Console(width=140)
    console.print(table)
    console.print(
        f"this / other, median of the rounds: one client p50 {_ratio(new.alone_ms, old.alone_ms):.2f}, "
        f"queries/s {_ratio(new.rates, old.rates):.2f}, CPU {_ratio(new.cpu_ms, old.cpu_ms):.2f}"
    )


def _measure(served: _Served, texts: Sequence[str]) -> None:
    alone = _ask(served, texts[:_ALONE], 1)
    before = served.cpu_seconds()
    together = _ask(served, texts[_ALONE:], CLIENTS)
    served.cpu_ms.append((served.cpu_seconds() - before) * 1000 / _TOGETHER)
    served.alone_ms.append(float(np.median(alone["latencies_ms"])))
    served.slow_ms.append(float(np.percentile(alone["latencies_ms"], 95)))
    served.together_ms += together["latencies_ms"]
    served.rates.append(together["queries_per_s"])


def _row(served: _Served) -> list[str]:
    p50, p95 = np.percentile(served.together_ms, (50, 95))
    memory = [process.memory_full_info() for process in served.family()]
    return [
        served.name,
        f"{np.median(served.alone_ms):.1f}",
        f"{np.median(served.slow_ms):.1f}",
        f"{p50:.0f} / {p95:.0f}",
        f"{np.median(served.rates):.1f}",
        f"{np.median(served.cpu_ms):.1f}",
        " + ".join(f"{one.pss / 1e6:.0f}" for one in memory),
        str(served.failed),
    ]


def _ratio(these: Sequence[float], others: Sequence[float]) -> float:
    return float(np.median(np.array(these) / np.array(others)))


def _ask(served: _Served, texts: Sequence[str], clients: int) -> dict[str, Any]:
    answered = asked(served.url, texts, clients)
    served.failed += answered["failed"]
    return answered


@contextmanager
def _serving(config: Path, checkout: Path, name: str) -> Iterator[_Served]:
    with server(config, checkout) as (url, process):
        yield _Served(name, url, psutil.Process(process.pid))


if __name__ == "__main__":
    typer.run(main)
