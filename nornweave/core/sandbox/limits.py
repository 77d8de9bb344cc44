"""Limits of a process that runs a task."""

from __future__ import annotations

import math
import os
import resource
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
