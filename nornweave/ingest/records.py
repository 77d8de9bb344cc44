"""The records of a sync: its parts, options, report and checks, and the ports for decisions that others make.

Two decisions are not the recipe's own: whether a person has confirmed something (``Confirm``), and whether a candidate
answers well enough (``Gate``). Checks before publication: listed = stored + failed, vectors = chunks = index, no
orphans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nornweave.connect.protocol import Source
from nornweave.core.access import encode_source_rules
from nornweave.core.errors import QualityError, ReconciliationError
from nornweave.core.text import analyzer, index_fields
from nornweave.core.types import Domain, GenerationId, Listing, Skip, digest
from nornweave.disagree.facts import extract
from nornweave.index.port import Candidate, Counts, Failure, GenerationCounts, Store
from nornweave.ingest.confirmations import ConfirmationSubject
from nornweave.ingest.diff import Changes, HeldRemovals
from nornweave.ingest.left_out import SourceReading
from nornweave.models.encoders import Encoder
from nornweave.models.encoders.port import TokenEncoder
from nornweave.read.chunking.chunker import Chunker

EMBEDDING_WINDOW = 2_048
"""Texts that are sorted by length and encoded together: long enough for even batches, short enough to lose little."""
DISTRIBUTED_WINDOW = 16_384
"""The same for workers, all of which wait for the last batch of a window; what is encoded lies on object storage."""

Progress = Callable[[str, int, int], None]
"""Called with ``domain step``, done, total; 0 where the total is not known."""

INVARIANTS = {
    "documents_accounted_for": "Every document that is listed is stored, failed with a reason, or left out on purpose.",
    "texts_embedded": "Every text has its vector.",
    "no_orphan_chunks": "Every chunk belongs to a document.",
    "ids_unique": "No id is used twice.",
    "generation_complete": "Every stored chunk is in the candidate generation.",
    "vectors_match_chunks": "The candidate generation has one vector per chunk.",
    "index_matches_chunks": "The BM25 tables of the candidate generation find every chunk.",
    "no_orphans_in_generation": "No row of the candidate generation belongs to nothing.",
}
"""Name → what it means."""


def no_progress(step: str, done: int, total: int) -> None:
    """Do nothing with the progress of a step."""


Confirm = Callable[[ConfirmationSubject, str], bool]
"""Returns whether a person has confirmed a state of a subject, and uses that confirmation up.

Raises ``ConfirmationError`` when there is a confirmation that is not valid.
"""


class QualityReport(Protocol):
    """A gate's report about a candidate."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the reasons against publication."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return texts about measures that got worse without forbidding publication."""

    @property
    def refused(self) -> bool:
        """Tell whether the candidate must not be published."""

    @property
    def judged_gone(self) -> tuple[tuple[str, str], ...]:
        """Return the judged set and the path of each judged document that is missing in the candidate."""


