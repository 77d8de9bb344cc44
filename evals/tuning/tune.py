"""Fit a domain's plan, and the weights that rank across domains, to judged queries; keep only what is better for sure.

A plan is looked for on four fifths of the queries and tested on the last, five times over. It is kept when the tests
together gain beyond chance (one-sided paired randomisation test, p < .05), no judged set loses beyond chance, and
neither does anything with all domains asked, whose scores have to stay comparable. Nothing is written before
``keep``: a tuning that is killed leaves everything as it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict

from evals.judgments import JudgmentError, Origin
from evals.runs import Progress, SetToRun, Target, locate
from evals.tuning.cases import Case, cases_of, sample
from evals.tuning.fit import TuningError, cross_validated, result_of, too_short
from evals.tuning.fused import Everywhere
from evals.tuning.results import Change, TuningResult, as_json
from evals.tuning.scores import PlanScores, is_literal
from evals.tuning.search import ROUNDS, OutOfTimeError
from evals.tuning.space import normalised, plan_space, ranking_space
from evals.tuning.verdict import drop
from nornweave.code_version import code_version
from nornweave.engine import Engine
from nornweave.fusion_settings import RankWeights
from nornweave.plan_files import PlanFile
from nornweave.plans import FUSION, plan_digest, plan_files, ranking_digest
from nornweave.recall.agent import Agent
from nornweave.recall.records import RecallRequest
from nornweave.settings import Settings
from nornweave.types import Domain

MIN_QUERIES = 20
"""With fewer, hardly any difference is more than chance."""
MAX_QUERIES = 400
"""Of one domain; more take longer and change little."""
MAX_QUERIES_EVERYWHERE = 150
"""Of each set, with all domains asked."""
DEADLINE_S = 900.0
SEARCH_SHARE = 0.7
"""Of the time; the rest is for asking all domains."""


def tune(
    engine: Engine,
    settings: Settings,
    domain: Domain,
    judged_sets: Sequence[SetToRun],
    *,
    max_queries: int = MAX_QUERIES,
    deadline_s: float | None = DEADLINE_S,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> TuningResult:
    """Fit a domain's plan; writes nothing, see ``keep``.

    Args:
        engine: started; its agent's plan is the one to beat.
        settings: the engine's.
        domain: whose plan.
        judged_sets: of this domain, of others and of all at once. What is fitted to is what people judged of this
            domain, and what was generated where they judged too little; all sets together say whether answers over all
            domains suffer.
        max_queries: fit to so many at most, chosen by a hash.
        deadline_s: best found so far after this; ``None`` searches to the end.
        rounds: of the search, at most.
        progress: told after each query.

    Raises:
        JudgmentError: a set is about another corpus, or none is about this domain.
        TuningError: there is too little to fit to, or too little time.
        StoreError: a domain cannot be searched.
    """
    started = time.monotonic()
    deadline = None if deadline_s is None else started + deadline_s
    search_until = None if deadline_s is None else started + deadline_s * SEARCH_SHARE
    targets = [locate(engine, one.judged, one.domains) for one in judged_sets]
    cases, notes = _chosen(targets, domain, max_queries)
    agent = _ready(engine, domain)
    configured, in_force = settings.domains[domain].plan, normalised(agent.settings.plan)
    with _executors(engine) as executors, _unchanged(engine) as generation:
        literal = sum(map(is_literal, cases)) >= MIN_QUERIES
        space = plan_space(configured, literal=literal, reranks=_reranks(agent))
        scores = PlanScores(agent, executors[domain], cases, progress)
        fitted = cross_validated(space, scores, cases, in_force, search_until, rounds)
        reason = fitted.refusal
        everywhere: tuple[Change, ...] = ()
        if not reason:
            everyone = Everywhere(engine.agents, executors, engine.fusion, progress)
            everywhere = _everywhere(everyone, agent.with_plan(fitted.found.of_all), targets, deadline)
            reason = drop(everywhere)
    return result_of(
        fitted,
        lambda plan: plan.model_dump(mode="json"),
        subject=domain.value,
        base=plan_digest(configured),
        reason=reason,
        everywhere=everywhere,
        generation=generation,
        started=started,
        notes=notes,
    )


def tune_ranking(
    engine: Engine,
    settings: Settings,
    judged_sets: Sequence[SetToRun],
    *,
    max_queries: int = MAX_QUERIES_EVERYWHERE,
    deadline_s: float | None = DEADLINE_S,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> TuningResult:
    """Fit the weights that rank calibrated scores across domains, to judged sets of all domains together.

    Args:
        engine: started.
        settings: the engine's.
        judged_sets: of any domains; see ``tune``.
        max_queries: of each set, at most: a large one shall not speak for all.
        deadline_s: see ``tune``.
        rounds: see ``tune``.
        progress: told after each query.

    Raises:
        JudgmentError: a set is about another corpus.
        TuningError: there is too little to fit to, too little time, or the settings leave nothing to fit.
        StoreError: a domain cannot be searched.
    """
    started = time.monotonic()
    deadline = None if deadline_s is None else started + deadline_s
    for domain, agent in engine.agents.items():
        if agent.generation.name:  # who has nothing published has nothing to say
            _ready(engine, domain)
    _check_ranking(engine, settings)
    targets = [locate(engine, one.judged, one.domains) for one in judged_sets]
    cases = _sampled(targets, max_queries)
    _enough(len(cases), "all domains")
    configured = settings.fusion.rank_weights("calibrated")
    in_force = engine.fusion.rank_weights("calibrated")
    with _executors(engine) as executors, _unchanged(engine) as generation:
        try:
            scores = Everywhere(engine.agents, executors, engine.fusion, progress).fused(cases, deadline)
        except OutOfTimeError as error:
            raise too_short(len(cases)) from error
    space = ranking_space(configured)
    fitted = cross_validated(space, scores, cases, in_force, deadline, rounds)
    return result_of(
        fitted,
        asdict,
        subject=FUSION,
        base=ranking_digest(configured),
        reason=fitted.refusal,
        generation=generation,
        started=started,
    )


def keep(settings: Settings, result: TuningResult) -> PlanFile | None:
    """Write a plan that is to be kept, with its evidence, and put it in force; ``None`` where there is none.

    Raises:
        StoreError: it cannot be written.
    """
    if not result.kept:
        return None
    files = plan_files(settings, None if result.subject == FUSION else Domain(result.subject))
    evidence = {**as_json(result), "code": code_version()}
    plan = files.save(result.best, base=result.base, evidence=evidence)
    files.activate(plan.number)
    return plan


def _chosen(targets: Sequence[Target], domain: Domain, max_queries: int) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the domain's judged queries, those of people if there are enough, and what was left out."""
    own = [target for target in targets if target.domain is domain and not target.judged.across_domains]
    if not own:
        sets = ", ".join(f"{target.judged.name} ({target.domain.value})" for target in targets) or "none"
        raise JudgmentError(f"no judged set is about {domain.value}; there are: {sets}")
    cases = cases_of(own)
    judged = tuple(case for case in cases if case.origin is not Origin.GENERATED)
    notes = []
    if MIN_QUERIES <= len(judged) < len(cases):
        notes.append(f"{len(cases) - len(judged)} generated queries are left out: {len(judged)} others are enough")
        cases = judged
    _enough(len(cases), domain.value)
    if len(own) == len(targets):
        notes.append("no judged set is about another domain: what the plan does to their answers is not known")
    if len(cases) > max_queries:
        notes.append(f"fitted to {max_queries} of {len(cases)} queries, chosen by a hash")
        cases = sample(cases, max_queries)
    return cases, tuple(notes)


