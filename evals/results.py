"""Results of running judged sets: per set, scope and stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from evals.confidence import Confidence
from evals.controls import Control
from evals.judgments import JudgmentOrigin
from evals.measures import Metric
from nornweave.core.types import Domain
from nornweave.improve.records import ALL_DOMAINS

ITEMS = "Recall@10 items"
"""Recall@10 with every item in its place, where whole documents are judged: what one sees in the first ten items."""


class ResultScope(StrEnum):
    """The domains and filters of a run."""

    DOMAIN = "domain"
    """Its own domain, with the filters of each query."""
    UNFILTERED = "domain, no filter"
    """Its own domain without them; only for sets that have any."""
    EVERYWHERE = "all domains"
    """No domain named, no filters: the system has to find out where the answer lies."""


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """A query that was refused or could not be answered. It counts as unanswered."""

    query_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class StageResult:
    """The measures of one stage's rankings.

    Attributes:
        answered: queries to which the stage returned anything.
        metrics: by measure, see ``measures.MEASURES``; and ``ITEMS`` where whole documents are judged.
    """

    stage: str
    answered: int
    metrics: Mapping[str, Metric]


@dataclass(frozen=True, slots=True)
class KindResult:
    """The measures of the answers to one kind of query.

    Attributes:
        kind: of the set's own choosing; see ``judgments.Query``.
        metrics: of the last stage, by measure; see ``measures.MEASURES``.
    """

    kind: str
    queries: int
    metrics: Mapping[str, Metric]


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """One run of all queries.

    Attributes:
        stages: in the order of the query path; ``fused`` always among them.
        kinds: by name; empty where the set tells no kinds apart.
        confidence: how well the answers' scores separate answerable from unanswerable questions; ``None`` if the set
            has no question without an answer.
        controls: figures that must be low; see ``controls``.
        p50_ms: median time of a query, with the rankings of all stages at full depth; ``None`` when none was answered.
            For comparing scopes, not for promises: who remembers encodings pays for them in the first scope only.
        p95_ms: the time that 95 % of the queries stay below.
        failures: in the order of the queries.
    """

    scope: ResultScope
    stages: tuple[StageResult, ...]
    p50_ms: float | None
    p95_ms: float | None
    failures: tuple[QueryFailure, ...]
    kinds: tuple[KindResult, ...] = ()
    confidence: Confidence | None = None
    controls: tuple[Control, ...] = ()

    def stage(self, name: str) -> StageResult | None:
        """Return the results of one stage; ``None`` if it did not run."""
        return next((stage for stage in self.stages if stage.stage == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """The results of a judged set.

    Attributes:
        domain: the set's own; of a set across domains, the one that most of its documents lie in.
        across_domains: whether it has no domain of its own.
        origin: who made its judgments.
        measured: those with a relevant judgment that counts.
        unjudged: ids of those without any, for which no answer is expected either; they are not run.
        unanswerable: how many questions have no answer in the corpus.
        judgments: relevant ones that count.
        missing: judged paths that no published generation holds.
        missing_counted: whether their judgments count, as misses; otherwise they are left out.
        unmeasured: ids of the queries all of whose judgments are left out.
        digests: of every measured query's text, filters and judgments: where two differ, values cannot be compared.
        elsewhere: judged paths that lie in another domain than the set's.
        moved: judged paths and where their documents lie now, of those that moved.
    """

    name: str
    domain: Domain
    across_domains: bool
    origin: JudgmentOrigin
    queries: int
    measured: int
    unjudged: tuple[str, ...]
    unanswerable: int
    judgments: int
    missing: tuple[str, ...]
    missing_counted: bool
    unmeasured: tuple[str, ...]
    digests: Mapping[str, str]
    elsewhere: tuple[str, ...]
    scopes: tuple[ScopeResult, ...]
    moved: tuple[tuple[str, str], ...] = ()

    @property
    def subject(self) -> str:
        """Return the measured domain, or ``all``."""
        return ALL_DOMAINS if self.across_domains else self.domain.value

    def scope(self, name: ResultScope) -> ScopeResult | None:
        """Return the run of a scope; ``None`` if there was none."""
        return next((run for run in self.scopes if run.scope is name), None)

    @property
    def baseline(self) -> ScopeResult | None:
        """Return the run in the set's own domain to compare ``all domains`` with: the one without filters."""
        return self.scope(ResultScope.UNFILTERED) or self.scope(ResultScope.DOMAIN)
