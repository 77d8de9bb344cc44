"""Fit a domain's plan to judged queries; keep only what is better for sure.

A plan is looked for on four fifths of the queries and tested on the last, five times over. It is kept when the tests
together gain beyond chance (one-sided paired randomisation test, p < .05), no judged set loses beyond chance, and
neither do the answers over all domains. Nothing is written before ``keep``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from evals.feedback_set import sets_of_answers
from evals.history import code_version
from evals.judgments import JudgmentError, JudgmentOrigin
from evals.measures import Ranking, measure
from evals.results import ResultScope
from evals.runs import Progress, SetToRun, rankings_of
from evals.searching import PathSearcher
from evals.sets import configured_sets
from evals.targets import RunTarget, locate
from evals.tuning.cases import TuningCase, cases_of, folds_of
from evals.tuning.results import Change, TuningResult, refusal
from evals.tuning.search import ROUNDS, SearchResult, Values, search
from nornweave.ask.engine import Engine
from nornweave.ask.feedback.book import feedback_of
from nornweave.ask.search.question import Question
from nornweave.config import PlanSettings, Settings
from nornweave.config.tuned_plans import TunedPlan, plan_digest, plan_files
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.errors import NornWeaveError, QueryError
from nornweave.core.types import Domain, present

MEASURED = ("nDCG@10", "Recall@10", "RR@10")
"""The objective of a query is their mean: what is found at all, how far one has to look, and all of it in between."""
MIN_QUERIES = 20
"""With fewer, hardly any difference is more than chance."""
MAX_QUERIES = 400
"""Of each set; more take longer and change little."""
MAX_QUERIES_EVERYWHERE = 150
"""Of each set, with all domains asked."""
DEADLINE_S = 900.0


class TuningError(NornWeaveError):
    """Nothing can be fitted: too few queries, a domain that does not answer as it should."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Judged queries answered by plans of one domain, on the path that serves, and measured.

    Attributes:
        scope: asks the domain alone, with the query's filters, or all domains.
    """

    engine: Engine
    domain: Domain
    cases: Sequence[TuningCase]
    scope: ResultScope = ResultScope.DOMAIN
    progress: Progress | None = None

    @property
    def in_force(self) -> PlanSettings:
        """Return the plan that the domain answers by."""
        return self.engine.agents[self.domain].settings.plan

    def __call__(self, plans: Sequence[PlanSettings]) -> dict[PlanSettings, Values]:
        """Return the objective of every case by each plan, in [0, 1]; a refused query has 0.

        Raises:
            StoreError: the domain cannot be searched.
        """
        rankings: dict[PlanSettings, dict[str, Ranking]] = {plan: {} for plan in plans}
        # All plans for one query, then the next: a query is encoded once.
        for number, case in enumerate(self.cases, 1):
            for plan, of_plan in rankings.items():
                of_plan[case.id] = self._ranking(plan, case)
            if self.progress:
                self.progress(f"tuning {self.domain.value}, {len(plans)} plans", number, len(self.cases))
        return {plan: self._values(of_plan) for plan, of_plan in rankings.items()}

    def _ranking(self, plan: PlanSettings, case: TuningCase) -> Ranking:
        agents = {**self.engine.agents, self.domain: self.engine.agents[self.domain].altered(plan=plan)}
        searcher = PathSearcher(replace(self.engine.path, agents=agents))
        try:
            ranked = rankings_of(searcher, case.target, case.query, self.scope, case.hits)
        except QueryError:
            return ()
        stage = "merged" if self.scope is ResultScope.DOMAIN else "fused"
        return case.hits.places(ranked.stages[stage], by_document=case.hits.whole_documents)

    def _values(self, rankings: Mapping[str, Ranking]) -> Values:
        metrics = measure(rankings, {case.id: case.grades for case in self.cases}, MEASURED)
        sums = [math.fsum(metrics[name].values[case.id] for name in MEASURED) for case in self.cases]
        return np.array(sums) / len(MEASURED)


def tune(
    engine: Engine,
    domain: Domain,
    judged_sets: Sequence[SetToRun],
    *,
    deadline_s: float = math.inf,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> TuningResult:
    """Fit a domain's plan; writes nothing, see ``keep``.

    Args:
        engine: started; its agent's plan is the one to beat.
        judged_sets: of this domain, of others and of all at once. A plan is fitted to what people judged of this
            domain, and to what was generated if that is too little; all sets say whether other answers suffer.
        deadline_s: after this the search ends with the best found so far.

    Raises:
        JudgmentError: a set is about another corpus, or none is about this domain.
        TuningError: there is too little to fit to.
        StoreError: a domain cannot be searched.
    """
    started = time.monotonic()
    targets = [locate(PathSearcher(engine.path), each.judged, each.domains) for each in judged_sets]
    cases, notes = _chosen(targets, domain)
    _check_agent(engine, domain)
    generation = _generations(engine)
    objective = Objective(engine, domain, cases, ResultScope.DOMAIN, progress)
    outcome = search(objective.in_force, objective, folds_of(cases), rounds=rounds,
                     is_late=lambda: time.monotonic() - started > deadline_s)  # fmt: skip
    if not outcome.finished:
        notes.append("the search was cut short by the deadline; more time may find more")
    result = _judged(outcome, objective)
    if result.kept:
        result = _with_all_domains(result, objective, targets, outcome.of_all)
    if (after := _generations(engine)) != generation:
        raise TuningError(f"a publication came in between ({generation}, then {after}); tune again")
    return replace(result, generation=generation, seconds=round(time.monotonic() - started, 1), notes=tuple(notes))


def keep(settings: Settings, result: TuningResult) -> TunedPlan | None:
    """Write a plan that is to be kept, with its evidence, and put it in force; ``None`` where there is none.

    Raises:
        StoreError: it cannot be written.
    """
    if not result.kept:
        return None
    domain = Domain(result.subject)
    return plan_files(settings, domain).activate(
        PlanSettings.model_validate(result.best),
        base=plan_digest(settings.domains[domain].plan),
        evidence={**asdict(result), "code": code_version()},
    )


def retune(
    settings: Settings,
    domain: Domain,
    *,
    keeps: bool = True,
    deadline_s: float = DEADLINE_S,
    progress: Progress | None = None,
) -> tuple[TuningResult, TunedPlan | None]:
    """Fit a domain's plan to the configured sets and to feedback, and put it in force if it is better.

    Args:
        keeps: write the plan; otherwise only return the result.
        deadline_s: see ``tune``.

    Returns:
        The result, and the plan that it put in force, if any.

    Raises:
        JudgmentError: a judged set is broken, or about another corpus.
        TuningError: there is too little to fit to.
        StoreError: a domain cannot be searched, or the plan not be written.
    """
    with Engine(settings, watch=False) as engine:
        book = feedback_of(settings)
        try:
            feedback = [SetToRun(judged, (of,)) for of, judged in sets_of_answers(book.judged()).items()]
        finally:
            book.close()
        sets = [*configured_sets(settings, engine), *feedback]
        result = tune(engine, domain, sets, deadline_s=deadline_s, progress=progress)
    return result, keep(settings, result) if keeps else None


def _judged(outcome: SearchResult, objective: Objective) -> TuningResult:
    """Judge what was found by the queries of each fold, to which its plan was not fitted."""
    cases, in_force = objective.cases, objective.in_force
    before = outcome.values[in_force]
    after = np.array([outcome.values[outcome.of_folds[fold]][at] for at, fold in enumerate(folds_of(cases))])
    held_out = Change.of("held out", before, after)
    sets = _changes(before, after, [case.judged for case in cases])
    refused = refusal(held_out, sets, changed=outcome.of_all != in_force)
    return TuningResult(
        subject=objective.domain.value,
        kept=not refused,
        reason=refused or f"On queries that it was not fitted to, {held_out}: better beyond chance.",
        queries=len(cases),
        held_out=held_out,
        sets=sets,
        in_force=in_force.model_dump(mode="json"),
        best=outcome.of_all.model_dump(mode="json"),
        plans_tried=len(outcome.values),
    )


def _with_all_domains(
    result: TuningResult, objective: Objective, targets: Sequence[RunTarget], best: PlanSettings
) -> TuningResult:
    """Refuse a plan that makes answers over all domains worse: to its own domain's queries, or to those of others."""
    everywhere = cases_of(targets, most=MAX_QUERIES_EVERYWHERE)
    objective = replace(objective, cases=everywhere, scope=ResultScope.EVERYWHERE)
    own, in_force = objective.domain, objective.in_force
    values = objective([in_force, best])
    asked = [
        f"all domains, queries of {own if target.domain is own and not target.judged.across_domains else 'others'}"
        for target in (case.target for case in objective.cases)
    ]
    changes = _changes(values[in_force], values[best], asked)
    worse = refusal(result.held_out, changes, changed=True)
    return replace(result, all_domains=changes, kept=not worse, reason=worse or result.reason)


