"""``nornweave serve`` as it is run: a process, a port, signals."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import forked
import httpx
import pytest
from processes import SERVE, START_S, STOP_S, Started

from api.app import CLOSE_WITHIN_S
from api.server.process import DRAIN_WITHIN_S
from api.server.serving import serve
from api.server.workers import default_port
from nornweave.config import Settings
from nornweave.core.errors import ConfigError
from nornweave.core.supervisor import STOP_WITHIN_S, PortInUseError
from nornweave.core.types import Domain

EARLY = """
import signal
import uvicorn
from api.server.process import signals_end
for number in (signal.SIGINT, signal.SIGTERM):
    server = uvicorn.Server(uvicorn.Config(app=None))
    before = signal.getsignal(number)
    with signals_end(server):
        signal.raise_signal(number)
    print(server.should_exit and signal.getsignal(number) is before)
"""
SLOW = """
import sys
from pathlib import Path
from scripted_engine import ScriptedAgent, ScriptedEngine
import nornweave.ask.engine
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
seconds = float(sys.argv[2])
def slow(settings, agent):
    engine = ScriptedEngine(settings, [Domain.CODE])
    engine.agent(Domain.CODE).seconds = seconds
    return engine
nornweave.ask.engine.Engine = slow
import api.server.process, api.server.serving
api.server.process.DRAIN_WITHIN_S = int(sys.argv[3])
sys.exit(api.server.serving.serve(load_settings(Path(sys.argv[1]), {}), port=0))
"""
LOADING = """
import sys, time
from pathlib import Path
from scripted_engine import ScriptedAgent, ScriptedEngine
import nornweave.ask.engine
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
class Loading(ScriptedEngine):
    def close(self):
        time.sleep(600)
nornweave.ask.engine.Engine = lambda settings, agent: Loading(settings, [Domain.CODE])
import api.server.serving
sys.exit(api.server.serving.serve(load_settings(Path(sys.argv[1]), {}), port=0))
"""
LOGGING = """
import logging, sys
from pathlib import Path
from scripted_engine import ScriptedAgent, ScriptedEngine
import nornweave.ask.engine
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
class Logging(ScriptedAgent):
    def recall(self, question):
        logging.getLogger("agent").warning("asked for %s", question.text)
        return super().recall(question)
class LoggingEngine(ScriptedEngine):
    agent_type = Logging
