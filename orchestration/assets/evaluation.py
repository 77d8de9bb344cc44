"""Assets of evaluations: of one domain, and of the answers over all domains."""

# No ``from __future__ import annotations`` here: Dagster reads the annotations of asset bodies as objects.

from collections.abc import Sequence

import dagster as dg

from evals.evaluation import (
    Evaluated,
    GenerationReport,
    evaluate_published,
    judge_published,
)
from evals.results import ResultScope
from evals.runs import Progress
from evals.sets import configured_sets, sets_across, wrong_judgments
from nornweave.ask.engine import Engine
from nornweave.carry.wiring import pull, store_of
from nornweave.config import EvaluationSettings, Settings
from nornweave.core.types import Domain
from nornweave.improve.history import history_of
from nornweave.improve.records import ALL_DOMAINS, Evaluation, Verdict
from nornweave.ingest.alarms import Alarm, AlarmKind
from orchestration.announcements import Announcements
from orchestration.assets import OWNERS, Result
from orchestration.checks import evaluated_metadata, known_metadata, trend_metadata
from orchestration.metadata import Metadata
from orchestration.resources import fail_with_message

GROUP = "evaluation"
EVALUATION_JOB = "evaluation"
ANSWERS_KEY = dg.AssetKey([GROUP, "answers"])
UNJUDGED = "no judged set is named, and none can be made out of what is published (docs/evaluation.md)"


def answers_asset(
    settings: Settings, generations: Sequence[dg.AssetKey], progress: Progress | None
) -> dg.AssetsDefinition:
    """Return the asset that measures answers over all domains. It runs after ``generations``, their publications."""

    @dg.asset(
        key=ANSWERS_KEY,
        deps=generations,
        group_name=GROUP,
        description=_ANSWERS,
        kinds={"duckdb"},
        owners=OWNERS,
    )
    def answers(context: dg.AssetExecutionContext) -> Result:
        # In a run that syncs, the sets that somebody asked for; on its own also one made out of the corpus.
        syncs = any(is_in_run(context, key) for key in generations)
        described = answers_evaluation(settings, context.run.run_id, progress, syncs=syncs)
        if wrong := wrong_judgments(settings, None):
            raise dg.Failure("; ".join(wrong), metadata=described, allow_retries=False)
        return dg.MaterializeResult(metadata=described)

    return answers


def is_in_run(context: dg.AssetExecutionContext, key: dg.AssetKey) -> bool:
    """Tell whether another asset is part of the same run."""
    selection = context.run.asset_selection
    return context.run.job_name != EVALUATION_JOB if selection is None else key in selection


def domain_evaluation(
    settings: Settings, domain: Domain, run_id: str, progress: Progress
) -> tuple[Metadata, GenerationReport | None]:
    """Measure a domain's published generation. Announce measures that dropped or are below their floor.

    Returns:
        Metadata for Dagster, and the report. The report is ``None`` if nothing is published or no set is judged.
    """
    with fail_with_message():
        pull(settings, domain)
    if store_of(settings, domain).current() is None:
        return {"summary": "nothing is published yet"}, None
    with fail_with_message(), Engine(settings, [domain], watch=False) as engine:
        sets = configured_sets(settings, engine, [domain])
        if not sets:
            return {"summary": UNJUDGED}, None
        scopes = (ResultScope.DOMAIN, ResultScope.UNFILTERED)
        evaluated = evaluate_published(settings, engine, sets, scopes=scopes, run_id=run_id, progress=progress)
    report = judge_published(evaluated, ResultScope.DOMAIN, settings.domains[domain].evaluation)
    _announce(settings, domain, report, run_id)
    return _describe(settings, evaluated, ResultScope.DOMAIN), report


def candidate_evaluation(
    settings: Settings, domain: Domain, report: GenerationReport | None, *, built: bool
) -> Metadata:
    """Return metadata about a candidate's evaluation, or about why there is none.

    Args:
        report: the gate's report; ``None`` if there is no candidate or the domain is not measured.
        built: whether there is a candidate.
    """
    if report:
        return _describe(settings, report.evaluated, ResultScope.DOMAIN)
    if built:
        return {"summary": "not measured: the domain names no judged set, or turns its gate off (docs/evaluation.md)"}
    return {
        "summary": "nothing changed since the published generation",
        **_known_figures(settings, domain.value, ResultScope.DOMAIN, generation=store_of(settings, domain).current()),
    }


