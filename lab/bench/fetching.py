"""Read an API of 10,000 documents: requests, time and memory of the first reading and of the next one."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

from lab.apis import STAND_INS
from lab.apis.server import serving
from lab.campaigns.fetching import read
from lab.campaigns.processes import CONTEXT

DOCUMENTS = (1_000, 10_000)


def print_fetching() -> None:
    """Print a row per API and size."""
    print("| API | documents | requests, first | second | share | first, s | second, s | peak memory, MB |")  # noqa: T201
    print("|---|---|---|---|---|---|---|---|")  # noqa: T201
    for name, stand_in in STAND_INS.items():
        for documents in DOCUMENTS:
            with serving(stand_in.large(documents)) as server, tempfile.TemporaryDirectory() as folder:
                counts, seconds, peaks = [], [], []
                for _ in range(2):
                    server.requests.clear()
                    found, taken, peak = _measured(name, server.url, Path(folder))
                    counts.append(len(server.requests))
                    seconds.append(taken)
                    peaks.append(peak)
            share = counts[1] / counts[0]
            print(  # noqa: T201
                f"| {name} | {found:,} | {counts[0]:,} | {counts[1]:,} | {share:.1%} | {seconds[0]:.1f} | "
                f"{seconds[1]:.2f} | {peaks[0]:.0f} |"
            )


def _measured(name: str, url: str, folder: Path) -> tuple[int, float, float]:
    """Read in a process of its own; return the documents, the seconds and the peak memory in MB."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_read, args=(sender, name, url, folder))
    process.start()
    documents, seconds, peak = receiver.recv()
    process.join()
    return documents, seconds, peak


def _read(sender: object, name: str, url: str, folder: Path) -> None:
    # A forked process starts with its parent's peak; what counts is what the reading adds.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    found = read(name, url, folder)
    seconds = time.monotonic() - started
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    sender.send((len(found), seconds, peak))  # type: ignore[attr-defined]