nornweave.ask.engine.Engine = lambda settings, agent: LoggingEngine(settings, [Domain.CODE])
import api.server.serving
sys.exit(api.server.serving.serve(load_settings(Path(sys.argv[1]), {}), port=0))
"""
RECALL = {"query_text": "payment"}


def until_asked(url: str) -> None:
    """Wait until the agent in memory is at work."""
    deadline = time.monotonic() + START_S
    while not httpx.get(url + "/agents/code/health", trust_env=False, timeout=START_S).json()["statistics"]["requests"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def until_ready(url: str) -> None:
    """Wait until every domain is loaded."""
    deadline = time.monotonic() + START_S
    while (answer := httpx.get(url + "/ready", trust_env=False, timeout=START_S)).status_code != 200:
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.02)


def until_refused(url: str) -> None:
    """Wait until nobody listens any more; who is in the queue when the door closes is sent away without an answer."""
    deadline = time.monotonic() + STOP_S
    while True:
        assert time.monotonic() < deadline
        try:
            httpx.get(url + "/health", trust_env=False, timeout=START_S)
        except httpx.ConnectError:
            return
        except (httpx.RemoteProtocolError, httpx.ReadError):
            continue


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_answers_and_stops(
    started: Started, published: Settings, number: signal.Signals, tmp_path: Path
) -> None:
    server, url = started(SERVE, published.file)
    assert url.startswith("http://127.0.0.1:")
    with httpx.Client(base_url=url, trust_env=False, timeout=START_S) as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert client.post("/agents/code/recall", json=RECALL).json()["items"]
        until_ready(url)
        assert client.post("/query", json={"query": "payment"}).json()["items"]
        assert client.get("/agents", headers={"host": "evil.example"}).status_code == 421
        assert client.get("/agents", headers={"host": "localhost"}).status_code == 200
        server.send_signal(number)
        assert server.wait(STOP_S) == 0
    log = (tmp_path / "log").read_text()
    assert log.splitlines() == [url], "nothing but where it listens"
    assert (tmp_path / "out").read_bytes() == b"", "stdout is for results"


@pytest.mark.slow
def test_log_lines_of_a_request_have_its_trace_id(started: Started, published: Settings, tmp_path: Path) -> None:
    _, url = started(LOGGING, published.file)
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    with httpx.Client(base_url=url, trust_env=False, timeout=START_S) as client:
        headers = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
        traced = client.post("/query", json={"query": "payment"}, headers=headers).json()
        untraced = client.post("/query", json={"query": "refund"}).json()
        assert client.post("/agents/code/recall", json={"query_text": "ledger"}, headers=headers).status_code == 200
    assert traced["trace_id"] == trace_id
    assert untraced["trace_id"] not in {trace_id, ""}
    # Each is logged in a thread: the first two in one of the domain's, the last one in one of the API's.
    assert [line for line in (tmp_path / "log").read_text().splitlines() if "asked for" in line] == [
        f"WARNING asked for payment trace_id={trace_id}",
        f"WARNING asked for refund trace_id={untraced['trace_id']}",
        f"WARNING asked for ledger trace_id={trace_id}",
    ]


def test_a_signal_before_the_server_runs_is_not_lost() -> None:
    """In a process of its own: signals have ended workers of the suite."""
    run = forked.run([sys.executable, "-c", EARLY], text=True, check=True)
    assert run.stdout.split() == ["True", "True"]


@pytest.mark.slow
def test_what_runs_when_it_is_stopped_is_answered(started: Started, published: Settings) -> None:
    server, url = started(SLOW, published.file, 1.0, 60)
    with httpx.Client(base_url=url, trust_env=False, timeout=START_S) as client, ThreadPoolExecutor() as threads:
        answer = threads.submit(client.post, "/agents/code/recall", json=RECALL)
        until_asked(url)
        server.terminate()
        until_refused(url)
        assert answer.result().status_code == 200
    assert server.wait(STOP_S) == 0


@pytest.mark.slow
def test_what_does_not_end_is_abandoned(started: Started, published: Settings, tmp_path: Path) -> None:
    server, url = started(SLOW, published.file, 600.0, 1)
    with httpx.Client(base_url=url, trust_env=False, timeout=START_S) as client, ThreadPoolExecutor() as threads:
        answer = threads.submit(client.post, "/agents/code/recall", json=RECALL)
        until_asked(url)
        server.terminate()
        assert server.wait(STOP_S) == 1
        with pytest.raises(httpx.HTTPError):
            answer.result().raise_for_status()
    assert "abandoned" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_a_signal_does_not_wait_for_what_is_being_loaded(started: Started, published: Settings, tmp_path: Path) -> None:
    server, _ = started(LOADING, published.file)
    server.terminate()
    assert server.wait(STOP_S) == 0
    assert "did not close within" in (tmp_path / "log").read_text()


def test_the_drain_ends_before_the_supervisor_loses_patience() -> None:
    assert DRAIN_WITHIN_S + CLOSE_WITHIN_S < STOP_WITHIN_S


def test_a_taken_port_is_said_before_anything_is_loaded(published: Settings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=f"port {port} on 127.0.0.1 is in use.*--port"):
            serve(published, port=port, environment={})


@pytest.mark.parametrize(("options", "said"), [
    ({"host": "0.0.0.0"}, "NORNWEAVE_SERVICE_TOKEN"),
    ({"host": "no.such.host.invalid", "environment": {"NORNWEAVE_SERVICE_TOKEN": "x"}}, "no.such.host.invalid"),
    ({"host": "192.0.2.1", "environment": {"NORNWEAVE_SERVICE_TOKEN": "x"}}, "192.0.2.1"),
    ({"agent": Domain.RESEARCH}, "research.*code, documentation"),
    ({"environment": {"FUSION_PORT": "80a"}}, "FUSION_PORT.*'80a'"),
])  # fmt: skip
def test_what_cannot_be_served_is_a_clear_error(published: Settings, options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        serve(published, **{"environment": {}, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(("agent", "environment", "port"), [
    (None, {}, 8082), (None, {"FUSION_PORT": "9000", "AGENT_PORT": "1"}, 9000), (None, {"FUSION_PORT": ""}, 8082),
    (Domain.CODE, {}, 8081), (Domain.CODE, {"AGENT_PORT": "0", "FUSION_PORT": "1"}, 0),
])  # fmt: skip
def test_the_port_comes_from_the_environment(agent: Domain | None, environment: dict[str, str], port: int) -> None:
    assert default_port(agent, environment) == port


@pytest.mark.parametrize("value", ["-1", "65536", "8082.0", "http", "٣", "9" * 5000])
def test_a_port_that_is_none(value: str) -> None:
    with pytest.raises(ConfigError, match="FUSION_PORT"):
        default_port(None, {"FUSION_PORT": value})


def test_serving_needs_neither_torch_nor_dagster_nor_mcp(published: Settings) -> None:
    script = """
import asyncio, json, sys
from pathlib import Path
import httpx
import api.server.process
from nornweave.connect.connectors import load_settings
async def main():
    app = api.server.process.create_app(load_settings(Path(sys.argv[1]), {}), environment={})
    async with app.router.lifespan_context(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://nornweave") as client:
            assert (await client.post("/agents/code/recall", json={"query_text": "payment"})).status_code == 200
asyncio.run(main())
heavy = ("torch", "transformers", "sentence_transformers", "dagster", "litellm", "mcp", "evals", "orchestration")
heavy += ("nornweave.ingest", "nornweave.read.file")
heavy += ("nornweave.connect.mirror.mirrored", "nornweave.connect.git.source")
heavy += ("jinja2",)
print(json.dumps([name for name in heavy if name in sys.modules]))
"""
    command = [sys.executable, "-c", script, str(published.file)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=variables)
    assert json.loads(done.stdout) == []
