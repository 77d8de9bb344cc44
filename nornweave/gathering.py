"""Ask several domains at once, with one deadline: who is slow or fails costs nobody else their answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from nornweave.errors import NornWeaveError, QueryError
from nornweave.fusion.records import ConflictStrategy, CoverageGap
from nornweave.recall.agent import Agent
from nornweave.recall.query import MAX_TOP_K
from nornweave.recall.records import Filters, HiddenPlace, RecallItem, RecallRequest, RecallResponse, Switch
from nornweave.routing import choose_domains, domain_signals, split_clauses
from nornweave.types import Domain, present

log = logging.getLogger(__name__)

NO_FILTERS: Mapping[Domain, Filters] = MappingProxyType({})
NOTHING_HIDDEN: Mapping[Domain, HiddenPlace] = MappingProxyType({})
# Late answers are given this much beyond the deadline to hand over what they have.
GRACE_S = 0.02
# Items that every domain is asked for beyond those wanted: what deduplication removes and ranking moves up has to be
# there. Up to ten wanted items the candidates are the same ones, so that the first five are the first five of ten.
SPARE = 5
USUAL = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of all domains (contract §4, ``POST /query``).

    Attributes:
        domains: which to ask; ``None`` leaves it to routing.
        filters: by domain.
        trace: let the responses say what every stage found, for evaluations.
        hidden: by domain a part of a document that is searched as if it was not there, for evaluations.
        timeout_ms: the answer is there by then, with what has arrived; ``None`` waits.
        strategy: how conflicts are resolved; ``None`` takes the configured one.
        max_tokens, min_score, diversity: the context budget (``budget.py``).
        synthesize: whether a model writes an answer, in what is left of the time.
        now: what recency is counted from, in every domain and between them.
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
    hidden: Mapping[Domain, HiddenPlace] = field(default_factory=lambda: NOTHING_HIDDEN)
    strategy: ConflictStrategy | None = None
    max_tokens: int | None = None
    min_score: float | None = None
    diversity: float | None = None
    synthesize: bool = False
    now: datetime = field(default_factory=present)


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
    question: Question, asked: Mapping[Domain, Agent], executors: Mapping[Domain, Executor]
) -> tuple[dict[Domain, RecallResponse], tuple[CoverageGap, ...]]:
    """Ask every agent at once.

    Args:
        question: what is asked.
        asked: whom.
        executors: where each domain's agent works: a domain that hangs fills its own threads, not those of the others.

    Returns:
        The answers by domain, and who gave none.

    Raises:
        QueryError: an agent refuses the query or its filters.
    """
    started = time.monotonic()
    clauses = split_clauses(question.text)
    futures = {
        domain: executors[domain].submit(_ask, question, clauses, agent, started) for domain, agent in asked.items()
    }
    wait(futures.values(), None if question.timeout_ms is None else question.timeout_ms / 1000 + GRACE_S)
    responses: dict[Domain, RecallResponse] = {}
    gaps: list[CoverageGap] = []
    for domain, future in futures.items():
        outcome = _outcome(future, question)
        if isinstance(outcome, RecallResponse):
            responses[domain] = outcome
        else:
            gaps.append(CoverageGap(domain.value, asked[domain].agent_id, outcome))
    return responses, tuple(gaps)


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


def remaining_ms(timeout_ms: int | None, started: float) -> int | None:
    """Return the milliseconds until the deadline, if there is one; ``started`` is of ``time.monotonic``."""
    if timeout_ms is None:
        return None
    return max(0, timeout_ms - int((time.monotonic() - started) * 1000))


def _ask(question: Question, clauses: Sequence[str], agent: Agent, started: float) -> RecallResponse:
    """Ask one agent for the question and for each of its clauses."""
    request = RecallRequest(
        text=question.text,
        top_k=min(max(question.top_k, USUAL) + SPARE, MAX_TOP_K),
        filters=question.filters.get(agent.domain, {}),
        expand=question.expand,
        rerank=question.rerank,
        timeout_ms=remaining_ms(question.timeout_ms, started),
        explain=question.explain,
        trace=question.trace,
        hidden=question.hidden.get(agent.domain),
        now=question.now,
    )
    whole = agent.recall(request)
    if len(clauses) < 2:
        return whole
    answers, late = [whole], []
    for clause in clauses:
        left = remaining_ms(question.timeout_ms, started)
        if left == 0:  # what has arrived is worth more than one more clause
            late.append(f"no time left to ask for {clause!r} alone")
        else:
            answers.append(agent.recall(replace(request, text=clause, timeout_ms=left)))
    return replace(
        whole,
        items=merge_items([one.items for one in answers], request.top_k),
        notices=(*dict.fromkeys(notice for one in answers for notice in one.notices), *late),
    )


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
