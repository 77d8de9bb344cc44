"""Fit a domain's plan, and the weights that rank across domains, to judged queries; keep only what is better for sure.

A plan is looked for on four fifths of the queries and tested on the last, five times over. It is kept when the tests
together gain beyond chance (one-sided paired randomisation test, p < .05), no judged set loses beyond chance, and
neither does anything with all domains asked, whose scores have to stay comparable. Nothing is written before
``keep``: a tuning that is killed leaves everything as it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from typing import Any

from evals.code_version import code_version
from evals.judgments import JudgmentError, JudgmentOrigin
from evals.runs import Progress, SetToRun
from evals.targets import RunTarget, locate
from evals.tuning.cases import TuningCase, cases_of, folds_of, sample
from evals.tuning.objective import AllDomains, domain_ranking, scored
from evals.tuning.results import Change, FoldResult, TuningResult, as_json, differing, drop, refusal
from evals.tuning.search import ROUNDS, OutOfTimeError, Score, Values, search
from evals.tuning.space import Space, T, normalised, plan_space, ranking_space
from nornweave.ask.engine import Engine
from nornweave.ask.route.router import split_clauses
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.query import read_query
from nornweave.ask.search.question import Question
from nornweave.config import PlanSettings, Settings
from nornweave.config.fusion import RankWeights
from nornweave.config.plans.active import FUSION, plan_digest, plan_files, ranking_digest
from nornweave.config.plans.versioned_files import PlanFile
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.errors import NornWeaveError
from nornweave.core.types import Domain, present

MIN_QUERIES = 20
"""With fewer, hardly any difference is more than chance."""
MAX_QUERIES = 400
"""Of one domain; more take longer and change little."""
MAX_QUERIES_EVERYWHERE = 150
"""Of each set, with all domains asked."""
DEADLINE_S = 900.0
SEARCH_SHARE = 0.7
"""Of the time; the rest is for asking all domains."""


class TuningError(NornWeaveError):
    """Nothing can be fitted: too few queries, a domain that does not answer as it should, too little time."""


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
    targets = _located(engine, judged_sets)
    cases, notes = _chosen(targets, domain, max_queries)
    agent = _ready(engine, domain)
    literal = sum(any(read_query(part).is_literal for part in (case.text, *split_clauses(case.text))) for case in cases)
    space = plan_space(settings.domains[domain].plan, literal=literal >= MIN_QUERIES, reranks=_reranks(agent))

    with _all_domains(engine) as (everyone, generation):

        def score(plans: Sequence[PlanSettings]) -> Mapping[PlanSettings, Values]:
            return scored(
                plans,
                cases,
                lambda plan, case: domain_ranking(agent.with_plan(plan), everyone.executors[domain], case),
                name=f"tuning {domain.value}, {len(plans)} plans",
                deadline=search_until,
                progress=progress,
            )

        best, result = _fitted(space, score, cases, normalised(agent.settings.plan), rounds, _plan_values)
        if result.kept:
            changes = _over_all_domains(everyone, agent.with_plan(best), targets, deadline, progress)
            worse = drop(changes)
            result = replace(result, all_domains=changes, kept=not worse, reason=worse or result.reason)
    return replace(
        result,
        subject=domain.value,
        base=plan_digest(settings.domains[domain].plan),
        generation=generation,
        seconds=round(time.monotonic() - started, 1),
        notes=(*notes, *result.notes),
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
    cases = _sampled(_located(engine, judged_sets), max_queries)
    _enough(len(cases), "all domains")
    configured = settings.fusion.rank_weights("calibrated")
    with _all_domains(engine) as (everyone, generation):
        ranking = everyone.ranking_by_weights()

        def score(weights: Sequence[RankWeights]) -> Mapping[RankWeights, Values]:
            name = f"all domains, {len(weights)} ranking weights"
            return scored(weights, cases, ranking, name=name, deadline=deadline, progress=progress)

        in_force = engine.fusion.rank_weights("calibrated")
        _, result = _fitted(ranking_space(configured), score, cases, in_force, rounds, asdict)
    return replace(
        result,
        subject=FUSION,
        base=ranking_digest(configured),
        generation=generation,
        seconds=round(time.monotonic() - started, 1),
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


def _fitted(
    space: Space[T],
    score: Score[T],
    cases: Sequence[TuningCase],
    in_force: T,
    rounds: int,
    values: Callable[[T], dict[str, Any]],
) -> tuple[T, TuningResult]:
    """Search in folds, and judge what is found by the queries of each fold, to which its plan was not fitted.

    Args:
        in_force: what is to be beaten; it is looked at, too.
        values: returns a point as JSON values, complete.

    Returns:
        The best point, fitted to all cases; the result without its subject.

    Raises:
        TuningError: not even what is in force could be scored in time.
    """
    folds = folds_of(cases)
    try:
        found = search(space, score, folds, known=(in_force,), rounds=rounds)
    except OutOfTimeError as error:
        why = f"the time is too short to ask {len(cases)} queries even once; allow more, or fewer queries"
        raise TuningError(why) from error
    before = {case.id: float(found.values[in_force][at]) for at, case in enumerate(cases)}
    after = {case.id: float(found.values[found.of_folds[folds[at]]][at]) for at, case in enumerate(cases)}

    def change(name: str, tested: Iterable[TuningCase]) -> Change:
        ids = [case.id for case in tested]
        return Change.of(name, {one: before[one] for one in ids}, {one: after[one] for one in ids})

    held_out = change("held out", cases)
    judged = sorted({case.judged for case in cases})
    sets = tuple(change(name, (case for case in cases if case.judged == name)) for name in judged)
    refused = refusal(held_out, sets, changed=found.of_all != in_force)
    fold_results = []
    for fold in sorted(set(folds)):
        tested = change("fold", (case for case, its in zip(cases, folds, strict=True) if its == fold))
        moved = differing(values(found.of_folds[fold]), values(space.configured))
        fold_results.append(FoldResult(tested.queries, tested.before, tested.after, moved))
    return found.of_all, TuningResult(
        kept=not refused,
        reason=refused or f"On queries that it was not fitted to, {held_out}: better beyond chance.",
        queries=len(cases),
        held_out=held_out,
        sets=sets,
        folds=tuple(fold_results),
        configured=values(space.configured),
        in_force=values(in_force),
        best=values(found.of_all),
        plans_tried=len(found.values),
        notes=() if found.finished else ("the search was cut short by the deadline; more time may find more",),
    )


def _plan_values(plan: PlanSettings) -> dict[str, Any]:
    return plan.model_dump(mode="json")


def _over_all_domains(
    everyone: AllDomains, other: Agent, targets: Sequence[RunTarget], deadline: float | None, progress: Progress | None
) -> tuple[Change, ...]:
    """Return what a plan changes with all domains asked: for its own domain's queries, and for those of others."""
    cases = _sampled(targets, MAX_QUERIES_EVERYWHERE)
    name = f"all domains, {other.domain.value} tuned"
    agents = (None, other)
    try:
        values = scored(agents, cases, lambda one, case: everyone.ranking(case, one),
                        name=name, deadline=deadline, progress=progress)  # fmt: skip
    except OutOfTimeError as error:
        raise TuningError("no time was left to see what the plan does to all domains; allow more") from error
    changes = []
    for of, own in ((other.domain.value, True), ("others", False)):
        if at := [number for number, case in enumerate(cases) if (case.domain is other.domain) is own]:
            before, after = ({cases[one].id: float(values[agent][one]) for one in at} for agent in agents)
            changes.append(Change.of(f"all domains, queries of {of}", before, after))
    return tuple(changes)


