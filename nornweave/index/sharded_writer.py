"""The writer of a domain in shards: every document goes to the working file of its shard.

A shard that did not change keeps its published file. The others are built beside each other, and one manifest names
all: readers see all shards of a generation or none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from pydantic import ValidationError

from nornweave.config import StorageSettings
from nornweave.core.deletion import Deleted
from nornweave.core.errors import StoreError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.files.lock import Lock
from nornweave.core.types import DocumentId, GenerationId
from nornweave.index.checksums import check, checksum_of
from nornweave.index.generation_file import lengths_in
from nornweave.index.kept_generations import MANIFEST_SUFFIX, shard_build_path
from nornweave.index.manifest import Manifest, ShardFile, named, read_manifest, shard_of
from nornweave.index.outcomes import Outcome, write_outcomes
from nornweave.index.port import (
    Batch,
    Candidate,
    Counts,
    Failure,
    PendingText,
    Publication,
    Remains,
    Stored,
    Tokens,
    Vectors,
)
from nornweave.index.publish import GenerationFiles, remove_candidate
from nornweave.index.writer import DuckDBWriter, hand_over

log = logging.getLogger(__name__)


class ShardedWriter:
    """The one writer of a domain in shards; implements ``port.Writer``.

    A batch is stored in a transaction for each of its shards. Killed between two, the next sync stores the rest: a
    document is in one shard alone.
    """

    def __init__(
        self,
        folder: Path,
        files: GenerationFiles,
        lock: Lock,
        shards: Sequence[DuckDBWriter],
        settings: StorageSettings,
    ) -> None:
        """Store the parts; ``lock`` is on the domain, and held, and so is one of each open shard."""
        self._folder = folder
        self._files = files
        self._lock = lock
        self._shards = tuple(shards)
        self._settings = settings
        self._built: dict[int, Candidate] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            outcomes = [outcome for shard in self._shards for outcome in shard.outcomes()]
            write_outcomes(self._folder, sorted(outcomes, key=_failures_first))
        except StoreError as unwritten:
            log.warning("%s", unwritten)

    def manifest(self) -> Mapping[tuple[str, str], Stored]:
        return {place: stored for shard in self._shards for place, stored in shard.manifest().items()}

    def apply(self, batch: Batch) -> None:
        """Store a batch, which also removes the old chunks; what belongs to one shard in one transaction."""
        for number, shard in enumerate(self._shards):
            if part := _part(batch, partial(self._is_in, number)):
                shard.apply(part)

    def _is_in(self, number: int, document: DocumentId) -> bool:
        return shard_of(document, len(self._shards)) == number

    def adopt(self, pipelines: Collection[str], key_of: Callable[[str], str]) -> None:
        for shard in self._shards:
            shard.adopt(pipelines, key_of)

    def pending_count(self) -> int:
        """Count the distinct texts that no shard has a vector of; the others are given theirs."""
        for shard in self._shards:
            for other in self._shards:
                if other is not shard:
                    shard.copy_vectors(other)
        return len(np.unique(np.concatenate([shard.pending_hashes() for shard in self._shards])))

    def pending_texts(self, window: int) -> Iterator[tuple[PendingText, ...]]:
        """Yield the texts without a vector, longest first in each shard, in windows.

        A text that several shards hold comes once, when ``add_vectors`` follows each window.
        """
        for shard in self._shards:
            yield from shard.pending_texts(window)

    def add_vectors(self, keys: Sequence[str], vectors: Vectors, tokens: Tokens = None) -> None:
        """Store vectors of shape ``(len(keys), dimensions)`` in each shard that lacks them."""
        if len(vectors) != len(keys):
            raise StoreError(f"expected {len(keys)} vectors, found {len(vectors)}")
        for shard in self._shards:
            pending = shard.pending_among(keys)
            places = [place for place, key in enumerate(keys) if key in pending]
            if places:
                own = [tokens[place] for place in places] if tokens else None
                shard.add_vectors([keys[place] for place in places], vectors[places], own)

    def failures(self) -> tuple[Failure, ...]:
        return _by_place(failure for shard in self._shards for failure in shard.failures())

    def skips(self) -> tuple[Failure, ...]:
        return _by_place(failure for shard in self._shards for failure in shard.skips())

    def counts(self) -> Counts:
        """Count everything that reconciliation compares; a text that several shards hold counts in each."""
        counts = [shard.counts() for shard in self._shards]
        return Counts(**{field.name: sum(getattr(one, field.name) for one in counts) for field in fields(Counts)})

    def unpublished(self, facts: Mapping[str, str]) -> bool:
        current = self._files.current()
        try:
            manifest = self._files.manifest(current) if current else None
            if current is None or manifest is None or len(manifest.shards) != len(self._shards):
                return True
            self._files.check(current)
        except StoreError as error:
            log.warning("%s; it is built again", error)
            return True
        return any(
            shard.is_changed(facts) or _is_unrecorded(shard, file)
            for shard, file in zip(self._shards, manifest.shards, strict=True)
        )

    def current(self) -> GenerationId | None:
        return self._files.current()

    def build(self, run_id: str, facts: Mapping[str, str]) -> Candidate:
        """Build the shards that changed, and a manifest, that readers do not see yet."""
        generation, shards = self._files.next(), []
        self._built = {}
        try:
            for number, shard in enumerate(self._shards):
                published = None if shard.is_changed(facts) else self._published(shard)
                shards.append(published or self._build_shard(number, generation, run_id, facts))
            manifest = Manifest(generation=generation, built_at=datetime.now(UTC).isoformat(), shards=tuple(shards))
            write_whole(self._manifest_file(generation), manifest.model_dump_json())
        except BaseException:
            self._remove_built(generation)  # a full disk has room again
            raise
        built = list(self._built.values())
        return Candidate(
            generation=generation,
            counts=manifest.counts,
            vector_index="hnsw" if any(one.vector_index == "hnsw" for one in built) else "exact",
            size_bytes=sum(shard.size for shard in shards),
            publication=_joined(generation, run_id, built),
            facts=built[0].facts if built else facts,
        )

    def _published(self, shard: DuckDBWriter) -> ShardFile | None:
        """Return the file that a shard was published in last; ``None`` unless it is there and sound."""
        try:
            record = ShardFile.model_validate_json(shard.published_file() or "")
            file = self._files.folder / record.name
            check(file)
        except (StoreError, ValidationError) as error:
            log.info("a shard is built again: %s", error)
            return None
        return record if file.is_file() else None

    def _build_shard(self, number: int, generation: GenerationId, run_id: str, facts: Mapping[str, str]) -> ShardFile:
        name = named(generation, number)
        file = shard_build_path(self._files.folder, name)
        built = self._shards[number].build_file(file, generation, run_id, facts)
        self._built[number] = built
        try:
            checksum = checksum_of(file)
        except OSError as error:
            raise StoreError(f"{file}: cannot be read: {error}") from error
        return ShardFile(
            name=name,
            checksum=checksum,
            terms=lengths_in(file).terms,
            **{field.name: getattr(built.counts, field.name) for field in fields(built.counts)},
        )

    def publish(self, candidate: Candidate) -> Publication:
        before = self._files.current()
        self._lock.confirm()
        try:
            manifest = read_manifest(self._manifest_file(candidate.generation))
            self._files.publish(candidate.generation, datetime.fromisoformat(manifest.built_at))
        except OSError as error:
            raise StoreError(f"{candidate.generation} could not be published, the old one stays: {error}") from error
        # Killed between the pointer and these transactions, the next sync publishes the same content once more.
        for number, built in self._built.items():
            self._shards[number].record_publication(built, manifest.shards[number].model_dump_json())
        self._files.prune(self._settings.keep_generations, self._settings.keep)
        hand_over(self._lock, self._files, before, self._shards)
        return candidate.publication

    def discard(self, candidate: Candidate) -> None:
        self._remove_built(candidate.generation)
        remove_candidate(self._manifest_file(candidate.generation))

    def remains(self, deleted: Deleted) -> Mapping[Remains, int]:
        counts = [shard.remains(deleted) for shard in self._shards]
        return {kind: sum(count[kind] for count in counts) for kind in Remains}

    def erase(self, deleted: Deleted) -> None:
        for shard in self._shards:
            shard.erase(deleted)

    def _remove_built(self, generation: GenerationId) -> None:
        for number in self._built:
            remove_candidate(shard_build_path(self._files.folder, named(generation, number)))

    def _manifest_file(self, generation: GenerationId) -> Path:
        return self._files.folder / f".build-{generation.removeprefix('gen-')}{MANIFEST_SUFFIX}"


def _is_unrecorded(shard: DuckDBWriter, served: ShardFile) -> bool:
    """Tell whether a killed writer pointed readers at a file of this shard and did not record it."""
    try:
        recorded = ShardFile.model_validate_json(shard.published_file() or "").number
    except ValidationError:
        recorded = 0
    return served.number > recorded


def _part(batch: Batch, is_in: Callable[[DocumentId], bool]) -> Batch:
    """Return what a batch holds of one shard."""
    return Batch(
        stored=tuple(one for one in batch.stored if is_in(one.document.id)),
        not_stored=tuple(one for one in batch.not_stored if is_in(one.document_id)),
        removed=tuple(one for one in batch.removed if is_in(one)),
        touched=tuple(one for one in batch.touched if is_in(one[0])),
    )


def _joined(generation: GenerationId, run_id: str, built: Sequence[Candidate]) -> Publication:
    """Return the event of the domain."""
    events = [one.publication for one in built]
    names = {
        kind: tuple(sorted(name for event in events for name in getattr(event, kind)))
        for kind in ("added", "changed", "removed")
    }
    return Publication(generation=generation, run_id=run_id, created_at=datetime.now(UTC), **names)


def _by_place(failures: Iterator[Failure]) -> tuple[Failure, ...]:
    return tuple(sorted(failures, key=lambda failure: (failure.source_id, failure.path)))


def _failures_first(outcome: Outcome) -> tuple[bool, str, str]:
    return outcome.outcome == "skipped", outcome.source_id, outcome.path
