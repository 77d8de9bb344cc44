"""Signals that end a program, where whoever started it ignores them, and while it starts."""

from __future__ import annotations

import signal


def heed_signals() -> None:
    """Let SIGINT and SIGTERM end this process, as in a terminal.

    A shell starts the background jobs of a script with SIGINT ignored, and a program inherits what is ignored. Dagster
    1.13 gives SIGTERM the handler of SIGINT, and uvicorn raises a signal again that it has handled: both would be
    ignored too, in this process and in those that it starts.
    """
    if signal.getsignal(signal.SIGINT) in {signal.SIG_IGN, signal.SIG_DFL}:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_silently() -> None:
    """Let a signal end a process that still imports what it needs; Python would print where it was, or ignore it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in {signal.default_int_handler, signal.SIG_IGN}:
            signal.signal(number, signal.SIG_DFL)
