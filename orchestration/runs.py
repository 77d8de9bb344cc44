"""One Dagster run in this process, for the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg
from dagster._core.events import JobFailureData

from nornweave.settings import Settings
from nornweave.sync import Progress, SyncOptions, SyncReport
from nornweave.types import Domain
from orchestration.assets.domain import domain_keys
from orchestration.assets.evaluation import ANSWERS_KEY
from orchestration.assets.ledger import LEDGER_KEY
from orchestration.automation import SYNC_JOB
from orchestration.definitions import build_definitions
from orchestration.instance import COMMAND_TAG, DOMAIN_TAG
from orchestration.resources import INTERRUPTED, run_config


def materialize(
    settings: Settings,
    domains: Sequence[Domain],
    options: SyncOptions,
    progress: Progress,
    instance: dg.DagsterInstance,
) -> Mapping[Domain, SyncReport | str]:
    """Sync ``domains`` in one run, which the UI shows like any other.

    Args:
        settings: of all domains; a domain without a source may be named too.
        domains: which to sync; each ends on its own, whatever becomes of the others.
        options: ``run_id`` is the run's own, whatever is given.
        progress: called with ``("<domain> <step>", done, total)``.
        instance: where the run is recorded.

    Returns:
        In the order of ``domains``: the report, or why there is none.

    Raises:
        KeyboardInterrupt: Ctrl-C; what was stored stays, the locks are released, the run is marked as failed.
    """
    if not domains:
        return {}
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
    if INTERRUPTED in outcomes.values():
        raise KeyboardInterrupt
    lost = f"{_why(result)}; the Dagster UI shows run {result.run_id}"
    return {domain: outcomes.get(domain, lost) for domain in domains}


def _why(result: dg.ExecuteInProcessResult) -> str:
    """Say why a run ended before it came to a domain: a defect, never a domain's own error."""
    errors = [
        event.event_specific_data.error
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.RUN_FAILURE
        and isinstance(event.event_specific_data, JobFailureData)
        and event.event_specific_data.error
    ]
    if not errors:
        return "the run ended before it came to this domain"
    cause = errors[0]
    while cause.cause:
        cause = cause.cause
    return f"the run ended before it came to this domain: {cause.message.strip()}"