def _enough(count: int, of: str) -> None:
    if count < MIN_QUERIES:
        raise TuningError(
            f"{of}: {count} judged queries whose documents are published; at least {MIN_QUERIES} are needed to tell a "
            "better plan from a lucky one. Judge more, or let some be generated"
        )


def _sampled(targets: Sequence[Target], size: int) -> tuple[Case, ...]:
    """Return at most ``size`` cases of each set, by id."""
    cases = cases_of(targets)
    names = sorted({case.judged for case in cases})
    of_sets = [sample([case for case in cases if case.judged == name], size) for name in names]
    return tuple(sorted((case for of_set in of_sets for case in of_set), key=lambda case: case.id))


def _ready(engine: Engine, domain: Domain) -> Agent:
    """Return a domain's agent; what answers with half of its sources is nothing to fit to."""
    agent = engine.agents.get(domain)
    if agent is None:
        raise TuningError(f"{domain.value} is not served; there are: {', '.join(engine.agents)}")
    answered = agent.recall(RecallRequest(text=agent.settings.name, top_k=1))
    if failed := [source for source, state in answered.retrieval.items() if state not in {"ok", "empty"}]:
        raise TuningError(f"{domain.value} answers without {failed[0]}: {'; '.join(answered.notices)}; repair it first")
    return agent


