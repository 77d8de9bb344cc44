"""The history of evaluations in PostgreSQL, for all machines of a workspace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nornweave.improve.history import FORGET, EvaluationHistory, Rows, T, rows_of
from nornweave.improve.records import Evaluation, QueryValue
from nornweave.index.postgresql.schema import copy_rows, prepare_workspace, writing
from nornweave.index.postgresql.server import Server


class PostgresHistory(EvaluationHistory):
    """The history in the workspace's schema."""

    mark = "%s"

    def __init__(self, server: Server) -> None:
        self._server = server

    def record(self, evaluations: Sequence[tuple[Evaluation, Sequence[QueryValue]]]) -> None:
        """Add evaluations with their queries' values, all of them or none."""
        if not evaluations:
            return
        with writing(self._server, "the evaluation was not recorded") as connection:
            prepare_workspace(connection, self._server)
            with connection.transaction():
                for evaluation, values in evaluations:
                    for table, columns, rows in rows_of(evaluation, values):
                        copy_rows(connection, table, rows, columns)
                connection.execute(FORGET)

    def _read(self, ask: Callable[[Rows], T]) -> T:
        return ask(self._server.rows_if_there)
