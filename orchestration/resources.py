"""The open syncs of a run: at most one per domain, from the domain's first step to its generation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from logging import Logger
from typing import Any, TypeAlias

import dagster as dg

from evals.evaluation import CandidateReport, evaluate_candidate
from nornweave.errors import DomainBusyError, NornWeaveError, QualityError, ReconciliationError
from nornweave.events import publication_event, send
from nornweave.parts import domain_parts
from nornweave.reconcile import Invariant
from nornweave.settings import Settings
from nornweave.status import record_failure, record_run
from nornweave.store.port import Candidate, Publication
from nornweave.sync import DomainSync, Progress, SyncOptions, SyncReport
from nornweave.types import Domain
from nornweave.workspace import domain_folder
from orchestration.failures import QUERY_INTERRUPTED
from orchestration.instance import PROCESS_TAG, process_mark

Outcomes: TypeAlias = MutableMapping[Domain, SyncReport | str]
"""Per domain the report of its sync, or the error that ended it."""

INTERRUPTED = "interrupted; what was stored stays, and the next sync finishes the work"

LOG_EVERY_S = 5.0
RETRIES = 2
RETRY_DELAY_S = 10.0

RESOURCE = "syncs"
OPTIONS = {
    "full": dg.Field(bool, default_value=False, description="Read and chunk everything again; vectors are reused."),
    "confirm_deletes": dg.Field(
        bool, default_value=False, description="Carry out the removals that the mass-delete brake holds."
    ),
    "accept_quality": dg.Field(
        bool, default_value=False, description="Publish even what the judged sets say is worse than what is published."
    ),
    "wait_s": dg.Field(float, default_value=60.0, description="Seconds to wait for another writer of a domain."),
    "retries": dg.Field(int, default_value=RETRIES, description="How often to try again what may pass by itself."),
    "retry_delay_s": dg.Field(
        float, default_value=RETRY_DELAY_S, description="Seconds before the first retry; doubled for each one after it."
    ),
}


@dataclass(slots=True)
class OpenDomain:
    """One domain while it is being synced.

    Attributes:
        started: when its present step began, by ``time.perf_counter``.
        measure: evaluates a candidate; ``None`` where the domain is not gated.
        built: whether ``build`` has answered; a generation is built once.
        measured: whether ``evaluate`` has answered; a candidate is measured once.
    """

    sync: DomainSync
    measure: Callable[[Candidate], CandidateReport | None]
    resources: ExitStack
    started: float = field(default_factory=time.perf_counter)
    built: bool = False
    candidate: Candidate | None = None
    invariants: tuple[Invariant, ...] = ()
    measured: bool = False
    quality: CandidateReport | None = None

    @property
    def seconds(self) -> float:
        """Return how long the present step has taken so far."""
        return round(time.perf_counter() - self.started, 3)

    def build(self) -> Candidate | None:
        """Build a candidate if there is anything to publish, and compare all counts."""
        if not self.built:
            self.candidate = self.sync.build_unchecked()
            self.invariants = self.sync.reconcile(self.candidate)
            self.built = True
        return self.candidate

    def evaluate(self) -> CandidateReport | None:
        """Measure the candidate, when there is one and its domain is gated."""
        candidate = self.build()
        if candidate and not self.measured:
            self.quality = self.measure(candidate)
            self.measured = True
        return self.quality

    def publish(self) -> Publication | None:
        """Publish the candidate, when there is one and it is sound and good enough.

        Raises:
            ReconciliationError: an invariant does not hold. The checks have stopped the run before that; a generation
                that is materialised alone, in a run of its own, has no checks before it.
            QualityError: it answers worse than what is published; as above.
        """
        candidate = self.build()
        if self.broken:
            raise ReconciliationError(self.broken)
        quality = self.evaluate()
        if quality and quality.refused:
            raise QualityError(worse(quality))
        if candidate is None:
            return None
        publication = self.sync.publish(candidate)
        self.candidate = None
        return publication

    @property
    def broken(self) -> str:
        """Say which invariants do not hold; empty when all do."""
        return "; ".join(str(invariant) for invariant in self.invariants if not invariant.holds)

    def close(self) -> None:
        """Remove what was not published and release the domain."""
        with self.resources:
            if self.candidate:
                self.sync.discard(self.candidate)
                self.candidate = None


@dataclass(slots=True, kw_only=True)
class DomainSyncs:
    """What the assets of a run share. The domains are worked off one after the other; each ends in ``outcomes``."""

    settings: Settings
    options: SyncOptions
    retries: int
    retry_delay_s: float
    outcomes: Outcomes
    progress: Progress | None
    _open: dict[Domain, OpenDomain] = field(default_factory=dict)

    @contextmanager
    def step(
        self,
        context: dg.AssetExecutionContext,
        domain: Domain,
        *,
        may_pass: tuple[type[NornWeaveError], ...] = (DomainBusyError,),
    ) -> Iterator[OpenDomain]:
        """Work on a domain: open it at its first step, release it at once when a step fails.

        Args:
            context: of the step.
            domain: the domain.
            may_pass: what is worth another try by itself. A step that is tried again continues with what is stored.
        """
        try:
            yield self._opened(context, domain)
        except NornWeaveError as error:
            if isinstance(error, may_pass) and context.retry_number < self.retries:
                raise dg.RetryRequested(self.retries, self.retry_delay_s * 2**context.retry_number) from error
            self._give_up(domain, str(error))
            raise dg.Failure(str(error), allow_retries=False) from error
        except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt):
            self._give_up(domain, INTERRUPTED)
            raise
        except BaseException as error:
            # A defect: Dagster reports it; the domain's lock must not wait for that.
            told = f"{type(error).__name__}: {error}"
            self._give_up(domain, INTERRUPTED if str(error) == QUERY_INTERRUPTED else told)
            raise

    def finish(self, domain: Domain, publication: Publication | None) -> SyncReport:
        """Record a domain's run as done, tell the webhook what it published, and release the domain."""
        if publication and self.settings.webhook:
            send(self.settings.webhook, publication_event(domain, publication))
        report = self._open[domain].sync.report()
        self.outcomes[domain] = report
        record_run(domain_folder(self.settings, domain), report)
        self._open.pop(domain).close()
        return report

    def refuse(self, domain: Domain) -> None:
        """Record that a domain's checks failed, remove its candidate and release the domain."""
        opened = self._open[domain]
        if opened.broken:
            said = f"nothing is published: {opened.broken}; `nornweave sync --full` stores everything afresh"
        else:
            said = worse(opened.quality) if opened.quality else "nothing is published"
        self._give_up(domain, said)

    def close(self) -> None:
        """Release every domain, also those of which only some steps were asked for."""
        while self._open:
            self._open.popitem()[1].close()

    def progress_of(self, context: dg.AssetExecutionContext) -> Progress:
        """Return what a step shows its progress with: the run's log, unless a person is watching."""
        return self.progress or logged_progress(context.log)

    def _opened(self, context: dg.AssetExecutionContext, domain: Domain) -> OpenDomain:
        if domain not in self._open:
            resources = ExitStack()
            progress = self.progress_of(context)
            # The first sync of an installation converts the model for this machine, which takes a while.
            progress(f"{domain.value} load", 0, 1)
            parts = domain_parts(self.settings, domain)
            progress(f"{domain.value} load", 1, 1)
            sync = DomainSync(parts, self.options, progress)
            measure = partial(
                evaluate_candidate,
                self.settings,
                domain,
                run_id=self.options.run_id,
                accepted=self.options.accept_quality,
                progress=lambda step, done, total: progress(f"{domain.value} evaluate {step}", done, total),
            )
            self._open[domain] = OpenDomain(resources.enter_context(sync), measure, resources)
        self._open[domain].started = time.perf_counter()
        return self._open[domain]

    def _give_up(self, domain: Domain, error: str) -> None:
        self.outcomes[domain] = error
        opened = self._open.pop(domain, None)
        try:
            record_failure(domain_folder(self.settings, domain), self.options.run_id, error)
        finally:
            if opened:
                opened.close()


