"""Signals that end a program, where whoever started it ignores them."""

from __future__ import annotations

import signal


def heed_signals() -> None:
    """Let SIGINT and SIGTERM end this process, as in a terminal.

    A shell starts the background jobs of a script with SIGINT ignored, and a program inherits what is ignored. Dagster
    1.13 gives SIGTERM the handler of SIGINT, and uvicorn raises a signal again that it has handled: both would be
    ignored too, in this process and in those that it starts.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
