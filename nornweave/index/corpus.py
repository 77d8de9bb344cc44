"""One domain's storage: its working file and its generations."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from nornweave.config import StorageSettings
from nornweave.core.deletion import Deleted
from nornweave.core.errors import StoreError
from nornweave.core.files.lock import Lock, WriterLock
from nornweave.core.types import GenerationId
from nornweave.index.generations.kept import Elsewhere
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.port import Writer
from nornweave.index.searching.generation_file import TEXTS_OF, DataFile, read_rows
from nornweave.index.writing.build import Layout
from nornweave.index.writing.declared import NO_DECLARED_FILTERS, DeclaredFilters
from nornweave.index.writing.moving import WORKING_FILE, facts_ahead
from nornweave.index.writing.writer import DuckDBWriter

logger = logging.getLogger(__name__)


class SharedFiles(Elsewhere, Protocol):
    """The folder of a domain that several machines share."""

    def lock(self, purpose: str, wait_s: float) -> Lock:
        """Return the writer's lock. It waits for other writers, downloads the files, and uploads them at the end."""


class DuckDBStore:
    """One domain's storage in one folder. Implements ``port.Store``."""

    def __init__(
        self,
        folder: Path,
        settings: StorageSettings,
        *,
        dimensions: int,
        declared: DeclaredFilters = NO_DECLARED_FILTERS,
        token_vectors: str = "",
        shared: SharedFiles | None = None,
    ) -> None:
        self.folder = folder
        self._shared = shared
        self.files = GenerationFiles(folder / "generations", shared)
        self._layout = Layout(settings, dimensions, declared, token_vectors)

    def _lock(self, purpose: str, wait_s: float) -> Lock:
        if self._shared:
            return self._shared.lock(purpose, wait_s)
        return WriterLock(self.folder / "writer.lock", purpose=purpose, wait_s=wait_s)

    @contextmanager
    def writer(self, *, wait_s: float = 0, purpose: str = "sync") -> Iterator[Writer]:
        """Open the domain for writing under its lock.

        Raises:
            DomainBusyError: another process still writes it after ``wait_s`` seconds. The message says which process.
        """
        with ExitStack() as stack:
            lock = stack.enter_context(self._lock(purpose, wait_s))
            self.files.folder.mkdir(parents=True, exist_ok=True)
            self.files.clear_builds()
            yield stack.enter_context(DuckDBWriter(self.folder / WORKING_FILE, self.files, lock, self._layout))

    def current(self) -> GenerationId | None:
        return self.files.current()

    def generations(self) -> tuple[GenerationId, ...]:
        return self.files.all()

    def published_facts(self) -> Mapping[str, str]:
        try:
            current = self.current()
            if current is None:
                return {}
            ahead = None if (self.folder / WORKING_FILE).exists() else facts_ahead(self.folder, current)
            return ahead or self.files.facts(current)
        except StoreError as error:
            logger.warning("%s: how it was made cannot be told: %s", self.folder, error)
            return {}

    def texts_of(self, generation: GenerationId, deleted: Deleted, *, also_gone: bool = False) -> list[str]:
        """Return the texts of a document's chunks in a generation; empty if it does not have the document.

        Args:
            also_gone: include documents that are gone from the generation but still in its files.
        """
        files = self.files.data_files(generation)
        values = [deleted.source_id, deleted.path]
        return [
            text
            for file in ([DataFile(each.path) for each in files] if also_gone else files)
            for (text,) in read_rows(file, TEXTS_OF, values)
        ]

    def remove_generations(self, generations: Sequence[GenerationId]) -> None:
        """Remove generations except the published one. The caller holds the domain's lock."""
        self.files.remove(generations)

    def data_files(self, generation: GenerationId) -> tuple[DataFile, ...]:
        """Return the local files with a generation's documents, chunks and facts.

        If the manifest cannot be read, return only the manifest.
        """
        return self.files.named_files(generation)

    def rollback(self, generation: GenerationId | None = None) -> GenerationId:
        with self._lock("rollback", 0) as lock:
            target = generation or self.files.previous()
            self.files.point_at(target)
            lock.commit()
        return target
