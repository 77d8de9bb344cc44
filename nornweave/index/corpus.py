"""One domain's storage: its working files, one or several, and its generations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from nornweave.config import StorageSettings
from nornweave.core.deletion import Deleted
from nornweave.core.errors import StoreError
from nornweave.core.files.lock import Lock, WriterLock
from nornweave.core.types import GenerationId
from nornweave.index.build import Layout
from nornweave.index.declared import NO_DECLARED_FILTERS, DeclaredFilters
from nornweave.index.former_chunks import FormerPlace, former_place, place_in_files
from nornweave.index.generation_file import TEXTS_OF, read_rows
from nornweave.index.partition import partition, shard_count, working_files
from nornweave.index.port import Writer
from nornweave.index.publish import GenerationFiles
from nornweave.index.sharded_writer import ShardedWriter
from nornweave.index.writer import DuckDBWriter

logger = logging.getLogger(__name__)

OpenLock: TypeAlias = Callable[[Path, str, float], Lock]
"""Folder, purpose and seconds to wait → the lock of the domain in that folder."""


def file_lock(folder: Path, purpose: str, wait_s: float) -> Lock:
    """Return the lock of one machine."""
    return WriterLock(folder / "writer.lock", purpose=purpose, wait_s=wait_s)


class DuckDBStore:
    """One domain's storage in one folder; implements ``port.Store``."""

    def __init__(
        self,
        folder: Path,
        settings: StorageSettings,
        *,
        dimensions: int,
        declared: DeclaredFilters = NO_DECLARED_FILTERS,
        token_vectors: str = "",
        open_lock: OpenLock = file_lock,
    ) -> None:
        self.folder = folder
        self._open_lock = open_lock
        self.files = GenerationFiles(folder / "generations")
        self._layout = Layout(settings, dimensions, declared, token_vectors)

    @contextmanager
    def writer(self, *, wait_s: float = 0, purpose: str = "sync") -> Iterator[Writer]:
        """Open the domain for writing, divided as it has to be; the lock is held meanwhile.

        Raises:
            DomainBusyError: another process still writes it after ``wait_s`` seconds; the message says which.
        """
        with ExitStack() as stack:
            lock = stack.enter_context(self._open_lock(self.folder, purpose, wait_s))
            # Not before: whoever held the lock may have divided the domain anew, or the lock has brought its files.
            count = shard_count(self.folder, self.files, self._layout.settings.shards)
            partition(self.folder, count, self._layout.dimensions)
            self.files.folder.mkdir(parents=True, exist_ok=True)
            self.files.clear_builds()
            files = working_files(self.folder, count)
            if count == 1:
                yield stack.enter_context(self._writer(files[0], lock))
                return
            shards = []
            for file in files:
                own = stack.enter_context(file_lock(file.parent, purpose, wait_s))
                shards.append(stack.enter_context(self._writer(file, own)))
            yield stack.enter_context(ShardedWriter(self.folder, self.files, lock, shards, self._layout.settings))

    def _writer(self, file: Path, lock: Lock) -> DuckDBWriter:
        return DuckDBWriter(file, self.files, lock, self._layout)

    def current(self) -> GenerationId | None:
        return self.files.current()

    def generations(self) -> tuple[GenerationId, ...]:
        return self.files.all()

    def published_facts(self) -> Mapping[str, str]:
        try:
            current = self.current()
            return {} if current is None else self.files.facts(current)
        except StoreError as error:
            logger.warning("%s: how it was made cannot be told: %s", self.folder, error)
            return {}

    def former_place(self, chunk_id: str) -> FormerPlace | None:
        """Return where a chunk stood; ``None`` when no generation that is kept knows it."""
        return former_place(self.files, chunk_id, partial(place_in_files, self.files))

    def texts_of(self, generation: GenerationId, deleted: Deleted) -> list[str]:
        """Return the texts of a document's chunks in a generation, at least one if it has the document."""
        values = [deleted.source_id, deleted.path]
        return [text for file in self.files.data_files(generation) for (text,) in read_rows(file, TEXTS_OF, values)]

    def remove_generations(self, generations: Sequence[GenerationId]) -> None:
        """Remove generations; never the published one. The caller holds the domain."""
        self.files.remove(generations)

    def data_files(self, generation: GenerationId) -> tuple[Path, ...]:
        """Return the files on this machine with the documents, chunks and facts of a generation.

        A manifest that cannot be read stands for those that it names.
        """
        return self.files.named_files(generation)

    def rollback(self, generation: GenerationId | None = None) -> GenerationId:
        with self._open_lock(self.folder, "rollback", 0) as lock:
            target = generation or self.files.previous()
            self.files.point_at(target)
            lock.commit()
        return target
