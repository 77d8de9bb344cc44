"""Evaluations ↔ rows of their history, the same in a file and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nornweave.improve.history import KEEP_VALUES
from nornweave.improve.records import Evaluation, QueryValue, StageMetric, Values, Verdict

_FIELDS = (
    "evaluation_id", "run_id", "at", "domain", "set", "origin", "scope", "generation", "verdict", "commit", "plan",
    "queries", "measured", "missing", "failed", "p50_ms", "p95_ms",
)  # fmt: skip
_ATTRIBUTES = {"set": "set_name"}
COLUMNS = ", ".join(f'"{name}"' for name in _FIELDS)
METRIC_COLUMNS = ("evaluation_id", "place", *StageMetric.__slots__)
VALUE_COLUMNS = ("evaluation_id", *QueryValue.__slots__)
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


def fields_of(evaluation: Evaluation) -> list[Any]:
    """Return the values of ``COLUMNS``."""
    return [getattr(evaluation, _ATTRIBUTES.get(name, name)) for name in _FIELDS]


def evaluation_of(row: Sequence[Any], metrics: Sequence[StageMetric]) -> Evaluation:
    """Return the evaluation of a row of ``COLUMNS``."""
    fields = {_ATTRIBUTES.get(name, name): value for name, value in zip(_FIELDS, row, strict=True)}
    return Evaluation(**fields | {"verdict": Verdict(fields["verdict"])}, metrics=tuple(metrics))


def metric_rows(evaluation: Evaluation) -> list[tuple[Any, ...]]:
    """Return rows of ``METRIC_COLUMNS``."""
    return [
        (evaluation.evaluation_id, place, *(getattr(metric, name) for name in StageMetric.__slots__))
        for place, metric in enumerate(evaluation.metrics)
    ]


def value_rows(evaluation: Evaluation, values: Sequence[QueryValue]) -> list[tuple[Any, ...]]:
    """Return rows of ``VALUE_COLUMNS``."""
    return [(evaluation.evaluation_id, *(getattr(value, name) for name in QueryValue.__slots__)) for value in values]


def by_evaluation(rows: Sequence[Sequence[Any]]) -> dict[str, list[StageMetric]]:
    """Return the measures of each evaluation, of rows of its id and a measure."""
    metrics: dict[str, list[StageMetric]] = {}
    for identity, *metric in rows:
        metrics.setdefault(identity, []).append(StageMetric(*metric))
    return metrics


def by_measure(rows: Sequence[tuple[str, str, str, str, float]]) -> Mapping[tuple[str, str], Values]:
    """Return (stage, measure) → (query, digest) → value, of rows of these in this order."""
    values: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for stage, measure, query, digest, value in rows:
        values.setdefault((stage, measure), {})[query, digest] = value
    return values
