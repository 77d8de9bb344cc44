"""The socket that the API listens on: opened once, before anything is loaded, and shared by all serving processes."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping

from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain
from nornweave.share.supervisor import PortInUseError

# Connections that wait to be accepted while every process is busy or being replaced.
BACKLOG = 512


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
    """Return where a socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
