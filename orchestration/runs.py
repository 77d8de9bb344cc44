"""One Dagster run in this process, for the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from dagster._core.events import JobFailureData
from dagster._core.execution.plan.objects import StepFailureData
from dagster_shared.error import SerializableErrorInfo

from nornweave.settings import Settings
from nornweave.sync import Progress, SyncOptions, SyncReport
from nornweave.types import Domain
from orchestration.assets.domain import domain_keys
from orchestration.assets.evaluation import ANSWERS_KEY
from orchestration.assets.ledger import LEDGER_KEY
from orchestration.automation import SYNC_JOB
from orchestration.definitions import build_definitions
from orchestration.failures import QUERY_INTERRUPTED
from orchestration.instance import COMMAND_TAG, DOMAIN_TAG
from orchestration.resources import run_config


@dataclass(frozen=True, slots=True)
class SyncRun:
    """How a run ended.

    Attributes:
        outcomes: per domain its report, or why there is none.
        failed_after: what comes after the domains and failed, asset → why; the publications stand.
    """

    outcomes: Mapping[Domain, SyncReport | str]
    failed_after: Mapping[str, str]


def materialize(
    settings: Settings,
    domains: Sequence[Domain],
    options: SyncOptions,
    progress: Progress,
    instance: dg.DagsterInstance,
) -> SyncRun:
    """Sync ``domains`` in one run, which the UI shows like any other.

    Args:
        settings: of all domains; a domain without a source may be named too.
        domains: which to sync; each ends on its own, whatever becomes of the others.
        options: ``run_id`` is the run's own, whatever is given.
        progress: called with ``("<domain> <step>", done, total)``.
        instance: where the run is recorded.

    Returns:
        How every domain ended, in the order of ``domains``, and what failed after them.

    Raises:
        KeyboardInterrupt: Ctrl-C; what was stored stays, the locks are released, the run is marked as failed.
    """
    if not domains:
        return SyncRun({}, {})
    outcomes: dict[Domain, SyncReport | str] = {}
    definitions = build_definitions(settings, domains=domains, progress=progress, outcomes=outcomes)
    result = definitions.resolve_job_def(SYNC_JOB).execute_in_process(
        # A person is there: the error is worth more than another try in a minute, and the command says it.
        run_config=run_config(options, retries=0, console_level="CRITICAL"),
        instance=instance,
        asset_selection=[*(key for domain in domains for key in domain_keys(domain)), LEDGER_KEY, ANSWERS_KEY],
        tags={
            COMMAND_TAG: "sync",
            # The daemon tries again what it launched itself; this run's process was somebody's command.
            "dagster/max_retries": "0",
            **({DOMAIN_TAG: domains[0].value} if len(domains) == 1 else {}),
        },
        raise_on_error=False,
    )
    if any(_is_interruption(error) for error in _errors(result)):
        raise KeyboardInterrupt
    lost = f"{_why(result)}; the Dagster UI shows run {result.run_id}"
    return SyncRun({domain: outcomes.get(domain, lost) for domain in domains}, _failed_after(result))


def _errors(result: dg.ExecuteInProcessResult) -> Iterator[SerializableErrorInfo]:
    """Yield what ended the run or a step of it, each with what caused it."""
    for event in result.all_events:
        data = event.event_specific_data
        error = data.error if isinstance(data, JobFailureData | StepFailureData) else None
        while error:
            yield error
            error = error.cause


def _is_interruption(error: SerializableErrorInfo) -> bool:
    """Tell Ctrl-C, wherever it came: between two steps, in one, or in a query."""
    by_name = error.cls_name in {"DagsterExecutionInterruptedError", "KeyboardInterrupt"}
    return by_name or error.message.strip().endswith(f"RuntimeError: {QUERY_INTERRUPTED}")


def _failed_after(result: dg.ExecuteInProcessResult) -> Mapping[str, str]:
    steps = {key.to_python_identifier(): key.to_user_string() for key in (LEDGER_KEY, ANSWERS_KEY)}
    reasons = {}
    for event in result.all_events:
        if event.event_type is dg.DagsterEventType.STEP_FAILURE and event.step_key in steps:
            failure = event.step_failure_data
            told = failure.user_failure_data.description if failure.user_failure_data else None
            reasons[steps[event.step_key]] = told or (_message(failure.error) if failure.error else "failed")
    return reasons


def _why(result: dg.ExecuteInProcessResult) -> str:
    """Say why a run ended before it came to a domain: a defect, never a domain's own error."""
    errors = [
        event.event_specific_data.error
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.RUN_FAILURE
        and isinstance(event.event_specific_data, JobFailureData)
        and event.event_specific_data.error
    ]
    ended = "the run ended before it came to this domain"
    return f"{ended}: {_message(errors[0])}" if errors else ended


def _message(error: SerializableErrorInfo) -> str:
    """Return what the first of a chain of errors says."""
    while error.cause:
        error = error.cause
    return error.message.strip()
