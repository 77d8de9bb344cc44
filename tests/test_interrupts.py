"""Programs that a script starts in the background, with SIGINT ignored, end on a signal as in a terminal."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import time
from nornweave.core.interrupts import heed_signals
heed_signals()
print("ready", flush=True)
time.sleep(600)
"""


def ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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
