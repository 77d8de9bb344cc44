"""Roles of least privilege on a real server: who may write, who may read, and which documents people see."""

from collections.abc import Iterator

import psycopg
import pytest
from postgres_server import PostgresServer, postgres_server, store_in
from test_history import evaluation, values_of

from lab.access.corpora import Written, publish_into
from nornweave.carry.postgresql.ledger import LedgerRow
from nornweave.carry.postgresql.server import Server, close_idle, role_statements
from nornweave.core.access import ANYONE, OPERATOR
from nornweave.core.errors import StoreError
from nornweave.improve.postgresql_history import PostgresHistory
from nornweave.index.corpus import DuckDBStore

SCHEMA = "nornweave_documentation"
WORKSPACE = "nornweave_workspace"
WRITTEN = (
    Written("open", "a.md", "alpha"),
    Written("inner", "b.md", "beta"),
    Written("secret", "c.md", "gamma"),
    Written("open", "d.md", "delta", ["guests"]),
    Written("inner", "e.md", "epsilon", ["board"]),
    Written("open", "f.md", "zeta", []),
)
LOGINS = """
create role ingest login in role nornweave_writer;
create role ingest2 login in role nornweave_writer;
create role serve login in role nornweave_reader;
create role ann login in role nornweave_people;
create role "group:staff";
create role "group:board";
create role bob login in role nornweave_people, "group:staff";
create role eve login in role nornweave_people, "group:staff", "group:board";
create role stranger login;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with pytest.MonkeyPatch.context() as patch, postgres_server(patch) as running:
        with psycopg.connect(running.url, autocommit=True) as connection:
            for _ in range(2):
                connection.execute(role_statements([SCHEMA], WORKSPACE))
            connection.execute(LOGINS)
        publish_into(store_of(running, "ingest"), WRITTEN)
        yield running
        close_idle()


def store_of(server: PostgresServer, role: str) -> DuckDBStore:
    return store_in(Server(server.url_of(role), SCHEMA), server.folder.parent / f"of-{role}" / "documentation")


def rows(server: PostgresServer, role: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.url_of(role), options=f"-c search_path={SCHEMA},public") as connection:
        return connection.execute(statement).fetchall()


def test_a_reader_serves_everything_and_writes_nothing(server: PostgresServer) -> None:
    store = store_of(server, "serve")
    with store.files.open(store.files.current()) as index:
        assert len(index.paths()) == len(WRITTEN)
        assert sorted(index.seen_by(ANYONE).paths()) == ["a.md"]
        assert index.seen_by(OPERATOR).sparse({"alpha": 1.0}).any()
    with pytest.raises(StoreError, match="permission denied"), store.writer():
        pass
    with pytest.raises(StoreError, match="permission denied"):
        store.rollback("gen-000001")
    for statement in (
        "delete from chunks",
        "update carried set state = '{}'",
        "drop table chunks",
        "create table mine (a int)",
        "delete from objects",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            rows(server, "serve", statement)


@pytest.mark.parametrize(
    ("role", "paths"), [("ann", "a"), ("bob", "ab"), ("eve", "abce"), ("serve", "abcdef"), ("ingest", "abcdef")]
)
def test_people_see_the_documents_of_their_groups(server: PostgresServer, role: str, paths: str) -> None:
    found = rows(server, role, "select path from documents order by path")
    assert [path for (path,) in found] == [f"{name}.md" for name in paths]
    assert rows(server, role, "select count(*) from chunks") == [(len(paths),)]
    assert rows(server, role, "select count(*) from chunks where content like '%zeta%'") == [("f" in paths,)]


def test_roles_take_over_what_was_synced_before_there_were_any(monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres_server(monkeypatch) as running:
        publish_into(store_of(running, "postgres"), WRITTEN[:3])
        with psycopg.connect(running.url, autocommit=True) as connection:
            connection.execute(role_statements([SCHEMA], WORKSPACE))
            connection.execute(LOGINS)
        store = store_of(running, "serve")
        with store.files.open(store.files.current()) as index:
            assert len(index.paths()) == 3
        publish_into(store_of(running, "ingest"), WRITTEN)
        assert store.files.current() == "gen-000002"
        with psycopg.connect(running.url, autocommit=True) as connection:
            connection.execute(role_statements([SCHEMA], WORKSPACE))  # as for a new domain
        assert rows(running, "bob", "select path from documents order by path") == [("a.md",), ("b.md",)]
        close_idle()


def test_people_see_no_index(server: PostgresServer) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        rows(server, "eve", "select * from objects")


def test_strangers_see_nothing(server: PostgresServer) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        rows(server, "stranger", f"select * from {SCHEMA}.documents")


def test_writers_replace_each_other(server: PostgresServer) -> None:
    """Two logins of the writers' role drop what the other made; neither owns the working tables."""
    for number, role in enumerate(("ingest2", "ingest", "ingest2", "ingest")):
        publish_into(store_of(server, role), [*WRITTEN, Written("open", f"more{number}.md", "more")])
    store = store_of(server, "serve")
    assert len(store.generations()) == 3
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        rows(server, "ingest", "drop table documents")


def test_who_serves_shows_the_history_and_the_ledger(server: PostgresServer) -> None:
    serving, syncing = (Server(server.url_of(role), WORKSPACE) for role in ("serve", "ingest"))
    PostgresHistory(syncing).record([(evaluation("one"), values_of("one"))])
    LedgerRow(syncing).write("{}")
    assert [one.evaluation_id for one in PostgresHistory(serving).evaluations()] == ["one"]
    assert PostgresHistory(serving).values("one")
    assert LedgerRow(serving).read() == "{}"
    for refused in (
        lambda: PostgresHistory(serving).record([(evaluation("two"), ())]),
        lambda: LedgerRow(serving).write("{}"),
    ):
        with pytest.raises(StoreError, match="permission denied"):
            refused()
    for table in ("evaluations", "ledger"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            rows(server, "eve", f"select * from {WORKSPACE}.{table}")
