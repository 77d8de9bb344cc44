"""The objective that tuning is after, measured on the path that answers."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

import numpy as np

from evals.measures import DEEPEST, Ranking, measure
from evals.runs import Progress, depths_of
from evals.tuning.cases import Case
from evals.tuning.search import OutOfTimeError, Values
from nornweave.errors import QueryError, StoreError
from nornweave.gathering import Question, merge_items, recall_everywhere
from nornweave.recall.agent import Agent
from nornweave.recall.query import read_query
from nornweave.recall.records import Citation, RecallResponse
from nornweave.routing import split_clauses
from nornweave.settings import PlanSettings, SourceWeights
from nornweave.types import Domain

MEASURED = ("nDCG@10", "Recall@10", "RR@10")
"""The objective of a query is their mean: what is found at all, how far one has to look, and all of it in between."""


def objectives(cases: Sequence[Case], rankings: Mapping[str, Ranking]) -> dict[str, float]:
    """Return the objective of each case, in [0, 1], by id; one without a ranking has 0."""
    if not cases:
        return {}
    metrics = measure(rankings, {case.id: case.grades for case in cases}, MEASURED)
    return {case.id: math.fsum(metrics[name].values[case.id] for name in MEASURED) / len(MEASURED) for case in cases}


class PlanScores:
    """Scores plans of one domain by what its agent would answer with each; remembers every answer's objective."""

    def __init__(
        self, agent: Agent, executor: Executor, cases: Sequence[Case], progress: Progress | None = None
    ) -> None:
        """Take note of what is asked.

        Args:
            agent: of the domain; what answers are its siblings with other plans.
            executor: where they work.
            cases: what is asked, in the order of the values.
            progress: told after each query of a batch of plans.
        """
        self._agent = agent
        self._executor = executor
        self._cases = cases
        self._progress = progress
        self._kinds = {case.id: _kind(case.text) for case in cases}
        self._known: dict[tuple[str, PlanSettings], float] = {}

    def __call__(self, plans: Sequence[PlanSettings], deadline: float | None) -> dict[PlanSettings, Values]:
        """Return the objective of every case under each plan.

        Raises:
            StoreError: the domain cannot be searched.
            OutOfTimeError: the deadline has passed.
        """
        agents = {plan: self._agent.with_plan(plan) for plan in plans}
        places: dict[PlanSettings, dict[str, Ranking]] = {}
        # All plans for one query, then the next: the query is encoded once, whatever the encoder remembers.
        for number, case in enumerate(self._cases, 1):
            for plan, agent in agents.items():
                alike = self._alike(case, plan)
                if (case.id, alike) in self._known or case.id in places.get(alike, {}):
                    continue
                if deadline is not None and time.monotonic() >= deadline:
                    raise OutOfTimeError
                places.setdefault(alike, {})[case.id] = self._places(agent, case)
            if self._progress:
                self._progress(f"tuning {self._agent.domain.value}, {len(plans)} plans", number, len(self._cases))
        self._remember(places)
        return {plan: self._values(plan) for plan in plans}

    def _alike(self, case: Case, plan: PlanSettings) -> PlanSettings:
        """Return the plan without the weights that say nothing about this query."""
        kind = None if plan.expand else self._kinds[case.id]
        return plan if kind is None else plan.model_copy(update={kind: SourceWeights()})

    def _remember(self, places: Mapping[PlanSettings, Mapping[str, Ranking]]) -> None:
        for plan, rankings in places.items():
            measured = objectives([case for case in self._cases if case.id in rankings], rankings)
            self._known |= {(case, plan): value for case, value in measured.items()}

    def _values(self, plan: PlanSettings) -> Values:
        return np.array([self._known[case.id, self._alike(case, plan)] for case in self._cases])

    def _places(self, agent: Agent, case: Case) -> Ranking:
        found: Ranking = ()
        for depth in depths_of(case.hits):
            ranking = self._ranking(agent, case, depth)
            found = case.hits.places(ranking, by_document=case.hits.whole_documents)
            if len(ranking) < depth or len(found) == DEEPEST:
                break
        return found

    def _ranking(self, agent: Agent, case: Case, depth: int) -> Sequence[Citation]:
        domain = agent.domain
        filters = {domain: case.filters} if case.filters else {}
        question = Question(
            text=case.text, domains=(domain,), top_k=depth, filters=filters, hidden=case.hidden, timeout_ms=None
        )
        responses = recalled(question, {domain: agent}, {domain: self._executor})
        return [item.citation for item in merge_items([one.items for one in responses.values()], depth)]


def _kind(text: str) -> str | None:
    """Return which weights do not matter for a query; ``None`` where both may, because it is asked in parts."""
    literal = {read_query(part).is_literal for part in (text, *split_clauses(text))}
    if len(literal) == 2:
        return None
    return "weights" if literal.pop() else "literal_weights"


def is_literal(case: Case) -> bool:
    """Return whether a query quotes something: ``literal_weights`` are for those."""
    return _kind(case.text) != "literal_weights"


def recalled(
    question: Question, agents: Mapping[Domain, Agent], executors: Mapping[Domain, Executor]
) -> dict[Domain, RecallResponse]:
    """Return what the agents answer, nothing to a query that is refused.

    Raises:
        StoreError: none of them gives an answer, so that nothing can be said about how well they do.
    """
    try:
        responses, gaps = recall_everywhere(question, agents, executors)
    except QueryError:
        return {}
    if not responses:
        raise StoreError("; ".join(f"{gap.domain_id}: {gap.reason}" for gap in gaps))
    return responses
