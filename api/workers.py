"""More processes on the port: a question is computation under Python's lock, so one process keeps one CPU busy.

All of them accept from one socket, which a worker inherits (``accepting``). A worker ends when its standard input does:
with the process that started it, however that ends.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from api.limits import cpu_count
from nornweave.settings import Settings
from nornweave.types import Domain
from nornweave.workspace import store_of

MOST_BY_ITSELF = 4
# Every worker holds what a query touches; of larger indexes one process has enough unless somebody says otherwise.
SMALL_INDEX_BYTES = 512 << 20
STOP_WITHIN_S = 7.0
HAS_WORKERS = os.name == "posix"  # elsewhere processes do not inherit sockets


def usual_workers(settings: Settings) -> int:
    """Return how many processes serve unless somebody says: one a CPU, four at most, of a large index one."""
    size = sum(_published_bytes(settings, domain) for domain in settings.served_domains)
    return min(cpu_count(), MOST_BY_ITSELF) if HAS_WORKERS and size < SMALL_INDEX_BYTES else 1


def _published_bytes(settings: Settings, domain: Domain) -> int:
    store = store_of(settings, domain)
    current = store.current()
    file = store.files.path(current) if current else None
    return file.stat().st_size if file and file.is_file() else 0


@contextmanager
def running(config: Path, host: str, listener: socket.socket, agent: Domain | None, count: int) -> Iterator[None]:
    """Run ``count`` more processes that accept from the socket, for as long as the context lasts."""
    shared = listener.fileno()
    command = [sys.executable, "-m", "api.workers", str(config), host, str(shared), *([agent.value] if agent else [])]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[shared])
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for worker in workers:
            if worker.stdin:
                worker.stdin.close()
        for worker in workers:
            _end(worker)


def _end(worker: subprocess.Popen[bytes]) -> None:
    try:
        worker.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def main(arguments: Sequence[str]) -> int:
    """Be a worker: accept from the socket that is told, say nothing, end with the process that started this one."""
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    from api.serving import serve  # takes seconds, in which the parent may end
    from nornweave.settings import load_settings

    config, host, descriptor, *agent = arguments
    return serve(
        load_settings(Path(config)),
        host,
        agent=Domain(agent[0]) if agent else None,
        listener=socket.socket(fileno=int(descriptor)),
        announce=lambda _: None,
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
