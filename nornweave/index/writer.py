"""The working file of a domain or of one of its shards: documents, chunks, vectors and failures, as transactions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb

from nornweave.core.errors import PublicationError, StoreError
from nornweave.core.files.lock import Lock
from nornweave.core.types import GenerationId, canonical_json
from nornweave.index.build import Layout, build_generation, insert_publication
from nornweave.index.connection import explain
from nornweave.index.kept_generations import number_of
from nornweave.index.outcomes import write_outcomes
from nornweave.index.port import Candidate, Publication
from nornweave.index.publish import GenerationFiles, remove_candidate
from nornweave.index.working_file import open_working_file, overwrite, read_meta
from nornweave.index.working_rows import DuckDBTables

logger = logging.getLogger(__name__)


def hand_over(lock: Lock, files: GenerationFiles, before: GenerationId | None, writers: Sequence[DuckDBWriter]) -> None:
    """Hand the files to the other machines; if they are not taken, point readers of this one back to ``before``.

    Raises:
        StoreError: the lease is lost, or the server does not answer.
        PublicationError: object storage did not take them.
    """
    if not lock.shares_files:
        return
    with ExitStack() as stack:
        for writer in writers:
            stack.enter_context(writer.closed())
        try:
            lock.commit()
        except (PublicationError, StoreError):
            if before and files.path(before).is_file():
                files.point_at(before)
            raise


class DuckDBWriter(DuckDBTables):
    """The one writer of a working file; implements ``port.Writer``."""

    def __init__(self, file: Path, files: GenerationFiles, lock: Lock, layout: Layout) -> None:
        """Store the parts; ``lock`` is on the working file, and held."""
        super().__init__(file, layout)
        self._files = files
        self._lock = lock

    def __enter__(self) -> Self:
        self._connection = open_working_file(self._file, self._layout.dimensions)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            write_outcomes(self._file.parent, self.outcomes())
        except StoreError as unwritten:
            logger.warning("%s", unwritten)
        finally:
            self._connection.close()

    def unpublished(self, facts: Mapping[str, str]) -> bool:
        return not self._is_published_sound() or self._is_unrecorded() or self.is_changed(facts)

    def _is_unrecorded(self) -> bool:
        """Tell whether a killed writer pointed readers at a generation and did not record what it holds."""
        current = self._files.current()
        recorded = [number_of(name) for (name,) in self._rows("select generation from publications")]
        return current is not None and number_of(current) > max(recorded, default=0)

    def is_changed(self, facts: Mapping[str, str]) -> bool:
        """Tell whether the working file holds something else than was published last, or was published otherwise."""
        with self._reading() as connection:
            published_facts = read_meta(connection).get("published_facts")
        return published_facts != canonical_json(self._facts(facts)) or self._has_changes()

    def published_file(self) -> str | None:
        """Return what was recorded of the file of the last publication of this shard."""
        with self._reading() as connection:
            return read_meta(connection).get("published_file")

    def _is_published_sound(self) -> bool:
        """Tell whether there is a published generation, complete as it was published."""
        current = self._files.current()
        if current is None:
            return False
        try:
            self._files.check(current)
        except StoreError as error:
            logger.warning("%s; it is built again", error)
            return False
        return True

    def current(self) -> GenerationId | None:
        return self._files.current()

    def build(self, run_id: str, facts: Mapping[str, str]) -> Candidate:
        generation = self._files.next()
        return self.build_file(self._files.build_path(generation), generation, run_id, facts)

    def build_file(self, file: Path, generation: GenerationId, run_id: str, facts: Mapping[str, str]) -> Candidate:
        """Build a file with what the working file holds, for a generation of this name."""
        publication = self._publication(generation, run_id)
        try:
            return build_generation(self._connection, file, publication, self._layout, self._facts(facts))
        except duckdb.Error as error:
            file.unlink(missing_ok=True)
            raise StoreError(
                f"{generation} could not be built from {self._file}, the published one stays: {explain(error)}"
            ) from error

    def publish(self, candidate: Candidate) -> Publication:
        before = self._files.current()
        self._lock.confirm()
        try:
            self._files.publish(candidate.generation, candidate.publication.created_at)
        except OSError as error:
            raise StoreError(f"{candidate.generation} could not be published, the old one stays: {error}") from error
        # Killed between the pointer and this transaction, the next sync publishes the same content once more.
        self.record_publication(candidate)
        self._files.prune(self._layout.settings.keep_generations, self._layout.settings.keep)
        hand_over(self._lock, self._files, before, [self])
        return candidate.publication

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Close the working file for a while."""
        self._connection.close()
        try:
            yield
        finally:
            self._connection = open_working_file(self._file, self._layout.dimensions)

    def _overwrite(self) -> None:
        with self.closed():
            overwrite(self._file)

    def record_publication(self, candidate: Candidate, file: str = "") -> None:
        """Record that a candidate is published, and in which file of a shard."""
        with self._transaction() as connection:
            insert_publication(connection, "publications", candidate.publication)
            self._record(connection, candidate)
            connection.execute("delete from meta where key = 'published_file'")
            if file:
                connection.execute("insert into meta values ('published_file', ?)", [file])

    def discard(self, candidate: Candidate) -> None:
        remove_candidate(self._files.build_path(candidate.generation))
