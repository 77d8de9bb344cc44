"""Settings of this process: signals, garbage collection, a sign of life, and the limits of one that runs a task."""

from __future__ import annotations

import gc
import math
import os
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path

MEMORY_BYTES = 2 << 30
"""Address space of a process, its program included (about 250 MB)."""
RETIRE_BYTES = 512 << 20
"""A process that has used more memory than this is replaced after its task."""
WALL_FACTOR = 20
"""A task is ended after this many times its processor time on the clock: on a
busy machine it waits for others most of the time."""


def heed_signals() -> None:
    """Let SIGINT and SIGTERM end this process, even if it inherited that they are ignored.

    A shell starts the background jobs of a script with SIGINT ignored, and a program inherits ignored signals.
    Dagster 1.13 then ignores SIGTERM as well, because it uses the handler of SIGINT for it. uvicorn does not end after
    a signal, because it raises the signal once more, which is ignored. The same holds for child processes.
    """
    if signal.getsignal(signal.SIGINT) in {signal.SIG_IGN, signal.SIG_DFL}:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_silently() -> None:
    """Let a signal end this process without a traceback while it still imports its modules."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in {signal.default_int_handler, signal.SIG_IGN}:
            signal.signal(number, signal.SIG_DFL)


def collect_rarely() -> None:
    """Run the garbage collector after 50,000 new objects instead of 700.

    Imported modules and open requests stay in memory. Scanning them takes an eighth of a process's start time.
    """
    gc.set_threshold(50_000, 50, 100)


# A file that a process without a port touches while it works: a probe asks how old it is.
ALIVE = "alive"
ALIVE_EVERY_S = 5


def note_alive(data_dir: Path) -> None:
    """Touch the file in ``data_dir`` that shows that this process is alive. Errors of the disk are ignored."""
    with suppress(OSError):
        data_dir.mkdir(parents=True, exist_ok=True)
        (data_dir / ALIVE).touch()


def cpu_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def confine() -> None:
    """Limit this process permanently: limited memory, no file writes, no core dumps.

    If the machine runs out of memory, the kernel kills this process first.
    """
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    for kind, limit in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # macOS knows no limit of the address space
            resource.setrlimit(kind, (limit, limit))


def allow_cpu(seconds: float) -> None:
    """Let this process use this much more processor time. After that the kernel ends it."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def allow_more_cpu(seconds: float) -> None:
    """Extend the limit that ``allow_cpu`` set. If there is no limit, do nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_CPU, (soft + math.ceil(seconds), hard))


def has_grown() -> bool:
    """Tell whether the peak memory of this process exceeds ``RETIRE_BYTES``.

    ``getrusage`` cannot be used on Linux, because a process inherits the peak of its parent.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:  # macOS
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > RETIRE_BYTES
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024 > RETIRE_BYTES
