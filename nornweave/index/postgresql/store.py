"""One domain in PostgreSQL: the working tables as transactions, and publication as the move of one row."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import psycopg

from nornweave.config import StorageSettings
from nornweave.core.deletion import Deleted
from nornweave.core.errors import NoGenerationError, StoreError
from nornweave.core.types import GenerationId, canonical_json
from nornweave.index.generations.kept import number_of, previous_of
from nornweave.index.outcomes import Outcome, write_outcomes
from nornweave.index.port import Candidate, Publication
from nornweave.index.postgresql import build as generation_build
from nornweave.index.postgresql.build import BUILDING
from nornweave.index.postgresql.generations import PostgresGenerations, point_at, prune, remove
from nornweave.index.postgresql.schema import (
    name_of,
    prefix_of,
    prepare_schema,
    release_lock,
    take_lock,
    write_holder,
    writing,
)
from nornweave.index.postgresql.server import Server, translated
from nornweave.index.postgresql.tables import PostgresTables
from nornweave.index.searching.generation_file import TEXTS_OF, DataFile
from nornweave.index.writing.build import Layout
from nornweave.index.writing.declared import NO_DECLARED_FILTERS, DeclaredFilters

logger = logging.getLogger(__name__)


class PostgresStore:
    """One domain's storage in one schema; implements ``port.Store``."""

    def __init__(
        self,
        server: Server,
        folder: Path,
        settings: StorageSettings,
        *,
        dimensions: int,
        declared: DeclaredFilters = NO_DECLARED_FILTERS,
        token_vectors: str = "",
    ) -> None:
        """Store the parameters; ``folder`` has the reports and temporary files of this machine."""
        self.server = server
        self.folder = folder
        self.files = PostgresGenerations(server, folder)
        self._layout = Layout(settings, dimensions, declared, token_vectors)

    def writer(self, *, wait_s: float = 0, purpose: str = "sync") -> PostgresWriter:
        """Return the domain's writer; entering it takes the lock."""
        return PostgresWriter(self, self._layout, wait_s=wait_s, purpose=purpose)

    def current(self) -> GenerationId | None:
        return self.files.current()

    def generations(self) -> tuple[GenerationId, ...]:
        return self.files.all()

    def published_facts(self) -> Mapping[str, str]:
        try:
            current = self.current()
            return {} if current is None else self.files.meta(current)
        except StoreError as error:
            logger.warning("%s: how it was made cannot be told: %s", self.server.name, error)
            return {}

    def texts_of(self, generation: GenerationId, deleted: Deleted, *, also_gone: bool = False) -> list[str]:  # noqa: ARG002
        """Return the texts of a document's chunks in a generation, at least one if it has the document.

        A generation is one file here, and nothing of it is gone.
        """
        g = prefix_of(generation)
        statement = TEXTS_OF.replace("documents", f"{g}documents").replace("chunks", f"{g}chunks").replace("?", "%s")
        return [text for (text,) in self.server.rows(statement, [deleted.source_id, deleted.path])]

    def remove_generations(self, generations: Sequence[GenerationId]) -> None:
        """Remove generations, and their copies on this machine; never the published one."""
        current = self.current()
        with writing(self.server, "nothing was removed") as connection:
            for generation in generations:
                if generation != current:
                    remove(connection, self.server.schema, number_of(generation))
                    self.files.copies.remove(generation)

    def data_files(self, generation: GenerationId) -> tuple[DataFile, ...]:
        """Return a file on this machine with the documents, chunks and facts of a generation."""
        return (DataFile(self.files.local_file(generation)),)

    def rollback(self, generation: GenerationId | None = None) -> GenerationId:
        with writing(self.server, "no other generation was published") as connection:
            take_lock(connection, self.server, wait_s=0)
            target = generation or previous_of(self.generations(), self.current(), self.server.name)
            if target not in self.generations():
                available = ", ".join(self.generations()) or "none"
                raise NoGenerationError(f"{self.server.name}: no generation {target!r}; there are: {available}")
            point_at(connection, target)
        return target


