"""``nornweave mcp`` as a client runs it: a process that is spoken to over its standard input and output."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import forked
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_client import REVISIONS, WITHIN_S, problem, result, until_loaded

from api.mcp.server import INSTRUCTIONS
from api.pages.addresses import own_links, usual_url
from nornweave.config import Settings

NAMES = ["search", "fetch", "find", "uses", "answer", "conflicts", "status"]
COMMAND = ["-m", "nornweave.cli", "--config"]
# What the command does, with an engine in memory that does what a test needs.
PROGRAM = """
import os, subprocess, sys, threading, time
from pathlib import Path
from scripted_engine import ScriptedAgent, ScriptedEngine
import api.state
from api.mcp.server import serve_stdio
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
settings = load_settings(Path(sys.argv[1]))
{make}
serve_stdio(settings, make=make)
"""
NOISY = """
import logging, warnings
logging.basicConfig(level="DEBUG")
def make():
    warnings.warn("noise of a warning")
    print("noise of python", flush=True)
    os.write(1, b"noise of C\\n")
    subprocess.run(["echo", "noise of a child"])
    print("noise that nobody flushed")
    return ScriptedEngine(settings, [Domain.CODE])
"""
SLOW = """
def make():
    while not Path(sys.argv[2]).exists():
        time.sleep(0.02)
    return ScriptedEngine(settings, [Domain.CODE])
"""
BROKEN = """
def make():
    raise OSError("the disk is on fire")
"""
HANGING = """
class Hanging(ScriptedAgent):
    def recall(self, question):
        if question.text == "hang":
            Path(sys.argv[2]).touch()
            time.sleep(600)
        return super().recall(question)
class HangingEngine(ScriptedEngine):
    agent_type = Hanging
def make():
    api.state.QUESTIONS = 1
    return HangingEngine(settings, [Domain.CODE])
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Any]:
    with (tmp_path / "stderr").open("w+", encoding="utf-8") as file:
        yield file


def parameters(*arguments: object, **environment: str) -> StdioServerParameters:
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    variables = {**os.environ, "PYTHONPATH": path, "FUSION_TIMEOUT_SECONDS": str(WITHIN_S), **environment}
    return StdioServerParameters(command=sys.executable, args=[str(one) for one in arguments], env=variables)


@asynccontextmanager
async def connected(log: Any, *arguments: object, mode: str = "auto", **environment: str) -> AsyncIterator[Client]:
    async with Client(stdio_client(parameters(*arguments, **environment), errlog=log), mode=mode) as client:
        yield client


def popen(*arguments: object, **environment: str) -> forked.Popen:
    """Start a process with pipes."""
    started = parameters(*arguments, **environment)
    pipe = subprocess.PIPE
    return forked.Popen([started.command, *started.args], env=started.env, stdin=pipe, stdout=pipe, stderr=pipe)


def initialize(process: forked.Popen) -> dict[str, Any]:
    """Shake hands as the revision of 2025-11-25 does, and return the answer."""
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    answer = said(process, {"id": 1, "method": "initialize", "params": info})
    send(process, {"method": "notifications/initialized"})
    return answer


def send(process: forked.Popen, message: dict[str, Any]) -> None:
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def said(process: forked.Popen, message: dict[str, Any]) -> dict[str, Any]:
    send(process, message)
    assert process.stdout
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


@pytest.mark.slow
async def test_the_command_answers_like_the_server(published: Settings, log: Any) -> None:
    async with connected(log, *COMMAND, published.file, "mcp") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
        await until_loaded(client)
        found, *others = await asyncio.gather(*(result(client, "search", query="post_entry") for _ in range(8)))
        assert all(other == found for other in others)
        first = found["results"][0]
        assert first["url"] == f"http://127.0.0.1:8082/passages/{first['id']}"
        assert (await result(client, "fetch", id=first["id"]))["text"].startswith("def post_entry")
        assert "def refund" in (await result(client, "answer", query="refund"))["text"]
        assert (await result(client, "conflicts"))["conflicts"] == []
        assert "top_k: " in await problem(client, "search", query="x", top_k=0)
    log.seek(0)
    assert "Traceback" not in log.read()


