"""What Dagster adds to a sync: one open sync for all steps of a run, retries, records and announcements."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from logging import Logger
from typing import Any, TypeAlias

import dagster as dg

from evals.evaluation import evaluate_candidate
from evals.judgments import JudgmentError
from evals.sets import wrong_judgments
from nornweave.carry.publishing import publish_after_sync
from nornweave.carry.wiring import domain_folder
from nornweave.config import Settings
from nornweave.core.errors import DomainBusyError, NornWeaveError, QualityError, StoreError
from nornweave.core.files.writing import full_disk
from nornweave.core.types import Domain
from nornweave.index.outcomes import read_verified, write_verified
from nornweave.index.port import Publication
from nornweave.ingest.alarms import OF_A_SYNC, OF_PATHS, Alarm, AlarmKind, alarms_of
from nornweave.ingest.pipeline import DomainSync
from nornweave.ingest.records import Progress, SyncOptions, SyncReport
from nornweave.ingest.run_status import Pace, record_failure, record_run
from nornweave.ingest.wiring import domain_sync
from orchestration.announcements import Announcements

log = logging.getLogger(__name__)

QUERY_INTERRUPTED = "Query interrupted"
"""What DuckDB (1.5) makes of Ctrl-C in a query: a ``RuntimeError``."""


@contextmanager
def fail_with_message() -> Iterator[None]:
    """Turn known errors into a Dagster failure without retry, with a message instead of a trace."""
    try:
        yield
    except (JudgmentError, NornWeaveError, OSError) as error:
        reason = full_disk(error)
        if reason is None and isinstance(error, OSError):
            raise
        raise dg.Failure(reason or str(error), allow_retries=False) from error


Outcomes: TypeAlias = MutableMapping[Domain, SyncReport | str]
"""Per domain the report of its sync, or the error that ended it."""

INTERRUPTED = "interrupted; what was stored stays, and the next sync finishes the work"

LOG_EVERY_S = 5.0
RETRIES = 2
RETRY_DELAY_S = 10.0
"""Before the first retry; twice as long before each one after it."""

RESOURCE = "syncs"
# No option confirms anything: whoever reaches the UI can start a run with any configuration (``confirmations.py``).
OPTIONS = {
    "full": dg.Field(
        bool, default_value=False, description="List, read and chunk everything again; vectors are reused."
    ),
    "sources": dg.Field([str], default_value=[], description="Ids of the sources to list; all of them unless named."),
    "wait_s": dg.Field(float, default_value=60.0, description="Seconds to wait for another writer of a domain."),
    "retries": dg.Field(int, default_value=RETRIES, description="How often to try again what may pass by itself."),
}


@dataclass(slots=True, kw_only=True)
class DomainSyncs:
    """The open syncs of a run. Each domain's sync is open from its first step to its last.

    Steps run one after the other in one process. ``outcomes`` gets the report or the error of each domain.
    """

    settings: Settings
    options: SyncOptions
    retries: int
    outcomes: Outcomes
    progress: Progress | None
    announcements: Announcements
    _open: dict[Domain, DomainSync] = field(default_factory=dict)
    _step_started: float = 0.0
    _has_delivered: bool = False

    @contextmanager
    def step(
        self,
        context: dg.AssetExecutionContext,
        domain: Domain,
        *,
        retryable: tuple[type[NornWeaveError], ...] = (DomainBusyError,),
    ) -> Iterator[DomainSync]:
        """Open the domain for a step. Release it if the step fails or refuses the candidate.

        Args:
            retryable: errors after which the step is tried again. It then continues with what is stored.
        """
        try:
            sync = self._opened(context, domain)
            yield sync
            if sync.refusal:  # the step itself succeeds: its checks show what is wrong, and block the publication
                self._give_up(domain, str(sync.refusal))
        except NornWeaveError as error:
            if isinstance(error, retryable) and context.retry_number < self.retries:
                raise dg.RetryRequested(self.retries, RETRY_DELAY_S * 2**context.retry_number) from error
            raise self._failure(domain, full_disk(error, self.settings.data_dir) or str(error)) from error
        except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt):
            self._give_up(domain, INTERRUPTED)
            raise
        except BaseException as error:
            if reason := full_disk(error, self.settings.data_dir):
                raise self._failure(domain, reason) from error
            # A defect: Dagster reports it, and the domain's lock is released before that.
            defect = f"{type(error).__name__}: {error}"
            self._give_up(domain, INTERRUPTED if str(error) == QUERY_INTERRUPTED else defect)
            raise

    @property
    def seconds(self) -> float:
        """Return the duration of the current step so far."""
        return round(time.perf_counter() - self._step_started, 3)

    def finish(self, domain: Domain, publication: Publication | None) -> SyncReport:
        """Record a domain's run as done, release the domain, announce publication and alarms. Return the report."""
        report, is_of_paths = self._open[domain].report(), self._open[domain].is_of_paths
        gone = {path for _, path in report.judged_gone}  # announced as gone; the others stay wrong
        report = replace(report, judged_wrong=wrong_judgments(self.settings, domain, but=gone))
        if publication:
            self.announcements.published(domain, publication)
        looked_at = OF_PATHS if is_of_paths else OF_A_SYNC
        self.announcements.alarms(domain, alarms_of(report), looked_at, run_id=self.options.run_id)
        self.outcomes[domain] = report
        folder = domain_folder(self.settings, domain)
        record_run(folder, report, is_of_paths=is_of_paths)
        write_verified(folder, self._open[domain].verified(read_verified(folder)))
        self._open.pop(domain).close()
        if problem := publish_after_sync(self.settings, domain):
            self.outcomes[domain] = replace(report, not_copied=problem)
        self._deliver()
        return report

    def close(self) -> None:
        """Release every domain that is still open, and send events."""
        while self._open:
            self._open.popitem()[1].close()
        self._deliver()

    def progress_of(self, context: dg.AssetExecutionContext) -> Progress:
        """Return the progress for a step: that of the run, or else a progress that writes to the run's log."""
        return self.progress or logged_progress(context.log)

    def _opened(self, context: dg.AssetExecutionContext, domain: Domain) -> DomainSync:
        if domain not in self._open:
            self._open[domain] = sync_of(self.settings, domain, self.options, self.progress_of(context)).open()
        self._step_started = time.perf_counter()
        return self._open[domain]

    def _deliver(self) -> None:
        """Send events. A receiver that failed in this run is not tried again."""
        self.announcements.deliver(heed_pause=self._has_delivered)
        self._has_delivered = True

    def _failure(self, domain: Domain, error: str) -> dg.Failure:
        """Release a domain after an error. Return the failure to raise."""
        self._give_up(domain, error)
        return dg.Failure(error, allow_retries=False)

    def _give_up(self, domain: Domain, error: str) -> None:
        """Record a domain's run as failed, remove its candidate and release the domain."""
        self.outcomes[domain] = error
        sync = self._open.pop(domain, None)
        if error != INTERRUPTED:
            is_refused = sync is not None and isinstance(sync.refusal, QualityError)
            kind = AlarmKind.CANDIDATE_REFUSED if is_refused else AlarmKind.SYNC_FAILED
            failed = Alarm(kind=kind, subject=domain.value, text=error)
            self.announcements.alarms(domain, [failed], [kind], run_id=self.options.run_id)
        try:
            record_failure(domain_folder(self.settings, domain), self.options.run_id, error)
        except StoreError as unrecorded:  # for example a full disk: the first error matters more
            log.warning("%s: the failed run is not in the status: %s", domain.value, unrecorded)
        finally:
            if sync:
                sync.close()