def worse(quality: CandidateReport) -> str:
    """Say why a candidate is not published, and what one can do about it."""
    advice = "`nornweave sync --accept-quality` publishes it all the same"
    return f"nothing is published: {'; '.join(quality.reasons)}; {advice}"


def domain_syncs(
    settings: Settings, *, progress: Progress | None = None, outcomes: Outcomes | None = None
) -> dg.ResourceDefinition:
    """Return the resource behind the domain assets.

    Args:
        settings: of all domains.
        progress: called with ``"<domain> <step>"``; without it the run's log says how far it is.
        outcomes: filled with what became of each domain.
    """

    @dg.resource(config_schema=OPTIONS, description="The open syncs of this run, one per domain.")
    def syncs(context: dg.InitResourceContext) -> Iterator[DomainSyncs]:
        config, run = context.resource_config, context.run
        if run and context.instance:
            context.instance.add_run_tags(run.run_id, {PROCESS_TAG: process_mark()})
        opened = DomainSyncs(
            settings=settings,
            options=SyncOptions(
                full=config["full"],
                confirm_deletes=config["confirm_deletes"],
                accept_quality=config["accept_quality"],
                wait_s=config["wait_s"],
                run_id=run.run_id if run else "",
            ),
            retries=config["retries"],
            retry_delay_s=config["retry_delay_s"],
            outcomes={} if outcomes is None else outcomes,
            progress=progress,
        )
        try:
            yield opened
        finally:
            opened.close()

    return syncs


def run_config(options: SyncOptions, *, retries: int = RETRIES, console_level: str = "INFO") -> dict[str, Any]:
    """Return the configuration of a run that is not the default one.

    Args:
        options: ``run_id`` plays no part, the run has its own.
        retries: how often to try again what may pass.
        console_level: what a run also says on stderr; all of its events are in the UI in any case.
    """
    config = {
        "full": options.full,
        "confirm_deletes": options.confirm_deletes,
        "accept_quality": options.accept_quality,
        "wait_s": float(options.wait_s),
        "retries": retries,
    }
    return {
        "resources": {RESOURCE: {"config": config}},
        "loggers": {"console": {"config": {"log_level": console_level}}},
    }


def logged_progress(log: Logger, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Return a progress that logs now and then: every line is an event that is stored."""
    last = clock()

    def show(step: str, done: int, total: int) -> None:
        nonlocal last
        if clock() - last >= LOG_EVERY_S:
            last = clock()
            log.info("%s: %s of %s", step, f"{done:,}", f"{total:,}")

    return show