def answers_evaluation(settings: Settings, run_id: str, progress: Progress | None, *, syncs: bool) -> Metadata:
    """Measure answers to questions that name no domain, and return metadata about the result.

    If sets are judged across domains, only these are measured, otherwise the sets of every domain.

    Args:
        syncs: whether this is part of a sync. A sync measures only sets that are judged across domains, and only if
            something was published since the last evaluation.
    """
    if syncs and not settings.evaluation.judgments:
        return {"summary": "no set is judged across domains (docs/evaluation.md)"}
    if syncs and _is_measured(settings):
        return {
            "summary": "nothing was published since the last evaluation",
            **_known_figures(settings, ALL_DOMAINS, ResultScope.EVERYWHERE),
        }
    with fail_with_message():
        pull(settings)
    if not any(store_of(settings, domain).current() for domain in settings.served_domains):
        return {"summary": "nothing is published yet"}
    with fail_with_message(), Engine(settings, watch=False) as engine:
        sets = sets_across(settings) or configured_sets(settings, engine)
        if not sets:
            return {"summary": UNJUDGED}
        evaluated = evaluate_published(
            settings, engine, sets, scopes=(ResultScope.EVERYWHERE,), run_id=run_id, progress=progress
        )
    _announce(settings, None, judge_published(evaluated, ResultScope.EVERYWHERE, EvaluationSettings()), run_id)
    return _describe(settings, evaluated, ResultScope.EVERYWHERE)


def _announce(settings: Settings, domain: Domain | None, report: GenerationReport, run_id: str) -> None:
    """Announce measures that dropped, and measures below their floor. ``None`` stands for answers over all domains.

    A drop is announced once. The alarm of a measure below its floor lasts until the measure recovers.
    """
    alarms = [
        Alarm(
            kind=AlarmKind.QUALITY_DROPPED,
            subject=f"{finding.set_name} {finding.stage} {finding.measure}",
            text=finding.text,
            lasts=finding.comparison is None,
        )
        for finding in report.findings
        if finding.warns
    ]
    announcements = Announcements(settings)
    announcements.alarms(domain, alarms, [AlarmKind.QUALITY_DROPPED], run_id=run_id)
    announcements.deliver()


def _is_measured(settings: Settings) -> bool:
    """Tell whether the answers were measured after the last publication of any domain."""
    moved = [store_of(settings, domain).files.published_at() or 0.0 for domain in settings.served_domains]
    known = history_of(settings).evaluations(domain=ALL_DOMAINS, limit=1)
    return bool(known) and known[0].at.timestamp() > max(moved)


def _known_figures(settings: Settings, subject: str, scope: ResultScope, generation: str | None = None) -> Metadata:
    """Return the figures of each set's last evaluation, for one generation or (``None``) for any.

    Evaluations of refused candidates are ignored. ``subject`` is a domain, or ``ALL_DOMAINS``.
    """
    known = history_of(settings).evaluations(domain=subject, scope=scope.value, generation=generation)
    newest: dict[str, Evaluation] = {}
    for evaluation in known:
        if evaluation.verdict is not Verdict.REFUSED:
            newest.setdefault(evaluation.set_name, evaluation)
    # Sets that were measured together were recorded in their order, and are found newest first.
    return known_metadata(tuple(sorted(newest.values(), key=lambda each: each.at)))


def _describe(settings: Settings, evaluated: Sequence[Evaluated], scope: ResultScope) -> Metadata:
    """Return metadata about evaluations, with a chart of each set's history."""
    described, history = dict(evaluated_metadata(evaluated, scope)), history_of(settings)
    for each in (one.result for one in evaluated):
        described |= trend_metadata(
            each.name, history.evaluations(domain=each.subject, set_name=each.name, scope=scope.value)
        )
    return described


_ANSWERS = (
    "How well the answers fare when nobody says which domain to ask: every domain's judged sets over everything that "
    "is published, with each stage, against the last time."
)
