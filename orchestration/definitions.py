"""The Dagster definitions, built from settings: equal for the UI, the command line and the tests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import dagster as dg

from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError
from nornweave.core.files.writing import keep_private
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import DomainSync
from nornweave.ingest.records import Progress
from orchestration.assets import (
    ANSWERS_KEY,
    EVALUATION_GROUP,
    EVALUATION_JOB,
    LEDGER_GROUP,
    QUERY_MAP_DOMAIN,
    QUERY_MAP_JOB,
    QUERY_MAP_KEY,
    answers_asset,
    asset_key,
    domain_assets,
    ledger_asset,
    query_map_asset,
)
from orchestration.automation import DEFAULT_CRON, EVALUATION_CRON, SYNC_JOB, automation
from orchestration.leases import leased_executor
from orchestration.resources import RESOURCE, Outcomes, domain_syncs

Job: TypeAlias = "dg.UnresolvedAssetJobDefinition"
RETRY_STRATEGY = "dagster/retry_strategy"
CONFIG_VARIABLE = "NORNWEAVE_CONFIG"
CRON_VARIABLE = "NORNWEAVE_REFRESH_CRON"
EVALUATION_CRON_VARIABLE = "NORNWEAVE_EVALUATION_CRON"


def build_definitions(
    settings: Settings,
    *,
    domains: Sequence[Domain] | None = None,
    progress: Progress | None = None,
    outcomes: Outcomes | None = None,
    opened: Mapping[Domain, DomainSync] | None = None,
    refresh_cron: str = DEFAULT_CRON,
    evaluation_cron: str = EVALUATION_CRON,
) -> dg.Definitions:
    """Return the assets of the served domains, with their jobs, schedules and sensors.

    Args:
        domains: the domains to show. The default are the served domains.
        progress, outcomes, opened: the arguments of ``resources.domain_syncs``.
        refresh_cron: when every domain is synced, changed or not.
        evaluation_cron: when the published generations are measured.

    Raises:
        ConfigError: a cron expression is not valid.
    """
    domains = settings.served_domains if domains is None else domains
    job, measure, learn = _jobs(settings, domains)
    schedules, sensors = automation(settings, job, refresh_cron, measure, evaluation_cron, learn)
    generations = [asset_key(domain, "generation") for domain in settings.served_domains]
    return dg.Definitions(
        assets=[
            *(asset for domain in domains for asset in domain_assets(settings, domain)),
            ledger_asset(settings),
            answers_asset(settings, generations, progress),
            *([query_map_asset(settings)] if learn else []),
        ],
        jobs=[job, measure, *([learn] if learn else [])],
        schedules=schedules,
        sensors=sensors,
        resources={RESOURCE: domain_syncs(settings, progress=progress, outcomes=outcomes, opened=opened)},
        # One process per run: starting one per step takes longer than most steps (2.3 s against 10.2 s for four), and
        # the steps share the domain's lock and encoder. Domains run side by side as separate runs.
        executor=leased_executor,
    )


def _jobs(settings: Settings, domains: Sequence[Domain]) -> tuple[Job, Job, Job | None]:
    """Return three jobs: sync, measure, and learn the query map. The last is ``None`` if no code is served."""
    sync = dg.define_asset_job(
        SYNC_JOB,
        selection=dg.AssetSelection.groups(*(domain.value for domain in domains), LEDGER_GROUP, EVALUATION_GROUP),
        description="Bring domains up to date with their sources and publish them.",
        # A killed worker's files are on its own disk: another worker begins with the first step.
        tags={RETRY_STRATEGY: "ALL_STEPS"} if settings.workers and settings.workers.leases else None,
    )
    measure = dg.define_asset_job(
        EVALUATION_JOB,
        selection=[*(asset_key(domain, "evaluation") for domain in domains), ANSWERS_KEY],
        description="Measure what is published with its judged sets; nothing is synced.",
    )
    learn = dg.define_asset_job(
        QUERY_MAP_JOB,
        selection=[QUERY_MAP_KEY],
        description="Learn how the code domain is asked from its commits; published if it helps.",
    )
    return sync, measure, learn if QUERY_MAP_DOMAIN in domains else None


def settings_from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings in the file that ``NORNWEAVE_CONFIG`` names, by default ``./nornweave.yaml``.

    ``environment`` is ``os.environ`` by default.

    Files that the process writes from now on can be read by this user only.

    Raises:
        ConfigError: the file is missing or wrong. The error has no cause, which keeps its traceback short.
    """
    environment = os.environ if environment is None else environment
    file = Path(environment.get(CONFIG_VARIABLE) or "nornweave.yaml")
    try:
        settings = load_settings(file, environment)
    except ConfigError as error:
        raise ConfigError(f"{error}\n({CONFIG_VARIABLE} names the file: {file.absolute()})") from None
    keep_private(settings.data_dir, settings.file)
    return settings


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions for ``workspace.yaml``. They are built when it loads them, not at import."""
    return build_definitions(
        settings_from_environment(),
        refresh_cron=os.environ.get(CRON_VARIABLE) or DEFAULT_CRON,
        evaluation_cron=os.environ.get(EVALUATION_CRON_VARIABLE) or EVALUATION_CRON,
    )
