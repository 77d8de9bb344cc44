"""Somebody with SQL tries to learn of documents that their groups may not see: no word of one may come out."""

from collections.abc import Iterator

import psycopg
import pytest
from postgres_server import PostgresServer, postgres_server
from test_postgres_roles import LOGINS, SCHEMA, WORKSPACE, store_of

from lab.access.corpora import Written, publish_into
from nornweave.carry.postgresql.server import close_idle, role_statements

SECRET = "zebra"
WRITTEN = (
    Written("open", "a.md", "alpha"),
    *(Written("open", f"open{number}.md", f"word{number}") for number in range(20)),
    *(Written("open", f"{SECRET}{number}.md", f"{SECRET} {number}", ["board"]) for number in range(20)),
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with pytest.MonkeyPatch.context() as patch, postgres_server(patch) as running:
        with psycopg.connect(running.url, autocommit=True) as connection:
            connection.execute(role_statements([SCHEMA], WORKSPACE))
            connection.execute(LOGINS)
            publish_into(store_of(running, "ingest"), WRITTEN)
            connection.execute("analyze")
        yield running
        close_idle()


def told(server: PostgresServer, *statements: str, role: str = "bob") -> str:
    """Run statements as a login, and return all that comes back: rows, or what the error says."""
    with psycopg.connect(server.url_of(role), options=f"-c search_path={SCHEMA},public", autocommit=True) as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        answer = ""
        for statement in statements:
            try:
                cursor = connection.execute(statement)
                answer += repr(cursor.fetchall()) if cursor.description else ""
            except psycopg.Error as error:
                answer += f"{error}"
        return answer + " ".join(notices)


LEAK = (
    "create function pg_temp.leak(text) returns boolean language plpgsql cost 0.0000001 as "
    "$$begin raise notice '%', $1; return true; end$$"
)


@pytest.mark.parametrize("statements", [
    ("select * from documents",),
    ("select * from chunks",),
    ("set row_security = off", "select * from documents"),
    (LEAK, "select count(*) from chunks where pg_temp.leak(content)"),
    (LEAK, "select count(*) from documents where pg_temp.leak(path)"),
    (LEAK, "create temp view v as select * from documents where pg_temp.leak(path)", "select * from v"),
    ("select content::integer from chunks where content like '%zebr%'",),
    ("select path::integer from documents order by path desc",),
    ("select 1 / (path like 'zebr%')::integer::integer from documents where path > 'y'",),
    ("prepare p as select * from documents", "execute p", 'set role "group:staff"', "execute p"),
    ("set role nornweave_people", "select * from documents"),
    ("set role nornweave_reader", "select * from documents"),
    ('set role "group:board"', "select * from documents"),
    ("set session authorization serve", "select * from documents"),
    ("create temp table mine as select * from documents", "select * from mine"),
    ("select * from pg_stats where tablename in ('documents', 'chunks')",),
    ("select * from pg_stats_ext", "select * from pg_statistic"),
    ("select query from pg_stat_activity", "select * from pg_prepared_statements"),
    ("select * from objects", "select * from carried", "select * from meta"),
    ("declare c cursor for select * from documents", "fetch all c"),
    ("lock table documents in access share mode", "table documents"),
    ("explain (analyze, verbose) select * from chunks where content like '%zebr%'",),
    ("insert into documents select * from documents", "update documents set access = null"),
    ("update documents set rule = '[]'", "delete from documents"),
    ("alter table documents disable row level security", "drop policy people on documents"),
    ('create role "group:board2"', 'grant "group:board" to bob'),
])  # fmt: skip
def test_no_word_of_a_hidden_document_comes_out(server: PostgresServer, statements: tuple[str, ...]) -> None:
    answer = told(server, *statements)
    for statement in statements:  # errors quote what was sent
        answer = answer.replace(statement, "")
    assert SECRET not in answer, answer[:2000]


@pytest.mark.parametrize(("table", "column"), [
    ("documents", "path"), ("documents", "text"), ("documents", "source_id"), ("chunks", "content"),
    ("chunks", "title"),
])  # fmt: skip
def test_plans_say_nothing_of_hidden_rows(server: PostgresServer, table: str, column: str) -> None:
    """A plan says how often a part of it ran, and what the planner expects: which tells a text letter by letter."""

    def plan(prefix: str) -> str:
        ordered = f"where {column} >= '{prefix}' and {column} < '{prefix}zzz'"
        found = told(server, *(f"explain ({how}) select 1 from {table} {ordered}" for how in (
            "verbose", "analyze, buffers off, summary off, timing off")))  # fmt: skip
        return found.replace(prefix, "…")

    assert plan(SECRET) == plan("zebrb")
    assert "Filter" in plan(SECRET)


def test_copying_gives_what_is_seen(server: PostgresServer) -> None:
    with (
        psycopg.connect(server.url_of("bob"), options=f"-c search_path={SCHEMA},public") as connection,
        connection.cursor().copy("copy (select * from documents) to stdout") as copied,
    ):
        text = b"".join(map(bytes, copied)).decode()
    assert "open1.md" in text and SECRET not in text
