"""The path of a query: ``route → recall in every domain at once → collect → merge on the common scale → cite``.

Deduplication, conflicts, ranking signals and synthesis follow between merging and citing.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from nornweave.documents import item_document
from nornweave.errors import NornWeaveError, QueryError
from nornweave.recall.agent import Agent
from nornweave.recall.query import check_query
from nornweave.recall.records import Filters, RecallItem, RecallRequest, RecallResponse, Switch
from nornweave.routing import choose_domains, domain_signals, split_clauses
from nornweave.types import Domain

log = logging.getLogger(__name__)

NO_FILTERS: Mapping[Domain, Filters] = MappingProxyType({})
# Late answers are given this much beyond the deadline to hand over what they have.
GRACE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of all domains (contract §4, ``POST /query``).

    Attributes:
        domains: which to ask; ``None`` leaves it to routing.
        filters: by domain.
        trace: let the responses say what every stage found, for evaluations.
        timeout_ms: domains that have not answered by then become coverage gaps; ``None`` waits.
    """

    text: str
    domains: tuple[Domain, ...] | None = None
    top_k: int = 10
    filters: Mapping[Domain, Filters] = field(default_factory=lambda: NO_FILTERS)
    expand: Switch = "auto"
    rerank: Switch = "auto"
    timeout_ms: int | None = 5000
    explain: bool = False
    trace: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """A domain that gave no answer, and why."""

    domain: Domain
    agent_id: str
    reason: str


def answer(
    question: Question, agents: Mapping[Domain, Agent], executor: Executor, *, max_sources: int = len(Domain)
) -> dict[str, Any]:
    """Answer a question.

    Args:
        question: what is asked.
        agents: who can be asked.
        executor: where the agents work.
        max_sources: how many are asked at most when the question names none.

    Returns:
        A ``FusionResult`` of contract §4; a domain that could not be searched is a coverage gap.

    Raises:
        QueryError: the question asks for something that cannot be; nothing is searched then.
    """
    check_query(question.text, question.top_k)
    started = time.monotonic()
    asked = asked_agents(question, agents, max_sources)
    items, responses, gaps = recall_everywhere(question, asked, executor)
    return {
        "query_id": str(uuid.uuid4()),
        "query": question.text,
        "items": [item_document(item) for item in items],
        "synthesis": None,
        "conflicts": [],
        "coverage": _coverage(asked, responses, gaps),
        "coverage_gaps": [
            {"domain_id": gap.domain.value, "agent_id": gap.agent_id, "reason": gap.reason} for gap in gaps
        ],
        "domains_queried": [domain.value for domain in asked],
        "domain_signals": {domain.value: round(value, 3) for domain, value in domain_signals(question.text).items()},
        "duplicates_removed": 0,
        "stats": {
            "total_items": sum(len(response.items) for response in responses.values()),
            "final_items": len(items),
        },
        "total_latency_ms": round((time.monotonic() - started) * 1000),
    }


def asked_agents(
    question: Question, agents: Mapping[Domain, Agent], max_sources: int = len(Domain)
) -> dict[Domain, Agent]:
    """Choose whom to ask: the domains named, else those that the words do not rule out.

    Raises:
        QueryError: a domain is not served, a filter is wrong, or one is set on a domain that is not asked and would be
            lost.
    """
    for domain in question.domains or ():
        if domain not in agents:
            raise QueryError("domains", f"{domain.value!r} is not served; there are: {', '.join(agents)}")
    allowed = question.domains or tuple(agents)
    # A filter names its domain: whoever sets one wants that domain asked, whatever the words say.
    chosen = question.domains or {
        *choose_domains(domain_signals(question.text), allowed, max_sources),
        *(set(question.filters) & set(allowed)),
    }
    for domain in question.filters:
        if domain not in chosen:
            asked = ", ".join(one for one in agents if one in chosen)
            raise QueryError(f"filters.{domain.value}", f"the domain is not asked; asked are: {asked}")
        agents[domain].conditions(question.filters[domain])
    return {domain: agent for domain, agent in agents.items() if domain in chosen}


