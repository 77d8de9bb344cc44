"""Kill the first commands of an installation, at any moment: the next ones must work as in a new folder."""

from __future__ import annotations

import http.client
import os
import random
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from lab.campaigns.processes import CampaignChild, command, until
from lab.campaigns.report import Order, Tally, as_markdown
from lab.campaigns.workspace import References, Workspace, differences, disorder, published_state
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError
from orchestration.history import look_for_damage

# The share of kills of each command; `up` takes a minute, an `init` a tenth of a second.
KINDS: Mapping[str, float] = {"sync": 0.65, "init": 0.2, "up": 0.15}
# The share of killed syncs that end while Dagster makes its files, which is a small part of a sync.
IN_MAKING, MAKING_S = 0.6, 0.4
UP_S = 60.0
READY_WITHIN_S = 300.0
TOLD_EVERY = 25
# What a command says that did not work as in a new folder.
COMPLAINTS = ("in no history", "half made")


def kill_beginnings(order: Order, kinds: Mapping[str, float] = KINDS) -> Tally:
    """Kill ``order.runs`` first commands, each of a new installation, in shares of ``kinds``.

    Afterwards ``init`` writes its file, ``up`` answers and stops, and ``sync`` ends well, records its run and publishes
    what a first sync publishes.
    """
    tally = Tally("kill -9 of the first commands")
    _Campaign(order, tally, kinds).run()
    return tally


