"""Two Dagsters over one database, as processes: one works, the other takes over when that is killed or cut off."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from configurations import files, write_config
from postgres_server import new_database
from waiting import HANGS_S, until

from nornweave.carry.lease import DATABASE_VARIABLE, Lease, plain_address
from nornweave.core.process import ALIVE
from orchestration.leases import STANDBY_LEASE_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def ignore_interrupts() -> None:
    """Do as a shell that starts a background job of a script."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Dagster:
    """``python -m orchestration`` in a process group of its own."""

    def __init__(self, folder: Path, database: str) -> None:
        (folder / "docs").mkdir(parents=True)
        (folder / "docs/a.md").write_text("# A\n\nThe guide.\n")
        write_config(folder, files("handbook", path="docs"))
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.log = folder / "log"
        with self.log.open("w") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "orchestration", "--port", str(self.port)],
                env={**os.environ, "NORNWEAVE_CONFIG": str(folder / "nornweave.yaml"), DATABASE_VARIABLE: database},
                stdout=stream, stderr=stream, process_group=0,
                preexec_fn=ignore_interrupts,
            )  # fmt: skip

    def works(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/server_info", timeout=60).status_code == 200
        except httpx.HTTPError:
            return False

    def waits(self) -> bool:
        return "standby: another Dagster works" in self.log.read_text()

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def daemons(one: Dagster) -> list[psutil.Process]:
    """Return Dagster's daemon, if it has been started."""
    return [each for each in psutil.Process(one.process.pid).children() if "orchestration.daemon" in each.cmdline()]


@contextmanager
def dagster(folder: Path, database: str) -> Iterator[Dagster]:
    started = Dagster(folder, database)
    try:
        yield started
    finally:
        started.signal(signal.SIGKILL)
        started.process.wait()


def test_the_second_waits_and_takes_over_when_the_first_is_killed_paused_or_stopped(
    tmp_path: Path,
) -> None:
    database = new_database()
    with dagster(tmp_path / "one", database) as one, dagster(tmp_path / "two", database) as two:
        until(lambda: (one.works() and two.waits()) or (two.works() and one.waits()), within_s=HANGS_S, pace_s=0.5)
        first, second = (one, two) if one.works() else (two, one)
        assert not second.works()
        for each in (first, second):  # who works and who waits both tell a probe that they do
            alive = each.log.parent / "var" / ALIVE
            alive.unlink()
            until(alive.exists, within_s=HANGS_S, pace_s=0.5)
        until(lambda: daemons(second), within_s=HANGS_S, pace_s=0.5)  # while it waits, it has started what takes time
        (daemon,) = daemons(first)
        first.process.kill()  # not its group: what it has started learns of it
        killed = time.monotonic()
        until(lambda: not daemon.is_running(), within_s=HANGS_S)
        until(second.works, lambda: second.log.read_text(), within_s=HANGS_S, pace_s=0.1)
        took_s = time.monotonic() - killed
        print(f"taken over {took_s:.1f} s after the kill")  # noqa: T201 - the figure of docs/figures-archive.md
        assert took_s > STANDBY_LEASE_S / 2, "while the lease ran, nobody worked"
        with dagster(tmp_path / "three", database) as third:
            until(third.waits, within_s=HANGS_S, pace_s=0.5)
            second.signal(signal.SIGSTOP)
            until(third.works, lambda: third.log.read_text(), within_s=HANGS_S, pace_s=0.5)
            second.signal(signal.SIGCONT)
            assert second.process.wait(HANGS_S) == 1, "who comes back ends: another one works"
            assert re.search("another machine has taken over", second.log.read_text())
            assert third.works()
            family = psutil.Process(third.process.pid).children(recursive=True)
            third.signal(signal.SIGINT)
            assert third.process.wait(HANGS_S) == 0
            assert not psutil.wait_procs(family, 60)[1]
            handed_over = Lease(plain_address(database), "dagster", purpose="test", seconds=STANDBY_LEASE_S)
            handed_over.take(0)  # who stops hands over at once
            handed_over.release()
