"""The history of evaluations: what a file and a database have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar

from nornweave.improve.records import Evaluation, QueryValue, StageMetric, Values, Verdict

T = TypeVar("T")
Rows: TypeAlias = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
"""Returns the rows of a statement with its parameters."""

DEFAULT_LIMIT = 100
# Values of single queries, of which an evaluation of 800 queries has a hundred thousand, are for comparing with what
# came before; beyond so many evaluations of a set the means are kept alone.
KEEP_VALUES = 30
_FIELDS = (
    "evaluation_id", "run_id", "at", "domain", "set", "origin", "scope", "generation", "verdict", "commit", "plan",
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
    """The history of evaluations; safe to use from several threads and processes.

    Raises:
        StoreError: from every method, when it cannot be read or written.
    """

    mark: ClassVar[str]
    """Of a parameter in a statement."""

    @abstractmethod
    def record(self, evaluations: Sequence[tuple[Evaluation, Sequence[QueryValue]]]) -> None:
        """Add evaluations with their queries' values, all of them or none."""

    @abstractmethod
    def _read(self, ask: Callable[[Rows], T]) -> T:
        """Return what ``ask`` makes of rows; there are none if there is no history yet."""

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
        """Return (stage, measure) → (query, digest) → value; empty when they are not kept any more."""
        statement = f'select stage, measure, query, digest, "value" from query_values where evaluation_id = {self.mark}'
        values: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
        for stage, measure, query, digest, value in self._read(lambda rows: rows(statement, [evaluation_id])):
            values.setdefault((stage, measure), {})[query, digest] = value
        return values


def rows_of(
    evaluation: Evaluation, values: Sequence[QueryValue]
) -> Iterator[tuple[str, Sequence[str], list[tuple[Any, ...]]]]:
    """Yield the rows that record an evaluation: the table, the names of its columns, and their values."""
    identity = evaluation.evaluation_id
    yield "evaluations", _FIELDS, [tuple(getattr(evaluation, _ATTRIBUTES.get(name, name)) for name in _FIELDS)]
    metrics = [(identity, place, *_values_of(metric)) for place, metric in enumerate(evaluation.metrics)]
    yield "metrics", ("evaluation_id", "place", *StageMetric.__slots__), metrics
    yield "query_values", ("evaluation_id", *QueryValue.__slots__), [(identity, *_values_of(each)) for each in values]


def _values_of(record: StageMetric | QueryValue) -> Iterator[Any]:
    return (getattr(record, name) for name in record.__slots__)


def _evaluation_of(row: Sequence[Any], metrics: Sequence[StageMetric]) -> Evaluation:
    """Return the evaluation of a row of ``_FIELDS``."""
    fields = {_ATTRIBUTES.get(name, name): value for name, value in zip(_FIELDS, row, strict=True)}
    return Evaluation(**fields | {"verdict": Verdict(fields["verdict"])}, metrics=tuple(metrics))
