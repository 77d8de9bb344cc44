"""The objective over all domains: other plans of one domain beside the others, other weights to rank them all with."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from evals.measures import Ranking
from evals.runs import Progress, depths_of
from evals.tuning.cases import Case
from evals.tuning.scores import objectives, recalled
from evals.tuning.search import OutOfTimeError, Values
from nornweave.answer import fuse_responses
from nornweave.errors import QueryError
from nornweave.fusion.rank import rank
from nornweave.fusion.records import RankedItem, ResolvedItems
from nornweave.fusion_settings import FusionSettings, RankWeights
from nornweave.gathering import Question, asked_agents
from nornweave.recall.agent import Agent
from nornweave.recall.records import RecallResponse
from nornweave.types import Domain

_EVERYTHING = 1_000
"""More than four domains return."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fused:
    """One case's items before they are ranked, and what ranking looks at beside them."""

    case: Case
    items: ResolvedItems
    domain_signals: Mapping[str, float]


class Everywhere:
    """All domains, asked as by someone who names none and sets no filter."""

    def __init__(
        self,
        agents: Mapping[Domain, Agent],
        executors: Mapping[Domain, Executor],
        settings: FusionSettings,
        progress: Progress | None = None,
    ) -> None:
        """Take note of who answers.

        Args:
            agents: by domain.
            executors: where each works.
            settings: of fusion.
            progress: told after each query.
        """
        self._agents = agents
        self._executors = executors
        self._settings = settings
        self._progress = progress

    def with_agent(
        self, other: Agent, cases: Sequence[Case], deadline: float | None = None
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the objective of each case as the agents are, and with another agent for its domain.

        Raises:
            StoreError: a domain cannot be searched.
            OutOfTimeError: the deadline has passed.
        """
        before: dict[str, Ranking] = {}
        after: dict[str, Ranking] = {}
        for number, case in enumerate(cases, 1):
            _in_time(deadline)
            question, responses = self._responses(case)
            before[case.id] = self._places(case, question, responses)
            if other.domain in responses:
                changed = recalled(question, {other.domain: other}, self._executors)
                responses = {domain: changed.get(domain, response) for domain, response in responses.items()}
            after[case.id] = self._places(case, question, responses)
            self._tell(f"all domains, {other.domain.value} tuned", number, len(cases))
        return objectives(cases, before), objectives(cases, after)

    def fused(self, cases: Sequence[Case], deadline: float | None = None) -> RankingScores:
        """Recall and fuse every case once, to be ranked in other ways.

        Raises:
            StoreError: a domain cannot be searched.
            OutOfTimeError: the deadline has passed.
        """
        answers: list[_Fused] = []
        for number, case in enumerate(cases, 1):
            _in_time(deadline)
            question, responses = self._responses(case)
            answered = fuse_responses(replace(question, top_k=_EVERYTHING), responses, (), self._settings)
            items = tuple(replace(one.tagged, item=replace(one.tagged.item, vector=None))
                          for one in answered.fused.items)  # fmt: skip
            answers.append(
                _Fused(case, ResolvedItems(items, answered.fused.conflicts), answered.request.domain_signals)
            )
            self._tell("asking all domains", number, len(cases))
        return RankingScores(answers)

    def _responses(self, case: Case) -> tuple[Question, dict[Domain, RecallResponse]]:
        question = Question(text=case.text, top_k=_depth(case), hidden=case.hidden, timeout_ms=None)
        try:
            asked = asked_agents(question, self._agents, self._settings.fusion_max_sources)
        except QueryError:
            return question, {}
        return question, recalled(question, asked, self._executors)

    def _places(self, case: Case, question: Question, responses: Mapping[Domain, RecallResponse]) -> Ranking:
        return _places(case, fuse_responses(question, responses, (), self._settings).fused.items)

    def _tell(self, name: str, number: int, total: int) -> None:
        if self._progress:
            self._progress(name, number, total)


class RankingScores:
    """Scores ranking weights: what was fused once is ranked anew, which takes a fraction of a millisecond a query."""

    def __init__(self, answers: Sequence[_Fused]) -> None:
        self.answers = answers
        self._now = datetime.now(UTC)

    def __call__(self, points: Sequence[RankWeights], deadline: float | None) -> dict[RankWeights, Values]:
        """Return the objective of every case under each set of weights.

        Raises:
            OutOfTimeError: the deadline has passed.
        """
        values = {}
        for weights in points:
            _in_time(deadline)
            places = {one.case.id: _places(one.case, self.ranked(one, weights)) for one in self.answers}
            measured = objectives([one.case for one in self.answers], places)
            values[weights] = np.array([measured[one.case.id] for one in self.answers])
        return values

    def ranked(self, one: _Fused, weights: RankWeights) -> Sequence[RankedItem]:
        """Rank one case's items, and cut them to what was asked for."""
        ranked = rank(one.items, weights=weights, domain_signals=one.domain_signals, now=self._now)
        return ranked.items[: _depth(one.case)]


def _depth(case: Case) -> int:
    return depths_of(case.hits)[0]


def _places(case: Case, items: Sequence[RankedItem]) -> Ranking:
    return case.hits.places((ranked.tagged.item.citation for ranked in items), by_document=case.hits.whole_documents)


def _in_time(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() >= deadline:
        raise OutOfTimeError
