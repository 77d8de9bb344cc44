"""Ask several domains at once, with one deadline: a slow or failing domain costs the others nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Protocol

from nornweave.ask.route.decomposition import split_clauses
from nornweave.ask.search.lanes import AgentKey, Lanes, P
from nornweave.ask.search.query import MAX_TOP_K
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import CoverageGap, Filters, RecallItem, RecallResponse
from nornweave.core.errors import NornWeaveError, QueryError
from nornweave.core.types import Domain
from nornweave.index.searching.conditions import Condition

log = logging.getLogger(__name__)

# Late answers are given this much beyond the deadline to hand over what they have.
GRACE_S = 0.02
# Each domain is asked for more items than are wanted: deduplication removes some and ranking moves others up. Up to ten
# wanted items the candidates are the same ones, so that the first five are the first five of ten.
SPARE_ITEMS = 5
USUAL_TOP_K = 10


class Recaller(Protocol):
    """An agent that can be asked, local or remote."""

    @property
    def agent_id(self) -> str:
        """The agent's name in answers and coverage gaps."""

    @property
    def domain(self) -> Domain:
        """The agent's domain."""

    def recall(self, question: Question) -> RecallResponse:
        """Answer a question from this domain alone."""

    def conditions(self, filters: Filters) -> tuple[Condition, ...]:
        """Return the conditions for filters of the domain; raises ``QueryError`` for a wrong filter."""


def one_a_domain(own: Mapping[Domain, Recaller], elsewhere: Sequence[Recaller]) -> dict[Domain, Recaller]:
    """Return one agent for each domain that can be asked, preferably the local one."""
    by_domain = {agent.domain: agent for agent in reversed(elsewhere)} | dict(own)
    return {domain: by_domain[domain] for domain in Domain if domain in by_domain}


def with_elsewhere(chosen: Mapping[Domain, Recaller], elsewhere: Sequence[Recaller]) -> dict[AgentKey, Recaller]:
    """Return all agents of the chosen domains.

    A domain may have a local agent and remote ones: all of them are asked. A remote agent with the same name as the
    local one is the same agent, and the local one answers.
    """
    agents: dict[AgentKey, Recaller] = {}
    for domain, first in chosen.items():
        others = [agent for agent in elsewhere if agent.domain is domain]
        if first not in others:
            agents[domain] = first
            others = [agent for agent in others if agent.agent_id != first.agent_id]
        agents |= {(domain, agent.agent_id): agent for agent in others}
    return agents


def recall_everywhere(
    question: Question, agents: Mapping[P, Recaller], lanes: Lanes
) -> tuple[dict[P, RecallResponse], tuple[CoverageGap, ...]]:
    """Ask several agents until all have answered, the deadline has passed, or only late remote agents are left.

    Returns:
        The answers, in the order of the agents, and a gap for each agent without an answer.

    Raises:
        QueryError: an agent refuses the query or its filters.
    """
    clauses = split_clauses(question.text)
    tasks = {place: partial(_recall, question, clauses, agent) for place, agent in agents.items()}
    futures = lanes.run(tasks, question.deadline.left_s + GRACE_S if question.deadline else None)
    responses: dict[P, RecallResponse] = {}
    gaps: list[CoverageGap] = []
    for place, future in futures.items():
        outcome = _outcome(future, question, None if isinstance(place, Domain) else lanes.budget_s)
        if isinstance(outcome, RecallResponse):
            responses[place] = outcome
        else:
            agent, is_elsewhere = agents[place], not isinstance(place, Domain)
            gaps.append(CoverageGap(agent.domain.value, agent.agent_id, outcome, is_elsewhere))
    return responses, tuple(gaps)


def merge_items(rankings: Sequence[Sequence[RecallItem]], top_k: int) -> tuple[RecallItem, ...]:
    """Merge rankings by calibrated scores. A chunk keeps its best score; ties follow the order of the rankings.

    Every ranking keeps its own order. So a smaller ``top_k`` returns the beginning of the same list.
    """
    best: dict[str, RecallItem] = {}
    for item in (item for ranking in rankings for item in ranking):
        known = best.get(item.chunk_id)
        if known is None or item.score > known.score:
            best[item.chunk_id] = item
    return tuple(sorted(best.values(), key=lambda item: -item.score)[:top_k])


def _recall(question: Question, clauses: Sequence[str], agent: Recaller) -> RecallResponse:
    """Return an agent's answer to the whole question, merged with answers to each clause while time is left."""
    widened = replace(question, top_k=min(max(question.top_k, USUAL_TOP_K) + SPARE_ITEMS, MAX_TOP_K))
    whole = agent.recall(widened)
    if len(clauses) < 2:
        return whole
    responses, late = [whole], []
    for clause in clauses:
        if question.deadline and not question.deadline.left_ms:  # what has arrived is worth more than one more clause
            late.append(f"no time left to ask for {clause!r} alone")
        else:
            responses.append(agent.recall(replace(widened, text=clause)))
    return replace(
        whole,
        items=merge_items([response.items for response in responses], widened.top_k),
        notices=(*dict.fromkeys(notice for response in responses for notice in response.notices), *late),
    )


def _outcome(future: Future[RecallResponse], question: Question, budget_s: float | None) -> RecallResponse | str:
    """Return the answer, or the reason why there is none.

    ``budget_s`` is how long a remote agent was waited for after the other agents; ``None`` for a local agent.
    """
    timeout = f"timeout after {question.deadline.timeout_ms}ms" if question.deadline else "no answer"
    if not future.done():
        future.cancel()
        if budget_s is not None and (question.deadline is None or question.deadline.left_ms):
            return f"no answer in time: after the others it was given {budget_s:.3g} s"
        return timeout
    error = future.exception()
    if isinstance(error, QueryError):
        raise error
    if isinstance(error, NornWeaveError):
        return str(error)
    if error is not None:
        log.error("an agent failed unexpectedly", exc_info=error)
        return f"failed unexpectedly ({type(error).__name__}); the log says where"
    response = future.result()
    late = not response.items and set(response.retrieval.values()) == {"timeout"}
    return timeout if late else response
