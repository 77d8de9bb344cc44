"""``python -m api.server.body_process CONFIG [AGENT]`` answers one request with a large body, for ``large_bodies.py``.

On standard input it takes a line of JSON and the bytes of the body; on standard output it gives the same for the
answer. Its memory is bounded: a body that needs more is refused, and nothing else suffers.
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
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter

from api.access.door import VIEWER
from api.app import create_app
from api.tracing import log_trace_ids
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import Viewer
from nornweave.core.types import Domain

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

# Beyond what the program itself takes. A body of 30 MiB with ten thousand items takes half a gigabyte.
MEMORY_BYTES = 2 << 30


def main(arguments: Sequence[str]) -> None:
    """Answer one request; the arguments are the configuration and, for one served alone, the agent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; the parent ends this process
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed is not an answer
    log_trace_ids(os.environ)
    settings, agent = load_settings(Path(arguments[0])), Domain(arguments[1]) if arguments[1:] else None
    _limit_memory()
    request = json.loads(sys.stdin.buffer.readline())
    body = sys.stdin.buffer.read()
    if len(body) == request["size"]:  # else who asked is gone
        answer = asyncio.run(_answer(settings, agent, request, body))
        head = {"status": answer.status_code, "headers": dict(answer.headers)}
        answers.write(json.dumps(head).encode() + b"\n" + answer.content)
        answers.flush()


async def _answer(settings: Settings, agent: Domain | None, request: dict[str, Any], body: bytes) -> httpx.Response:
    """Return the app's answer. The token and the host were checked before the request was handed over."""
    app = create_app(settings, agent=agent, environment={})
    viewer = TypeAdapter(Viewer).validate_python(request["viewer"])
    transport = httpx.ASGITransport(lambda scope, receive, send: app({**scope, VIEWER: viewer}, receive, send))
    async with httpx.AsyncClient(transport=transport, base_url="http://nornweave") as client:
        return await client.request(
            request["method"], quote(request["path"]), headers=request["headers"], content=body, timeout=None
        )


def _limit_memory() -> None:
    if resource and sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main(sys.argv[1:])
