"""``nornweave serve``: the API on a port, until SIGINT or SIGTERM.

``listening.py`` opens the socket, ``process.py`` serves on it, ``workers.py`` supervises several such processes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from prometheus_client.multiprocess import mark_process_dead

from api.access.service_token import check_listening, service_token
from api.membership import membership
from api.server.listening import default_port, listen, url_of
from api.server.workers import Start, starting, supervise
from nornweave.config import Settings
from nornweave.core.errors import ConfigError
from nornweave.core.supervisor import LOOPBACK, signals_received
from nornweave.core.types import Domain


def serve(
    settings: Settings,
    host: str = LOOPBACK,
    port: int | None = None,
    agent: Domain | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    announce: Callable[[str], None] | None = None,
    workers: int | None = None,
    is_outdated: Callable[[], bool] = lambda: False,
) -> int:
    """Serve the API until SIGINT or SIGTERM, then finish the requests in flight, for at most a few seconds.

    Args:
        port: 0 takes a free one. The default is ``FUSION_PORT``, or ``AGENT_PORT`` for an agent alone.
        agent: serve this domain alone, also at the root.
        announce: called with the URL once connections are accepted; by default it writes the URL to stderr.
        workers: how many processes serve, which this one supervises; ``None`` serves in this process.
        is_outdated: returns true if the file has new settings; then workers are replaced one after the other.

    Returns:
        The exit code: 0 after a signal, 1 when a request did not end in time.

    Raises:
        ConfigError: listening on ``host`` needs a token; the port is not valid; the domain has no source.
        PortInUseError: something else listens there.
    """
    environment = os.environ if environment is None else environment
    check_listening(host, service_token(environment), settings)
    if agent and agent not in settings.served_domains:
        served = ", ".join(domain.value for domain in settings.served_domains)
        raise ConfigError(f"{settings.file}: domain {agent.value!r} has no source; domains with one: {served}")
    with listen(host, default_port(agent, environment) if port is None else port) as listener, ExitStack() as stack:
        member = membership(settings, agent, url_of(listener), environment)
        if member:
            stack.callback(member.leave)

        def announced() -> None:
            if member:
                member.start()
            (announce or _say)(url_of(listener))

        if workers is None:
            from api.server.process import serve_on  # the supervisor of other processes does not load the app

            if member:
                stack.callback(member.drain)
            return serve_on(listener, settings, host, agent, environment=environment, announce=announced)
        start = partial(starting, settings.file, host, listener, agent)
        drain = member.drain if member else lambda: None
        return _supervise(start, workers, announced, drain, is_outdated)


def _supervise(
    start: Callable[[Path], Start],
    workers: int,
    announced: Callable[[], None],
    drain: Callable[[], None],
    is_outdated: Callable[[], bool],
) -> int:
    """Supervise processes that share a folder for their metrics. Return the exit code of ``supervise``."""
    with signals_received() as received, tempfile.TemporaryDirectory(prefix="nornweave-metrics-") as metrics:
        forget = partial(mark_process_dead, path=metrics)
        running = start(Path(metrics))
        return supervise(running, workers, announced, received, forget=forget, drain=drain, is_outdated=is_outdated)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