def recall_everywhere(
    question: Question, asked: Mapping[Domain, Agent], executor: Executor
) -> tuple[tuple[RecallItem, ...], dict[Domain, RecallResponse], tuple[Gap, ...]]:
    """Ask every agent at once; who fails or is late is a gap and costs nobody else their answer.

    Returns:
        The best items of all, the answers by domain, and who gave none.

    Raises:
        QueryError: an agent refuses the query or its filters.
    """
    started = time.monotonic()
    clauses = split_clauses(question.text)
    futures = {domain: executor.submit(_ask, question, clauses, agent, started) for domain, agent in asked.items()}
    wait(futures.values(), None if question.timeout_ms is None else question.timeout_ms / 1000 + GRACE_S)
    responses: dict[Domain, RecallResponse] = {}
    gaps: list[Gap] = []
    for domain, future in futures.items():
        outcome = _outcome(future, question)
        if isinstance(outcome, RecallResponse):
            responses[domain] = outcome
        else:
            gaps.append(Gap(domain, asked[domain].agent_id, outcome))
    items = merge_items([response.items for response in responses.values()], question.top_k)
    return items, responses, tuple(gaps)


def merge_items(answers: Sequence[Sequence[RecallItem]], top_k: int) -> tuple[RecallItem, ...]:
    """Merge answers by their calibrated scores; ties in the order of the answers; a chunk found twice keeps its best.

    Every answer keeps its own order, so that the first five are the first five of ten.
    """
    best: dict[str, RecallItem] = {}
    for item in (item for items in answers for item in items):
        known = best.get(item.chunk_id)
        if known is None or item.score > known.score:
            best[item.chunk_id] = item
    return tuple(sorted(best.values(), key=lambda item: -item.score)[:top_k])


def _ask(question: Question, clauses: Sequence[str], agent: Agent, started: float) -> RecallResponse:
    """Ask one agent for the question and for each of its clauses."""
    request = RecallRequest(
        text=question.text,
        top_k=question.top_k,
        filters=question.filters.get(agent.domain, {}),
        expand=question.expand,
        rerank=question.rerank,
        timeout_ms=_left(question, started),
        explain=question.explain,
        trace=question.trace,
    )
    whole = agent.recall(request)
    if len(clauses) < 2:
        return whole
    answers, late = [whole], []
    for clause in clauses:
        left = _left(question, started)
        if left == 0:  # what has arrived is worth more than one more clause
            late.append(f"no time left to ask for {clause!r} alone")
        else:
            answers.append(agent.recall(replace(request, text=clause, timeout_ms=left)))
    return replace(
        whole,
        items=merge_items([one.items for one in answers], question.top_k),
        notices=(*dict.fromkeys(notice for one in answers for notice in one.notices), *late),
    )


def _left(question: Question, started: float) -> int | None:
    """Return the milliseconds until the deadline, if there is one."""
    if question.timeout_ms is None:
        return None
    return max(0, question.timeout_ms - int((time.monotonic() - started) * 1000))


def _outcome(future: Future[RecallResponse], question: Question) -> RecallResponse | str:
    if not future.done():
        future.cancel()
        return f"timeout after {question.timeout_ms}ms"
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
    return f"timeout after {question.timeout_ms}ms" if late else response


def _coverage(
    asked: Mapping[Domain, Agent], responses: Mapping[Domain, RecallResponse], gaps: Sequence[Gap]
) -> dict[str, Any]:
    reasons = {gap.domain: gap.reason for gap in gaps}
    return {
        domain.value: _covered(responses[domain])
        if domain in responses
        else {"searched": False, "reason": reasons[domain]}
        for domain in asked
    }


def _covered(response: RecallResponse) -> dict[str, Any]:
    return {
        "searched": True,
        "generation": response.generation,
        "indexed_at": response.indexed_at,
        "total_searched": response.total_searched,
        "retrieval": dict(response.retrieval),
        "latency_ms": response.latency_ms,
        "notices": list(response.notices),
    }
