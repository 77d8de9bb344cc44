"""A server of somebody else as a process, and a hub that asks it."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class ForeignServer:
    """A process that answers as it is told."""

    process: subprocess.Popen[str]
    url: str
    folder: Path

    def answers(self, mode: str) -> None:
        """Answer like this from now on; see ``foreign_server.py``."""
        (self.folder / "new").write_text(mode)
        (self.folder / "new").replace(self.folder / "mode")

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Return what it was asked, in order."""
        file = self.folder / "asked"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self.process.kill()
        self.process.wait()


class Hub:
    """A server that agents join, over HTTP."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url
        self.http = httpx.Client(
            base_url=url, timeout=120, headers={"authorization": f"Bearer {token}"} if token else {}
        )

    def register(self, url: str, agent_id: str = "vault", domain: str = "documentation", **more: Any) -> httpx.Response:
        body = {"agent_id": agent_id, "domain_id": domain, "url": url, **more}
        return self.http.post("/agents/register", json=body)

    def query(self, text: str = "where are invoices archived", token: str | None = None, **more: Any) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        answer = self.http.post("/query", json={"query": text, **more}, headers=headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def listed(self) -> dict[str, dict[str, Any]]:
        """Return the remote agents by URL, or by name where no URL is shown."""
        agents = self.http.get("/agents").json()["agents"]
        return {agent.get("url", agent["agent_id"]): agent for agent in agents if agent["remote"]}

    def measured(self, name: str, suffix: str = "_total", agent_id: str = "vault") -> float:
        """Return a figure of an agent from ``/metrics``."""
        wanted = f'nornweave_remote_agent_{name}{suffix}{{agent="{agent_id}"}} '
        lines = self.http.get("/metrics").text.splitlines()
        return next(float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted))
