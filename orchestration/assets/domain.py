"""The assets of a domain: documents → chunks → embeddings → index → evaluation → generation.

Each body calls one step of the recipe in ``nornweave.ingest.pipeline`` and returns its report as metadata. The steps
of a run share the domain's open sync; a step that runs alone, in a process of its own, looks for what is missing.

The conflict ledger: made anew after every publication, over all domains that are published.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import dagster as dg

from evals.evaluation import GenerationReport
from nornweave.carry.publishing import refresh_workspace
from nornweave.carry.wiring import pull
from nornweave.config import DomainSettings, Settings
from nornweave.core.errors import DomainBusyError, EncoderError
from nornweave.core.text import analyzer
from nornweave.core.types import Domain, digest
from nornweave.disagree.facts import extract
from nornweave.ingest.ledger import refresh_ledger
from nornweave.ingest.wiring import chunker_of
from orchestration import metadata
from orchestration.assets import OWNERS, Result
from orchestration.assets.evaluation import candidate_evaluation, domain_evaluation, is_in_run
from orchestration.checks import check_results, invariant_checks, quality_check, quality_result
from orchestration.resources import DomainSyncs, fail_with_message

STEPS = ("documents", "chunks", "embeddings", "index", "evaluation", "generation")


def domain_assets(settings: Settings, domain: Domain) -> list[dg.AssetsDefinition]:
    """Return the six assets of ``domain``."""
    versions = code_versions(settings.domains[domain])

    @_step(domain, "documents", versions, _DOCUMENTS, kinds={"filesystem"})
    def documents(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        with syncs.step(context, domain) as sync:
            changes = sync.list_changes()
            return dg.MaterializeResult(metadata=metadata.documents_metadata(changes, syncs.seconds))

    @_step(domain, "chunks", versions, _CHUNKS, kinds={"duckdb"})
    def chunks(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        with syncs.step(context, domain) as sync:
            sync.store_changes()
            return dg.MaterializeResult(metadata=metadata.chunks_metadata(sync.report(), syncs.seconds))

    @_step(domain, "embeddings", versions, _EMBEDDINGS, kinds={"duckdb"})
    def embeddings(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        # A model behind a network may answer the next time; the vectors so far are stored.
        with syncs.step(context, domain, retryable=(EncoderError, DomainBusyError)) as sync:
            embedded = sync.embed()
            return dg.MaterializeResult(metadata=metadata.embeddings_metadata(embedded, syncs.seconds))

    index_key = asset_key(domain, "index")

    @_step(domain, "index", versions, _INDEX, kinds={"duckdb"}, checks=invariant_checks(index_key))
    def index(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        with syncs.step(context, domain) as sync:
            build = sync.build()
            described = metadata.index_metadata(build.candidate, syncs.seconds)
            return dg.MaterializeResult(metadata=described, check_results=check_results(index_key, build.invariants))

    @_step(domain, "generation", versions, _GENERATION, kinds={"duckdb"})
    def generation(context: dg.AssetExecutionContext, syncs: dg.ResourceParam[DomainSyncs]) -> Result:
        with syncs.step(context, domain) as sync:
            publication = sync.publish()
            report = syncs.finish(domain, publication)
            return dg.MaterializeResult(metadata=metadata.generation_metadata(publication, report))

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
            return dg.MaterializeResult(metadata=metadata.ledger_metadata(ledger))

    return conflicts


_LEDGER = (
    "What the published generations of two domains disagree about: facts with both places, the suggested authority, "
    "when it was first seen, and what is settled since the last time. Read it with `nornweave conflicts`."
)
