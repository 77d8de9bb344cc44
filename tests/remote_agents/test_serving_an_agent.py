"""``nornweave serve --agent`` with ``REGISTRY_URL``: it joins, is asked as an agent here is, and leaves."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forked
import pytest
from forked import free_port
from live_server import live
from recall_workspace import publish, write_workspace
from remote_hub import Hub
from waiting import until

from api.app import create_app
from nornweave.config import Settings
from nornweave.core.types import Domain

Serve = Callable[..., Hub]
Agents = Callable[..., tuple[forked.Popen, str]]
QUESTION = "how are retries of payments limited"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = write_workspace(tmp_path_factory.mktemp("workspace"))
    publish(settings)
    return settings


@pytest.fixture
def serving(workspace: Settings, tmp_path: Path) -> Iterator[Agents]:
    """Serve one domain alone in a process, which registers; end what survives."""
    processes: list[forked.Popen] = []

    def start(domain: Domain, registry: str, port: int = 0) -> tuple[forked.Popen, str]:
        log = tmp_path / f"log-{len(processes)}"
        command = [sys.executable, "-m", "nornweave.cli", "--config", str(workspace.file), "serve"]
        command += ["--agent", domain.value, "--port", str(port), "--workers", "1", "--json"]
        variables = {**os.environ, "REGISTRY_URL": registry, "HEARTBEAT_INTERVAL_S": "0.2", "LOG_LEVEL": "INFO"}
        variables["PYTHONPATH"] = os.pathsep.join(sys.path)
        with log.open("wb") as said:
            process = forked.Popen(command, stdout=subprocess.PIPE, stderr=said, env=variables)
        processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        return process, json.loads(line)["url"]

    yield start
    for process in processes:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def states(served: Hub) -> dict[str, str]:
    """Return the states of the remote agents by name."""
    return {agent["agent_id"]: agent["state"] for agent in served.listed().values()}


def test_an_agent_joins_is_asked_and_leaves(serving: Agents, hub: Serve) -> None:
    # The allow-list names ports; of an agent whose port is not known yet, a free one is taken first.
    port = free_port()
    served = hub(f"http://127.0.0.1:{port}")
    process, url = serving(Domain.CODE, served.url, port)
    until(lambda: states(served) == {"code-memory": "READY"})
    answer = served.query(QUESTION)
    assert answer["items"]
    assert answer["coverage"]["code"]["agent_id"] == "code-memory"
    served.http.delete("/agents/code-memory")
    until(lambda: states(served) == {"code-memory": "READY"})
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert states(served) == {}
    assert url.endswith(str(port))


@pytest.mark.slow
def test_an_agent_that_is_killed_is_a_gap_until_another_takes_its_place(serving: Agents, hub: Serve) -> None:
    port = free_port()
    served = hub(f"http://127.0.0.1:{port}", agents={"lease_s": 1})
    process, _ = serving(Domain.CODE, served.url, port)
    until(lambda: states(served) == {"code-memory": "READY"})
    for child in children(process.pid):
        os.kill(child, signal.SIGKILL)
    process.kill()
    process.wait()
    answer = served.query(QUESTION, domains=["code"])
    assert [gap["agent_id"] for gap in answer["coverage_gaps"]] == ["code-memory"]
    until(lambda: states(served) == {"code-memory": "STOPPED"})
    serving(Domain.CODE, served.url, port)
    until(lambda: served.query(QUESTION)["items"])


@pytest.mark.slow
def test_without_a_registry_an_agent_answers_all_the_same(serving: Agents, hub: Serve) -> None:
    process, url = serving(Domain.CODE, "http://127.0.0.1:1")
    served = Hub(url, None)
    answer = served.http.post("/recall", json={"query_text": QUESTION})
    served.http.close()
    assert answer.status_code == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_items_order_and_scores_are_those_of_agents_here(workspace: Settings, hub: Serve) -> None:
    accepts = ["timeout_ms", "expand", "rerank", "explain", "now"]
    with live(create_app(workspace, environment={})) as url:
        here = Hub(url, None)
        served = hub(url, agents={"wait_s": 60})
        for domain in Domain:
            name = workspace.domains[domain].agent_id
            served.register(f"{url}/agents/{domain.value}", name, domain.value, capabilities={"accepts": accepts})
        for text in (QUESTION, "who decided about idempotency keys", "post_entry", "refund runbook"):
            ours, theirs = (one.query(text, timeout_ms=60_000) for one in (here, served))
            assert ranked(theirs) == ranked(ours)
            assert theirs["normalization"] == ours["normalization"] == "calibrated"
            assert theirs["coverage_gaps"] == []
        here.http.close()


def ranked(answer: dict[str, Any]) -> list[tuple[str, float]]:
    """Return chunks and scores; recency moves the last digits from one second to the next."""
    return [(item["chunk_id"].rpartition(":")[2], round(item["score"]["value"], 5)) for item in answer["items"]]


def children(process: int) -> list[int]:
    """Return the processes that one started."""
    file = Path(f"/proc/{process}/task/{process}/children")
    return [int(number) for number in file.read_text().split()] if file.exists() else []