class Gate(Protocol):
    """Measures candidates before they are published."""

    def __call__(
        self, candidate: Candidate, *, run_id: str, accept: Callable[[], bool], progress: Progress
    ) -> QualityReport | None:
        """Compare a candidate with the published generation.

        Args:
            candidate: the generation to measure.
            run_id: the run that built the candidate.
            accept: called if there are reasons against publication; returns whether a person accepts them. May raise
                ``ConfirmationError``.
            progress: called after each query.

        Returns:
            The report; ``None`` if the domain is not measured.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainParts:
    """The parts of one domain's sync.

    Attributes:
        access: source id → groups that may see its documents. Everybody may see those of a source that is missing here.
        embedding_window: the number of texts that are encoded together and stored in one transaction.
        token_encoder: the encoder if it makes token vectors and they are configured, else ``None``.
    """

    domain: Domain
    sources: tuple[Source, ...]
    chunker: Chunker
    encoder: Encoder
    store: Store
    access: Mapping[str, Sequence[str]] = field(default_factory=dict)
    embedding_window: int = EMBEDDING_WINDOW
    token_encoder: TokenEncoder | None = None

    def pipelines(self) -> dict[str, str]:
        """Return a digest of the versions and settings that process a source's documents, by source id."""
        own = (self.chunker.version, self.encoder.version)
        versions = (*own, analyzer.VERSION, index_fields.VERSION, extract.VERSION)
        return {source.id: digest(source.version, *versions) for source in self.sources}

    def provenance(self) -> dict[str, str]:
        """Return how a generation is made: part → its version."""
        return {
            "domain": self.domain.value,
            "encoder": self.encoder.version,
            "analyzer": analyzer.VERSION,
            "facts": extract.VERSION,
            "chunker": self.chunker.version,
            "access": encode_source_rules(self.access),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOptions:
    """A person's options for one sync.

    Attributes:
        full: read and chunk everything again; vectors of unchanged texts are reused.
        confirm_deletes: carry out the removals that the mass-delete brake holds.
        accept_quality: publish even if the judged sets say that the candidate is worse.
        sources: ids of the sources to list; empty for all sources of the domain. Documents of other sources stay.
        listed: source id → a listing that was made before. Only these sources are compared, unless a pipeline has
            changed. If ``listed`` is empty, the sources are listed.
        wait_s: how long to wait for another writer of the domain.
        run_id: the run that this sync belongs to, for the publication's event.
    """

    full: bool = False
    confirm_deletes: bool = False
    accept_quality: bool = False
    sources: tuple[str, ...] = ()
    listed: Mapping[str, Listing] = field(default_factory=dict)
    wait_s: float = 60
    run_id: str = ""

    def confirm(self, subject: ConfirmationSubject, _state: str) -> bool:
        """Tell whether the options confirm a subject. The state does not matter. This method is a ``Confirm``."""
        return self.confirm_deletes if subject is ConfirmationSubject.REMOVALS else self.accept_quality


@dataclass(frozen=True, slots=True)
class Build:
    """The result of building a generation.

    Attributes:
        candidate: ``None`` if the published generation is up to date, or nothing was ever ingested.
        invariants: the invariants of the working file and, if there is a candidate, of the candidate.
    """

    candidate: Candidate | None
    invariants: tuple[Invariant, ...]

    def refusal(self) -> ReconciliationError | None:
        """Return the error of the invariants that do not hold; ``None`` if all hold."""
        broken = "; ".join(str(invariant) for invariant in self.invariants if not invariant.holds)
        remedy = "`nornweave sync --full` stores everything afresh"
        return ReconciliationError(f"nothing is published: {broken}; {remedy}") if broken else None


def quality_refusal(report: QualityReport | None) -> QualityError | None:
    """Return the error for a candidate that a gate refuses; ``None`` if it is not refused or was not measured."""
    if report is None or not report.refused:
        return None
    remedy = "`nornweave sync --accept-quality` publishes it all the same"
    return QualityError(f"nothing is published: {'; '.join(report.reasons)}; {remedy}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """The report of one domain's sync. Counts are documents unless stated otherwise.

    ``nornweave sync --json`` and the status file show these fields by their names.

    Attributes:
        documents: all stored documents of the domain after this run.
        chunks: all chunks of the domain after this run.
        embedded: the vectors computed in this run.
        reused: the number of chunks whose vector was stored before, or is shared with another chunk of the same text.
        sources: source id → how much of it was read, for sources that were listed as a whole.
        judged_gone: judged set and path of each judged document that is gone. Measures no longer use its judgments.
        judged_wrong: a sentence for each judged set that cannot be read, or has places that match no document.
        quality_warnings: measures that got worse in a candidate that was published anyway.
        unavailable: source id → why it could not be listed.
        seconds: wall time of the sync. ``step_seconds`` has the time of each step.
        not_copied: why the published generation is not in the object store of ``publish``.
    """

    generation: GenerationId | None
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
    held: tuple[HeldRemovals, ...]
    unavailable: Mapping[str, str]
    sources: Mapping[str, SourceReading]
    judged_gone: tuple[tuple[str, str], ...]
    step_seconds: Mapping[str, float]
    run_id: str
    not_copied: str | None = None
    judged_wrong: tuple[str, ...] = ()
    quality_warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Invariant:
    """Two numbers that must be equal; ``name`` is one of ``INVARIANTS``."""

    name: str
    found: int
    expected: int

    @property
    def holds(self) -> bool:
        """Tell whether the numbers are equal."""
        return self.found == self.expected

    def __str__(self) -> str:
        return f"{self.name}: found {self.found}, expected {self.expected} ({INVARIANTS[self.name].rstrip('.')})"


def reconcile(changes: Changes, working: Counts, generation: GenerationCounts | None) -> tuple[Invariant, ...]:
    """Return all invariants in the order of ``INVARIANTS``. Without a generation, its invariants are left out."""
    accounted = working.documents + working.failed - working.stale + working.skipped
    invariants = (
        Invariant("documents_accounted_for", accounted, changes.listed),
        Invariant("texts_embedded", working.texts - working.missing_vectors, working.texts),
        Invariant("no_orphan_chunks", working.orphan_chunks, 0),
        Invariant("ids_unique", working.duplicate_chunk_ids + working.duplicate_documents, 0),
    )
    if generation is None:
        return invariants
    return (
        *invariants,
        Invariant("generation_complete", generation.chunks, working.chunks),
        Invariant("vectors_match_chunks", generation.vectors, generation.chunks),
        Invariant("index_matches_chunks", generation.indexed_chunks, generation.chunks),
        Invariant("no_orphans_in_generation", generation.orphans, 0),
    )
