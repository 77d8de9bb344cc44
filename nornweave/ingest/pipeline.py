"""The path of a document: ``list → store → embed → build → evaluate → publish``.

A source that cannot be listed leaves its documents as they are.

``run`` is the whole sequence. ``DomainSync`` holds one domain open between the steps, so that Dagster can show and
retry each of them. Every step can be repeated, and finishes what a killed run left: what was stored is in the working
file, and each step looks there for what is missing.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Self

from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.connect.protocol import Source
from nornweave.core.errors import ConfirmationError, NornWeaveError, SourceUnavailableError
from nornweave.core.files.paths import Within
from nornweave.core.text.dates import utc_text
from nornweave.core.types import GenerationId, Listing, Skip, digest, present
from nornweave.index.outcomes import Verified, VerifiedSource
from nornweave.index.port import Batch, Candidate, Failure, Publication, Writer
from nornweave.ingest.confirmations import ConfirmationSubject
from nornweave.ingest.diff import Changes, Unavailable, describe_repeated_work, diff, held_state
from nornweave.ingest.left_out import readings
from nornweave.ingest.process_documents import DocumentOutcome, Intake
from nornweave.ingest.records import (
    Build,
    Confirm,
    DomainParts,
    Gate,
    Progress,
    QualityReport,
    SyncOptions,
    SyncReport,
    no_progress,
    quality_refusal,
    reconcile,
)
from nornweave.models.encoders.port import VERSION as TOKEN_VERSION

SOURCES_AT_ONCE = 8

logger = logging.getLogger(__name__)


def list_sources(
    sources: Sequence[Source], options: SyncOptions, progress: Progress
) -> dict[str, Listing | Unavailable]:
    """Return source id → its listing; ``Unavailable(None)`` for a source that the options do not name."""
    if options.listed:
        return {source.id: options.listed.get(source.id, Unavailable(None)) for source in sources}
    wanted = [source for source in sources if not options.sources or source.id in options.sources]
    list_one = partial(_listing, progress=progress, again=options.full)
    with ThreadPoolExecutor(SOURCES_AT_ONCE, thread_name_prefix="listing") as pool:
        # A slow site does not delay the other sources.
        listings = dict(zip((source.id for source in wanted), pool.map(list_one, wanted), strict=True))
    return {source.id: listings.get(source.id, Unavailable(None)) for source in sources}


def skipped_by(listings: Iterable[Listing | Unavailable], unread: Iterable[Failure]) -> tuple[Skip, ...]:
    """Return every path that was skipped during listing or reading, sorted by path."""
    listed = [skip for listing in listings if isinstance(listing, Listing) for skip in listing.skipped]
    read = [Skip(failure.path, failure.reason) for failure in unread]
    return tuple(sorted([*listed, *read], key=lambda skip: skip.path))


def _listing(source: Source, *, progress: Progress, again: bool) -> Listing | Unavailable:
    if isinstance(source, MirroredSource):
        if again:
            source.list_everything_again()
        source.watched_by(partial(_show_reading, progress, source.id))
    try:
        listing = source.list()
    except SourceUnavailableError as error:
        logger.info("source %s cannot be listed, its documents stay as they are: %s", source.id, error)
        return Unavailable(str(error))
    if listing.skipped and not listing.entries:
        left_out = f"{listing.skipped[0].path} ({listing.skipped[0].reason})"
        logger.warning("source %s: everything is left out, such as %s", source.id, left_out)
    return listing


def _show_reading(progress: Progress, source_id: str, documents: int, size: int, expected: int | None) -> None:
    progress(f"read {source_id}", size // 1024, 0)
    progress(f"list {source_id}", documents, expected or 0)


def verified_by(
    listings: Mapping[str, Listing | Unavailable],
    before: Verified,
    generation: GenerationId | None,
    listed_from: datetime,
    *,
    unconfirmed: Collection[tuple[str, str]],
) -> Verified:
    """Return when the sources confirmed the documents of a generation.

    Args:
        listings: source id → its listing. A source that could not be listed keeps its earlier confirmations.
        before: the result of the last sync.
        generation: the published generation; ``None`` if nothing is published.
        listed_from: when the sync began to list the sources.
        unconfirmed: source id and path of each document that its source no longer lists, or whose new version could not
            be read. These documents keep their earlier confirmation.
    """
    sources = {}
    for source_id, listing in listings.items():
        known = before.sources.get(source_id, VerifiedSource())
        if isinstance(listing, Unavailable):
            sources[source_id] = known
            continue
        now = utc_text(listed_from, "seconds")
        moments: dict[str, str | None] = {
            entry.path: utc_text(entry.verified_at, "seconds") if entry.verified_at else now
            for entry in listing.entries
        }
        moments |= {path: known.of(path) for source, path in unconfirmed if source == source_id}
        if listing.within:  # it says nothing of other documents
            documents = {**known.documents, **moments}
            sources[source_id] = replace(known, documents=documents, commit=listing.commit or known.commit)
            continue
        counted = Counter(moments.values()).most_common(1)
        usual = counted[0][0] if counted else now
        listed_at = utc_text(listing.listed_at, "seconds") if listing.listed_at else now
        sources[source_id] = VerifiedSource(
            listed_at=known.listed_at if listing.problem and not listing.listed_at else listed_at,
            verified_at=usual,
            documents={path: moment for path, moment in moments.items() if moment != usual},
            commit=listing.commit,
        )
    return Verified(generation, sources)


def run(
    parts: DomainParts,
    options: SyncOptions | None = None,
    progress: Progress = no_progress,
    *,
    gate: Gate | None = None,
) -> SyncReport:
    """Bring one domain up to date and publish it. ``gate`` measures the candidate; without it, nothing is measured.

    Raises:
        DomainBusyError: another process is writing the domain.
        StoreError: the disk is full or the working file is damaged. The published generation stays.
        EncoderError: the model cannot be used. The chunks are stored, and the next sync embeds them.
        ReconciliationError: an invariant does not hold. Nothing is published.
        QualityError: the candidate is worse than the published generation, and the options do not accept this.
    """
    with DomainSync(parts, options or SyncOptions(), progress, gate=gate) as sync:
        sync.list_changes()
        sync.store_changes()
        sync.embed()
        sync.build()
        sync.evaluate()
        sync.publish()
        return sync.report()


class DomainSync:
    """One sync of one domain; it holds the domain's writer lock while it is open.

    The sources are listed once, and a generation is built once and measured once. ``evaluate`` first builds the
    generation and ``publish`` first evaluates it, unless an earlier call did. So no caller can publish an unchecked
    generation.

    Args:
        gate: measures the candidate. Without it, nothing is measured.
        confirm: called before removals that the mass-delete brake holds, and before publishing a candidate that is
            worse than the published generation. By default, the options decide.
    """

    def __init__(
        self,
        parts: DomainParts,
        options: SyncOptions,
        progress: Progress = no_progress,
        *,
        gate: Gate | None = None,
        confirm: Confirm | None = None,
    ) -> None:
        self._parts = parts
        self._options = options
        self._progress: Progress = lambda step, done, total: progress(f"{parts.domain.value} {step}", done, total)
        self._gate = gate
        self._confirm = confirm or options.confirm
        self._resources = ExitStack()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._timed = partial(_timed, self._seconds)
        self._outcomes: Counter[DocumentOutcome] = Counter()
        self._embedded = 0
        self._listings: dict[str, Listing | Unavailable] = {}
        self._changes: Changes | None = None
        self._build: Build | None = None
        self._candidate: Candidate | None = None  # built and not published: ``close`` removes it
        self._quality: QualityReport | None = None
        self._publication: Publication | None = None

    def open(self) -> Self:
        """Take the domain's writer lock.

        Raises:
            DomainBusyError: another process is writing the domain.
        """
        self._started = time.perf_counter()
        writer = self._parts.store.writer(wait_s=self._options.wait_s, purpose="sync")
        self._writer: Writer = self._resources.enter_context(writer)
        return self

    def close(self) -> None:
        """Remove a candidate that was not published, and release the lock."""
        with self._resources:
            if self._candidate:
                self._writer.discard(self._candidate)
                self._candidate = None

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def list_changes(self) -> Changes:
        """Return the work of this sync. The first call lists the sources and compares them with the manifest."""
        if self._changes is None:
            self._listed_from = present()
            with self._timed("list"):
                pipelines, tally = self._parts.pipelines(), self._writer.tally() if self._options.listed else ()
                if self._options.full or any(pipelines.get(each.source_id) != each.pipeline for each in tally):
                    self._options = replace(self._options, listed={})  # other documents are due as well
                self._listings = list_sources(self._parts.sources, self._options, self._progress)
                manifest = self._writer.manifest(_within(self._listings) if self._options.listed else None)
                compare = partial(diff, self._listings, manifest, pipelines, tally=tally, full=self._options.full)
                self._changes = _compare_with_confirmation(compare, self._confirm)
            _warn_of_repeated_work(self._parts, self._writer, self._changes)
            self._outcomes["unchanged"] += self._changes.unchanged
        return self._changes

    def store_changes(self) -> None:
        """Read, chunk and store new and changed documents, and remove missing ones."""
        changes = self.list_changes()
        numbers = itertools.count(1)

        def count(outcome: DocumentOutcome) -> None:
            self._outcomes[outcome] += 1
            self._progress("store", next(numbers), len(changes.due))

        with self._timed("store"):
            if changes.removed:
                self._writer.apply(Batch(removed=tuple(stored.document_id for stored in changes.removed)))
                self._outcomes["removed"] += sum(stored.content_hash is not None for stored in changes.removed)
            intake = _intake(self._parts, self._listings, full=self._options.full)
            for batch in intake.batches(changes.due, count):
                self._writer.apply(batch)

    def embed(self) -> int:
        """Embed every text that has no vector. Return how many of these texts belong to chunks."""
        self._writer.adopt(set(self._parts.pipelines().values()), partial(digest, self._parts.encoder.version))
        of_chunks = self._writer.pending_count(of_chunks=True)
        if self._writer.pending_count():
            with self._timed("embed"):
                _embed_pending(self._writer, self._parts, partial(self._timed, "encoder"), self._progress)
        self._embedded += of_chunks
        return of_chunks

    def build(self) -> Build:
        """Build a generation if it would differ from the published one. Return it with the checked invariants."""
        if self._build is None:
            if _is_due(self._writer, self._parts, full=self._options.full):
                with self._timed("build"):
                    self._progress("build", 0, 1)
                    self._candidate = self._writer.build(self._options.run_id, self._parts.provenance())
                    self._progress("build", 1, 1)
            counts = self._candidate.counts if self._candidate else None
            invariants = reconcile(self.list_changes(), self._writer.counts(), counts)
            self._build = Build(self._candidate, invariants)
        return self._build

    def evaluate(self) -> QualityReport | None:
        """Compare the candidate with the published generation.

        Returns:
            The gate's report; ``None`` if there is no candidate or no gate, or the gate does not measure the domain.

        Raises:
            ReconciliationError: an invariant does not hold.
        """
        build = self.build()
        if refusal := build.refusal():
            raise refusal
        if build.candidate and self._gate and self._quality is None:
            with self._timed("evaluate"):
                accept = partial(self._confirm, ConfirmationSubject.QUALITY, self._writer.current() or "")
                show = lambda step, done, total: self._progress(f"evaluate {step}", done, total)  # noqa: E731
                self._quality = self._gate(build.candidate, run_id=self._options.run_id, accept=accept, progress=show)
        return self._quality

    def publish(self) -> Publication | None:
        """Point readers at the candidate.

        Returns:
            The event of the publication; ``None`` if there is no candidate, so that the published generation stays.

        Raises:
            ReconciliationError: an invariant does not hold.
            QualityError: the candidate is worse than the published generation, and no person has accepted this.
        """
        self.evaluate()
        if self.refusal:
            raise self.refusal
        if self._candidate:
            with self._timed("publish"):
                self._publication = self._writer.publish(self._candidate)
            self._candidate = None
        return self._publication

    @property
    def refusal(self) -> NornWeaveError | None:
        """Return the error that forbids publication; ``None`` if the steps so far found no error."""
        return (self._build.refusal() if self._build else None) or quality_refusal(self._quality)

    @property
    def is_of_paths(self) -> bool:
        """Tell whether the sync covers only the paths that its options list."""
        return bool(self._options.listed)

    def record_as(self, run_id: str) -> None:
        """Set the run id for the report and the publication's event. Needed if the run began after ``open``."""
        self._options = replace(self._options, run_id=run_id)

    def report(self) -> SyncReport:
        """Return the report of this run."""
        (documents, chunks), changes, outcomes = self._writer.size(), self.list_changes(), self._outcomes
        return SyncReport(
            generation=self._writer.current(),
            documents=documents,
            added=outcomes["added"],
            changed=outcomes["changed"],
            removed=outcomes["removed"],
            unchanged=outcomes["unchanged"],
            failed=self._writer.failures(),
            chunks=chunks,
            embedded=self._embedded,
            reused=max(0, chunks - self._embedded),
            seconds=round(time.perf_counter() - self._started, 3),
            published=self._publication is not None,
            skipped=skipped_by(self._listings.values(), self._writer.skips()),
            sources=readings(
                {source.id: source.domain for source in self._parts.sources},
                self._listings,
                (*self._writer.skips(), *self._writer.failures()),
            ),
            held=changes.held,
            unavailable=changes.unavailable,
            judged_gone=self._quality.judged_gone if self._quality else (),
            step_seconds={step: round(seconds, 3) for step, seconds in self._seconds.items()},
            run_id=self._options.run_id,
            quality_warnings=self._quality.warnings if self._quality and self._publication else (),
        )

    def verified(self, before: Verified) -> Verified:
        """Return when the sources last confirmed the published documents. ``before`` is the result of the last sync."""
        current = self._writer.current()
        if not self._publication and before.generation not in (current, None):
            return before  # somebody went back to an older generation, which was not compared with the sources
        unconfirmed = {(failure.source_id, failure.path) for failure in self._writer.failures() if failure.stale}
        unconfirmed.update(self.list_changes().unlisted)
        return verified_by(self._listings, before, current, self._listed_from, unconfirmed=unconfirmed)


