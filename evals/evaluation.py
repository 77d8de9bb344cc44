"""Evaluate a published generation or a candidate: run the sets, compare with history, and add the results to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from evals.controlled import embeddings_off
from evals.controls import Control
from evals.gate import GateFinding, judge, refusals, warnings
from evals.history import Baseline, HistorySubject, baseline, to_history_record
from evals.judgments import JudgedSet, JudgmentError
from evals.moves import note_moves, with_moves
from evals.results import ResultScope, SetResult
from evals.runs import Progress, SetToRun, evaluate, evaluate_all
from evals.searching import PathSearcher
from evals.sets import read_domain_sets, read_sets, sets_for_candidate
from nornweave.ask.engine import Engine
from nornweave.ask.search.agent import Agent
from nornweave.config import EvaluationSettings, Settings
from nornweave.core.errors import ConfirmationError, StoreError
from nornweave.core.text import analyzer
from nornweave.core.types import Domain
from nornweave.improve.comparison import EvaluationComparison
from nornweave.improve.history import EvaluationHistory, history_of
from nornweave.improve.records import LAST_STAGE, Verdict
from nornweave.index.port import Candidate
from nornweave.models.encoders.port import same_space

KNOWN_ENOUGH = 0.8
"""Share of a set's queries that must be comparable; below it what is published is measured anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The results of a judged set beside the earlier ones.

    Attributes:
        generation: of the set's domain that was measured.
        before: by scope; a scope that was never run has none.
        controls: those that needed searches; the others are in the results of the runs.
    """

    result: SetResult
    generation: str
    before: Mapping[ResultScope, Baseline]
    controls: tuple[Control, ...] = ()

    def comparison(self, scope: ResultScope, stage: str, measure: str) -> EvaluationComparison | None:
        """Compare one figure with the earlier one, over the queries that did not change."""
        run, before = self.result.scope(scope), self.before.get(scope)
        return before.compare(self.result, run, stage, measure) if run and before else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationReport:
    """The evaluation of a candidate or of a published generation.

    Attributes:
        evaluated: per judged set.
        findings: all findings of the gate, with those that refuse.
        problems: sets that could not be run.
        accepted: whether a person has asked for publication in spite of the findings.
        judged_gone: set and path of judged documents that are published and that the candidate does not have; their
            judgments are left out of its measures.
    """

    generation: str
    evaluated: tuple[Evaluated, ...]
    findings: tuple[GateFinding, ...]
    problems: tuple[str, ...]
    accepted: bool
    judged_gone: tuple[tuple[str, str], ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the reasons against publication."""
        return (*self.problems, *refusals(self.findings))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return losses beyond their margin that are no reason against publication."""
        return warnings(self.findings)

    @property
    def refused(self) -> bool:
        """Tell whether the candidate must not be published."""
        return bool(self.reasons) and not self.accepted


def evaluate_published(
    settings: Settings,
    engine: Engine,
    sets: Sequence[SetToRun],
    *,
    scopes: Collection[ResultScope] = tuple(ResultScope),
    count_missing: bool = False,
    controls: bool = False,
    run_id: str,
    progress: Progress | None = None,
) -> tuple[Evaluated, ...]:
    """Evaluate the published generations and add the results to the history.

    Args:
        sets: see ``sets.configured_sets`` and ``sets.read_sets``.
        count_missing: count judged documents that are not published as misses.
        controls: also ask with vectors that mean nothing, which must score low.

    Raises:
        JudgmentError: no set, or one whose documents are not published.
        StoreError: the history cannot be written.
    """
    sets = [replace(each, judged=with_moves(settings, each.judged)) for each in sets]
    results = evaluate_all(
        PathSearcher(engine.path), sets, scopes=scopes, count_missing=count_missing, progress=progress
    )
    history = history_of(settings)
    recorded = (_record_published(history, engine, result, run_id) for result in results)
    if not controls:
        return tuple(recorded)
    return tuple(
        replace(evaluation, controls=embeddings_off(engine, to_run.judged, evaluation.result))
        for to_run, evaluation in zip(sets, recorded, strict=True)
    )


def judge_published(
    evaluated: Sequence[Evaluated], scope: ResultScope, settings: EvaluationSettings
) -> GenerationReport:
    """Judge the published generation like a candidate: by floors, and by drops beyond chance since the last time.

    Args:
        evaluated: of ``evaluate_published``.
    """
    findings = tuple(
        finding
        for evaluation in evaluated
        for finding in judge(evaluation.result, evaluation.before.get(scope), settings, scope)
    )
    generation = evaluated[0].generation if evaluated else ""
    return GenerationReport(
        generation=generation, evaluated=tuple(evaluated), findings=findings, problems=(), accepted=False
    )


def evaluate_candidate(
    settings: Settings,
    domain: Domain,
    candidate: Candidate,
    *,
    run_id: str,
    accept: Callable[[], bool] = lambda: False,
    progress: Progress | None = None,
) -> GenerationReport | None:
    """Measure a candidate with its domain's judged sets and compare it with the published generation.

    The published generation is measured too if its results are missing and it can be: it was built with the
    analyzer and encoder that are here now.

    Args:
        candidate: built, not published.
        accept: called if there are reasons against publication; returns whether a person wants it all the same.
            A ``ConfirmationError`` that it raises is one more problem.

    Returns:
        The report; ``None`` if the domain has no gate: it has no judged set, or the gate is off.

    Raises:
        StoreError: the candidate cannot be read.
    """
    configured = settings.domains[domain].evaluation
    is_gated = configured.gate and (configured.judgments or configured.generated)
    if not is_gated and not configured.judgments and not settings.evaluation.judgments:
        return None
    history = history_of(settings)
    with _engine_of(settings, domain, None) as published, _engine_of(settings, domain, candidate) as engine:
        _note_moves(settings, published.agents[domain], engine.agents[domain])
        if not is_gated:
            return None
        report = _judge_candidate(settings, published, engine, candidate, history, run_id, progress)
    if report.reasons:
        report = _ask_to_accept(report, accept)
    _record(history, report, run_id)
    return report


def _note_moves(settings: Settings, published: Agent, candidate: Agent) -> None:
    with suppress(JudgmentError):  # whoever measures says what is wrong with a set
        own = settings.domains[candidate.domain].evaluation.judgments
        sets = (*read_domain_sets(own), *read_sets(settings.evaluation.judgments))
        note_moves(settings, published, candidate, sets)


def _judge_candidate(
    settings: Settings,
    published: Engine,
    engine: Engine,
    candidate: Candidate,
    history: EvaluationHistory,
    run_id: str,
    progress: Progress | None,
) -> GenerationReport:
    """Measure a candidate, the only generation that its engine serves, against the published one."""
    (agent,) = engine.agents.values()
    if agent.generation.problem:
        raise StoreError(agent.generation.problem)
    domain, configured = agent.domain, settings.domains[agent.domain].evaluation
    read, problems = sets_for_candidate(agent, published.agents[domain], configured)
    judged = [with_moves(settings, each) for each in read]
    results, unrun = _results(engine, domain, judged, progress)
    before = _baselines(published, domain, judged, results, history, run_id)
    return GenerationReport(
        generation=candidate.generation,
        evaluated=tuple(
            Evaluated(
                result=result,
                generation=candidate.generation,
                before={ResultScope.DOMAIN: before[result.name]} if result.name in before else {},
            )
            for result in results
        ),
        findings=tuple(finding for result in results for finding in judge(result, before.get(result.name), configured)),
        problems=(*problems, *unrun),
        accepted=False,
        judged_gone=_judged_gone(published, results),
    )


def _judged_gone(published: Engine, results: Sequence[SetResult]) -> tuple[tuple[str, str], ...]:
    searcher = PathSearcher(published.path)
    return tuple(
        (result.name, path)
        for result in results
        if result.missing
        for path in sorted(searcher.domain_of(result.missing))
    )


def _record(history: EvaluationHistory, report: GenerationReport, run_id: str) -> None:
    """Add the results of a candidate and the verdict to the history."""
    verdict = Verdict.REFUSED if report.refused else Verdict.PASSED
    history.record(
        [
            to_history_record(
                evaluation.result,
                run,
                HistorySubject(run_id=run_id, generation=evaluation.generation, verdict=verdict),
            )
            for evaluation in report.evaluated
            for run in evaluation.result.scopes
        ]
    )


def _ask_to_accept(report: GenerationReport, accept: Callable[[], bool]) -> GenerationReport:
    """Return the report with a person's decision on it."""
    try:
        return replace(report, accepted=accept())
    except ConfirmationError as error:
        return replace(report, problems=(*report.problems, str(error)))


