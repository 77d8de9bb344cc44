"""The app on a real port, in a thread: for what only a connection shows (pieces as they come, clients that go)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from api.server.process import LimitedServer
from api.server.workers import listen, url_of

WITHIN_S = 60.0


@contextmanager
def live(app: FastAPI) -> Iterator[str]:
    """Serve an app as ``nornweave serve`` does; give its URL, without a slash at the end."""
    config = uvicorn.Config(app, log_config=None)
    accepting = threading.Event()
    with listen("127.0.0.1", 0) as listener:
        server = LimitedServer(config, accepting.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            assert accepting.wait(WITHIN_S), "the server did not start"
            yield url_of(listener).rstrip("/")
        finally:
            server.should_exit = True
            thread.join(WITHIN_S)