def sync_of(settings: Settings, domain: Domain, options: SyncOptions, progress: Progress) -> DomainSync:
    """Return the sync of a domain with the quality gate. It is not open yet."""
    return domain_sync(settings, domain, options, progress, gate=partial(evaluate_candidate, settings, domain))


def domain_syncs(
    settings: Settings,
    *,
    progress: Progress | None = None,
    outcomes: Outcomes | None = None,
    opened: Mapping[Domain, DomainSync] | None = None,
) -> dg.ResourceDefinition:
    """Return the Dagster resource of the domain assets.

    Args:
        progress: called with ``"<domain> <step>"``; without it progress is logged in the run.
        outcomes: filled with each domain's report or error.
        opened: syncs that are already open. The run continues and closes them.
    """

    @dg.resource(config_schema=OPTIONS, description="The open syncs of this run, one per domain.")
    def syncs(context: dg.InitResourceContext) -> Iterator[DomainSyncs]:
        config, run = context.resource_config, context.run
        run_id = run.run_id if run else ""
        for sync in (opened or {}).values():
            sync.record_as(run_id)
        held = DomainSyncs(
            settings=settings,
            options=SyncOptions(
                full=config["full"],
                sources=tuple(config["sources"]),
                wait_s=config["wait_s"],
                run_id=run_id,
            ),
            retries=config["retries"],
            outcomes={} if outcomes is None else outcomes,
            progress=progress,
            announcements=Announcements(settings),
            _open=dict(opened or {}),
        )
        try:
            yield held
        finally:
            held.close()

    return syncs


def run_config(options: SyncOptions, *, retries: int = RETRIES, console_level: str = "INFO") -> dict[str, Any]:
    """Return the run configuration for ``options``.

    Args:
        options: only ``full``, ``sources`` and ``wait_s`` are used. The run has its own id, and confirmations are read
            from disk.
        retries: how often to try again after an error that may pass by itself.
        console_level: the level of events that a run also logs to stderr. The UI shows all events.
    """
    config = {
        "full": options.full,
        "sources": list(options.sources),
        "wait_s": float(options.wait_s),
        "retries": retries,
    }
    return {
        "resources": {RESOURCE: {"config": config}},
        "loggers": {"console": {"config": {"log_level": console_level}}},
    }


def logged_progress(log: Logger, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Return a progress that logs at most once in ``LOG_EVERY_S`` seconds, because Dagster stores each line."""
    last, pace = clock(), Pace(clock)

    def show(step: str, done: int, total: int) -> None:
        nonlocal last
        told = pace.describe_step(step, done, total)
        if told and clock() - last >= LOG_EVERY_S:
            last = clock()
            log.info("%s: %s", step, told)

    return show
