"""``nornweave mcp``: the protocol over standard input and output, for a client that starts it as a program of its own.

Standard output carries only the protocol: meanwhile the SDK keeps it for itself, and whatever a
library prints goes to standard error. Tools are listed at once; the engine is imported and loaded meanwhile.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from api.access.door import Door
from api.errors import RETRY_SOON_S, unavailable
from api.links import configured_url, own_links, usual_url
from api.mcp.endpoint import own_filters
from api.mcp.server import protocol_server
from api.server.listening import default_port
from api.state import Service, Serving
from nornweave.ask.search.question import Deadline
from nornweave.config import Settings
from nornweave.core.access import OPERATOR
from nornweave.core.supervisor import LOOPBACK

if TYPE_CHECKING:
    from nornweave.ask.engine import Engine

logger = logging.getLogger(__name__)

POLL_S = 0.02
CLOSE_WITHIN_S = 2.0
ANSWERS_WITHIN_S = 0.2


class EngineLoading:
    """The engine, made and started in a thread. Importing it takes longer than a client waits for the first answer."""

    def __init__(self, make: Callable[[], Engine], timeout_ms: int) -> None:
        self._make = make
        self._timeout_ms = timeout_ms
        self._engine: Engine | None = None
        self._serving: Serving | None = None
        self._problem: Exception | None = None

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._load, name="load-engine", daemon=True).start()

    async def serving(self, _: object, deadline: Deadline) -> Serving:
        """Return everything that is served, once it is loaded. Nothing is hidden: the user can read all files.

        Raises:
            ProblemError: 503, it is not loaded in time.
            Exception: the error that prevented the engine from being made.
        """
        while self._serving is None and self._problem is None and deadline.left_s:
            await anyio.sleep(min(POLL_S, deadline.left_s))
        if self._problem:
            raise self._problem
        if self._serving is None:
            raise unavailable("agent-starting", "NornWeave is still loading", RETRY_SOON_S)
        return self._serving

    def close(self) -> None:
        """Close the engine, if there is one."""
        if self._engine:
            self._engine.close()

    def _load(self) -> None:
        try:
            engine = self._make()
            engine.start(wait=False)
            self._engine = engine
            service = Service(engine=engine, door=Door(None), alone=None, timeout_ms=self._timeout_ms)
            self._serving = service.seen_by(OPERATOR)
        except Exception as error:
            logger.exception("the engine cannot be loaded")
            self._problem = error


def serve_stdio(
    settings: Settings, *, environment: Mapping[str, str] | None = None, make: Callable[[], Engine] | None = None
) -> None:
    """Serve the tools until standard input ends; ends the process.

    Args:
        environment: ``os.environ`` unless given.
        make: makes the engine; over these settings unless given.

    Raises:
        ConfigError: the configured address of the pages is not valid.
    """
    known = os.environ if environment is None else environment
    link, notice = own_links(usual_url(known)), _note_on_links(known)
    loading = EngineLoading(make or (lambda: _engine(settings)), settings.fusion.timeout_ms)
    # A client that wants this to end is not to wait for a thread that reads standard input; nothing is ever written.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)

    async def main() -> None:
        domains, timeout_ms = settings.served_domains, settings.fusion.timeout_ms
        filters = own_filters(settings, domains)
        server = protocol_server(domains, loading.serving, lambda _: link, timeout_ms, filters, notice)
        async with stdio_server() as (reading, writing):
            loading.start()  # not before: libraries may print
            await server.run(reading, writing, server.create_initialization_options())
            with anyio.move_on_after(CLOSE_WITHIN_S):
                await anyio.to_thread.run_sync(loading.close, abandon_on_cancel=True)
            sys.stdout.flush()  # what was printed meanwhile, while it still goes to standard error

    anyio.run(main)
    # What still loads or computes cannot be ended otherwise, and nobody waits for it any more.
    os._exit(0)


def _note_on_links(environment: Mapping[str, str]) -> str:
    """Return a note that links to passages do not work; empty if a server listens at their address."""
    if configured_url(environment):
        return ""
    port = default_port(None, environment)
    with socket.socket() as probe:
        probe.settimeout(ANSWERS_WITHIN_S)
        if probe.connect_ex((LOOPBACK, port)) == 0:
            return ""
    return (
        f"No server answers at http://{LOOPBACK}:{port} now: links there lead nowhere until `nornweave serve` runs. "
        "Say so when you give one."
    )


def _engine(settings: Settings) -> Engine:
    from nornweave.ask.engine import Engine

    return Engine(settings)
