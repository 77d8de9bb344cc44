"""The history of evaluations in PostgreSQL, for all machines of a workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psycopg import sql

from nornweave.carry.postgresql.server import Server, prepare_workspace, writing
from nornweave.improve.history import FORGET, EvaluationHistory, Rows, T, rows_of
from nornweave.improve.records import Evaluation, QueryValue


class PostgresHistory(EvaluationHistory):
    """The history in the workspace's schema."""

    mark = "%s"

    def __init__(self, server: Server) -> None:
        self._server = server

    def record(self, evaluations: Sequence[tuple[Evaluation, Sequence[QueryValue]]]) -> None:
        """Add evaluations and their queries' values, all or none."""
        if not evaluations:
            return
        with writing(self._server, "the evaluation was not recorded") as connection:
            prepare_workspace(connection, self._server)
            with connection.transaction():
                for evaluation, values in evaluations:
                    for table, columns, rows in rows_of(evaluation, values):
                        names = sql.SQL(", ").join(map(sql.Identifier, columns))
                        statement = sql.SQL("copy {} ({}) from stdin").format(sql.Identifier(table), names)
                        with connection.cursor() as cursor, cursor.copy(statement) as copied:
                            for row in rows:
                                copied.write_row(row)
                connection.execute(FORGET)

    def _read(self, ask: Callable[[Rows], T]) -> T:
        return ask(self._server.rows_if_there)