class PostgresWriter(PostgresTables):
    """The one writer of a schema; implements ``port.Writer``. Everything goes over the connection with the lock."""

    def __init__(self, store: PostgresStore, layout: Layout, *, wait_s: float, purpose: str) -> None:
        super().__init__(store.server, layout)
        self._store = store
        self._wait_s = wait_s
        self._purpose = purpose
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._connection = stack.enter_context(writing(self._server, "cannot be written"))
            take_lock(self._connection, self._server, wait_s=self._wait_s)
            stack.callback(release_lock, self._connection)
            prepare_schema(self._connection, self._server, self._layout.dimensions)
            write_holder(self._connection, self._purpose)
            self._remove_candidates()
            stack.callback(self._write_outcomes)
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def _remove_candidates(self) -> None:
        """Remove what killed writers left behind."""
        for (number,) in self._connection.execute("select number from generations where not complete").fetchall():
            remove(self._connection, self._server.schema, number)
        for place in self._store.folder.glob(f"{BUILDING}*"):  # who holds the lock is alone here, too
            shutil.rmtree(place, ignore_errors=True)

    def _write_outcomes(self) -> None:
        try:
            rows = self._rows(
                """
                select source_id, path, gate, outcome, reason,
                  to_char(looked_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
                from not_stored
                order by outcome = 'skipped', source_id, path
                """
            )
            self._store.folder.mkdir(parents=True, exist_ok=True)
            write_outcomes(self._store.folder, tuple(Outcome(*row) for row in rows))
        except (StoreError, OSError) as error:
            logger.warning("%s", error)

    def unpublished(self, facts: Mapping[str, str]) -> bool:
        published = self._rows("select value from meta where key = 'published_facts'")
        is_outdated = self.current() is None or published != [(canonical_json(self._facts(facts)),)]
        return is_outdated or self._has_changes()

    def _facts(self, facts: Mapping[str, str]) -> dict[str, str]:
        # Generations of an earlier version, which stored no file, are built again.
        return {**super()._facts(facts), "stored_as": "file"}

    def current(self) -> GenerationId | None:
        rows = self._rows("select number from pointer")
        return name_of(rows[0][0]) if rows else None

    def build(self, run_id: str, facts: Mapping[str, str]) -> Candidate:
        generation = name_of(self._integer("select nextval('generation_numbers')"))
        publication = self._publication(generation, run_id)
        try:
            with translated(self._server, f"{generation} could not be built, the published one stays"):
                return generation_build.build(
                    self._connection,
                    self._store.folder,
                    self._store.files.copies,
                    publication,
                    self._layout,
                    self._facts(facts),
                )
        except OSError as error:
            raise StoreError(f"{generation} could not be built, the published one stays: {error}") from error

    def publish(self, candidate: Candidate) -> Publication:
        """Point readers at the candidate and record what it holds, in one transaction; then remove the oldest."""
        publication = candidate.publication
        what = f"{candidate.generation} could not be published, the old one stays"
        with translated(self._server, what), self._connection.transaction():
            self._publish(candidate)
        try:
            prune(self._connection, self._server.schema, self._layout.settings.keep_generations)
            self._store.files.copies.prune(self._store.files.complete())
        except (psycopg.Error, StoreError, OSError) as error:  # it is published; the next publication removes them
            logger.warning("older generations could not be removed: %s", error)
        return publication

    def _publish(self, candidate: Candidate) -> None:
        connection, number = self._connection, number_of(candidate.generation)
        connection.execute("update generations set complete = true where number = %s", [number])
        point_at(connection, candidate.generation)
        said = candidate.publication
        connection.execute(
            "insert into publications values (%s, %s, %s, %s::text[], %s::text[], %s::text[])",
            [said.generation, said.run_id, said.created_at, list(said.added), list(said.changed), list(said.removed)],
        )
        self._record(connection, candidate)

    def write_again(self, deleted: Deleted) -> bool:  # noqa: ARG002
        """Do nothing: a generation is built whole, so that its file holds what is found in it."""
        return False

    def discard(self, candidate: Candidate) -> None:
        with translated(self._server, f"{candidate.generation} could not be removed"):
            number = number_of(candidate.generation)
            if self._rows("select from generations where number = %s and not complete", [number]):
                remove(self._connection, self._server.schema, number)
                self._store.files.copies.remove(candidate.generation)
