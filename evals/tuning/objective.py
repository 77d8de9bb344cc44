"""The objective: judged queries answered by plans or ranking weights, on the path that serves, and measured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from evals.measures import DEEPEST, Ranking, measure
from evals.runs import Progress, depths_of
from evals.tuning.cases import TuningCase
from evals.tuning.search import OutOfTimeError, Values
from evals.tuning.space import T
from nornweave.ask.answer.fan_out import choose_agents, merge_items, recall_everywhere
from nornweave.ask.answer.pipeline import answer, answer_from, to_recalled
from nornweave.ask.fuse.rank import rank
from nornweave.ask.fuse.records import RankedItem, ResolvedItems
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Citation
from nornweave.config.fusion import FusionSettings, RankWeights
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.errors import QueryError, StoreError
from nornweave.core.types import Domain, present

MEASURED = ("nDCG@10", "Recall@10", "RR@10")
"""The objective of a query is their mean: what is found at all, how far one has to look, and all of it in between."""
_EVERYTHING = 1_000
"""More items than all domains return."""


def objectives(cases: Sequence[TuningCase], rankings: Mapping[str, Ranking]) -> Values:
    """Return the objective of each case, in [0, 1], in their order; one without a ranking has 0."""
    metrics = measure(rankings, {case.id: case.grades for case in cases}, MEASURED)
    sums = [math.fsum(metrics[name].values[case.id] for name in MEASURED) for case in cases]
    return np.array(sums) / len(MEASURED)


def scored(
    points: Sequence[T],
    cases: Sequence[TuningCase],
    ranking: Callable[[T, TuningCase], Ranking],
    *,
    name: str = "",
    deadline: float | None = None,
    progress: Progress | None = None,
) -> dict[T, Values]:
    """Return the objective of every case at each point.

    Args:
        points: what is compared.
        cases: what is asked; all points for one, then the next: its query is encoded once.
        ranking: the places that a case is answered with at a point; a refused query is found nothing for.
        name: for ``progress``.
        deadline: the ``time.monotonic()`` from which on nothing is asked.
        progress: told after each case.

    Raises:
        StoreError: a domain cannot be searched.
        OutOfTimeError: the deadline has passed.
    """
    rankings: dict[T, dict[str, Ranking]] = {point: {} for point in points}
    for number, case in enumerate(cases, 1):
        if deadline is not None and time.monotonic() >= deadline:
            raise OutOfTimeError
        for point, of_point in rankings.items():
            try:
                of_point[case.id] = ranking(point, case)
            except QueryError:
                of_point[case.id] = ()
        if progress:
            progress(name, number, len(cases))
    return {point: objectives(cases, of_point) for point, of_point in rankings.items()}


def domain_ranking(agent: Agent, executor: Executor, case: TuningCase) -> Ranking:
    """Return what one domain answers with before fusion; asks deeper where evaluations do.

    Raises:
        QueryError: the query is refused.
        StoreError: the domain cannot be searched.
    """
    filters = {agent.domain: case.filters} if case.filters else {}
    for depth in depths_of(case.hits):
        question = replace(_question(case), domains=(agent.domain,), top_k=depth, filters=filters)
        responses, gaps = recall_everywhere(question, {agent.domain: agent}, {agent.domain: executor})
        if gaps:
            raise StoreError(f"{gaps[0].domain_id}: {gaps[0].reason}")
        items = merge_items([response.items for response in responses.values()], depth)
        places = _places(case, (item.citation for item in items))
        if len(items) < depth or len(places) == DEEPEST:
            break
    return places


@dataclass(frozen=True, slots=True)
class AllDomains:
    """What answers when no domain is named and no filter set: agents, a thread for each, the settings of fusion."""

    agents: Mapping[Domain, Agent]
    executors: Mapping[Domain, Executor]
    fusion: FusionSettings

    def ranking(self, case: TuningCase, other: Agent | None = None) -> Ranking:
        """Return what is answered, with another agent for its domain if one is given; raises ``QueryError``."""
        agents = {**self.agents, other.domain: other} if other else self.agents
        return _places(case, _citations(answer(_question(case), agents, self.executors, self.fusion).items))

    def ranking_by_weights(self) -> Callable[[RankWeights, TuningCase], Ranking]:
        """Return what answers a case under other weights: recalled and fused once, which takes most of the time."""

        @cache
        def fused(case: TuningCase) -> tuple[ResolvedItems, Mapping[str, float]]:
            question = _question(case)
            chosen = choose_agents(question, self.agents, self.fusion.fusion_max_sources)
            responses, _ = recall_everywhere(question, chosen, self.executors)
            recalled = to_recalled(question, chosen, responses)
            answered = answer_from(replace(question, top_k=_EVERYTHING), recalled, self.fusion)
            # Ranking reads no vectors, and those of hundreds of queries take much memory.
            items = (replace(one.tagged, item=replace(one.tagged.item, vector=None)) for one in answered.items)
            return ResolvedItems(tuple(items), answered.conflicts), recalled.domain_signals

        now = present()

        def ranking(weights: RankWeights, case: TuningCase) -> Ranking:
            items, signals = fused(case)
            ranked = rank(items, weights=weights, domain_signals=signals, now=now)
            return _places(case, _citations(ranked.items[: depths_of(case.hits)[0]]))

        return ranking


def _question(case: TuningCase) -> Question:
    """Ask as someone who names no domain and sets no filter."""
    return Question(text=case.text, now=present(), viewer=OPERATOR, top_k=depths_of(case.hits)[0], hidden=case.hidden)


def _citations(items: Iterable[RankedItem]) -> list[Citation]:
    return [ranked.tagged.item.citation for ranked in items]


def _places(case: TuningCase, ranking: Iterable[Citation]) -> Ranking:
    return case.hits.places(ranking, by_document=case.hits.whole_documents)
