"""The processes of docs/workers.md on one machine, each with a folder of its own, through everything that can break.

Runs are executed by Dagster's own workers (``dagster-celery``). The machines share PostgreSQL, the broker and object
storage, each over a link of its own that can be cut, and no folder.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import httpx
import psycopg
import pytest
import redis
import yaml
from forked import free_port
from link import Link
from postgres_server import PostgresServer
from redis_server import RedisServer
from waiting import until as until_soon

from lab.s3_server import BUCKET, s3_server
from nornweave.carry.parts import ObjectStore
from nornweave.carry.publication import Publication, PublishedCommit
from nornweave.config.workspace import ObjectStoreSettings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]
ROOT = Path(__file__).parents[2]
TOKEN = "sesame"
PAGES, BATCH = 40, 4
BATCHES = PAGES // BATCH
QUEUE = "nornweave-encoding"
PUBLISHED = f"s3://{BUCKET}/published"
LAUNCH = """
mutation ($params: ExecutionParams!) {
  launchRun(executionParams: $params) { ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } }
}
"""
HEALTH = "{ instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } } }"
RUNS = "{ runsOrError { ... on Runs { results { id rootRunId status } } } }"
EVENTS = """
{ runsOrError { ... on Runs { results { id status eventConnection { events { ... on MessageEvent { message } } } } } } }
"""
SYNC = {"repositoryLocationName": "nornweave", "repositoryName": "__repository__", "jobName": "sync"}


# Every look costs those that are looked at. A run that is lost is noticed, queued again and started, each by a loop of
# Dagster that sleeps for five to ten seconds. All of it takes a minute; a loaded machine may take ten.
until = partial(until_soon, pace_s=0.5, within_s=600)


class Machine:
    """A folder, links to the servers, and the processes that were started there."""

    def __init__(self, folder: Path, servers: dict[str, Callable[[], socket.socket]]) -> None:
        self.folder = folder
        self.links = {name: Link(connect) for name, connect in servers.items()}
        (folder / "docs").mkdir(parents=True)
        self.config = folder / "nornweave.yaml"
        self.configure()
        ports = {name: link.port for name, link in self.links.items()}
        self._environment = {
            **os.environ,
            "NORNWEAVE_BROKER_URL": f"redis://127.0.0.1:{ports['broker']}/0",
            "CELERY_BROKER_URL": f"redis://127.0.0.1:{ports['broker']}/0",
            "CELERY_RESULT_BACKEND": f"redis://127.0.0.1:{ports['broker']}/0",
            "NORNWEAVE_CONFIG": str(self.config),
            "NORNWEAVE_DAGSTER_POSTGRES_URL": f"postgresql://postgres@127.0.0.1:{ports['postgres']}/postgres",
            "NORNWEAVE_REFRESH_CRON": "0 0 1 1 *",  # runs begin when the test says so
            "NORNWEAVE_SERVICE_TOKEN": TOKEN,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['objects']}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            # Dagster gives the retry of a run up for ever if its code server does not answer within 60 s.
            "DAGSTER_GRPC_TIMEOUT_SECONDS": "600",
            "LOG_LEVEL": "INFO",
            "PYTHONPATH": str(ROOT),
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def configure(self, **workers: object) -> None:
        settings = {**SETTINGS, "workers": {**SETTINGS["workers"], **workers}}
        self.config.write_text(yaml.safe_dump(settings))

    def write(self, words: str) -> None:
        """Write the documents that the machine syncs."""
        for number in range(PAGES):
            page = f"# Page {number}\n\nPayments {words} in {number} days.\n"
            (self.folder / "docs" / f"{number:02}.md").write_text(page)

    def start(self, *command: str) -> None:
        with (self.folder / "log").open("ab") as log:
            started = subprocess.Popen(
                [sys.executable, *command],
                cwd=self.folder,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._started.append(started)

    def nornweave(self, *arguments: str) -> None:
        self.start("-m", "nornweave.cli", "--config", str(self.config), *arguments)

    def execute_runs(self, name: str) -> None:
        """Start a worker of Dagster for one run at a time, each in a process of its own."""
        command = [sys.executable, "-m", "nornweave.cli", "dagster", "--home"]
        home = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=True)
        self._environment["DAGSTER_HOME"] = home.stdout.strip()
        one_at_a_time = ("--concurrency", "1", "--max-tasks-per-child", "1")
        self.start(
            "-m", "celery", "--app", "dagster_celery.app", "worker", "--queues", "dagster", *one_at_a_time,
            "--hostname", f"{name}@%h", "--loglevel", "INFO",
        )  # fmt: skip

    def log(self) -> str:
        log = self.folder / "log"
        return log.read_text() if log.exists() else ""

    def lose_power(self) -> None:
        for process in self._started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._started.clear()

    def cut(self) -> None:
        for link in self.links.values():
            link.cut()

    def heal(self) -> None:
        for link in self.links.values():
            link.heal()

    def remove(self) -> None:
        self.lose_power()
        for link in self.links.values():
            link.close()


SETTINGS: dict[str, Any] = {
    "data_dir": "./var",
    "sources": [{"id": "docs", "domain": "documentation", "type": "files", "path": "docs"}],
    "domains": {"documentation": {"embedding": {"model": "hash:64"}, "evaluation": {"judgments": []}}},
    "publish": {"url": PUBLISHED},
    "workers": {
        "objects": f"s3://{BUCKET}/workers", "leases": True, "lease_s": 4, "batch": BATCH, "patience_s": 600,
        "run_launcher": {
            "module": "dagster_celery.launcher",
            "class": "CeleryRunLauncher",
            "config": {"broker": {"env": "CELERY_BROKER_URL"}, "backend": {"env": "CELERY_RESULT_BACKEND"}},
        },
    },
}  # fmt: skip


@pytest.fixture
def objects() -> Iterator[int]:
    with s3_server() as port:
        yield port


@pytest.fixture
def published(objects: int, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    endpoint = f"http://127.0.0.1:{objects}"
    return ObjectStore(ObjectStoreSettings(url=PUBLISHED, endpoint=endpoint, region="us-east-1", allow_http=True))


@pytest.fixture
def machines(
    tmp_path: Path, broker: RedisServer, database: str, postgres: PostgresServer, objects: int
) -> Iterator[dict[str, Machine]]:
    servers = {
        "broker": lambda: socket.create_connection(("127.0.0.1", broker.port)),
        "postgres": partial(_connected, f"{postgres.url.partition('?host=')[2]}/.s.PGSQL.5432"),
        "objects": lambda: socket.create_connection(("127.0.0.1", objects)),
    }
    names = ("control", "one", "two", "stuck", "encoding", "api")
    started = {name: Machine(tmp_path / name, servers) for name in names}
    yield started
    for machine in started.values():
        machine.remove()


class Dagster:
    def __init__(self, machine: Machine) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        machine.start("-m", "orchestration", "--port", self.url.rpartition(":")[2])

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {TOKEN}", "Origin": self.url, "Sec-Fetch-Site": "same-origin"}
        document = {"query": query, "variables": variables}
        answer = httpx.post(f"{self.url}/graphql", json=document, headers=headers, timeout=600)
        if not answer.is_success:
            raise httpx.HTTPError(answer.text)
        return answer.json()["data"]

    def launch(self) -> str:
        """Launch a run; the web server fails once with each connection that PostgreSQL has closed meanwhile."""
        parameters = {"selector": SYNC, "runConfigData": json.dumps({}), "mode": "default"}
        for _ in range(3):
            with suppress(httpx.HTTPError):
                return self.ask(LAUNCH, params=parameters)["launchRun"]["run"]["runId"]
        return self.ask(LAUNCH, params=parameters)["launchRun"]["run"]["runId"]

    def statuses(self, run_id: str) -> list[str]:
        """Return where a run and its repetitions are, the newest first."""
        try:
            runs = self.ask(RUNS)["runsOrError"]["results"]
        except (httpx.HTTPError, KeyError, TypeError):  # it is starting, or PostgreSQL is
            return []
        return [run["status"] for run in runs if run_id in {run["id"], run["rootRunId"]}]

    def is_ready(self) -> bool:
        """Tell whether all daemons beat: what fails before the one that repeats runs first looks is not repeated."""
        with suppress(httpx.HTTPError, TypeError):
            daemons = self.ask(HEALTH)["instance"]["daemonHealth"]["allDaemonStatuses"]
            return all(daemon["healthy"] for daemon in daemons if daemon["required"])
        return False

    def events(self) -> object:
        return json.dumps(self.ask(EVENTS), indent=1)


class Api:
    """A replica: it is given the object storage and nothing else."""

    headers: ClassVar = {"Authorization": f"Bearer {TOKEN}"}

    def __init__(self, machine: Machine) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        folder = str(machine.folder / "replica")
        machine.nornweave("serve", "--from", PUBLISHED, "--data-dir", folder, "--port", str(port), "--workers", "1")

    def generation(self) -> str | None:
        try:
            return httpx.get(f"{self.url}/ready", headers=self.headers, timeout=60).json()["domains"]["documentation"][
                "generation"
            ]
        except (httpx.HTTPError, KeyError, ValueError):
            return None

    def says(self, word: str) -> bool:
        """Tell whether there is an answer, and each item of it has this word."""
        question = {"query": "payments in days"}
        answer = httpx.post(f"{self.url}/query", json=question, headers=self.headers, timeout=60)
        items = answer.raise_for_status().json()["items"]
        return bool(items) and all(word in item["content"] for item in items)


def test_nothing_is_lost_and_nothing_is_published_twice(
    machines: dict[str, Machine], broker: RedisServer, postgres: PostgresServer, published: ObjectStore
) -> None:
    control, one, two, stuck, encoding, api_machine = machines.values()
    for machine in (one, two):
        machine.write("settle")
    dagster, api = Dagster(control), Api(api_machine)

    def told() -> str:
        logs = "\n".join(f"== {name}\n{machine.log()}" for name, machine in reversed(machines.items()))
        return f"{dagster.events()}\n{logs}"

    one.execute_runs("one")
    until(dagster.is_ready, control.log)
    first = dagster.launch()
    until(lambda: _length(broker, QUEUE) == BATCHES, told)  # nobody encodes yet: the run waits
    one.lose_power()
    two.execute_runs("two")
    until(lambda: _length(broker, QUEUE) == 2 * BATCHES, told)
    assert dagster.statuses(first) == ["STARTED", "FAILURE"]  # tried again, by the other worker

    two.cut()
    broker.kill()
    broker.start()  # with nothing that was queued
    one.configure(patience_s=10)
    one.execute_runs("one")
    stuck.links["objects"].cut_at(b" /generations/workers/encodings/")
    for machine in (stuck, encoding):
        machine.nornweave("worker")
    until(lambda: _waiting(broker) >= 3, told)
    second = dagster.launch()
    until(lambda: stuck.links["objects"].is_cut, told)  # it has a batch in hand
    stuck.lose_power()
    postgres.stop()  # as a crash does
    postgres.start()

    until(lambda: dagster.statuses(second)[:1] == ["SUCCESS"], told)
    until(lambda: api.generation() == "gen-000001", told)
    assert " of documentation: " in encoding.log()
    assert api.says("settle")
    assert _commit(published).documents == PAGES
    state = _state(postgres), _commit(published)
    two.heal()
    until(lambda: "Task execute_job" in two.log() and " succeeded in " in two.log(), told)
    assert "another machine has taken over" in two.log()
    until(lambda: dagster.statuses(first) == ["FAILURE", "FAILURE"], told)
    assert (_state(postgres), _commit(published)) == state

    one.lose_power()
    two.write("clear")
    third = dagster.launch()
    until(lambda: dagster.statuses(third)[:1] == ["SUCCESS"], told)
    until(lambda: api.generation() == "gen-000002", told)
    assert api.says("clear")
    assert _commit(published).documents == PAGES
    assert _commit(published).fence == 2


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def _length(broker: RedisServer, queue: str) -> int:
    with redis.Redis(port=broker.port) as client:
        return int(client.llen(queue))


def _waiting(broker: RedisServer) -> int:
    """Return how many workers wait for a message."""
    with redis.Redis(port=broker.port) as client:
        return sum(each["cmd"] == "brpop" for each in client.client_list())


def _state(postgres: PostgresServer) -> object:
    """Return what is committed of the domain: fence and files."""
    with psycopg.connect(postgres.url) as connection:
        return connection.execute(
            "select fence, state from nornweave_leases where name like '% documentation'"
        ).fetchone()


def _commit(published: ObjectStore) -> PublishedCommit:
    return PublishedCommit.model_validate(Publication(published, "documentation").state())