class _Campaign:
    def __init__(self, order: Order, tally: Tally, kinds: Mapping[str, float]) -> None:
        self._order = order
        self._kinds = kinds
        self._tally = tally
        self._chance = random.Random(order.seed)
        self._expected = References(order.folder / "reference", order.seed)[0]
        self._workspace = Workspace(order.folder / "workspace", order.folder / "var", order.seed)
        self._seconds = dict.fromkeys(KINDS, 1.0) | {"up": UP_S}

    def run(self) -> None:
        """Begin, kill, begin again, compare; then in a new folder."""
        self._workspace.write(0)
        kill: Mapping[str, Callable[[str], bool]] = {"sync": self._sync, "init": self._init, "up": self._up}
        while self._tally.runs["kills"] < self._order.runs and len(self._tally.trouble) <= self._order.runs:
            kind = self._chance.choices(list(self._kinds), list(self._kinds.values()))[0]
            name = f"kill {self._tally.runs['kills'] + 1}, of {kind}"
            if kill[kind](name):
                self._tally.runs["kills"] += 1
                self._tally.runs[f"of {kind}"] += 1
                if self._tally.runs["kills"] % TOLD_EVERY == 0:
                    print(as_markdown([self._tally]), file=sys.stderr, flush=True)  # noqa: T201
            else:
                self._tally.runs["ended before"] += 1
                self._seconds[kind] *= 0.9 if self._seconds[kind] > 0.1 else 10
            shutil.rmtree(self._workspace.data_dir, ignore_errors=True)

    def _sync(self, name: str) -> bool:
        was_killed = self._kill(name, "sync", "sync", "--json")
        self._finish(name)
        return was_killed

    def _kill(self, name: str, kind: str, *arguments: str) -> bool:
        child = self._start("killed.txt", *arguments)
        if kind == "sync" and self._chance.random() < IN_MAKING:
            dagster = self._workspace.data_dir / "dagster"
            until(lambda: dagster.exists() or not child.is_running, every_s=0.001)
            time.sleep(self._chance.uniform(0, MAKING_S))
        else:
            time.sleep(self._chance.uniform(0, self._seconds[kind]))
        ended = child.kill()
        if ended:
            self._tally.ended_well(f"{name}, before it was killed,", ended)
        elif any((self._workspace.data_dir / "dagster").rglob(".making")):
            self._tally.outcomes["in the making of Dagster's files"] += 1
        return ended is None

    def _finish(self, name: str) -> None:
        """Sync to the end; everything must be as after a first sync."""
        started = time.monotonic()
        ended = self._start("sync.txt", "sync", "--json").wait()
        self._seconds["sync"] = (self._seconds["sync"] + time.monotonic() - started) / 2
        if not self._tally.ended_well(f"{name}: the sync after it", ended):
            return
        settings = self._workspace.settings
        trouble = [f"said {complaint!r}" for complaint in COMPLAINTS if complaint in ended.said]
        trouble += [f"{file}: {why}" for file, why in look_for_damage(self._workspace.data_dir / "dagster")]
        trouble += differences(published_state(settings), self._expected) + disorder(settings)
        self._tally.trouble += [f"{name}: {each}; the sync after it {ended.cause}" for each in trouble]
        self._tally.outcomes["times equal to a first sync"] += not trouble

    def _init(self, name: str) -> bool:
        """Kill an ``init`` of another file, or one that adds to it; the file is whole or not there."""
        file = self._order.folder / "init" / "nornweave.yaml"
        docs, code = (str(self._workspace.folder / name) for name in ("docs", "code"))
        shutil.rmtree(file.parent, ignore_errors=True)
        file.parent.mkdir()
        adds = self._chance.random() < 0.5
        if adds:
            self._tally.ended_well(f"{name}: init", command(self._said("init.txt"), file, "init", docs).wait())
        child = command(self._said("killed.txt"), file, "init", *(("--add", code) if adds else (docs,)))
        time.sleep(self._chance.uniform(0, self._seconds["init"]))
        if ended := child.kill():
            self._tally.ended_well(f"{name}, before it was killed,", ended)
        if file.exists() or adds:
            try:
                load_settings(file, {})
            except ConfigError as error:
                self._tally.trouble.append(f"{name}: {error}")
        again = command(self._said("init.txt"), file, "init", "--force", docs).wait()
        self._tally.outcomes["times init wrote its file"] += self._tally.ended_well(f"{name}: init again", again)
        return ended is None

    def _up(self, name: str) -> bool:
        """Kill ``up``, with all its processes or one of them; started again it answers."""
        child, _ = self._start_up("killed.txt")
        time.sleep(self._chance.uniform(0, self._seconds["up"]))
        processes = list(_session_of(child.pid))
        if self._chance.random() < 0.5 and processes:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(processes), signal.SIGKILL)
            self._tally.outcomes["one process of up"] += 1
            time.sleep(self._chance.uniform(0, 10))
        was_killed = _kill_session(child) or bool(processes)
        child, ports = self._start_up("up.txt")
        try:
            is_up = until(lambda: all(map(_answers, ports, ("/health", "/server_info"))), READY_WITHIN_S)
            self._tally.outcomes["times up answered"] += is_up
            if not is_up:
                child.stop()
                self._tally.trouble.append(f"{name}: up, started again, {child.wait(30).cause}")
                return was_killed
            child.stop()
            self._tally.ended_well(f"{name}: up, started again and stopped,", child.wait(60))
        finally:
            _kill_session(child)
        self._finish(name)
        return was_killed

    def _start_up(self, said: str) -> tuple[CampaignChild, tuple[int, int]]:
        ports = _free_port(), _free_port()
        child = self._start(said, "up", "--port", str(ports[0]), "--dagster-port", str(ports[1]))
        return child, ports

    def _start(self, said: str, *arguments: str) -> CampaignChild:
        return command(self._said(said), self._workspace.config, *arguments)

    def _said(self, name: str) -> Path:
        return self._order.folder / name


def _session_of(leader: int) -> Iterator[int]:
    """Yield the living processes of a session."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = status.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if int(session) == leader and state not in {"Z", "X"}:
            yield int(status.parent.name)


def _kill_session(child: CampaignChild) -> bool:
    """Kill a process and all that it and its children started; return whether it was still running."""
    while processes := list(_session_of(child.pid)):
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    return child.kill() is None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
