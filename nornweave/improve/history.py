"""The history of evaluations in one small DuckDB file, which is open only during a read or write.

DuckDB does not let a process read a file that another one writes, so readers and writers wait for each other.
``postgresql_history`` keeps it for several machines.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import duckdb
import pyarrow as pa

from nornweave.carry.wiring import workspace_server
from nornweave.config import Settings
from nornweave.core.errors import DomainBusyError, StoreError
from nornweave.core.files.lock import WriterLock
from nornweave.improve.records import Evaluation, QueryValue, StageMetric, Values, Verdict
from nornweave.index.connection import Connection, statement_file

T = TypeVar("T")
Rows: TypeAlias = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
"""Returns the rows of a statement with its parameters."""

DEFAULT_LIMIT = 100
# Values of single queries, of which an evaluation of 800 queries has a hundred thousand, are for comparing with what
# came before; beyond so many evaluations of a set the means are kept alone.
KEEP_VALUES = 30
_FIELDS = (
    "evaluation_id", "run_id", "at", "domain", "set", "origin", "scope", "generation", "verdict", "commit",
    "queries", "measured", "missing", "failed", "p50_ms", "p95_ms",
)  # fmt: skip
_ATTRIBUTES = {"set": "set_name"}
_COLUMNS = ", ".join(f'"{name}"' for name in _FIELDS)
# Refused candidates are counted apart: one that is tried again every hour must not push out the values of what is
# published, which it is compared with.
FORGET = f"""
delete from query_values
where evaluation_id not in (
  select evaluation_id
  from (
    select
      evaluation_id,
      row_number() over (
        partition by domain, "set", scope, verdict = '{Verdict.REFUSED.value}'
        order by "at" desc, evaluation_id
      ) as place
    from evaluations
  ) placed
  where place <= {KEEP_VALUES}
)
"""


class EvaluationHistory(ABC):
    """The history of evaluations. Safe for several threads and processes.

    Raises:
        StoreError: every method raises it when the history cannot be read or written.
    """

    mark: ClassVar[str]
    """Of a parameter in a statement."""

    @abstractmethod
    def record(self, evaluations: Sequence[tuple[Evaluation, Sequence[QueryValue]]]) -> None:
        """Add evaluations and their queries' values, all or none."""

    @abstractmethod
    def _read(self, ask: Callable[[Rows], T]) -> T:
        """Return the result of ``ask``, which queries the history. A missing history has no rows."""

    def evaluations(
        self,
        *,
        domain: str | None = None,
        set_name: str | None = None,
        scope: str | None = None,
        generation: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> tuple[Evaluation, ...]:
        """Return at most ``limit`` evaluations, newest first. An argument that is ``None`` restricts nothing."""
        asked = {"domain": domain, "set": set_name, "scope": scope, "generation": generation}
        stated = {column: value for column, value in asked.items() if value is not None}
        if any("\0" in value for value in stated.values()):  # which no text in PostgreSQL holds
            return ()
        where = " and ".join(f'"{column}" = {self.mark}' for column in stated) or "true"

        def read(rows: Rows) -> tuple[Evaluation, ...]:
            found = rows(
                f'select {_COLUMNS} from evaluations where {where} order by "at" desc, evaluation_id limit {self.mark}',
                [*stated.values(), limit],
            )
            metrics: dict[str, list[StageMetric]] = {row[0]: [] for row in found}
            for identity, *metric in rows(
                "select evaluation_id, stage, measure, mean, low, high from metrics "
                f"where evaluation_id = any({self.mark}::varchar[]) order by evaluation_id, place",
                [list(metrics)],
            ):
                metrics[identity].append(StageMetric(*metric))
            return tuple(_evaluation_of(row, metrics[row[0]]) for row in found)

        return self._read(read)

    def values(self, evaluation_id: str) -> Mapping[tuple[str, str], Values]:
        """Return (stage, measure) → (query, digest) → value; empty if the values were deleted."""
        statement = f'select stage, measure, query, digest, "value" from query_values where evaluation_id = {self.mark}'
        values: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
        for stage, measure, query, digest, value in self._read(lambda rows: rows(statement, [evaluation_id])):
            values.setdefault((stage, measure), {})[query, digest] = value
        return values


def rows_of(
    evaluation: Evaluation, values: Sequence[QueryValue]
) -> Iterator[tuple[str, Sequence[str], list[tuple[Any, ...]]]]:
    """Yield the rows of an evaluation for each table, as table name, column names and rows."""
    identity = evaluation.evaluation_id
    values_of_fields = (getattr(evaluation, _ATTRIBUTES.get(name, name)) for name in _FIELDS)
    # Until 2026-11 a plan could be tuned. Histories have the column, and it takes no null.
    yield "evaluations", (*_FIELDS, "plan"), [(*values_of_fields, "configured")]
    metrics = [(identity, place, *_values_of(metric)) for place, metric in enumerate(evaluation.metrics)]
    yield "metrics", ("evaluation_id", "place", *StageMetric.__slots__), metrics
    yield "query_values", ("evaluation_id", *QueryValue.__slots__), [(identity, *_values_of(each)) for each in values]


def _values_of(record: StageMetric | QueryValue) -> Iterator[Any]:
    return (getattr(record, name) for name in record.__slots__)


def _evaluation_of(row: Sequence[Any], metrics: Sequence[StageMetric]) -> Evaluation:
    """Convert a row of ``_FIELDS`` to an evaluation."""
    fields = {_ATTRIBUTES.get(name, name): value for name, value in zip(_FIELDS, row, strict=True)}
    return Evaluation(**fields | {"verdict": Verdict(fields["verdict"])}, metrics=tuple(metrics))


WAIT_S = 10.0
POLL_S = 0.02
MEMORY = "256MB"


class HistoryFile(EvaluationHistory):
    """The history in a file that all processes of this machine share."""

    mark = "?"

    def __init__(self, folder: Path) -> None:
        self._file = folder / "history.duckdb"

    def record(self, evaluations: Sequence[tuple[Evaluation, Sequence[QueryValue]]]) -> None:
        """Add evaluations and their queries' values, all or none.

        Raises:
            StoreError: another process holds the file for too long, or it is damaged.
        """
        if not evaluations:
            return
        try:
            with (
                WriterLock(self._file.with_suffix(".lock"), purpose="history", wait_s=WAIT_S),
                self._open(read_only=False) as connection,
            ):
                connection.execute("begin")
                for evaluation, values in evaluations:
                    for table, columns, rows in rows_of(evaluation, values):
                        _insert_rows(connection, table, columns, rows)
                connection.execute(FORGET)
                connection.execute("commit")
        except DomainBusyError as error:
            raise StoreError(f"{self._file}: another process has been writing it for {WAIT_S:g} s") from error
        except OSError as error:
            raise StoreError(f"{self._file}: cannot be written ({error})") from error

    def _read(self, ask: Callable[[Rows], T]) -> T:
        if not self._file.is_file():
            return ask(_no_rows)
        with self._open(read_only=True) as connection:
            try:
                return ask(lambda statement, parameters: connection.execute(statement, parameters).fetchall())
            except duckdb.CatalogException:  # whoever makes it has not yet made its tables
                return ask(_no_rows)
            except duckdb.Error as error:
                raise self._damage_error(error) from error

    def _create(self) -> None:
        """Create an empty history under another name and rename it, so that nobody reads an unfinished file."""
        begun = self._file.with_name(f".{self._file.name}.new")
        for left in (begun, begun.with_name(f"{begun.name}.wal")):  # by a writer that was killed
            left.unlink(missing_ok=True)
        try:
            with duckdb.connect(str(begun)) as connection:
                connection.execute(statement_file("history"))
        except duckdb.Error as error:
            raise StoreError(f"{begun}: cannot be written ({error})") from error
        begun.rename(self._file)

    @contextmanager
    def _open(self, *, read_only: bool) -> Iterator[Connection]:
        if not read_only and not self._file.exists():
            self._create()
        connection = self._connect(read_only)
        try:
            if not read_only:
                connection.execute(statement_file("history"))
            yield connection
        except duckdb.Error as error:
            raise self._damage_error(error) from error
        finally:
            connection.close()

    def _connect(self, read_only: bool) -> Connection:
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                connection = duckdb.connect(
                    str(self._file), read_only=read_only, config={"memory_limit": MEMORY, "threads": 1}
                )
            except duckdb.Error as error:
                if not _is_held(error) or time.monotonic() >= deadline:
                    raise self._damage_error(error) from error
                time.sleep(POLL_S)
            else:
                connection.execute("set timezone = 'UTC'")
                return connection

    def _damage_error(self, error: Exception) -> StoreError:
        return StoreError(f"{self._file}: cannot be used ({error}); if it is damaged, remove it: history starts afresh")


def history_of(settings: Settings) -> EvaluationHistory:
    """Return the workspace's history of evaluations.

    Raises:
        ConfigError: the history is in PostgreSQL, and the packages for PostgreSQL are not installed.
    """
    server = workspace_server(settings)
    if server is None:
        return HistoryFile(settings.data_dir / "evaluations")
    from nornweave.improve.postgresql_history import PostgresHistory

    return PostgresHistory(server)


def _no_rows(_statement: str, _parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
    return ()


def _is_held(error: duckdb.Error) -> bool:
    """Tell whether a file cannot be opened because it is open elsewhere (DuckDB 1.5.5 has no type for that).

    Another process holds its lock, or this process has it open in the other mode. Only the beginning of the message is
    compared, because the rest names the file.
    """
    return str(error).startswith(_HELD)


_HELD = (
    "IO Error: Could not set lock on file",
    "Connection Error: Can't open a connection to same database file with a different configuration",
)


def _insert_rows(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        # DuckDB reads it by name; a list of parameters would cost a millisecond a row.
        added = pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))  # noqa: F841
        connection.execute(f"insert into {table} by name select * from added")
