"""Settings of this process: signals, garbage collection, a sign of life."""

from __future__ import annotations

import gc
import signal
from contextlib import suppress
from pathlib import Path


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
