"""A PostgreSQL server that cannot be reached: each command ends with one sentence that names the cause."""

import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import nornweave
from configurations import files, write_config
from postgres_server import PostgresServer, postgres_server
from waiting import until

from nornweave.carry.lease import DATABASE_VARIABLE
from nornweave.carry.postgresql.server import Server, close_idle

RIGHT = "sesame/@:%"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with pytest.MonkeyPatch.context() as patch, postgres_server(patch) as running:
        running.demand_password(RIGHT)
        yield running
        close_idle()


@pytest.fixture(scope="module")
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]  # nobody listens on it, and nobody else can


def workspace(folder: Path, url: str | None) -> Path:
    write_config(folder, files("docs"), **({"storage": {"url": url}} if url else {}))
    (folder / "docs").mkdir()
    (folder / "docs/a.md").write_text("# A\n\nThe guide.\n")
    return folder


def said(folder: Path, command: str, **variables: str) -> str:
    """Return the message of a command that fails: one line for people."""
    done = nornweave(folder, command, variables={**os.environ, **variables})
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = done.stderr.splitlines() if command != "doctor" else [done.stdout]
    assert "rolled back" not in line
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize("command", ["sync", "serve", "up", "status", "doctor"])
def test_every_command_names_the_cause(tmp_path: Path, server: PostgresServer, command: str) -> None:
    line = said(workspace(tmp_path, server.url), command, PGPASSWORD="open")
    assert "the password is wrong; correct PGPASSWORD or ~/.pgpass" in line


def test_each_cause_has_its_remedy(tmp_path: Path, server: PostgresServer, closed_port: int) -> None:
    folder = workspace(tmp_path, server.url)
    causes = {
        server.url: "no password was given; set PGPASSWORD",
        server.url.replace("/postgres?", "/nothere?"): "make the database, or correct storage.url",
        f"postgresql://postgres@127.0.0.1:{closed_port}/x": "the server does not answer; start it",
        "postgresql://postgres@nowhere.invalid/x": "nobody knows this host; correct storage.url",
    }
    for url, cause in causes.items():
        password = {"PGPASSWORD": RIGHT} if "nothere" in url else {}
        config = json.loads((folder / "nornweave.yaml").read_text())
        (folder / "nornweave.yaml").write_text(json.dumps({**config, "storage": {"url": url}}))
        assert cause in said(folder, "status", **password)


@pytest.mark.parametrize("command", ["sync", "dagster", "doctor"])
def test_so_it_is_where_runs_are_recorded(
    tmp_path: Path, server: PostgresServer, closed_port: int, command: str
) -> None:
    folder = workspace(tmp_path, None)
    closed = f"postgresql://postgres:{RIGHT[:6]}@127.0.0.1:{closed_port}/x"
    addresses = {
        server.url.replace(
            "postgres@", "postgres:open@"
        ): f"the password is wrong; correct the password in {DATABASE_VARIABLE}",
        closed: f"the server does not answer; start it, or correct {DATABASE_VARIABLE}",
        f"postgresql://postgres:{RIGHT}@127.0.0.1:{closed_port}/x": "in user and password write @ as %40, / as %2F",
    }
    for address, cause in [*addresses.items()][: 1 if command == "dagster" else None]:  # it imports everything anew
        line = said(folder, command, **{DATABASE_VARIABLE: address})
        assert cause in line
        assert "sesame" not in line


def test_the_connections_of_all_schemas_together_are_bounded(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", RIGHT)
    schemas = [Server(server.url, f"bounded_{number}", connections=3) for number in range(5)]
    for schema in schemas:  # makes its tables, which takes longer than waiting for a connection may
        schema.rows("select 1")
    # A connection that was closed for one of another schema is listed, idle, until its process has ended.
    ours = "select pg_sleep(0.01), count(*) from pg_stat_activity where application_name = 'nornweave'"
    with ThreadPoolExecutor(8) as threads:
        active = f"{ours} and state = 'active'"
        counts = list(threads.map(lambda number: schemas[number % 5].rows(active)[0][1], range(40)))
    assert max(counts) <= 3
    until(lambda: schemas[0].rows(ours)[0][1] == 3)


def test_a_server_that_refused_is_not_asked_again_at_once(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "open")
    log = server.folder / "log"
    before = log.read_text().count("password authentication failed")
    schemas = [Server(server.url, f"refused_{number}", connections=4) for number in range(5)]
    for schema in schemas:
        with pytest.raises(Exception, match="password is wrong"):
            schema.rows("select 1")
    assert log.read_text().count("password authentication failed") - before == 1
