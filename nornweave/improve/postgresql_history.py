"""The history of evaluations in PostgreSQL, for all machines of a workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from psycopg import sql

from nornweave.improve.history import FORGET, EvaluationHistory, Rows, T, rows_of
from nornweave.improve.records import Evaluation, QueryValue
from nornweave.index.postgresql.pool import Connection
from nornweave.index.postgresql.schema import become_writer, prepare_workspace
from nornweave.index.postgresql.server import Server, translated


class PostgresHistory(EvaluationHistory):
    """The history in the workspace's schema."""

    mark = "%s"

    def __init__(self, server: Server) -> None:
        self._server = server

    def record(self, evaluations: Sequence[tuple[Evaluation, Sequence[QueryValue]]]) -> None:
        """Add evaluations with their queries' values, all of them or none."""
        if not evaluations:
            return
        with translated(self._server, "the evaluation was not recorded"), self._server.connect() as connection:
            become_writer(connection)
            prepare_workspace(connection, self._server)
            with connection.transaction():
                for evaluation, values in evaluations:
                    for table, columns, rows in rows_of(evaluation, values):
                        _copy(connection, table, columns, rows)
                connection.execute(FORGET)

    def _read(self, ask: Callable[[Rows], T]) -> T:
        return ask(self._server.rows_if_there)


def _copy(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("copy {} ({}) from stdin").format(sql.Identifier(table), names)
    with connection.cursor() as cursor, cursor.copy(statement) as copied:
        for row in rows:
            copied.write_row(row)
