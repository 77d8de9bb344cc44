"""``python -m api.body_process``: answers requests with large bodies, started by ``large_bodies.py``.

On standard input, for each request, a line of JSON and as many bytes of body as it says; the same on standard output
for each answer. It ends with its input. Its memory is bounded: what would need more is refused, nothing else suffers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

# Beyond what the program itself takes. A body of 30 MiB with ten thousand items takes half a gigabyte.
MEMORY_BYTES = 2 << 30


def main(arguments: Sequence[str]) -> int:
    """Answer until the input ends; the arguments are the configuration and, for one served alone, the agent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; who started this one ends it
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed is not an answer
    from api.app import create_app
    from api.tracing import log_trace_ids
    from nornweave.connect.connectors import load_settings
    from nornweave.core.types import Domain

    log_trace_ids(os.environ)
    config, *agent = arguments
    settings = load_settings(Path(config))
    _limit_memory()
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        body = sys.stdin.buffer.read(request["size"])
        # The token and the host were checked already. A new app each time: it takes milliseconds, and follows what is
        # tuned and published meanwhile.
        app = create_app(settings, agent=Domain(agent[0]) if agent else None, environment={})
        head, content = asyncio.run(_answer(app, request, body))
        answers.write(json.dumps(head).encode() + b"\n" + content)
        answers.flush()
    return 0


async def _answer(app: ASGIApp, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the status and headers of the app's answer, and its content."""
    from api.access.door import VIEWER
    from nornweave.core.access.viewer import Viewer

    who = request["viewer"]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": request["method"],
        "path": request["path"],
        "raw_path": request["path"].encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request["headers"]],
        # Who asks was asked before the request was handed over: its tokens are not looked at again.
        VIEWER: Viewer(**{**who, "groups": frozenset(who["groups"])}),
    }
    incoming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop() if incoming else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    content = b"".join(message.get("body", b"") for message in sent[1:])
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in sent[0]["headers"]]
    return {"status": sent[0]["status"], "headers": headers, "size": len(content)}, content


def _limit_memory() -> None:
    if resource and sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