def _within(listings: Mapping[str, Listing | Unavailable]) -> dict[str, Within | None]:
    return {source_id: listing.within for source_id, listing in listings.items() if isinstance(listing, Listing)}


@contextmanager
def _timed(seconds: defaultdict[str, float], step: str) -> Iterator[None]:
    """Add the block's duration to a step's seconds."""
    started = time.perf_counter()
    try:
        yield
    finally:
        seconds[step] += time.perf_counter() - started


def _warn_of_repeated_work(parts: DomainParts, writer: Writer, changes: Changes) -> None:
    """Log a warning about unchanged documents that are read or encoded again."""
    now = {**parts.provenance(), "token_vectors": TOKEN_VERSION if parts.token_encoder else ""}
    if again := describe_repeated_work(
        changes, parts.pipelines(), parts.store.published_facts(), now, writer.size()[1]
    ):
        logger.warning("%s: %s", parts.domain.value, again)


def _intake(parts: DomainParts, listings: Mapping[str, Listing | Unavailable], *, full: bool) -> Intake:
    listed = {name: listing.entries for name, listing in listings.items() if isinstance(listing, Listing)}
    return Intake(
        listed=listed,
        sources={source.id: source for source in parts.sources},
        pipelines=parts.pipelines(),
        chunker=parts.chunker,
        encoder=parts.encoder,
        full=full,
    )


