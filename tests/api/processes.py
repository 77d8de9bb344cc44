"""Programs of a test as processes of their own: started with what it knows, ended after it."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import forked
import pytest
from waiting import until

# What ``nornweave serve`` does, on a free port: of a configuration, with so many processes.
SERVE = """
import sys
from pathlib import Path
from api.server.serving import serve
from nornweave.connect.connectors import load_settings
sys.exit(serve(load_settings(Path(sys.argv[1])), port=0, workers=int(sys.argv[2]) if len(sys.argv) > 2 else None))
"""
START_S, STOP_S = 120.0, 90.0
Served = tuple[forked.Popen, str]
Started = Callable[..., Served]


@contextmanager
def running(folder: Path, program: str, *arguments: object, **environment: str) -> Iterator[Served]:
    """Run a server, which writes into ``log`` and ``out``; give it with its URL, and kill it at the end."""
    log = folder / "log"
    usual = {name: value for name, value in os.environ.items() if name != "NORNWEAVE_SERVICE_TOKEN"}
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with (folder / "out").open("wb") as out, log.open("wb") as errors:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        server = forked.Popen(command, stdout=out, stderr=errors, env={**usual, "PYTHONPATH": path, **environment})
    try:
        until(lambda: server.poll() is not None or _urls(log), log.read_text, within_s=START_S)
        assert server.poll() is None, log.read_text()
        yield server, _urls(log)[0]
    finally:
        server.kill()
        server.wait()


def _urls(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if line.startswith("http://")]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start servers, return each with its URL; whatever survives a test is ended after it."""
    with ExitStack() as stack:
        yield lambda program, *rest, **named: stack.enter_context(running(tmp_path, program, *rest, **named))
