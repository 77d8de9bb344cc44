"""``nornweave serve``: the API on a port, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import uvicorn

from api.accepting import accept_evenly
from api.app import create_app
from api.auth import check_listening, service_token
from api.hosts import answered_names
from api.workers import running as more_processes
from nornweave.errors import ConfigError
from nornweave.settings import Settings
from nornweave.supervisor import LOOPBACK, PortInUseError
from nornweave.types import Domain

# Together below the 8 s after which `nornweave up` ends a child that does not stop by itself.
DRAIN_WITHIN_S = 5
BACKLOG = 512

Announce = Callable[[str], None]


def serve(
    settings: Settings,
    host: str = LOOPBACK,
    port: int | None = None,
    agent: Domain | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    announce: Announce | None = None,
    workers: int = 1,
    listener: socket.socket | None = None,
) -> int:
    """Serve the API until SIGINT or SIGTERM, then finish what is in flight, for at most a few seconds.

    Args:
        settings: what is served.
        host: a name or address of this machine.
        port: 0 takes a free one; ``FUSION_PORT``, for an agent alone ``AGENT_PORT``, unless given.
        agent: serve this domain alone, also at the root.
        environment: ``os.environ`` unless given.
        announce: told the URL once it is listened on; said on stderr unless given.
        workers: processes that serve, this one included.
        listener: where to accept, instead of listening on ``host`` and ``port``; other processes accept there as well.

    Returns:
        The exit code: 0 after a signal, 1 when a request did not end in time.

    Raises:
        ConfigError: listening on ``host`` needs a token; the port is none; the domain has no source.
        PortInUseError: something else listens there.
    """
    environment = os.environ if environment is None else environment
    token = service_token(environment)
    check_listening(host, token)
    if agent and agent not in settings.served_domains:
        served = ", ".join(one.value for one in settings.served_domains)
        raise ConfigError(f"{settings.file}: domain {agent.value!r} has no source; domains with one: {served}")
    # With a token a page that rebinds its name learns nothing: no browser sends the token for it.
    names = answered_names(host) if token is None else None
    app = create_app(settings, agent=agent, environment=environment, names=names)
    wanted = default_port(agent, environment) if port is None else port
    with ExitStack() as running:
        accepting = running.enter_context(listener or _listen(host, wanted))
        config = uvicorn.Config(
            app,
            # The command line configures logging; on stdout nothing is written.
            log_config=None,
            lifespan="on",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=DRAIN_WITHIN_S,
            backlog=BACKLOG,
        )
        if workers > 1:
            running.enter_context(more_processes(settings.file, host, accepting, agent, workers - 1))
        server = _Server(config, announce or _say, is_shared=listener is not None or workers > 1)
        with _signals_end(server):
            server.run(sockets=[accepting])
    if app.state.serving.in_threads:
        _say("a request did not end in time; it is abandoned")
        # Its thread cannot be ended otherwise, and nothing that is served is ever written.
        os._exit(1)
    if not app.state.is_closed:
        # A model that is still being loaded: nobody asked for it yet.
        os._exit(0)
    return 0


def default_port(agent: Domain | None, environment: Mapping[str, str]) -> int:
    """Return the port of the API, or of an agent that is served alone.

    Raises:
        ConfigError: the variable holds no port.
    """
    variable, default = ("AGENT_PORT", "8081") if agent else ("FUSION_PORT", "8082")
    value = environment.get(variable) or default
    if not (value.isascii() and value.isdecimal() and int(value[:6]) <= 65535):
        raise ConfigError(f"{variable}: {value!r} is no port; allowed: 0 to 65535")
    return int(value)


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket: who comes second learns it before anything is loaded."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"host {host!r}: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} on {host} is in use; stop what listens there or choose another with --port"
            raise PortInUseError(message) from error
        raise ConfigError(f"{host}:{port} cannot be listened on: {error}") from error
    return listener


class _Server(uvicorn.Server):
    """Says where it listens once it does; ``is_shared``: other processes accept there as well."""

    def __init__(self, config: uvicorn.Config, announce: Announce, *, is_shared: bool) -> None:
        super().__init__(config)
        self._announce = announce
        self._is_shared = is_shared
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        listeners = sockets or []
        await super().startup([] if self._is_shared else listeners)
        for listener in listeners:
            if self._is_shared:
                listener.setblocking(False)
                accepting = accept_evenly(listener, self._protocol, lambda: len(self.server_state.connections))
                self._accepting.append(asyncio.create_task(accepting))
            self._announce(_url(listener.getsockname()))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and let what runs end."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        # As ``uvicorn.Server.startup`` (0.54) makes it for a socket of its own.
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def _url(address: Sequence[object]) -> str:
    host, port = str(address[0]), address[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _signals_end(server: uvicorn.Server) -> Iterator[None]:
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


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
