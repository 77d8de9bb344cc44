"""Programs that a script starts in the background, with SIGINT ignored, end on a signal as in a terminal."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from forked import free_port
from waiting import until

PROGRAM = """
import time
from nornweave.core.process import heed_signals
heed_signals()
print("ready", flush=True)
time.sleep(600)
"""


def ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        preexec_fn=ignore_signals,
    )


def test_an_ignored_interrupt_ends_the_process() -> None:
    process = start("-c", PROGRAM)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in said


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_line_heeds_signals_in_the_background(number: signal.Signals) -> None:
    code = (
        "import sys, time, nornweave.cli.main as program\n"
        "program.app = lambda: (print('ready', flush=True), time.sleep(600))\n"
        "program.main()"
    )
    process = start("-c", code)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == -number


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A configuration with one empty source, of which nothing was synced."""
    (tmp_path / "code").mkdir()
    file = tmp_path / "nornweave.yaml"
    file.write_text("data_dir: ./var\nsources: [{id: code, domain: code, type: files, path: code}]\n", encoding="utf-8")
    return str(file)


@pytest.mark.slow
def test_a_server_in_the_background_ends_on_sigterm_with_all_its_processes(config: str) -> None:
    """``test_wheel`` ends ``nornweave up`` so."""
    process = start("-m", "nornweave.cli", "--config", config, "serve", "--workers", "2", "--port", "0", "--json")
    everything = [psutil.Process(process.pid)]
    try:
        assert process.stdout
        assert process.stdout.readline().startswith('{"url"'), "it did not start"
        # The second process is started once the first has loaded everything.
        until(lambda: len(psutil.Process(process.pid).children()) == 2)
        everything = [*everything[0].children(recursive=True), *everything]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert psutil.wait_procs(everything, 10)[1] == []
    finally:
        for each in everything:
            with suppress(psutil.NoSuchProcess):
                each.kill()
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(("number", "moment"), [
    # The command is imported.
    (signal.SIGINT, ("nornweave.core.process", "typer")),
    (signal.SIGTERM, ("nornweave.core.process", "typer")),
    # Dagster is, then what a process imports that Dagster started. ``up`` ends both in one way, whatever ended it.
    (signal.SIGTERM, ("Dagster UI: starting", "dagster._core.events")),
    (signal.SIGINT, ("orchestration.webserver", "dagster._core.events")),
])  # fmt: skip
def test_a_signal_while_it_starts_ends_everything_silently(
    moment: tuple[str, ...], number: signal.Signals, config: str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "nornweave.cli", "--config", config, "up", "--dagster-port", str(free_port())],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FUSION_PORT": str(free_port()), "PYTHONPROFILEIMPORTTIME": "1"},
        preexec_fn=ignore_signals,
    )
    everything = [psutil.Process(process.pid)]
    with process:
        try:
            for sign in moment:  # what is imported is named on stderr
                assert any(line.split("|")[-1].strip() == sign for line in process.stderr or ()), sign
            everything += everything[0].children(recursive=True)
            process.send_signal(number)
            assert process.stderr and "Traceback" not in process.stderr.read()
            assert process.wait(60) in {0, -number}
            assert psutil.wait_procs(everything[1:], 10)[1] == []
        finally:
            for each in everything:
                with suppress(psutil.NoSuchProcess):
                    each.kill()


@pytest.mark.slow
def test_tools_in_the_background_end_on_sigterm(config: str) -> None:
    process = start("-m", "nornweave.cli", "--config", config, "mcp")
    assert process.stdin and process.stdout
    process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    assert '"id":1' in process.stdout.readline().replace(" ", "")
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    process.communicate()
