"""One serving process: the app and its HTTP server on a socket that is listening already, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from api.app import create_app
from api.auth import service_token
from api.connections import KEEP_ALIVE_S, MAX_HEADER_BYTES, Connection, ConnectionLimit, RequestGuard, connection_limit
from api.fair_accept import accept_evenly
from api.hosts import answered_names
from api.large_bodies import BodyProcess
from api.listening import BACKLOG
from api.tracing import log_trace_ids
from nornweave.config import Settings
from nornweave.core.types import Domain

# Together below the 8 s after which `nornweave up` ends a child that does not stop by itself.
DRAIN_WITHIN_S = 5


def serve_on(
    listener: socket.socket,
    settings: Settings,
    host: str,
    agent: Domain | None,
    *,
    environment: Mapping[str, str],
    announce: Callable[[], None],
    is_shared: bool,
) -> int:
    """Serve on a socket until SIGINT or SIGTERM, then finish what is in flight, for at most a few seconds.

    Args:
        listener: where to accept.
        settings: what is served.
        host: the name or address that ``listener`` was opened for.
        agent: serve this domain alone, also at the root.
        environment: holds the token.
        announce: called once connections are accepted.
        is_shared: other processes accept there as well.

    Returns:
        The exit code: 0 after a signal, 1 when a request did not end in time.
    """
    log_trace_ids(environment)
    # With a token a page that rebinds its name learns nothing: no browser sends the token for it.
    is_open = service_token(environment) is None and settings.access is None
    names = answered_names(host) if is_open else None
    bodies = BodyProcess([str(settings.file), *([agent.value] if agent else [])])
    app = create_app(settings, agent=agent, environment=environment, names=names, body_process=bodies)
    config = uvicorn.Config(
        app,
        # `log_trace_ids` configures logging; on stdout nothing is written.
        log_config=None,
        lifespan="on",
        ws="none",
        server_header=False,
        proxy_headers=False,
        http=Connection,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_WITHIN_S,
        backlog=BACKLOG,
    )
    server = Server(config, announce, is_shared=is_shared)
    with signals_end(server):
        server.run(sockets=[listener])
    return _exit_code(app)


class Server(uvicorn.Server):
    """Accepts from a socket that other processes may accept from as well (``is_shared``)."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None], *, is_shared: bool) -> None:
        super().__init__(config)
        self._announce = announce
        self._is_shared = is_shared
        self._limit = ConnectionLimit(self.server_state.connections, connection_limit())  # type: ignore[arg-type]
        config.app = RequestGuard(cast(ASGIApp, config.app), lambda: self._limit.is_exceeded, {"/health"})
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting."""
        await super().startup([])
        for listener in sockets or []:
            listener.setblocking(False)
            self._accepting.append(asyncio.create_task(self._accept(listener)))
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, and let what runs end."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        """End what has had its time, once a second; called ten times as often."""
        if counter % 10 == 0:
            self._limit.sweep()
        return await super().on_tick(counter)

    async def _accept(self, listener: socket.socket) -> None:
        connections = self.server_state.connections
        await accept_evenly(
            listener, self._protocol, lambda: len(connections) if self._is_shared else 0, self._limit.admits
        )

    def _protocol(self) -> asyncio.Protocol:
        # As ``uvicorn.Server.startup`` (0.54) makes it for a socket of its own.
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


@contextmanager
def signals_end(server: uvicorn.Server) -> Iterator[None]:
    """Let a signal end the server whenever it comes, and nothing else.

    uvicorn handles signals while it runs: one that comes just before would be lost, and at its end it sends itself
    again what it got, for whoever had a handler before.
    """
    before = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit_code(app: FastAPI) -> int:
    """Return 0, unless something still runs that cannot be ended: then the process ends here and now."""
    if app.state.serving.in_threads:
        sys.stderr.write("a request did not end in time; it is abandoned\n")
        sys.stderr.flush()
        # Its thread cannot be ended otherwise, and nothing that is served is ever written.
        os._exit(1)
    if not app.state.is_closed:
        # A model that is still being loaded: nobody asked for it yet.
        os._exit(0)
    return 0
