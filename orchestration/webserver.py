"""Dagster's web server behind ``guard.Guard``, its code servers and daemon, and the syncs that webhooks ask for.

A sync starts within a second after its event. What comes meanwhile waits for the next one, however many events that
are. An event is forgotten when a sync that began after it has ended well; one that fails is tried again, then left to
the schedule.

``dagster dev`` starts the same processes, but its web server can only listen on a port. Behind a proxy that port would
still be open to every page and user. Here the guard and the web server are one process, and no port is behind it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import uvicorn
import yaml
from dagster._cli.proxy_server_manager import ProxyServerManager
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._utils.log import configure_loggers
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__

from nornweave.config import Settings
from nornweave.connect.hooks import HookQueue
from nornweave.core.errors import NornWeaveError
from nornweave.core.process import ALIVE_EVERY_S
from nornweave.core.types import Domain
from orchestration.definitions import settings_from_environment
from orchestration.guard import Guard

log = logging.getLogger(__name__)

POLL_S = 0.5
WAIT_S = 300
"""For so long a sync waits for another one of its domain."""
TRIES = 3
AGAIN_S = 60.0


@dataclass(slots=True)
class _Started:
    process: subprocess.Popen[bytes]
    taken: Mapping[str, int]
    log: Path


@dataclass(slots=True)
class HookSyncs:
    """Starts syncs of sources that webhooks report."""

    data_dir: Path
    _running: dict[Domain, _Started] = field(default_factory=dict)
    _failures: dict[Domain, int] = field(default_factory=dict)
    _rests_until: dict[Domain, float] = field(default_factory=dict)

    def run(self, stopping: threading.Event) -> None:
        """Call ``look`` regularly until ``stopping`` is set."""
        while not stopping.wait(POLL_S):
            try:
                self.look()
            except (NornWeaveError, OSError) as error:  # a configuration that is being edited, a full disk
                log.warning("what webhooks tell is not synced now: %s", error)
                stopping.wait(AGAIN_S)

    def look(self) -> None:
        """Record syncs that have ended, and start syncs that are due.

        Raises:
            ConfigError: the configuration is wrong.
            StoreError: the queue of events cannot be read.
            OSError: a sync cannot be started.
        """
        for domain in [each for each, started in self._running.items() if started.process.poll() is not None]:
            self._end(domain, self._running.pop(domain))
        queue = HookQueue(self.data_dir)
        if not (waiting := queue.waiting()):
            return
        settings = settings_from_environment()
        domains = {source.id: source.domain for source in settings.sources}
        queue.done({source: events for source, events in waiting.items() if source not in domains})
        for domain in sorted(set(domains.values()) - self._running.keys()):
            taken = {source: events for source, events in waiting.items() if domains.get(source) is domain}
            if taken and time.monotonic() >= self._rests_until.get(domain, 0):
                self._running[domain] = self._start(settings, domain, taken)

    def stop(self) -> None:
        """End the running syncs. What they stored stays, and their events wait for the next start."""
        for started in self._running.values():
            started.process.terminate()

    def _start(self, settings: Settings, domain: Domain, taken: Mapping[str, int]) -> _Started:
        said = self.data_dir / "syncs" / f"{domain.value}.hooks.log"
        said.parent.mkdir(parents=True, exist_ok=True)
        named = [word for source in taken for word in ("--source", source)]
        command = ["--config", str(settings.file), "sync", "--domain", domain.value, *named, "--wait", str(WAIT_S)]
        with said.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "nornweave.cli", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stream,
            )
        return _Started(process, taken, said)

    def _end(self, domain: Domain, started: _Started) -> None:
        if started.process.returncode:
            self._failures[domain] = self._failures.get(domain, 0) + 1
            lines = started.log.read_text(encoding="utf-8", errors="replace").split("\n")
            why = next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")
            left = f"tried again in {AGAIN_S:g} s" if self._failures[domain] < TRIES else "left to the schedule"
            log.warning("%s: a sync that webhooks asked for failed, %s: %s", domain.value, left, why)
            self._rests_until[domain] = time.monotonic() + AGAIN_S
            if self._failures[domain] < TRIES:
                return
        self._failures.pop(domain, None)
        HookQueue(self.data_dir).done(started.taken)


# Not public; ``dagster dev`` (1.13) is made of these.


LOG_LEVEL = "ERROR"
STOP_WITHIN_S = 5.0
WATCH_AGAIN_S = 5.0


class DagsterProcesses:
    """The code servers and the daemon of the instance in ``DAGSTER_HOME``.

    Starting them takes most of the start time. A standby starts them while it waits, with an idle daemon. ``dagster
    dev`` starts the same processes. Code servers listen on sockets in the file system, which only this user can open.

    Attributes:
        servers: a workspace file that names the sockets of the code servers.
        daemon: Dagster's daemon. It waits for ``begin``, as the process that watches folders does.
    """

    instance: dg.DagsterInstance
    servers: Path
    daemon: subprocess.Popen[bytes]

    def __init__(self, workspace: Path, *, watches: bool = False, hooks: HookSyncs | None = None) -> None:
        self._workspace = workspace
        self._watches = watches
        self._hooks = hooks
        self._running: ExitStack | None = None
        self._is_stopping = threading.Event()

    def start(self) -> None:
        """Start the processes unless they run."""
        if self._running:
            return
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nornweave-"))
            self.instance = stack.enter_context(dg.DagsterInstance.get())
            target = WorkspaceFileTarget([str(self._workspace)])
            servers = stack.enter_context(ProxyServerManager(self.instance, target, LOG_LEVEL))
            self.servers = Path(folder) / "workspace.yaml"
            named = {"load_from": list(servers.get_code_server_specs())}
            self.servers.write_text(yaml.safe_dump(named), encoding="utf-8")
            command = ("orchestration.daemon", "run", "-w", str(self.servers), "--log-level", LOG_LEVEL.lower())
            self.daemon = _start(*command)
            stack.callback(_end, self.daemon)
            if self._watches:
                self._watch = _start("orchestration.watch")
                stack.callback(lambda: _end(self._watch))
            if self._hooks:
                stack.callback(self._hooks.stop)
            stack.callback(self._is_stopping.set)
            self._running = stack.pop_all()

    def begin(self) -> None:
        """Start the daemon's work, the watching of folders, and the syncs for webhooks."""
        _begin(self.daemon)
        if self._hooks:
            threading.Thread(target=self._hooks.run, args=(self._is_stopping,), name="hooks", daemon=True).start()
        if self._watches:
            _begin(self._watch)
            threading.Thread(target=self._keep_watching, name="watch", daemon=True).start()

    def _keep_watching(self) -> None:
        """Restart the watching process when it ends, because settings may have changed."""
        while True:
            self._watch.wait()
            if self._is_stopping.wait(WATCH_AGAIN_S):
                return
            self._watch = _start("orchestration.watch")
            _begin(self._watch)

    def stop(self) -> None:
        """Stop the processes if they run."""
        running, self._running = self._running, None
        if running:
            running.close()


