"""A hub that asks agents on other machines, and servers of others as processes."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from live_server import live
from recall_workspace import NO_MODELS
from remote_hub import ForeignServer, Hub
from waiting import until

from api.app import create_app
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain

SERVER = Path(__file__).parent / "foreign_server.py"


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Callable[..., ForeignServer]]:
    """Start servers of others; those that survive a test are ended after it."""
    servers: list[ForeignServer] = []

    def start(mode: str = "answer") -> ForeignServer:
        folder = tmp_path / f"foreign-{len(servers)}"
        folder.mkdir()
        (folder / "mode").write_text(mode)
        command = [sys.executable, "-S", str(SERVER), str(folder)]  # it needs no packages
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        server = ForeignServer(process, process.stdout.readline().strip(), folder)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.kill()
        if server.process.stdout:
            server.process.stdout.close()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Callable[..., Hub]]:
    """Serve a hub over a configuration; without sources unless there are some."""
    with ExitStack() as stack:

        def start(
            *allow: Any,
            environment: dict[str, str] | None = None,
            token: str | None = None,
            folder: str = "hub",
            **more: Any,
        ) -> Hub:
            agents: dict[str, Any] = {"allow": list(allow), "lease_s": 60, **more.pop("agents", {})}
            (tmp_path / folder).mkdir(exist_ok=True)
            file = tmp_path / folder / "nornweave.yaml"
            domains = {domain.value: NO_MODELS for domain in Domain}
            file.write_text(json.dumps({"agents": agents, "domains": domains, **more}))
            variables = {**(environment or {}), **({"NORNWEAVE_SERVICE_TOKEN": token} if token else {})}
            app = create_app(load_settings(file, variables), environment=variables)
            served = Hub(stack.enter_context(live(app)), token)
            stack.callback(served.http.close)
            until(lambda: served.http.get("/health").status_code == 200)
            return served

        yield start


@pytest.fixture
def joined(foreign: Callable[..., ForeignServer], hub: Callable[..., Hub]) -> Callable[..., tuple[Hub, ForeignServer]]:
    """Serve a hub which a server of others has joined; ``entry`` are keys of its entry in the allow-list."""

    def start(mode: str = "answer", entry: dict[str, Any] | None = None, **more: Any) -> tuple[Hub, ForeignServer]:
        server = foreign(mode)
        served = hub({"url": server.url, **(entry or {})}, **more)
        served.register(server.url)
        return served, server

    return start