def _located(engine: Engine, judged_sets: Sequence[SetToRun]) -> list[RunTarget]:
    answers = engine.as_seen_by(OPERATOR).answers
    return [locate(answers, one.judged, one.domains) for one in judged_sets]


def _chosen(
    targets: Sequence[RunTarget], domain: Domain, max_queries: int
) -> tuple[tuple[TuningCase, ...], tuple[str, ...]]:
    """Return the domain's judged queries, those of people if there are enough, and what was left out."""
    own = [target for target in targets if target.domain is domain and not target.judged.across_domains]
    if not own:
        sets = ", ".join(f"{target.judged.name} ({target.domain.value})" for target in targets) or "none"
        raise JudgmentError(f"no judged set is about {domain.value}; there are: {sets}")
    cases = cases_of(own)
    judged = tuple(case for case in cases if case.origin is not JudgmentOrigin.GENERATED)
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


def _sampled(targets: Sequence[RunTarget], size: int) -> tuple[TuningCase, ...]:
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
    answered = agent.recall(Question(text=agent.settings.name, now=present(), viewer=OPERATOR, top_k=1))
    if failed := [source for source, state in answered.retrieval.items() if state not in {"ok", "empty"}]:
        raise TuningError(f"{domain.value} answers without {failed[0]}: {'; '.join(answered.notices)}; repair it first")
    return agent


def _reranks(agent: Agent) -> bool:
    """Return whether a cross-encoder is there; loads it if need be."""
    if agent.settings.reranking.model is None:
        return False
    answered = agent.recall(Question(text=agent.settings.name, now=present(), viewer=OPERATOR, top_k=1, rerank="on"))
    return any(item.rerank_score is not None for item in answered.items)


@contextmanager
def _all_domains(engine: Engine) -> Iterator[tuple[AllDomains, str]]:
    """Yield what answers, and the generations that are searched.

    Each domain has a thread of its own: tuning waits for nobody who is served meanwhile, nor they for it.

    Raises:
        TuningError: on leaving, when the generations have changed: half of the figures would be another index's.
    """
    before = _generations(engine)
    with ExitStack() as stack:
        executors = {one: stack.enter_context(ThreadPoolExecutor(1, f"tuning-{one}")) for one in engine.agents}
        yield AllDomains(engine.agents, executors, engine.fusion), before
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
