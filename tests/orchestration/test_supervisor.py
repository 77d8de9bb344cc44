"""``nornweave up``: starts, says where, stops everything, leaves nothing behind."""

import http.client
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from forked import free_port
from waiting import until

from nornweave.config import Settings
from nornweave.core.errors import DomainBusyError
from nornweave.core.files.lock import hold_lock
from nornweave.core.supervisor import Child, PortInUseError, children_of, supervise, up

# Generous: CI machines are slow. What matters is that it ends by itself.
STOP_S = 90.0

SERVER = """
import http.server, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
STUBBORN = "import signal\nfor s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n" + SERVER
SUPERVISOR = """
import sys
from nornweave.core import supervisor
from nornweave.core.supervisor import Child, supervise
program, port, *patience = sys.argv[1:]
supervisor.STOP_WITHIN_S = float(patience[0]) if patience else supervisor.STOP_WITHIN_S
child = Child(name="server", command=(sys.executable, "-c", program, port), host="127.0.0.1", port=int(port))
sys.exit(supervise([child], lambda line: print(line, flush=True)))
"""


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start supervisors; whatever survives a test is ended after it."""
    supervisors: list[subprocess.Popen[str]] = []
    families: list[psutil.Process] = []

    def start(program: str, *arguments: object, ready: int) -> subprocess.Popen[str]:
        log = (tmp_path / "log").open("w")
        command = [sys.executable, "-c", program, *map(str, arguments)]
        supervisor = subprocess.Popen(command, stdout=log, stderr=log, text=True, cwd=tmp_path)
        log.close()
        supervisors.append(supervisor)
        until(lambda: answers(ready), (tmp_path / "log").read_text)
        families.extend(psutil.Process(supervisor.pid).children(recursive=True))
        return supervisor

    yield start
    for supervisor in supervisors:
        supervisor.kill()
        supervisor.wait()
    for process in families:
        if process.is_running():
            process.kill()


def family(supervisor: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(supervisor.pid).children(recursive=True)


def all_gone(processes: list[psutil.Process]) -> bool:
    return not [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_the_child_and_its_children(
    started: Callable[..., subprocess.Popen[str]], number: signal.Signals, tmp_path: Path
) -> None:
    port = free_port()
    supervisor = started(SUPERVISOR, SERVER, port, ready=port)
    processes = family(supervisor)
    assert len(processes) == 2
    until(lambda: f"http://127.0.0.1:{port}" in (tmp_path / "log").read_text())

    supervisor.send_signal(number)

    assert supervisor.wait(STOP_S) == 0
    assert all_gone(processes)
    assert (tmp_path / "log").read_text().endswith("stopped\n")


@pytest.mark.slow
def test_a_child_that_ignores_signals_is_ended(started: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    port = free_port()
    supervisor = started(SUPERVISOR, STUBBORN, port, 1.0, ready=port)
    processes = family(supervisor)

    supervisor.terminate()

    assert supervisor.wait(STOP_S) == 0
    assert all_gone(processes)
    assert "does not stop by itself" in (tmp_path / "log").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_killed_supervisor_takes_its_child_along(started: Callable[..., subprocess.Popen[str]]) -> None:
    port = free_port()
    supervisor = started(SUPERVISOR, SERVER, port, ready=port)
    child = psutil.Process(supervisor.pid).children()

    supervisor.kill()
    supervisor.wait()

    until(lambda: all_gone(child))


def test_a_child_that_ends_by_itself_stops_everything(tmp_path: Path) -> None:
    said: list[str] = []
    lives = Child(name="lives", command=(sys.executable, "-c", SERVER, str(free_port())), host="127.0.0.1", port=0)
    dies = Child(name="dies", command=(sys.executable, "-c", "raise SystemExit(3)"), host="127.0.0.1", port=0)

    before = set(psutil.Process().children(recursive=True))  # processes that read documents for earlier tests
    assert supervise([lives, dies], said.append) == 1

    assert "dies ended by itself with exit code 3" in said[-1]
    assert set(psutil.Process().children(recursive=True)) <= before


def test_signal_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    supervise([Child(name="dies", command=(sys.executable, "-c", ""), host="127.0.0.1", port=0)], lambda line: None)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_second_one_on_the_same_files_says_so_and_starts_nothing(settings: Settings) -> None:
    with (
        hold_lock(settings.data_dir / "up.lock"),
        pytest.raises(DomainBusyError, match="another `nornweave up` works on"),
    ):
        up(settings.file, settings.data_dir, port=free_port(), dagster_port=free_port())


def test_a_port_in_use_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        marker = tmp_path / "started"
        program = f"open({str(marker)!r}, 'w').close()"
        first = Child(name="first", command=(sys.executable, "-c", program), host="127.0.0.1", port=0)
        program = (sys.executable, "-c", "")
        second = Child(name="second", command=program, host="127.0.0.1", port=port, option="--other-port")

        with pytest.raises(PortInUseError, match=f"second: port {port} on 127.0.0.1 is in use; .* with --other-port"):
            supervise([first, second], lambda line: None)

        assert not marker.exists()


def test_the_dagster_ui_listens_on_this_machine_only(settings: Settings) -> None:
    children = children_of(settings.file, host="0.0.0.0", port=8082, dagster_port=3000)
    ui = next(child for child in children if child.name == "Dagster UI")
    assert ui.host == "127.0.0.1"
    assert ui.environment["NORNWEAVE_CONFIG"] == str(settings.file)


@pytest.mark.parametrize(("loaded", "unused"), [
    ("nornweave.core.supervisor, nornweave.cli.main", {"dagster", "duckdb", "numpy", "torch"}),
    # What reads Markdown and cuts it; every sync starts it, up to four times.
    ("nornweave.core.sandbox.child, nornweave.ingest.index_chunks", {"bs4", "charset_normalizer", "numpy"}),
])  # fmt: skip
def test_the_supervisor_and_what_only_helps_or_reads_load_no_libraries_of_others(loaded: str, unused: set[str]) -> None:
    script = f"import sys, {loaded}; print({unused} & sys.modules.keys())"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "set()\n"