@pytest.mark.slow
def test_standard_output_carries_nothing_but_the_protocol(published: Settings) -> None:
    process = popen("-c", PROGRAM.format(make=NOISY), published.file, NORNWEAVE_URL="https://nw.example")
    greeting = initialize(process)["result"]
    assert greeting["serverInfo"]["name"] == "nornweave"
    assert greeting["instructions"] == INSTRUCTIONS, "nobody knows whether an address of others answers"
    called = said(
        process, {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "pay"}}}
    )
    assert called["result"]["structuredContent"]["results"]
    out, err = process.communicate(b"this is no message\n", timeout=WITHIN_S)
    assert process.returncode == 0, "the input ended"
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    for noise in (b"noise of python", b"of C", b"of a child", b"of a warning", b"that nobody flushed", b"DEBUG:"):
        assert noise in err
    assert b"noise" not in out


@pytest.mark.slow
async def test_tools_are_listed_before_anything_is_loaded(published: Settings, tmp_path: Path, log: Any) -> None:
    ready = tmp_path / "ready"
    program = PROGRAM.format(make=SLOW)
    async with connected(log, "-c", program, published.file, ready, FUSION_TIMEOUT_SECONDS="0.3") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
        for tool in ("search", "status"):
            said = await problem(client, tool, **({"query": "x"} if tool == "search" else {}))
            assert said == "NornWeave is still loading. Call again in 2 s."
        ready.touch()
        async with asyncio.timeout(WITHIN_S):
            while (await client.call_tool("search", {"query": "x"})).is_error:
                await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("listens", [True, False])
def test_an_agent_is_told_that_its_links_lead_nowhere(published: Settings, tmp_path: Path, listens: bool) -> None:
    with socket.socket() as pages:
        pages.bind(("127.0.0.1", 0))
        if listens:
            pages.listen()
        port = str(pages.getsockname()[1])
        process = popen("-c", PROGRAM.format(make=SLOW), published.file, tmp_path / "ready", FUSION_PORT=port)
        told = initialize(process)["result"]["instructions"].removeprefix(INSTRUCTIONS)
        process.communicate(timeout=WITHIN_S)
    assert told.startswith(f" No server answers at http://127.0.0.1:{port} now") is not listens


@pytest.mark.slow
async def test_an_engine_that_cannot_be_loaded_is_said_with_every_call(published: Settings, log: Any) -> None:
    async with connected(log, "-c", PROGRAM.format(make=BROKEN), published.file) as client:
        assert "the log of the server tells more" in await problem(client, "search", query="x")
    log.seek(0)
    assert "the disk is on fire" in log.read()


@pytest.mark.slow
@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_cancelled_call_frees_its_place(published: Settings, tmp_path: Path, mode: str, log: Any) -> None:
    asked = tmp_path / "asked"
    async with connected(log, "-c", PROGRAM.format(make=HANGING), published.file, asked, mode=mode) as client:
        with anyio.move_on_after(WITHIN_S) as call:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "search", {"query": "hang"})
                while not asked.exists():
                    await asyncio.sleep(0.02)
                call.cancel()
        with anyio.fail_after(WITHIN_S / 2):  # less than the cancelled call would take
            assert (await result(client, "search", query="pay"))["results"], "there is one place"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_also_while_a_call_runs(published: Settings, tmp_path: Path, number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)  # as for a background job of a script, which inherits it
    process = popen("-c", PROGRAM.format(make=HANGING), published.file, tmp_path / "asked")
    signal.signal(number, before)
    initialize(process)
    send(process, {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "hang"}}})
    deadline = time.monotonic() + WITHIN_S
    while not (tmp_path / "asked").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, out, err) == (-number, b"", b"")


@pytest.mark.slow
def test_a_wrong_configuration_is_said_on_standard_error(tmp_path: Path, published: Settings) -> None:
    for arguments, environment, said_there in (
        ([tmp_path / "none.yaml"], {}, b"none.yaml"),
        ([published.file], {"NORNWEAVE_URL": "here"}, b"NORNWEAVE_URL"),
    ):
        process = popen(*COMMAND, *arguments, "mcp", **environment)
        out, err = process.communicate(timeout=WITHIN_S)
        assert (process.returncode, out) == (2, b"")
        assert said_there in err


def test_a_passage_is_linked_to_where_it_was_published_if_that_is_an_address() -> None:
    link = own_links(usual_url({"FUSION_PORT": "9000"}))
    assert link("a/b", "https://example.org/x?y=1#z") == "https://example.org/x?y=1#z"
    page = "http://127.0.0.1:9000/passages/a%2Fb"
    for other in (
        None,
        "",
        "javascript:alert(1)",
        "docs/x.md",
        "file:///etc/passwd",
        "https://",
        "http://[",
        "http://a b/",
    ):
        assert link("a/b", other) == page
    assert own_links(usual_url({"NORNWEAVE_URL": "https://nw.example/"}))("x", None) == "https://nw.example/passages/x"