def _is_due(writer: Writer, parts: DomainParts, *, full: bool) -> bool:
    """Tell whether to build a generation, because ``full`` is set or it would differ from the published generation."""
    if writer.current() is None and not writer.size()[0]:
        return False  # nothing was ever ingested: there is nothing to answer from
    return full or writer.unpublished(parts.provenance())


def _compare_with_confirmation(compare: Callable[..., Changes], confirm: Confirm) -> Changes:
    """Return ``compare()``. If it holds removals that a person has confirmed, the result contains them as removals."""
    changes = compare()
    if not changes.held:
        return changes
    try:
        is_confirmed = confirm(ConfirmationSubject.REMOVALS, held_state(changes.held))
    except ConfirmationError as error:
        held = tuple(replace(held, reason=f"{held.reason}; {error}") for held in changes.held)
        return replace(changes, held=held)
    return compare(confirm_deletes=True) if is_confirmed else changes


def _embed_pending(
    writer: Writer, parts: DomainParts, timed: Callable[[], AbstractContextManager[None]], progress: Progress
) -> None:
    done, total = 0, writer.pending_count()

    def show(count: int) -> None:
        progress("embed", done + count, total)

    for window in writer.pending_texts(parts.embedding_window):
        with timed():
            texts, tokens = [pending.text for pending in window], None
            if parts.token_encoder:
                vectors, of_texts = parts.token_encoder.encode_tokens(texts, progress=show)
                tokens = [rows.tobytes() for rows in of_texts]
            else:
                vectors = parts.encoder.encode(texts, progress=show)
        writer.add_vectors([pending.embedding_key for pending in window], vectors, tokens)
        done += len(window)
        progress("embed", done, total)
