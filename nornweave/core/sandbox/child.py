"""The program of a pool process: it takes one task after another until its parent ends.

``python -m nornweave.core.sandbox.child DESCRIPTOR MODULE``: MODULE has ``TASKS``, functions by name.
"""

from __future__ import annotations

import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeAlias

from nornweave.core.errors import DocumentError
from nornweave.core.sandbox.frames import receive, send
from nornweave.core.sandbox.limits import MEMORY_BYTES, allow_cpu, confine, has_grown

Task: TypeAlias = Callable[[Mapping[str, Any], bytes], object]
"""Takes values and raw bytes; returns what ``frames.send`` can send."""

OUT_OF_MEMORY = f"it takes more than {MEMORY_BYTES >> 30} GiB of memory to read"


def serve(connection: socket.socket, tasks: Mapping[str, Task]) -> None:
    """Announce that everything is loaded, then answer tasks."""
    send(connection, None)
    is_leaving = False
    while not is_leaving:
        request, raw = receive(connection)
        if not isinstance(request, dict):
            return
        allow_cpu(request["cpu_s"])
        try:
            answer: dict[str, object] = {"result": tasks[request["task"]](request["values"], raw)}
        except MemoryError:
            answer = {"lost": OUT_OF_MEMORY}
        except DocumentError as error:
            answer = {"error": type(error).__name__, "reason": str(error)}
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            answer = {"error": "defect", "reason": reason, "trace": traceback.format_exc(limit=-20)}
        is_leaving = has_grown() or "lost" in answer
        send(connection, {**answer, "is_leaving": is_leaving})


def main(descriptor: int, module: str) -> None:
    """Load the tasks, apply the limits to this process, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, whose end ends this process
    tasks: Mapping[str, Task] = import_module(module).TASKS
    confine()
    with socket.socket(fileno=descriptor) as connection, suppress(EOFError, OSError):
        serve(connection, tasks)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
