"""The socket that the API listens on: opened once, before anything is loaded, and shared by all serving processes."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Mapping

from nornweave.core.errors import ConfigError
from nornweave.core.supervisor import PortInUseError
from nornweave.core.types import Domain

log = logging.getLogger(__name__)

# Connections that wait to be accepted while every process is busy or being replaced.
BACKLOG = 512
# After each connection a process leaves the next to others for so long for each that is open here. From a crowd of
# connections on, shares are even enough by chance, and a pause would make the last of them wait for seconds.
PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.025
CROWD = 16
RETRY_S = 0.1


def default_port(agent: Domain | None, environment: Mapping[str, str]) -> int:
    """Return the port of the API, or of an agent that is served alone.

    Raises:
        ConfigError: the variable does not hold a port.
    """
    variable, default = ("AGENT_PORT", "8081") if agent else ("FUSION_PORT", "8082")
    value = environment.get(variable) or default
    if not (value.isascii() and value.isdecimal() and int(value[:6]) <= 65535):
        raise ConfigError(f"{variable}: {value!r} is not a valid port (0 to 65535)")
    return int(value)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. A second server learns here that the port is taken, before anything is loaded.

    Args:
        host: a name or address of this machine.
        port: 0 takes a free one.

    Raises:
        ConfigError: ``host`` is not an address of this machine.
        PortInUseError: something else listens there.
    """
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


def url_of(listener: socket.socket) -> str:
    """Return the address at which a socket is reached."""
    return web_address("http", *listener.getsockname()[:2])


def web_address(scheme: str, host: str, port: int | None) -> str:
    """Return the URL of a server. An IPv6 address gets brackets. If ``port`` is ``None``, the URL has no port."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}" + (f":{port}" if port else "")


async def _readable(listener: socket.socket) -> None:
    """Wait for a connection without taking it."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(listener, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(listener)


async def _connect(protocol: Callable[[], asyncio.Protocol], connection: socket.socket) -> None:
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().connect_accepted_socket(protocol, connection)
    except BaseException:
        connection.close()
        raise


async def accept_evenly(
    listener: socket.socket, protocol: Callable[[], asyncio.Protocol], connections: Callable[[], int]
) -> None:
    """Accept connections until cancelled. The more are open here, the slower they are accepted.

    The kernel gives a connection to whichever process takes it first, and clients keep theirs: of eight, one of two
    processes often gets six or seven. It then answers more slowly while the other is idle.

    Args:
        listener: a non-blocking socket; other processes may accept from it as well.
        protocol: makes the handler of a connection.
        connections: returns the number of open connections of this process.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            await _readable(listener)
            connection, _ = listener.accept()  # what is accepted is served, also when this is cancelled meanwhile
            await asyncio.shield(loop.create_task(_connect(protocol, connection)))
        except (BlockingIOError, ConnectionError):  # another process was quicker; the client has gone
            continue
        except Exception as error:  # usually no descriptors are left; whatever it is, the next one is accepted again
            log.error("no connection can be accepted: %s", error, exc_info=not isinstance(error, OSError))
            await asyncio.sleep(RETRY_S)
        count = connections()
        await asyncio.sleep(min(PAUSE_S * count, LONGEST_PAUSE_S) if count < CROWD else 0)
