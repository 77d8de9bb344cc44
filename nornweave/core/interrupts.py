"""SIGINT for programs that a script started."""

from __future__ import annotations

import signal


def heed_interrupts() -> None:
    """Let SIGINT end this process, as in a terminal.

    A shell starts the background jobs of a script with SIGINT ignored, and a program inherits that. Dagster 1.13 gives
    SIGTERM the handler of SIGINT, and uvicorn raises a signal again that it has handled: both would be ignored too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
