"""``python -m orchestration.daemon …``: Dagster's daemon, which starts on command and ends with its starter.

It begins with the first byte of its standard input, and ends at once with its end: another Dagster may take over then.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence

from nornweave.core.process import collect_rarely, end_silently, heed_signals


def main(arguments: Sequence[str]) -> None:
    """Run Dagster's daemon with its arguments until a signal comes."""
    end_silently()
    collect_rarely()
    from dagster._daemon.cli import main as run

    if os.read(0, 1):
        threading.Thread(target=end_with_starter, args=(signal.SIGKILL,), name="starter", daemon=True).start()
        heed_signals()
        sys.argv = ["dagster-daemon", *arguments]
        run()


def end_with_starter(number: signal.Signals) -> None:
    """Send this process a signal when the process that started it ends, which closes the standard input."""
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main(sys.argv[1:])