def _reranks(agent: Agent) -> bool:
    """Return whether a cross-encoder is there; loads it if need be."""
    if agent.settings.reranking.model is None:
        return False
    answered = agent.recall(RecallRequest(text=agent.settings.name, top_k=1, rerank="on"))
    return any(item.rerank_score is not None for item in answered.items)


@contextmanager
def _executors(engine: Engine) -> Iterator[Mapping[Domain, Executor]]:
    """Yield a thread for each domain: tuning waits for nobody who is served meanwhile, nor they for it."""
    with ExitStack() as stack:
        yield {domain: stack.enter_context(ThreadPoolExecutor(1, f"tuning-{domain}")) for domain in engine.agents}


@contextmanager
def _unchanged(engine: Engine) -> Iterator[str]:
    """Yield what is searched.

    Raises:
        TuningError: on leaving, when it is no longer the same: half of the figures would be another index's.
    """
    before = _generations(engine)
    yield before
    if (after := _generations(engine)) != before:
        raise TuningError(f"a publication came in between ({before}, then {after}); tune again")


def _generations(engine: Engine) -> str:
    return ", ".join(f"{domain.value} {agent.generation.name}" for domain, agent in engine.agents.items())


def _check_ranking(engine: Engine, settings: Settings) -> None:
    stated = [name for name in RankWeights.__slots__ if getattr(settings.fusion, f"rank_weight_{name}") is not None]
    if stated:
        raise TuningError(f"the settings say rank_weight_{stated[0]}; remove it to have the ranking weights fitted")
    ranks = [domain.value for domain, agent in engine.agents.items() if agent.settings.plan.combine != "convex"]
    if ranks or settings.fusion.normalization == "minmax":
        why = f"{ranks[0]} combines by ranks" if ranks else "the settings say normalization: minmax"
        raise TuningError(f"ranking weights are fitted to calibrated scores, and {why}")


def _everywhere(
    everyone: Everywhere, other: Agent, targets: Sequence[Target], deadline: float | None
) -> tuple[Change, ...]:
    """Return what a plan changes with all domains asked: for its own domain's queries, and for those of others."""
    cases = _sampled(targets, MAX_QUERIES_EVERYWHERE)
    try:
        before, after = everyone.with_agent(other, cases, deadline)
    except OutOfTimeError as error:
        raise TuningError("no time was left to see what the plan does to all domains; allow more") from error
    kinds = {f"all domains, queries of {other.domain.value}": True, "all domains, queries of others": False}
    changes = []
    for name, own in kinds.items():
        if ids := [case.id for case in cases if (case.domain is other.domain) is own]:
            changes.append(Change.of(name, {one: before[one] for one in ids}, {one: after[one] for one in ids}))
    return tuple(changes)