def _start(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", *command], env=os.environ, stdin=subprocess.PIPE)


def _begin(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    with suppress(BrokenPipeError):  # the process has ended; its watcher sees that
        process.stdin.write(b"\n")
        process.stdin.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdin
    with suppress(BrokenPipeError):
        process.stdin.close()


LOOPBACK = "127.0.0.1"
POLL_MS = 2000
DRAIN_WITHIN_S = 2
# As the command line of Dagster's web server has them.
STATEMENT_TIMEOUT_MS, POOL_RECYCLE_S, POOL_MAX_OVERFLOW = 15_000, 3600, 20


class NotingServer(uvicorn.Server):
    """Calls ``note`` every few seconds from the server's loop."""

    def __init__(self, config: uvicorn.Config, note: Callable[[], None]) -> None:
        super().__init__(config)
        self._note = note

    async def on_tick(self, counter: int) -> bool:
        """Call ``note``. ``uvicorn.Server`` calls this ten times a second."""
        if counter % (10 * ALIVE_EVERY_S) == 0:
            self._note()
        return await super().on_tick(counter)


def run_webserver(
    processes: DagsterProcesses,
    port: int,
    *,
    token: str | None,
    url: str | None,
    is_over: threading.Event,
    note: Callable[[], None],
) -> int:
    """Serve the UI and its daemon on this machine until SIGINT or SIGTERM; ``DAGSTER_HOME`` names the instance.

    Args:
        processes: the code servers and the daemon. They are stopped at the end.
        port: the port on the loopback address.
        token: what requests must show; ``None`` if they need no token.
        url: the public address behind a proxy; ``None`` if there is no proxy.
        is_over: set when another Dagster has taken over.
        note: called every few seconds while the server works.

    Returns:
        The exit code: 0 after a signal; 1 if the daemon or the server ended by itself, or another Dagster has taken
        over.
    """
    configure_loggers(log_level=LOG_LEVEL)
    try:
        processes.start()
        processes.instance.optimize_for_webserver(STATEMENT_TIMEOUT_MS, POOL_RECYCLE_S, POOL_MAX_OVERFLOW)
        target = WorkspaceFileTarget([str(processes.servers)])
        with WorkspaceProcessContext(processes.instance, target, version=__version__) as context:
            prefix = urlsplit(url or "").path
            app = create_app_from_workspace_process_context(context, prefix, live_data_poll_rate=POLL_MS)
            server = NotingServer(_config(Guard(app, token, url), port), note)
            _end_together(processes.daemon, server, is_over)
            processes.begin()
            server.run()
    except KeyboardInterrupt:
        return 0
    finally:
        processes.stop()
    return 1


def _config(app: Guard, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=LOOPBACK,
        port=port,
        log_level=LOG_LEVEL.lower(),
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN_WITHIN_S,
    )


def _end_together(daemon: subprocess.Popen[bytes], server: uvicorn.Server, is_over: threading.Event) -> None:
    """End the server when the daemon ends. Kill the daemon when another Dagster has taken over."""

    def watch() -> None:
        daemon.wait()
        server.should_exit = True

    def stop() -> None:
        is_over.wait()
        daemon.kill()  # at once: two daemons would do everything twice

    for work in (watch, stop):
        threading.Thread(target=work, name="daemon", daemon=True).start()
