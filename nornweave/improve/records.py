"""Records of evaluations in the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

ALL_DOMAINS = "all"
"""What a set that is judged across domains measures."""
LAST_STAGE = "fused"
"""What is served: the last stage of the query path."""


class Verdict(StrEnum):
    """What an evaluation measured, and the decision about it."""

    PUBLISHED = "published"
    """A published generation was measured; nothing was decided."""
    OUTDATED = "outdated"
    """So it was, but with another analyzer or encoder than it was built with: what it answers until the next sync."""
    PASSED = "passed"
    """A candidate was measured, and may be published."""
    REFUSED = "refused"
    """A candidate was measured, and is not published."""


@dataclass(frozen=True, slots=True)
class StageMetric:
    """One measure of one stage over all queries, with its 95 % interval."""

    stage: str
    measure: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class QueryValue:
    """One measure of one stage for one query.

    Attributes:
        digest: the digest of the query's text, filters and judgments. If it differs, values cannot be compared.
    """

    stage: str
    query: str
    digest: str
    measure: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One judged set measured in one scope.

    Attributes:
        run_id: the same for all sets that were evaluated together; the id of the Dagster run if there was one.
        domain: the domain of the set.
        origin: who made the judgments: ``people``, ``public``, ``generated`` or ``feedback``.
        scope: whether one domain or all were asked (``evals.results.Scope``).
        verdict: what was evaluated, and the decision about it.
        measured: the number of queries that count, because a document that is judged relevant exists.
        missing: judged documents that the generation does not hold.
        failed: the number of queries that were refused or failed. They count as unanswered.
        p50_ms: median time of a query with the rankings of all stages.
        p95_ms: the 95th percentile of this time.
        metrics: the metrics, by stage in the order of the query path, then by measure.
    """

    evaluation_id: str
    run_id: str
    at: datetime
    domain: str
    set_name: str
    origin: str
    scope: str
    generation: str
    verdict: Verdict
    commit: str
    queries: int
    measured: int
    missing: int
    failed: int
    p50_ms: float | None
    p95_ms: float | None
    metrics: tuple[StageMetric, ...]

    def metric(self, stage: str, measure: str) -> StageMetric | None:
        """Return one measure, or ``None`` if it was not measured."""
        return next((metric for metric in self.metrics if (metric.stage, metric.measure) == (stage, measure)), None)


Values = Mapping[tuple[str, str], float]
"""(query id, digest) → value."""
