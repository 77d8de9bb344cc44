"""Dagster's web server behind ``guard.Guard``, with the code servers and the daemon that it needs.

``dagster dev`` starts the same processes, but its web server can only listen on a port. Behind a proxy that port would
still be open to every page and user. Here the guard and the web server are one process, and no port is behind it. Code
servers listen on sockets in the file system, which only this user can open.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import uvicorn
import yaml

# Not public; ``dagster dev`` (1.13) is made of these.
from dagster._cli.proxy_server_manager import ProxyServerManager
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._utils.log import configure_loggers
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__

from orchestration.guard import Guard

LOOPBACK = "127.0.0.1"
LOG_LEVEL = "ERROR"
POLL_MS = 2000
DRAIN_WITHIN_S = 2
STOP_WITHIN_S = 5.0
# As the command line of Dagster's web server has them.
STATEMENT_TIMEOUT_MS, POOL_RECYCLE_S, POOL_MAX_OVERFLOW = 15_000, 3600, 20


def run_webserver(workspace: Path, port: int, token: str | None, is_over: threading.Event) -> int:
    """Serve the UI on this machine, with its daemon, until SIGINT or SIGTERM; ``DAGSTER_HOME`` names the instance.

    Args:
        workspace: its file.
        port: of the UI.
        token: that the UI asks for.
        is_over: set when another Dagster has taken over.

    Returns:
        The exit code: 0 after a signal, 1 when the daemon or the server ended by itself, or it is over.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    configure_loggers(log_level=LOG_LEVEL)
    try:
        with dg.DagsterInstance.get() as instance, _code_servers(instance, workspace) as servers:
            instance.optimize_for_webserver(STATEMENT_TIMEOUT_MS, POOL_RECYCLE_S, POOL_MAX_OVERFLOW)
            target = WorkspaceFileTarget([str(servers)])
            with WorkspaceProcessContext(instance, target, version=__version__) as context:
                app = create_app_from_workspace_process_context(context, live_data_poll_rate=POLL_MS)
                server = uvicorn.Server(_config(Guard(app, token), port))
                with _daemon(servers, server, is_over):
                    server.run()
    except KeyboardInterrupt:
        return 0
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


@contextmanager
def _code_servers(instance: dg.DagsterInstance, workspace: Path) -> Iterator[Path]:
    """Start the code servers of a workspace; return a workspace file that names their sockets."""
    with (
        tempfile.TemporaryDirectory(prefix="nornweave-") as folder,
        ProxyServerManager(instance, WorkspaceFileTarget([str(workspace)]), LOG_LEVEL) as servers,
    ):
        file = Path(folder) / "workspace.yaml"
        file.write_text(yaml.safe_dump({"load_from": list(servers.get_code_server_specs())}), encoding="utf-8")
        yield file


@contextmanager
def _daemon(workspace: Path, server: uvicorn.Server, is_over: threading.Event) -> Iterator[None]:
    """Run Dagster's daemon beside the server; each ends when the other does, and both when it is over."""
    command = [sys.executable, "-m", "dagster._daemon", "run", "-w", str(workspace), "--log-level", LOG_LEVEL.lower()]
    daemon = subprocess.Popen(command, env=os.environ)

    def watch() -> None:
        daemon.wait()
        server.should_exit = True

    def stop() -> None:
        is_over.wait()
        daemon.kill()  # at once: it would do what the other does

    for work in (watch, stop):
        threading.Thread(target=work, name="daemon", daemon=True).start()
    try:
        yield
    finally:
        daemon.send_signal(signal.SIGINT)
        try:
            daemon.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
