"""The assets of domains, of evaluations and of the query map.

A domain's are documents → chunks → embeddings → index → evaluation → generation. Each body calls one step of the recipe
in ``nornweave.ingest.pipeline`` and returns its report as metadata. The steps of a run share the domain's open sync; a
step that runs alone, in a process of its own, looks for what is missing.

The conflict ledger is made anew after every publication, over all domains that are published. Evaluations are of one
domain, and of the answers over all domains. The query map of the code domain is learnt from its commits, tested, then
published or not.
"""

# No ``from __future__ import annotations`` here: Dagster reads the annotations of asset bodies as objects.

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import dagster as dg

from evals.evaluation import (
    Evaluated,
    GenerationReport,
    evaluate_published,
    judge_published,
)
from evals.query_map import learn_published
from evals.results import ResultScope
from evals.runs import Progress
from evals.sets import configured_sets, sets_across, wrong_judgments
from nornweave.ask.engine import Engine
from nornweave.carry.publishing import refresh_workspace
from nornweave.carry.wiring import pull, store_of
from nornweave.config import DomainSettings, EvaluationSettings, Settings
from nornweave.core.errors import DomainBusyError, EncoderError
from nornweave.core.text import analyzer
from nornweave.core.types import Domain, digest
from nornweave.disagree.facts import extract
from nornweave.improve.history import history_of
from nornweave.improve.records import ALL_DOMAINS, Evaluation, Verdict
from nornweave.ingest.alarms import Alarm, AlarmKind
from nornweave.ingest.ledger import refresh_ledger
from nornweave.ingest.wiring import chunker_of
from orchestration.announcements import Announcements
from orchestration.checks import (
    Metadata,
    check_results,
    chunks_metadata,
    documents_metadata,
    embeddings_metadata,
    evaluated_metadata,
    generation_metadata,
    index_metadata,
    invariant_checks,
    known_metadata,
    ledger_metadata,
    quality_check,
    quality_result,
    trend_metadata,
)
from orchestration.resources import DomainSyncs, fail_with_message, logged_progress

OWNERS = ("team:nornweave",)

if TYPE_CHECKING:
    Result = dg.MaterializeResult[Any]
else:
    Result = dg.MaterializeResult  # Dagster knows the bare class only

STEPS = ("documents", "chunks", "embeddings", "index", "evaluation", "generation")

EVALUATION_GROUP = "evaluation"
EVALUATION_JOB = "evaluation"
ANSWERS_KEY = dg.AssetKey([EVALUATION_GROUP, "answers"])
UNJUDGED = "no judged set is named, and none can be made out of what is published (docs/evaluation.md)"

QUERY_MAP_DOMAIN = Domain.CODE
QUERY_MAP_JOB = "query_map"
QUERY_MAP_KEY = dg.AssetKey([QUERY_MAP_DOMAIN.value, "query_map"])


