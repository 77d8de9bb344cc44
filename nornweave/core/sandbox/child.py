"""The program of a pool process: it runs functions until its parent ends.

``python -m nornweave.core.sandbox.child DESCRIPTOR PACKAGE``: only functions of PACKAGE are run.
"""

from __future__ import annotations

import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress

from nornweave.core.errors import DocumentError, TransientDocumentError
from nornweave.core.process import MEMORY_BYTES, allow_cpu, confine, has_grown
from nornweave.core.sandbox.frames import function_at, receive, send
from nornweave.core.types import JsonValue

OUT_OF_MEMORY = f"it takes more than {MEMORY_BYTES >> 30} GiB of memory to read"


def serve(connection: socket.socket, package: str) -> None:
    """Announce that the process is ready, then answer requests."""
    send(connection, None)
    is_leaving = False
    while not is_leaving:
        request, raw = receive(connection)
        if not isinstance(request, dict):
            return
        answer = _load(request, package) or _run(request, raw, package)
        is_leaving = has_grown() or "lost" in answer
        send(connection, {**answer, "is_leaving": is_leaving})


def _load(request: Mapping[str, JsonValue], package: str) -> dict[str, object]:
    """Import a request's modules before its time counts. Return an error answer if that fails, else an empty one.

    The error is transient, because an update of the program may be running.
    """
    try:
        for address in (request["task"], *request["uses"]):  # type: ignore[misc]
            function_at(str(address), package)
    except Exception as error:
        reason = f"what reads it cannot be loaded ({type(error).__name__}: {error})"[:300]
        return {"error": TransientDocumentError.__name__, "reason": reason}
    return {}


def _run(request: Mapping[str, JsonValue], raw: bytes, package: str) -> dict[str, object]:
    allow_cpu(request["cpu_s"])  # type: ignore[arg-type]
    try:
        return {"result": function_at(str(request["task"]), package)(request["values"], raw)}
    except MemoryError:
        return {"lost": OUT_OF_MEMORY}
    except DocumentError as error:
        return {"error": type(error).__name__, "reason": str(error)}
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:300]
        return {"error": "defect", "reason": reason, "trace": traceback.format_exc(limit=-20)}


def main(descriptor: int, package: str) -> None:
    """Apply the limits to this process, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, whose end ends this process
    confine()
    with socket.socket(fileno=descriptor) as connection, suppress(EOFError, OSError):
        serve(connection, package)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
