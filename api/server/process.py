"""One serving process: the app and its HTTP server on a listening socket, until SIGINT or SIGTERM.

``python -m api.server.process CONFIG HOST DESCRIPTOR WHEN [AGENT]`` is one of several, started by ``workers.py``. It
accepts from the socket that it inherits, at once or when everything is loaded. It writes to its standard output when
it serves and when it has loaded everything. It ends when its standard input ends.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import uvicorn
from fastapi import FastAPI

from api.access.door import service_token
from api.access.origins import answered_names
from api.app import create_app
from api.server.limits import KEEP_ALIVE_S, MAX_HEADER_BYTES, Connection, end_overdue
from api.server.workers import AFTER_LOADING, LOADED, accept_evenly
from api.state import log_trace_ids
from nornweave.ask.search.records import AgentState
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain

# Together below the 8 s after which `nornweave up` ends a child that does not stop by itself.
DRAIN_WITHIN_S = 5
POLL_S = 0.05
# At the end, for the first request on a connection that was just accepted.
FIRST_REQUEST_S = 0.5


def serve_on(
    listener: socket.socket,
    settings: Settings,
    host: str,
    agent: Domain | None,
    *,
    environment: Mapping[str, str],
    announce: Callable[[], None],
    loaded: Callable[[], None] = lambda: None,
    after_loading: bool = False,
) -> int:
    """Serve on a socket until SIGINT or SIGTERM, then finish the requests in flight, for at most a few seconds.

    Args:
        listener: where to accept; other processes may accept from it as well.
        host: the name or address that ``listener`` was opened for.
        agent: serve this domain alone, also at the root.
        environment: holds the token.
        loaded: called once every domain is loaded or has reported why it cannot be.
        after_loading: accept no connection before everything is loaded, because other processes accept them.

    Returns:
        The exit code: 0 after a signal, 1 when a request did not end in time.
    """
    log_trace_ids(environment)
    # With a token a page that rebinds its name learns nothing: no browser sends the token for it.
    is_open = service_token(environment) is None and settings.access is None
    names = answered_names(host) if is_open else None
    app = create_app(settings, agent=agent, environment=environment, names=names)
    # `log_trace_ids` configures logging. Nothing is written to stdout.
    # What was imported, 128,000 objects, stays: a full collection need not look at it while a question waits.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(app, log_config=None, lifespan="on", ws="none", server_header=False, proxy_headers=False)
    config.timeout_graceful_shutdown = DRAIN_WITHIN_S
    is_loaded = partial(_is_loaded, app)
    server = LimitedServer(config, announce, is_loaded=is_loaded, loaded=loaded, after_loading=after_loading)
    with signals_end(server):
        server.run(sockets=[listener])
    return _exit_code(app)


class LimitedServer(uvicorn.Server):
    """uvicorn's server with the limits of ``limits.py``; other processes may accept from its sockets as well.

    Args:
        announce: called once connections are accepted.
        is_loaded: tells whether loading has ended, with or without errors.
        loaded: called once everything is loaded.
        after_loading: accept no connection before everything is loaded.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        announce: Callable[[], None],
        *,
        is_loaded: Callable[[], bool] = lambda: True,
        loaded: Callable[[], None] = lambda: None,
        after_loading: bool = False,
    ) -> None:
        config.http, config.timeout_keep_alive = Connection, KEEP_ALIVE_S
        config.h11_max_incomplete_event_size = MAX_HEADER_BYTES
        super().__init__(config)
        self._announce = announce
        self._is_loaded, self._loaded, self._after_loading = is_loaded, loaded, after_loading
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections, at once or after everything is loaded."""
        await super().startup([])
        if not self._after_loading:
            self._accept(sockets or [])
        self._accepting.append(asyncio.create_task(self._load(sockets or [])))

    async def _load(self, sockets: Sequence[socket.socket]) -> None:
        while not self._is_loaded():
            await asyncio.sleep(POLL_S)
        if self._after_loading:
            self._accept(sockets)
        self._loaded()

    def _accept(self, sockets: Sequence[socket.socket]) -> None:
        for listener in sockets:
            listener.setblocking(False)
            accepting = accept_evenly(listener, self._protocol, lambda: len(self.server_state.connections))
            self._accepting.append(asyncio.create_task(accepting))
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and let the requests in flight end."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await self._first_requests()
        await super().shutdown(sockets)

    async def _first_requests(self) -> None:
        """Wait for the first request of connections that were just accepted."""
        end = time.monotonic() + FIRST_REQUEST_S
        await asyncio.sleep(0.05)  # for what was accepted and is not connected yet
        connections = cast("set[Connection]", self.server_state.connections)
        while any(connection.cycle is None for connection in connections) and time.monotonic() < end:
            await asyncio.sleep(0.01)

    async def on_tick(self, counter: int) -> bool:
        """End overdue connections once a second; uvicorn calls this ten times as often."""
        if counter % 10 == 0:
            end_overdue(cast("set[Connection]", self.server_state.connections))
        return await super().on_tick(counter)

    def _protocol(self) -> asyncio.Protocol:
        # As ``uvicorn.Server.startup`` (0.54) makes it for a socket of its own.
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


@contextmanager
def signals_end(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the server, also before it runs, and do nothing else.

    uvicorn handles signals only while it runs, so a signal that comes just before would be lost. At its end it raises
    the received signal again for the earlier handler.
    """
    before = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_loaded(app: FastAPI) -> bool:
    return all(agent.state is not AgentState.STARTING for agent in app.state.serving.engine.agents.values())


def _exit_code(app: FastAPI) -> int:
    """Return 0 if nothing runs any more. Otherwise end the process at once: with 1 if a request runs, else with 0."""
    if app.state.serving.in_threads:
        sys.stderr.write("a request did not end in time; it is abandoned\n")
        sys.stderr.flush()
        # Its thread cannot be ended otherwise, and a serving process never writes what it serves.
        os._exit(1)
    if not app.state.is_closed:
        # A model is still being loaded, and no request waits for it.
        os._exit(0)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Serve as one of several processes, with the arguments from ``workers.starting``. Return the exit code."""
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    config, host, descriptor, when, *agent = arguments
    return serve_on(
        socket.socket(fileno=int(descriptor)),
        load_settings(Path(config)),
        host,
        Domain(agent[0]) if agent else None,
        environment=os.environ,
        # To the process that started this one.
        announce=lambda: print("serving", flush=True),  # noqa: T201
        loaded=lambda: print(LOADED, flush=True),  # noqa: T201
        after_loading=when == AFTER_LOADING,
    )


def _end_with_parent() -> None:
    # Not through sys.stdin: its lock is held while it is read, and the interpreter aborts when it cannot close it.
    while os.read(0, 1024):
        pass
    while True:  # uvicorn may not handle signals yet, or no more
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