def _changes(before: Values, after: Values, names: Sequence[str]) -> tuple[Change, ...]:
    """Return the change on the queries of each name."""
    chosen = {name: [each == name for each in names] for name in sorted(set(names))}
    return tuple(Change.of(name, before[mask], after[mask]) for name, mask in chosen.items())


def _chosen(targets: Sequence[RunTarget], domain: Domain) -> tuple[tuple[TuningCase, ...], list[str]]:
    """Return the domain's judged queries, those of people if there are enough, and what was left out."""
    own = [target for target in targets if target.domain is domain and not target.judged.across_domains]
    if not own:
        sets = ", ".join(f"{target.judged.name} ({target.domain.value})" for target in targets) or "none"
        raise JudgmentError(f"no judged set is about {domain.value}; there are: {sets}")
    notes = []
    cases = cases_of(own, most=MAX_QUERIES)
    judged = tuple(case for case in cases if case.target.judged.origin is not JudgmentOrigin.GENERATED)
    if MIN_QUERIES <= len(judged) < len(cases):
        notes.append(f"{len(cases) - len(judged)} generated queries are left out: {len(judged)} others are enough")
        cases = judged
    if len(cases) < MIN_QUERIES:
        raise TuningError(
            f"{domain.value}: {len(cases)} judged queries whose documents are published; at least {MIN_QUERIES} are "
            "needed to tell a better plan from a lucky one. Judge more, or let some be generated"
        )
    if len(own) == len(targets):
        notes.append("no judged set is about another domain: what the plan does to their answers is not known")
    return cases, notes


def _check_agent(engine: Engine, domain: Domain) -> None:
    """Refuse a domain that answers without one of its retrieval sources."""
    agent = engine.agents.get(domain)
    if agent is None:
        raise TuningError(f"{domain.value} is not served; there are: {', '.join(engine.agents)}")
    answered = agent.recall(Question(text=agent.settings.name, now=present(), viewer=OPERATOR, top_k=1))
    if failed := [source for source, state in answered.retrieval.items() if state not in {"ok", "empty"}]:
        raise TuningError(f"{domain.value} answers without {failed[0]}: {'; '.join(answered.notices)}; repair it first")


def _generations(engine: Engine) -> str:
    return ", ".join(f"{domain.value} {agent.generation.name}" for domain, agent in engine.agents.items())
