"""``nornweave serve``: the API on a port, until SIGINT or SIGTERM.

``listening.py`` opens the socket, ``process.py`` serves on it, ``workers.py`` keeps several processes doing so.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from prometheus_client.multiprocess import mark_process_dead

from api.auth import check_listening, service_token
from api.listening import default_port, listen, url_of
from api.membership import membership
from api.workers import starting, supervise
from nornweave.config import Settings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain
from nornweave.share.supervisor import LOOPBACK, signals_received


def serve(
    settings: Settings,
    host: str = LOOPBACK,
    port: int | None = None,
    agent: Domain | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    announce: Callable[[str], None] | None = None,
    workers: int | None = None,
    is_outdated: Callable[[], bool] | None = None,
) -> int:
    """Serve the API until SIGINT or SIGTERM, then finish what is in flight, for at most a few seconds.

    Args:
        settings: what is served.
        host: a name or address of this machine.
        port: 0 takes a free one; ``FUSION_PORT``, for an agent alone ``AGENT_PORT``, unless given.
        agent: serve this domain alone, also at the root.
        environment: ``os.environ`` unless given.
        announce: told the URL once connections are accepted; said on stderr unless given.
        workers: processes that serve, which this one watches over; ``None`` serves in this process.
        is_outdated: says when other settings are in the file, which workers take over one after the other.

    Returns:
        The exit code: 0 after a signal, 1 when a request did not end in time.

    Raises:
        ConfigError: listening on ``host`` needs a token; the port is none; the domain has no source.
        PortInUseError: something else listens there.
    """
    environment = os.environ if environment is None else environment
    check_listening(host, service_token(environment), settings)
    if agent and agent not in settings.served_domains:
        served = ", ".join(domain.value for domain in settings.served_domains)
        raise ConfigError(f"{settings.file}: domain {agent.value!r} has no source; domains with one: {served}")
    say = announce or _say
    with listen(host, default_port(agent, environment) if port is None else port) as listener:
        url = url_of(listener)
        member = membership(settings, agent, url, environment)

        def announced() -> None:
            if member:
                member.start()
            say(url)

        if workers is not None:
            with signals_received() as received, tempfile.TemporaryDirectory(prefix="nornweave-metrics-") as metrics:
                start = starting(settings.file, host, listener, agent, Path(metrics))
                forget = partial(mark_process_dead, path=metrics)
                try:
                    drain = member.drain if member else _nothing
                    return supervise(start, workers, announced, received, forget, drain, is_outdated or _never)
                finally:
                    if member:
                        member.leave()
        from api.process import serve_on  # not needed by who watches over others

        try:
            return serve_on(
                listener, settings, host, agent, environment=environment, announce=announced, is_shared=False
            )
        finally:
            if member:
                member.drain()
                member.leave()


def _nothing() -> None:
    """Do nothing at the end."""


def _never() -> bool:
    return False


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
