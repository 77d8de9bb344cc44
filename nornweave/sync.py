"""The path of a document: ``list → diff → read → chunk → store → embed → build → reconcile → publish``.

``DomainSync`` is one domain's run, step by step, so that an orchestrator can show and retry each; ``run`` is the whole.
Every step can be repeated, and finishes what a killed run left: what has been stored is in the working file, what is
missing is found by looking.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

from nornweave import analysis, fields
from nornweave.chunking.chunker import Chunker
from nornweave.claims import vocabulary
from nornweave.embedding import Encoder
from nornweave.errors import (
    ReconciliationError,
    SourceUnavailableError,
)
from nornweave.ingest.changes import Changes, Held, Unavailable, diff
from nornweave.ingest.source import Source
from nornweave.intake import Fate, Intake
from nornweave.reconcile import Invariant, reconcile
from nornweave.store.port import (
    Batch,
    Candidate,
    Publication,
    Store,
    Writer,
)
from nornweave.types import (
    Domain,
    Failure,
    Listing,
    Skip,
    digest,
)

logger = logging.getLogger(__name__)

# Texts that are sorted by length and encoded together: long enough for even batches, short enough to lose little.
EMBEDDING_WINDOW = 2048

Progress = Callable[[str, int, int], None]
"""Called with ``domain step``, done, total."""


def no_progress(step: str, done: int, total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainParts:
    """What one domain's sync works with."""

    domain: Domain
    sources: tuple[Source, ...]
    chunker: Chunker
    encoder: Encoder
    store: Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOptions:
    """What a person may ask of one sync.

    Attributes:
        full: read and chunk everything again; vectors of unchanged texts are reused.
        confirm_deletes: carry out the removals that the mass-delete brake holds.
        accept_quality: publish even what the judged sets say is worse.
        wait_s: how long to wait for another writer of the domain.
        run_id: of the run that this sync belongs to, for the publication's event.
    """

    full: bool = False
    confirm_deletes: bool = False
    accept_quality: bool = False
    wait_s: float = 60
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What a sync of one domain did (contract §3); counts are documents unless said otherwise.

    Attributes:
        documents: all stored documents of the domain after this run.
        chunks: all chunks of the domain after this run.
        embedded: vectors computed in this run.
        reused: chunks whose vector was there already, or is another chunk's of the same text.
        unavailable: source id → why it could not be listed.
        seconds: wall time of the whole; ``step_seconds`` of each step.
    """

    generation: str | None
    documents: int
    added: int
    changed: int
    removed: int
    unchanged: int
    failed: tuple[Failure, ...]
    chunks: int
    embedded: int
    reused: int
    seconds: float
    published: bool
    skipped: tuple[Skip, ...]
    held: tuple[Held, ...]
    unavailable: Mapping[str, str]
    step_seconds: Mapping[str, float]
    run_id: str


def run(parts: DomainParts, options: SyncOptions | None = None, progress: Progress = no_progress) -> SyncReport:
    """Bring one domain up to date and publish it.

    Raises:
        DomainBusyError: another process is writing the domain.
        StoreError: the disk is full or the working file damaged; the published generation stays.
        EncoderError: the model cannot be used; what was chunked is stored and embedded by the next sync.
        ReconciliationError: an invariant does not hold; nothing is published.
    """
    with DomainSync(parts, options or SyncOptions(), progress) as sync:
        sync.store_changes()
        sync.embed()
        candidate = sync.build()
        if candidate:
            sync.publish(candidate)
        return sync.report()


class DomainSync:
    """One run of one domain; a context manager that holds the domain's writer lock."""

    def __init__(self, parts: DomainParts, options: SyncOptions, progress: Progress = no_progress) -> None:
        self._parts = parts
        self._options = options
        self._show = progress
        self._fates: Counter[Fate] = Counter()
        self._embedded = 0
        self._seconds: dict[str, float] = {}
        self._published: Publication | None = None
        self._resources = ExitStack()
        self._listed: dict[str, Listing | Unavailable] = {}

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        writer = self._parts.store.writer(wait_s=self._options.wait_s, purpose="sync")
        self._writer: Writer = self._resources.enter_context(writer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    @cached_property
    def changes(self) -> Changes:
        """List the sources and compare them with the manifest."""
        with self._timed("list"):
            for source in self._parts.sources:
                self._listed[source.id] = _list(source)
            changes = diff(
                self._listed,
                self._writer.manifest(),
                self._pipelines,
                full=self._options.full,
                confirm_deletes=self._options.confirm_deletes,
            )
        self._fates["unchanged"] += changes.unchanged
        return changes

    def store_changes(self) -> None:
        """Read, chunk and store what changed; remove what is gone."""
        changes = self.changes
        intake = Intake(
            sources={source.id: source for source in self._parts.sources},
            pipelines=self._pipelines,
            chunker=self._parts.chunker,
            encoder=self._parts.encoder,
            full=self._options.full,
        )
        looked_at = 0

        def done(fate: Fate) -> None:
            nonlocal looked_at
            looked_at += 1
            self._fates[fate] += 1
            self._progress("store", looked_at, len(changes.looks))

        with self._timed("store"):
            if changes.removed:
                self._writer.apply(Batch(removed=tuple(stored.document_id for stored in changes.removed)))
                self._fates["removed"] += sum(stored.content_hash is not None for stored in changes.removed)
            for batch in intake.batches(changes.looks, done):
                self._writer.apply(batch)

    def embed(self) -> int:
        """Embed every text that has no vector; return how many."""
        total = self._writer.pending_count()
        if not total:
            return 0
        with self._timed("embed"):
            done = 0

            def show(count: int) -> None:
                self._progress("embed", done + count, total)

            for window in self._writer.pending_texts(EMBEDDING_WINDOW):
                with self._timed("encoder"):
                    vectors = self._parts.encoder.encode([pending.text for pending in window], progress=show)
                self._writer.add_vectors([pending.embedding_key for pending in window], vectors)
                done += len(window)
                self._progress("embed", done, total)
        self._embedded += total
        return total

    def build(self) -> Candidate | None:
        """Build a generation if there is anything to publish, and check it.

        Returns:
            ``None`` when the published generation says all there is to say.

        Raises:
            ReconciliationError: an invariant does not hold; the candidate is gone.
        """
        candidate = self.build_unchecked()
        if candidate:
            broken = [invariant for invariant in self.reconcile(candidate) if not invariant.holds]
            if broken:
                self.discard(candidate)
                raise ReconciliationError("; ".join(str(invariant) for invariant in broken))
        return candidate

    def build_unchecked(self) -> Candidate | None:
        """Build a generation if there is anything to publish."""
        facts = self._facts()
        if not self._options.full and not self._writer.unpublished(facts):
            return None
        if self._writer.current() is None and not self._writer.counts().documents:
            return None  # nothing was ever ingested: there is nothing to answer from
        with self._timed("build"):
            self._progress("build", 0, 1)
            candidate = self._writer.build(self._options.run_id, facts)
            self._progress("build", 1, 1)
        return candidate

    def reconcile(self, candidate: Candidate | None) -> tuple[Invariant, ...]:
        """Compare what was listed, stored, embedded and indexed."""
        return reconcile(self.changes, self._writer.counts(), candidate.counts if candidate else None)

    def publish(self, candidate: Candidate) -> Publication:
        """Point readers at the candidate."""
        with self._timed("publish"):
            self._published = self._writer.publish(candidate)
        return self._published

    def discard(self, candidate: Candidate) -> None:
        """Remove a candidate that must not be published."""
        self._writer.discard(candidate)

    def report(self) -> SyncReport:
        """Say what this run did."""
        counts = self._writer.counts()
        changes, fates = self.changes, self._fates
        return SyncReport(
            generation=self._writer.current(),
            documents=counts.documents,
            added=fates["added"],
            changed=fates["changed"],
            removed=fates["removed"],
            unchanged=fates["unchanged"],
            failed=self._writer.failures(),
            chunks=counts.chunks,
            embedded=self._embedded,
            reused=max(0, counts.chunks - self._embedded),
            seconds=round(time.perf_counter() - self._started, 3),
            published=self._published is not None,
            skipped=self._skips(),
            held=changes.held,
            unavailable=changes.unavailable,
            step_seconds={step: round(seconds, 3) for step, seconds in self._seconds.items()},
            run_id=self._options.run_id,
        )

    def _skips(self) -> tuple[Skip, ...]:
        listed = [skip for listing in self._listed.values() if isinstance(listing, Listing) for skip in listing.skipped]
        read = [Skip(failure.path, failure.reason) for failure in self._writer.skips()]
        return tuple(sorted([*listed, *read], key=lambda skip: skip.path))

    @cached_property
    def _pipelines(self) -> dict[str, str]:
        """Per source, the versions and settings that its documents go through."""
        parts = self._parts
        versions = (parts.chunker.version, parts.encoder.version, analysis.VERSION, fields.VERSION, vocabulary.VERSION)
        return {source.id: digest(source.version, *versions) for source in parts.sources}

    def _facts(self) -> dict[str, str]:
        return {
            "domain": self._parts.domain.value,
            "encoder": self._parts.encoder.version,
            "analyzer": analysis.VERSION,
            "claims": vocabulary.VERSION,
            "chunker": self._parts.chunker.version,
        }

    def _progress(self, step: str, done: int, total: int) -> None:
        self._show(f"{self._parts.domain.value} {step}", done, total)

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[step] = self._seconds.get(step, 0.0) + time.perf_counter() - started


def _list(source: Source) -> Listing | Unavailable:
    try:
        return source.list()
    except SourceUnavailableError as error:
        logger.info("source %s cannot be listed, its documents stay as they are: %s", source.id, error)
        return Unavailable(str(error))
