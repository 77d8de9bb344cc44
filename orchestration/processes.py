"""The processes that Dagster's web server needs: code servers and the daemon.

Starting them takes most of the time of a start. A standby starts them while it waits; the daemon does nothing then.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import yaml

# Not public; ``dagster dev`` (1.13) is made of these.
from dagster._cli.proxy_server_manager import ProxyServerManager
from dagster._core.workspace.load_target import WorkspaceFileTarget

LOG_LEVEL = "ERROR"
STOP_WITHIN_S = 5.0


class DagsterProcesses:
    """Code servers and a daemon over the instance that ``DAGSTER_HOME`` names.

    ``dagster dev`` starts the same processes. Code servers listen on sockets in the file system, which only this user
    can open.

    Attributes:
        servers: a workspace file that names the sockets of the code servers.
        daemon: waits for ``begin``.
    """

    instance: dg.DagsterInstance
    servers: Path
    daemon: subprocess.Popen[bytes]

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._running: ExitStack | None = None

    def start(self) -> None:
        """Start them unless they run."""
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
            command = [sys.executable, "-m", "orchestration.daemon", "run", "-w", str(self.servers)]
            self.daemon = subprocess.Popen(
                [*command, "--log-level", LOG_LEVEL.lower()], env=os.environ, stdin=subprocess.PIPE
            )
            stack.callback(self._end_daemon)
            self._running = stack.pop_all()

    def begin(self) -> None:
        """Let the daemon work."""
        assert self.daemon.stdin
        self.daemon.stdin.write(b"\n")
        self.daemon.stdin.flush()

    def stop(self) -> None:
        """End them if they run."""
        running, self._running = self._running, None
        if running:
            running.close()

    def _end_daemon(self) -> None:
        self.daemon.terminate()
        try:
            self.daemon.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        assert self.daemon.stdin
        self.daemon.stdin.close()