def _engine_of(settings: Settings, domain: Domain, candidate: Candidate | None) -> Engine:
    """Return an engine for one domain alone. The caller enters its context."""
    return Engine(settings, [domain], candidates={domain: candidate.generation} if candidate else {}, watch=False)


def _results(
    engine: Engine, domain: Domain, judged: Sequence[JudgedSet], progress: Progress | None
) -> tuple[tuple[SetResult, ...], tuple[str, ...]]:
    """Run sets in their own domain. A set that fails does not stop the others."""
    searcher = PathSearcher(engine.path)
    results: list[SetResult] = []
    problems: list[str] = []
    for judged_set in judged:
        try:
            results.append(
                evaluate(searcher, judged_set, domains=(domain,), scopes=(ResultScope.DOMAIN,), progress=progress)
            )
        except JudgmentError as error:
            problems.append(str(error))
    return tuple(results), tuple(problems)


def _baselines(
    published: Engine,
    domain: Domain,
    judged: Sequence[JudgedSet],
    results: Sequence[SetResult],
    history: EvaluationHistory,
    run_id: str,
) -> dict[str, Baseline]:
    """Return by set the results of the published generation; they are measured now if history has too little."""
    agent = published.agents[domain]
    generation = agent.generation.name
    if generation is None:
        return {}
    known = {result.name: baseline(history, result, ResultScope.DOMAIN, generation=generation) for result in results}
    unknown = {result.name for result in results if _known_share(known[result.name], result) < KNOWN_ENOUGH}
    if _answers_as_built(agent):
        for result in _results(published, domain, [result for result in judged if result.name in unknown], None)[0]:
            _record_published(history, published, result, run_id)
            known[result.name] = baseline(history, result, ResultScope.DOMAIN, generation=generation)
    return {name: found for name, found in known.items() if found is not None}


def _known_share(before: Baseline | None, result: SetResult) -> float:
    """Return the share of a set's queries that have comparable earlier values."""
    known = before.values.get((LAST_STAGE, "RR@10"), {}) if before else {}
    return sum(item in known for item in result.digests.items()) / len(result.digests)


def _answers_as_built(agent: Agent) -> bool:
    """Tell whether the present analyzer and encoder are those that built the generation."""
    meta, memo = agent.generation.meta, agent.encoder()
    readable = memo is not None and same_space(memo.encoder.version, meta.get("encoder"))
    return readable and meta.get("analyzer") == analyzer.VERSION


def _record_published(history: EvaluationHistory, engine: Engine, result: SetResult, run_id: str) -> Evaluated:
    """Add the results of a published generation to the history."""
    agent = engine.agents[result.domain]
    verdict = Verdict.PUBLISHED if _answers_as_built(agent) else Verdict.OUTDATED
    before = {run.scope: found for run in result.scopes if (found := baseline(history, result, run.scope))}
    subject = HistorySubject(run_id=run_id, generation=agent.generation.name or "", verdict=verdict)
    history.record([to_history_record(result, run, subject) for run in result.scopes])
    return Evaluated(result=result, generation=subject.generation, before=before)
