"""The history of evaluations in PostgreSQL, for all machines of a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import sql

from nornweave.improve.history import DEFAULT_LIMIT
from nornweave.improve.history_rows import (
    COLUMNS,
    FORGET,
    METRIC_COLUMNS,
    VALUE_COLUMNS,
    by_evaluation,
    by_measure,
    evaluation_of,
    fields_of,
    metric_rows,
    value_rows,
)
from nornweave.improve.records import Evaluation, QueryValue, Values
from nornweave.index.postgresql.roles import become_writer
from nornweave.index.postgresql.server import Connection, Server, translated
from nornweave.index.postgresql.workspace import prepare_workspace


class PostgresHistory:
    """The history in the workspace's schema; implements ``EvaluationHistory``."""

    def __init__(self, server: Server) -> None:
        """Store the parameters; nothing is opened."""
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
                    _insert(connection, evaluation, values)
                connection.execute(FORGET)

    def evaluations(
        self,
        *,
        domain: str | None = None,
        set_name: str | None = None,
        scope: str | None = None,
        generation: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> tuple[Evaluation, ...]:
        """Return evaluations, newest first."""
        asked = {"domain": domain, "set": set_name, "scope": scope, "generation": generation}
        stated = {column: value for column, value in asked.items() if value is not None}
        if any("\0" in value for value in stated.values()):  # which no text in PostgreSQL holds
            return ()
        where = " and ".join(f'"{column}" = %s' for column in stated) or "true"
        rows = self._server.rows_if_there(
            f'select {COLUMNS} from evaluations where {where} order by "at" desc, evaluation_id limit %s',
            [*stated.values(), limit],
        )
        metrics = by_evaluation(
            self._server.rows_if_there(
                "select evaluation_id, stage, measure, mean, low, high from metrics "
                "where evaluation_id = any(%s) order by evaluation_id, place",
                [[row[0] for row in rows]],
            )
        )
        return tuple(evaluation_of(row, metrics.get(row[0], ())) for row in rows)

    def values(self, evaluation_id: str) -> Mapping[tuple[str, str], Values]:
        """Return (stage, measure) → (query, digest) → value; empty when they are not kept any more."""
        return by_measure(
            self._server.rows_if_there(
                'select stage, measure, query, digest, "value" from query_values where evaluation_id = %s',
                [evaluation_id],
            )
        )


def _insert(connection: Connection, evaluation: Evaluation, values: Sequence[QueryValue]) -> None:
    fields = fields_of(evaluation)
    marks = ", ".join("%s" for _ in fields)
    connection.execute(f"insert into evaluations ({COLUMNS}) values ({marks})", fields)
    _copy(connection, "metrics", METRIC_COLUMNS, metric_rows(evaluation))
    _copy(connection, "query_values", VALUE_COLUMNS, value_rows(evaluation, values))


def _copy(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("copy {} ({}) from stdin").format(sql.Identifier(table), names)
    with connection.cursor() as cursor, cursor.copy(statement) as copied:
        for row in rows:
            copied.write_row(row)
