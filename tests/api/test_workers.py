"""Several processes on one port: they answer, end together, and nobody else takes the port."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import forked
import httpx
import psutil
import pytest
from processes import SERVE, START_S, STOP_S, running
from waiting import until

from api.server.serving import serve
from api.server.workers import WorkerPlace, supervise, usual_workers
from nornweave.ask.feedback import FeedbackBook
from nornweave.config import Settings
from nornweave.core.supervisor import PortInUseError

pytestmark = [
    pytest.mark.slow,
]


@pytest.fixture
def served(published: Settings, tmp_path: Path) -> Iterator[tuple[forked.Popen, str]]:
    """Serve with two processes; both are there when this returns."""
    with running(tmp_path, SERVE, published.file, 2) as (server, url):
        until(lambda: both_accept(server, url), (tmp_path / "log").read_text)
        yield server, url
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(server.pid).children():
                process.kill()


def both_accept(server: forked.Popen, url: str) -> bool:
    """Tell whether two processes take connections, which one does once it has loaded what it serves."""
    address = httpx.URL(url)
    opened = []
    try:
        for _ in range(4):
            opened.append(socket.create_connection((address.host, address.port or 0), START_S))
            time.sleep(0.05)
        return len(listeners(server, url, psutil.CONN_ESTABLISHED)) == 2
    finally:
        for connection in opened:
            connection.close()


def listeners(server: forked.Popen, url: str, state: str = psutil.CONN_LISTEN) -> list[psutil.Process]:
    """Return the processes that listen on the port, or have connections there."""
    port = int(url.rsplit(":", 1)[1])
    parent = psutil.Process(server.pid)
    return [
        process
        for process in [parent, *parent.children()]
        if process.status() != psutil.STATUS_ZOMBIE
        and any(one.status == state and one.laddr.port == port for one in process.net_connections("inet"))
    ]


def test_both_answer_keep_their_port_and_end_together(served: tuple[forked.Popen, str], published: Settings) -> None:
    server, url = served
    processes = listeners(server, url)
    for workers in (1, 2):
        with pytest.raises(PortInUseError, match="is in use"):
            serve(published, port=int(url.rsplit(":", 1)[1]), environment={}, workers=workers)
    for _ in range(12):  # a connection each, shared among them
        answer = httpx.post(f"{url}/query", json={"query": "payment"}, trust_env=False, timeout=START_S)
        assert answer.json()["items"]
    server.send_signal(signal.SIGTERM)
    assert server.wait(STOP_S) == 0
    assert psutil.wait_procs(processes, STOP_S)[1] == []


def test_one_that_dies_is_replaced_and_no_request_of_the_others_fails(published: Settings, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(tmp_path, SERVE, published.file, 2) as (server, url):
        readiness: list[int] = []

        def status(path: str) -> int:
            return httpx.get(f"{url}/{path}", trust_env=False, timeout=START_S).status_code

        def is_ready() -> bool:
            readiness.append(status("ready"))
            return readiness[-1] == 200

        assert status("health") == 200
        until(is_ready)
        readiness.clear()
        until(lambda: is_ready() and both_accept(server, url), log.read_text)  # the second one loads
        parent = psutil.Process(server.pid)
        before = {child.pid for child in parent.children()}
        victim = min(before)
        os.kill(victim, signal.SIGSTOP)  # from here on it takes no connection: none of the requests is under way in it

        def ask(number: int) -> int:
            if number == 20:
                os.kill(victim, signal.SIGKILL)
            return status("agents")

        with ThreadPoolExecutor(4) as clients:
            assert set(clients.map(ask, range(100))) == {200}
        until(lambda: is_ready() and both_accept(server, url), log.read_text)
        after = {child.pid for child in parent.children()}
        assert len(after) == 2 and victim not in after
        assert before - {victim} <= after
        assert set(readiness) == {200}
        assert f"serving process {victim} was ended by SIGKILL" in log.read_text()

        # Ctrl-C: a terminal sends it to every process, so that a worker ends before its parent has told it to.
        for process in [*parent.children(), parent]:
            process.send_signal(signal.SIGINT)
        assert server.wait(STOP_S) == 0
    assert "Fatal" not in log.read_text()


def ending_at_once(code: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", f"raise SystemExit({code})"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_one_that_dies_again_and_again_is_replaced_ever_more_slowly(caplog: pytest.LogCaptureFixture) -> None:
    clock, starts = [0.0], []

    def start(others_serve: bool) -> subprocess.Popen[bytes]:
        assert not others_serve
        starts.append(clock[0])
        return ending_at_once(-9 if len(starts) % 2 else 1)

    place = WorkerPlace(start, now=lambda: clock[0])
    for _ in range(100):
        place.fill(False)
        if place.process:
            place.process.wait()
            assert place.process.poll() is not None
            place.vacate()
        clock[0] += 1
    assert starts == [0, 1, 2, 4, 8, 16, 32, 62, 92]
    assert len(caplog.messages) == len(starts)
    assert caplog.messages[3].endswith("after 0 s; another one takes its place in 4 s")


def serving_until_let_go() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-S", "-c", "import sys; print('loaded', flush=True); sys.stdin.read()"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize("are_well", [True, False])
def test_new_settings_are_taken_over_by_one_process_after_the_other(are_well: bool) -> None:
    started: list[subprocess.Popen[bytes]] = []
    announced: list[str] = []
    received: list[int] = []
    forgotten: list[int] = []
    is_asked = False

    def start(others_serve: bool) -> subprocess.Popen[bytes]:
        assert others_serve == bool(started)
        started.append(serving_until_let_go() if are_well or len(started) < 2 else ending_at_once(2))
        return started[-1]

    def is_outdated() -> bool:
        nonlocal is_asked
        old, new = started[:2], started[2:]
        if are_well:  # an old one ends only when a new one is there
            assert sum(each.poll() is not None for each in old) <= len(new)
        if len(new) == 2 and (len(forgotten) == 2 if are_well else all(each.poll() == 2 for each in new)):
            assert are_well or all(each.poll() is None for each in old)
            received.append(signal.SIGTERM)
        is_asked, was_asked = is_asked or len(started) == 2, is_asked
        return is_asked and not was_asked

    announce = lambda: announced.append("url")  # noqa: E731 - a name for what is told
    assert supervise(start, 2, announce, received, forgotten.append, is_outdated=is_outdated) == 0
    assert announced == ["url"]
    assert len(started) == 4
    assert sorted(forgotten) == (sorted(each.pid for each in started[:2]) if are_well else [])


def test_one_that_is_still_importing_when_the_signal_comes_is_not_waited_for() -> None:
    received: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    def start(others_serve: bool) -> subprocess.Popen[bytes]:
        if others_serve:
            received.append(signal.SIGTERM)
        imports = [sys.executable, "-S", "-c", "import time; time.sleep(3600)"]  # and reads no standard input
        importing = partial(subprocess.Popen, imports, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(importing() if others_serve else serving_until_let_go())
        return started[-1]

    # Where SIGINT is ignored, Dagster has SIGTERM ignored too, once another test has run it in this process.
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        code = supervise(start, 2, lambda: None, received)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (code, started[1].returncode) == (0, -signal.SIGTERM), started[0].returncode


def test_when_none_of_them_can_serve_that_is_the_end() -> None:
    announced: list[str] = []
    assert supervise(lambda _: ending_at_once(2), 2, lambda: announced.append("url"), []) == 1
    assert announced == []


def test_feedback_of_any_answer_is_kept_by_those_that_are_killed_and_workers_end_with_their_parent(
    served: tuple[forked.Popen, str], published: Settings
) -> None:
    server, url = served
    said: dict[str, bool] = {}
    for number in range(12):  # a connection each, shared among them
        answer = httpx.post(f"{url}/query", json={"query": "payment"}, trust_env=False, timeout=START_S).json()
        body = {"query_id": answer["query_id"], "chunk_id": answer["items"][0]["chunk_id"], "useful": bool(number % 3)}
        stored = httpx.post(f"{url}/feedback", json=body, trust_env=False, timeout=START_S)
        assert stored.status_code == 200, stored.text
        said[answer["query_id"]] = body["useful"]
    workers = psutil.Process(server.pid).children()
    workers[0].kill()
    server.kill()
    assert psutil.wait_procs(workers, STOP_S)[1] == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health", trust_env=False, timeout=START_S)
    judged = FeedbackBook(published.data_dir / "feedback").judged()
    kept = {answer.query_id: list(answer.votes.values()) for answer in judged}
    assert {query_id: kept[query_id] for query_id in said} == {query_id: [useful] for query_id, useful in said.items()}


def test_a_small_index_has_a_process_a_cpu(published: Settings) -> None:
    assert 1 <= usual_workers(published) <= 4


def test_the_process_that_supervises_loads_neither_the_app_nor_the_index(published: Settings) -> None:
    script = """
import sys
from pathlib import Path
import api.server.serving
from api.server.workers import usual_workers
from nornweave.connect.connectors import load_settings
usual_workers(load_settings(Path(sys.argv[1]), {}))
print([name for name in ("api.app", "duckdb", "numpy", "openvino", "pyarrow", "uvicorn") if name in sys.modules])
"""
    command = [sys.executable, "-c", script, str(published.file)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=START_S, env=variables)
    assert done.stdout.strip() == "[]"
