"""How much faster two workers encode than one: ``python -m lab.bench --only workers``.

Each worker is a process of ``nornweave worker`` pinned to one core, with a broker (``redis-server``) and object storage
(a folder) between it and the sync. One and two workers take turns, since the speed of a shared machine drifts; the
ratio of the medians is the result. Target: ratio ≥ 1.8 on two cores that are otherwise idle.
"""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

import psutil
import yaml
from rich.console import Console
from rich.table import Table

from lab.bench.encoding import texts_under
from nornweave.config.object_store import ObjectStoreSettings
from nornweave.index.object_store import ObjectStore
from nornweave.models.conversion import machine_cache
from nornweave.models.encoders import Encoder, load_encoder
from nornweave.models.folders import MINILM
from nornweave.share.workers.encoder import CeleryQueue, DistributedEncoder

Measured: TypeAlias = tuple[float, float]
"""Seconds, and CPU seconds of the worker that used most: what it would take on cores that do nothing else."""
TEXTS, ROUNDS, BATCH, WARM = 1_024, 3, 64, 6
NEVER_S = 3_600.0
"""Patience of the sync: it must encode nothing itself."""


def print_workers(texts: int = TEXTS, rounds: int = ROUNDS) -> None:
    """Print the table."""
    own, installed = Path(__file__).parents[2], Path(sysconfig.get_path("purelib"))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nornweave-workers-")))
        local = load_encoder(MINILM, cache_dir=machine_cache(folder))
        broker = stack.enter_context(_broker(folder))
        encoded = texts_under([own, installed], local.tokenizer, texts)
        cores = sorted(os.sched_getaffinity(0))[:2]
        seconds: dict[int, list[Measured]] = {1: [], 2: []}
        for attempt in range(rounds):
            for count in (1, 2) if attempt % 2 == 0 else (2, 1):
                seconds[count].append(_timed(folder / f"{attempt}-{count}", broker, local, encoded, cores[:count]))
    Console(width=120).print(_table(seconds, texts))


def _timed(folder: Path, broker: str, local: Encoder, texts: Sequence[str], cores: Sequence[int]) -> Measured:
    """Return what workers on ``cores`` take for ``texts``; they have loaded the model before."""
    objects = ObjectStore(ObjectStoreSettings(url=f"file://{folder / 'objects'}"))
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(folder / f"core-{core}", broker, objects.url, core)) for core in cores]
        sync = DistributedEncoder(
            local=local,
            domain="documentation",
            queue=CeleryQueue(broker),
            objects=objects,
            batch=BATCH,
            patience_s=NEVER_S,
        )
        for batch in range(WARM):  # every worker has had some, and compiled the model for the usual widths
            sync.encode([f"warm {batch} {text}" for text in texts[:BATCH]])
        used, started = [_cpu_seconds(worker) for worker in workers], time.perf_counter()
        sync.encode(texts)
        wall = time.perf_counter() - started
        return wall, max(_cpu_seconds(worker) - before for worker, before in zip(workers, used, strict=True))


def _cpu_seconds(worker: psutil.Process) -> float:
    family = [worker, *worker.children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in family)


@contextmanager
def _worker(folder: Path, broker: str, objects: str, core: int) -> Iterator[psutil.Process]:
    folder.mkdir(parents=True)
    config = folder / "nornweave.yaml"
    config.write_text(
        yaml.safe_dump({"data_dir": "./var", "workers": {"broker": broker, "objects": objects}}), encoding="utf-8"
    )
    command = [sys.executable, "-m", "nornweave.cli", "--config", str(config), "worker", "--name", f"core-{core}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(["taskset", "--cpu-list", str(core), *command], stdout=log, stderr=log)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(timeout=180)


@contextmanager
def _broker(folder: Path) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is not installed (apt install redis-server)")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _table(measured: Mapping[int, Sequence[Measured]], texts: int) -> Table:
    walls = {count: statistics.median(wall for wall, _ in rounds) for count, rounds in measured.items()}
    cpus = {count: statistics.median(cpu for _, cpu in rounds) for count, rounds in measured.items()}
    table = Table(title=f"{texts} chunks, batches of {BATCH}, each worker on one core; medians of {len(measured[1])}")
    for column in ("workers", "seconds", "chunks/s", "times one", "CPU s of the busiest", "times one by CPU time"):
        table.add_column(column, justify="right")
    for count, wall in walls.items():
        table.add_row(
            str(count),
            f"{wall:.1f}",
            f"{texts / wall:.0f}",
            f"{walls[1] / wall:.2f}",
            f"{cpus[count]:.1f}",
            f"{cpus[1] / cpus[count]:.2f}",
        )
    return table