def domain_assets(settings: Settings, domain: Domain) -> list[dg.AssetsDefinition]:
    """Return the six assets of ``domain``."""
    versions = code_versions(settings.domains[domain])

    @_step(domain, "documents", versions, _DOCUMENTS, kinds={"filesystem"})
    def documents(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        with syncs.step(context, domain) as sync:
            changes = sync.list_changes()
            return dg.MaterializeResult(metadata=documents_metadata(changes, syncs.seconds))

    @_step(domain, "chunks", versions, _CHUNKS, kinds={"duckdb"})
    def chunks(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        with syncs.step(context, domain) as sync:
            sync.store_changes()
            return dg.MaterializeResult(metadata=chunks_metadata(sync.report(), syncs.seconds))

    @_step(domain, "embeddings", versions, _EMBEDDINGS, kinds={"duckdb"})
    def embeddings(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        # A model behind a network may answer the next time; the vectors so far are stored.
        with syncs.step(context, domain, retryable=(EncoderError, DomainBusyError)) as sync:
            embedded = sync.embed()
            return dg.MaterializeResult(metadata=embeddings_metadata(embedded, syncs.seconds))

    index_key = asset_key(domain, "index")

    @_step(domain, "index", versions, _INDEX, kinds={"duckdb"}, checks=invariant_checks(index_key))
    def index(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        with syncs.step(context, domain) as sync:
            build = sync.build()
            described = index_metadata(build.candidate, syncs.seconds)
            return dg.MaterializeResult(metadata=described, check_results=check_results(index_key, build.invariants))

    @_step(domain, "generation", versions, _GENERATION, kinds={"duckdb"})
    def generation(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        with syncs.step(context, domain) as sync:
            publication = sync.publish()
            report = syncs.finish(domain, publication)
            return dg.MaterializeResult(metadata=generation_metadata(publication, report))

    return [documents, chunks, embeddings, index, _evaluation_asset(settings, domain, versions), generation]


def _evaluation_asset(settings: Settings, domain: Domain, versions: Mapping[str, str]) -> dg.AssetsDefinition:
    evaluation_key = asset_key(domain, "evaluation")

    @_step(domain, "evaluation", versions, _EVALUATION, kinds={"duckdb"}, checks=[quality_check(evaluation_key)])
    def evaluation(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        if not is_in_run(context, asset_key(domain, "generation")):
            described, known = domain_evaluation(settings, domain, context.run.run_id, syncs.progress_of(context))
            return dg.MaterializeResult(metadata=described, check_results=[quality_result(evaluation_key, known)])
        with syncs.step(context, domain) as sync:
            report = cast("GenerationReport | None", sync.evaluate())  # the gate of these syncs returns no other
            described = candidate_evaluation(settings, domain, report, built=sync.build().candidate is not None)
            return dg.MaterializeResult(
                metadata={**described, "seconds": syncs.seconds},
                check_results=[quality_result(evaluation_key, report)],
            )

    return evaluation


def asset_key(domain: Domain, step: str) -> dg.AssetKey:
    """Return the key of a domain's asset. It holds the plain ``value``, because Dagster cannot use a ``StrEnum``."""
    return dg.AssetKey([domain.value, step])


def domain_keys(domain: Domain) -> list[dg.AssetKey]:
    """Return the keys of a domain's assets in order."""
    return [asset_key(domain, step) for step in STEPS]


def code_versions(configured: DomainSettings) -> dict[str, str]:
    """Return step → version. A version changes when the step may give another output for the same input.

    These versions identify an encoder by its settings, because no model is loaded here. A sync, which loads the
    model, identifies the encoder by the model's weights.
    """
    chunker, embedding = chunker_of(configured).version, configured.embedding
    encoder = f"{embedding.model}/{embedding.dimensions}"
    storage = configured.storage.model_dump_json()
    pipeline = (chunker, encoder, analyzer.VERSION, extract.VERSION)  # decides what counts as changed
    parts = {
        "documents": pipeline,
        "chunks": pipeline,
        "embeddings": (encoder,),
        "index": (analyzer.VERSION, encoder, storage),
        "evaluation": (analyzer.VERSION, encoder, configured.evaluation.model_dump_json()),
        "generation": (analyzer.VERSION, encoder, storage),
    }
    return {step: digest(*values)[:12] for step, values in parts.items()}


def _step(
    domain: Domain,
    step: str,
    versions: Mapping[str, str],
    description: str,
    *,
    kinds: set[str],
    checks: Sequence[dg.AssetCheckSpec] = (),
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    position = STEPS.index(step)
    return dg.asset(
        key=asset_key(domain, step),
        deps=[asset_key(domain, STEPS[position - 1])] if position else [],
        group_name=domain.value,
        description=description,
        kinds=kinds,
        owners=OWNERS,
        code_version=versions[step],
        tags={"domain": domain.value},
        # A domain that has begun is finished first, so that its lock and its memory are given back.
        op_tags={"dagster/priority": str(position)},
        check_specs=checks,
    )


_DOCUMENTS = (
    "What the domain's sources list, compared with the manifest: what to read, what to remove, what the mass-delete "
    "brake holds, which sources cannot be listed. Nothing is read yet."
)
_CHUNKS = (
    "Changed documents are read, parsed, cut into chunks and stored in the domain's working file; old chunks go in the "
    "same transaction. A document that fails is listed with its reason and does not stop the others."
)
_EMBEDDINGS = "Every text without a vector gets one; equal texts share it, unchanged ones keep it."
_INDEX = (
    "A candidate generation, built aside: numbered chunks, vectors, BM25 tables and, for large domains, an HNSW index. "
    "Its checks reconcile what is listed, stored, embedded and indexed; one that fails stops the publication."
)
_EVALUATION = (
    "How well the candidate answers the domain's judged sets, before it is published; when nothing changed, what is "
    "known of the published generation. Materialised without the generation, it measures what is published. Its check "
    "holds back a candidate that is worse than what is published."
)
_GENERATION = (
    "The published generation: readers are pointed at the candidate, atomically. When nothing changed, the published "
    "one stays and nothing is written."
)


LEDGER_GROUP = "ledger"
LEDGER_KEY = dg.AssetKey([LEDGER_GROUP, "conflicts"])


def ledger_asset(settings: Settings) -> dg.AssetsDefinition:
    """Return the asset of the conflict ledger, which runs after the publications of the served domains."""

    @dg.asset(
        key=LEDGER_KEY,
        deps=[asset_key(domain, "generation") for domain in settings.served_domains],
        group_name=LEDGER_GROUP,
        description=_LEDGER,
        kinds={"duckdb"},
        owners=OWNERS,
        code_version=extract.VERSION,
    )
    def conflicts() -> Result:
        with fail_with_message():
            pull(settings)
            ledger = refresh_ledger(settings)
            refresh_workspace(settings)
            return dg.MaterializeResult(metadata=ledger_metadata(ledger))

    return conflicts


_LEDGER = (
    "What the published generations of two domains disagree about: facts with both places, the suggested authority, "
    "when it was first seen, and what is settled since the last time. Read it with `nornweave conflicts`."
)


def answers_asset(
    settings: Settings, generations: Sequence[dg.AssetKey], progress: Progress | None
) -> dg.AssetsDefinition:
    """Return the asset that measures answers over all domains. It runs after ``generations``, their publications."""

    @dg.asset(
        key=ANSWERS_KEY,
        deps=generations,
        group_name=EVALUATION_GROUP,
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


def query_map_asset(settings: Settings) -> dg.AssetsDefinition:
    """Return the asset that learns the query map. The sensor ``query_map_due`` starts it."""

    @dg.asset(
        key=QUERY_MAP_KEY,
        deps=[[QUERY_MAP_DOMAIN.value, "generation"]],
        group_name=QUERY_MAP_JOB,
        description=_QUERY_MAP,
        kinds={"duckdb"},
        owners=OWNERS,
        tags={"domain": QUERY_MAP_DOMAIN.value},
    )
    def query_map(context: dg.AssetExecutionContext) -> Result:
        if store_of(settings, QUERY_MAP_DOMAIN).current() is None:
            return dg.MaterializeResult(metadata={"summary": "nothing is published yet"})
        with fail_with_message():
            report = learn_published(settings, QUERY_MAP_DOMAIN, context.run.run_id, logged_progress(context.log))
        return dg.MaterializeResult(
            metadata={
                "in_force": report.query_map is not None,
                "reason": report.reason,
                "examples": report.examples,
                "tested": report.tested,
                **({} if report.gain is None else {"gain": report.gain}),
                **({"generation": report.generation} if report.generation else {}),
            }
        )

    return query_map


_QUERY_MAP = (
    "What the commits teach of how the code domain is asked: a linear map of the query vector, learnt from older "
    "commits and tested with newer ones through the whole path of a question. It is published with the generation if "
    "that gains beyond chance and no judged set loses; else questions stay as they are, and this says why."
)
