"""``python -m api.worker``: one of several serving processes, started by ``workers.py``.

It accepts from the socket that it inherits, says on standard output once it does, and ends when its standard input
does: with the process that started it, however that ends.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str]) -> int:
    """Serve; the arguments are the configuration, the host, the socket's descriptor and, for one alone, the agent."""
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    from api.process import serve_on  # takes seconds, in which the parent may end
    from nornweave.connect.connectors import load_settings
    from nornweave.core.types import Domain

    config, host, descriptor, *agent = arguments
    return serve_on(
        socket.socket(fileno=int(descriptor)),
        load_settings(Path(config)),
        host,
        Domain(agent[0]) if agent else None,
        environment=os.environ,
        announce=lambda: print("serving", flush=True),  # noqa: T201 - to the process that started this one
        is_shared=True,
    )


def _end_with_parent() -> None:
    # Not through sys.stdin: its lock is held while it is read, and the interpreter aborts when it cannot close it.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    while True:  # there are moments in which nobody handles it
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
