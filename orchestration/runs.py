"""One Dagster run in this process, for the command line. It first confirms what is held now."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import dagster as dg
from dagster._core.events import JobFailureData
from dagster._core.execution.plan.objects import StepFailureData
from dagster._core.utils import make_new_run_id
from dagster_shared.error import SerializableErrorInfo

from nornweave.carry.lease import DOMAIN_TAG
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.core.errors import HistoryError, NornWeaveError
from nornweave.core.files.writing import full_disk
from nornweave.core.types import Domain
from nornweave.ingest.confirmations import ConfirmationSubject
from nornweave.ingest.diff import held_state
from nornweave.ingest.pipeline import DomainSync
from nornweave.ingest.records import Progress, SyncOptions, SyncReport
from nornweave.ingest.wiring import confirmations_of, domain_parts
from orchestration.assets import ANSWERS_KEY, LEDGER_KEY, domain_keys
from orchestration.automation import SYNC_JOB
from orchestration.definitions import build_definitions
from orchestration.history import translate_history_errors
from orchestration.instance import (
    COMMAND_TAG,
    IN_MEMORY,
    home_of,
    open_instance,
)
from orchestration.leases import hold_lease
from orchestration.resources import QUERY_INTERRUPTED, run_config


@dataclass(frozen=True, slots=True)
class SyncRun:
    """The result of a run that synced domains.

    Attributes:
        outcomes: domain → its report, or the reason why there is none.
        failed_after: asset → error, for failed assets that run after the domains. The publications are not undone.
        unrecorded: why the run is not in the history; empty if it is.
    """

    outcomes: Mapping[Domain, SyncReport | str]
    failed_after: Mapping[str, str]
    unrecorded: str = ""


def sync_here(settings: Settings, domains: Sequence[Domain], options: SyncOptions, progress: Progress) -> SyncRun:
    """Sync ``domains`` in one run of this process. If the history cannot be used, run without one.

    Raises:
        ConfigError, StoreError: as ``open_instance`` raises them.
        KeyboardInterrupt: as ``materialize`` raises it.
    """
    try:
        with translate_history_errors(home_of(settings)), open_instance(settings) as instance:
            return materialize(settings, domains, options, progress, instance)
    except HistoryError as error:
        unrecorded = str(error)
    with dg.DagsterInstance.ephemeral(settings=IN_MEMORY) as instance:
        return replace(materialize(settings, domains, options, progress, instance), unrecorded=unrecorded)


def materialize(
    settings: Settings,
    domains: Sequence[Domain],
    options: SyncOptions,
    progress: Progress | None,
    instance: dg.DagsterInstance,
    *,
    after: Sequence[dg.AssetKey] = (LEDGER_KEY, ANSWERS_KEY),
    opened: Mapping[Domain, DomainSync] | None = None,
) -> SyncRun:
    """Sync ``domains`` in one run that the UI shows.

    Args:
        settings: the settings of all domains.
        domains: the domains to sync, also without a source. Each succeeds or fails on its own.
        options: ``run_id`` is ignored. Confirmations are stored on disk for this run.
        progress: called with ``("<domain> <step>", done, total)``; without it progress is logged in the run.
        after: the assets that follow the publications.
        opened: syncs of domains that are open already.

    Returns:
        How every domain ended, in the order of ``domains``, and what failed after them.

    Raises:
        KeyboardInterrupt: somebody pressed Ctrl-C. Stored documents stay, the locks are released, and the run is marked
            as failed.
    """
    if not domains:
        return SyncRun({}, {})
    outcomes: dict[Domain, SyncReport | str] = {}
    definitions = build_definitions(settings, domains=domains, progress=progress, outcomes=outcomes, opened=opened)
    run_id = make_new_run_id()
    only = {DOMAIN_TAG: domains[0].value} if len(domains) == 1 else {}
    with confirmed(settings, domains, options), hold_lease(instance, run_id):
        result = definitions.resolve_job_def(SYNC_JOB).execute_in_process(
            # A person is there: the error is worth more than another try in a minute, and the command says it.
            run_config=run_config(options, retries=0, console_level="CRITICAL"),
            instance=instance,
            asset_selection=[*(key for domain in domains for key in domain_keys(domain)), *after],
            # The daemon tries again what it launched itself; this run's process was somebody's command.
            tags={COMMAND_TAG: "sync", "dagster/max_retries": "0", **only},
            run_id=run_id,
            raise_on_error=False,
        )
    if any(_is_interruption(error) for error in _errors(result)):
        raise KeyboardInterrupt
    why = _reason_of_end(result)
    lost = full_disk(RuntimeError(why), settings.data_dir) or f"{why}; the Dagster UI shows run {result.run_id}"
    return SyncRun({domain: outcomes.get(domain, lost) for domain in domains}, _failed_after(result))


def _errors(result: dg.ExecuteInProcessResult) -> Iterator[SerializableErrorInfo]:
    """Yield the errors of the run and its steps, each followed by its causes."""
    for event in result.all_events:
        data = event.event_specific_data
        error = data.error if isinstance(data, JobFailureData | StepFailureData) else None
        while error:
            yield error
            error = error.cause


def _is_interruption(error: SerializableErrorInfo) -> bool:
    """Tell whether Ctrl-C caused an error. It may come between steps, in a step, or in a query of DuckDB."""
    by_name = error.cls_name in {"DagsterExecutionInterruptedError", "KeyboardInterrupt"}
    return by_name or error.message.strip().endswith(f"RuntimeError: {QUERY_INTERRUPTED}")


def _failed_after(result: dg.ExecuteInProcessResult) -> Mapping[str, str]:
    steps = {key.to_python_identifier(): key.to_user_string() for key in (LEDGER_KEY, ANSWERS_KEY)}
    reasons = {}
    for event in result.all_events:
        if event.event_type is dg.DagsterEventType.STEP_FAILURE and event.step_key in steps:
            failure = event.step_failure_data
            described = failure.user_failure_data.description if failure.user_failure_data else None
            reasons[steps[event.step_key]] = described or (_message(failure.error) if failure.error else "failed")
    return reasons


def _reason_of_end(result: dg.ExecuteInProcessResult) -> str:
    """Return why a run ended before it reached a domain."""
    found = (event.event_specific_data for event in result.all_events)
    errors = [data.error for data in found if isinstance(data, JobFailureData) and data.error]
    ended = "the run ended before it came to this domain"
    return f"{ended}: {_message(errors[0])}" if errors else ended


def _message(error: SerializableErrorInfo) -> str:
    """Return the message of the original error, which has no further cause."""
    while error.cause:
        error = error.cause
    return error.message.strip()


logger = logging.getLogger(__name__)


@contextmanager
def confirmed(settings: Settings, domains: Sequence[Domain], options: SyncOptions) -> Iterator[None]:
    """Confirm what ``options`` ask for. At the end, withdraw unused confirmations."""
    confirmations = confirmations_of(settings)
    issued: list[tuple[Domain, ConfirmationSubject]] = []
    try:
        for domain in domains:
            for subject, state in _states(settings, domain, options):
                issued.append((domain, subject))
                confirmations.issue(domain, subject, state)
        yield
    finally:
        for domain, subject in issued:
            confirmations.withdraw(domain, subject)


def _states(settings: Settings, domain: Domain, options: SyncOptions) -> Iterator[tuple[ConfirmationSubject, str]]:
    if options.confirm_deletes and (state := _held_state(settings, domain, options)):
        yield ConfirmationSubject.REMOVALS, state
    if options.accept_quality and (published := store_of(settings, domain).current()):
        yield ConfirmationSubject.QUALITY, published


def _held_state(settings: Settings, domain: Domain, options: SyncOptions) -> str | None:
    """List the domain's sources and return the ``held_state`` of the removals that wait for a person.

    It is ``None`` if no removal waits or the sources cannot be listed.
    """
    try:
        with DomainSync(domain_parts(settings, domain), SyncOptions(wait_s=options.wait_s)) as sync:
            held = sync.list_changes().held
    except NornWeaveError as error:
        logger.warning("%s: no removal is confirmed, what is held cannot be found out: %s", domain.value, error)
        return None
    return held_state(held) if held else None
