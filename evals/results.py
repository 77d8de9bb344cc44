"""What comes of running judged sets: per set, scope and stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from evals.measures import Metric
from nornweave.types import Domain

ITEMS = "Recall@10 items"
"""Recall@10 with every item in its place, where whole documents are judged: what one sees in the first ten items."""


class Scope(StrEnum):
    """What a judged set is run against."""

    DOMAIN = "domain"
    """Its own domain, with the filters of each query."""
    UNFILTERED = "domain, no filter"
    """Its own domain without them; only for sets that have any."""
    EVERYWHERE = "all domains"
    """No domain named, no filters: the system has to find out where the answer lies."""


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """A query that was refused or could not be answered; it counts as unanswered."""

    query_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class StageResult:
    """How good one stage's rankings are.

    Attributes:
        answered: queries to which the stage returned anything.
        metrics: by measure, see ``measures.MEASURES``; and ``ITEMS`` where whole documents are judged.
    """

    stage: str
    answered: int
    metrics: Mapping[str, Metric]


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """One run of all queries.

    Attributes:
        stages: in the order of the query path; ``fused`` always among them.
        p50_ms: median time of a query, with the rankings of all stages at full depth; ``None`` when none was answered.
            For comparing scopes, not for promises: who remembers encodings pays for them in the first scope only.
        p95_ms: the time that 95 % of the queries stay below.
        failures: in the order of the queries.
    """

    scope: Scope
    stages: tuple[StageResult, ...]
    p50_ms: float | None
    p95_ms: float | None
    failures: tuple[QueryFailure, ...]

    def stage(self, name: str) -> StageResult | None:
        """Return one stage, if it ran."""
        return next((one for one in self.stages if one.stage == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """How a judged set fared.

    Attributes:
        domain: the set's own.
        queries: in the file.
        measured: those with a relevant judgment.
        unjudged: ids of the others; they are not run.
        judgments: relevant ones.
        missing: judged paths that no published generation holds; their judgments count as misses.
        elsewhere: judged paths that lie in another domain than the set's.
    """

    name: str
    domain: Domain
    queries: int
    measured: int
    unjudged: tuple[str, ...]
    judgments: int
    missing: tuple[str, ...]
    elsewhere: tuple[str, ...]
    scopes: tuple[ScopeResult, ...]

    def scope(self, name: Scope) -> ScopeResult | None:
        """Return one run, if there was one."""
        return next((one for one in self.scopes if one.scope is name), None)

    @property
    def baseline(self) -> ScopeResult | None:
        """Return the run in the set's own domain that ``all domains`` is comparable with: the one without filters."""
        return self.scope(Scope.UNFILTERED) or self.scope(Scope.DOMAIN)
