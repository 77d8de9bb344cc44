"""Programs of a test as processes of their own: started with what it knows, ended after it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import forked
import pytest

START_S, STOP_S = 120.0, 90.0
Started = Callable[..., tuple[forked.Popen, str]]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start servers, return each with its URL; whatever survives a test is ended after it."""
    servers: list[forked.Popen] = []

    def start(program: str, *arguments: object, **environment: str) -> tuple[forked.Popen, str]:
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        with (tmp_path / "out").open("wb") as out, (tmp_path / "log").open("wb") as log:
            command = [sys.executable, "-c", program, *map(str, arguments)]
            variables = {**os.environ, "PYTHONPATH": path, **environment}
            server = forked.Popen(command, stdout=out, stderr=log, env=variables)
        servers.append(server)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and server.poll() is None:
            for line in (tmp_path / "log").read_text().splitlines():
                if line.startswith("http://"):
                    return server, line
            time.sleep(0.02)
        raise AssertionError((tmp_path / "log").read_text())

    yield start
    for server in servers:
        server.kill()
        server.wait()
