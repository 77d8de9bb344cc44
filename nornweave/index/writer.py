"""The working file of a domain or of one of its shards: documents, chunks, vectors and failures, as transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nornweave.config import StorageSettings
from nornweave.core.errors import PublicationError, StoreError
from nornweave.core.files.lock import Lock
from nornweave.core.types import DocumentId, GenerationId, canonical_json
from nornweave.index.build import build_generation, insert_publication
from nornweave.index.connection import Connection, explain
from nornweave.index.declared import DeclaredFilters
from nornweave.index.outcomes import Outcome, write_outcomes
from nornweave.index.port import (
    Batch,
    Candidate,
    Counts,
    PendingText,
    Publication,
    Vectors,
)
from nornweave.index.publish import GenerationFiles, number_of, remove_candidate
from nornweave.index.rows import chunk_rows, document_rows, not_stored_rows
from nornweave.index.working_file import open_working_file, read_meta
from nornweave.index.working_tables import KEEP_PUBLICATIONS, VERSIONS, WorkingTables

logger = logging.getLogger(__name__)

# At a time, from one shard to another.
_COPIED_VECTORS = 1 << 16


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


class DuckDBWriter(WorkingTables):
    """The one writer of a working file; implements ``port.Writer``."""

    def __init__(
        self,
        file: Path,
        files: GenerationFiles,
        lock: Lock,
        settings: StorageSettings,
        dimensions: int,
        declared: DeclaredFilters,
    ) -> None:
        """Store the parts.

        Args:
            file: the working file.
            files: the generations of the domain.
            lock: on the working file, held.
            settings: of the domain.
            dimensions: of the vectors.
            declared: filters.
        """
        super().__init__(settings, dimensions, declared)
        self._file = file
        self._files = files
        self._lock = lock

    def __enter__(self) -> Self:
        self._connection = open_working_file(self._file, self._dimensions)
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

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return what became of the documents that were not stored, failures first."""
        rows = self._rows(
            """
            select source_id, path, gate, outcome, reason, strftime(looked_at, '%Y-%m-%dT%H:%M:%SZ')
            from not_stored
            order by outcome = 'skipped', source_id, path
            """
        )
        return tuple(Outcome(*row) for row in rows)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        connection = self._connection
        connection.begin()
        try:
            yield connection
            connection.commit()
        except BaseException as error:
            _roll_back(connection)
            if isinstance(error, duckdb.Error):
                raise StoreError(f"{self._file}: nothing of this step was stored: {explain(error)}") from error
            raise

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            yield self._connection
        except duckdb.Error as error:
            raise StoreError(f"{self._file}: cannot be read: {explain(error)}") from error

    def apply(self, batch: Batch) -> None:
        """Store a batch in one transaction, which also removes the old chunks."""
        stored_ids = [one.document.id for one in batch.stored]
        looked_at = [*stored_ids, *batch.removed, *(identity for identity, _ in batch.touched)]
        with self._transaction() as connection:
            for table in ("chunks", "documents"):
                _delete(connection, table, [*stored_ids, *batch.removed])
            _delete(connection, "not_stored", [*looked_at, *(one.document_id for one in batch.not_stored)])
            _insert(connection, "documents", document_rows(batch.stored))
            _insert(connection, "chunks", chunk_rows(batch.stored))
            _insert(connection, "not_stored", not_stored_rows(batch.not_stored))
            _touch(connection, batch.touched)

    def adopt(self, pipelines: Collection[str], key_of: Callable[[str], str]) -> None:
        """Assign this pipeline's vector keys to chunks that another pipeline made.

        They are what could not be read again since the pipeline changed. A generation must not mix vectors of two
        encoders.

        Args:
            pipelines: the present ones.
            key_of: embedded text → embedding key.
        """
        with self._reading() as connection:
            rows = connection.execute(
                f"""
                select chunk_id, embedding_key, {_EMBEDDED_TEXT}
                from chunks semi join (select document_id from documents where pipeline not in (select unnest(?)))
                using (document_id)
                """,
                [list(pipelines)],
            ).fetchall()
        keys = [(chunk_id, key) for chunk_id, before, text in rows if (key := key_of(text)) != before]
        if keys:
            renamed = pa.table({"chunk_id": [one for one, _ in keys], "embedding_key": [key for _, key in keys]})
            with self._transaction() as connection:
                connection.execute(
                    "update chunks set embedding_key = renamed.embedding_key from renamed "
                    "where chunks.chunk_id = renamed.chunk_id"
                )
            del renamed

    def pending_count(self) -> int:
        """Count the distinct texts without a vector."""
        return self._integer(f"select count(distinct embedding_key) from chunks {_WITHOUT_VECTOR}")

    def pending_hashes(self) -> NDArray[np.uint64]:
        """Return a hash of each text without a vector: what several shards hold is counted once."""
        query = f"select distinct hash(embedding_key) as hash from chunks {_WITHOUT_VECTOR}"
        return np.asarray(self._table(query)["hash"].to_numpy(), np.uint64)

    def pending_among(self, keys: Sequence[str]) -> set[str]:
        """Return the keys among some whose text is here without a vector."""
        wanted = pa.table({"embedding_key": pa.array(keys, type=pa.string())})
        query = f"select distinct embedding_key from chunks semi join wanted using (embedding_key) {_WITHOUT_VECTOR}"
        return set(self._table(query, wanted)["embedding_key"].to_pylist())

    def copy_vectors(self, other: DuckDBWriter) -> None:
        """Take the vectors that are missing here and that another shard has."""
        pending = self._table(f"select distinct embedding_key from chunks {_WITHOUT_VECTOR}")
        for start in range(0, len(pending), _COPIED_VECTORS):
            query = "select embedding_key, vector from embeddings semi join wanted using (embedding_key)"
            found = other._table(query, pending.slice(start, _COPIED_VECTORS))
            if len(found):
                with self._transaction() as connection:
                    _insert(connection, "embeddings", found)

    def pending_texts(self, window: int) -> Iterator[tuple[PendingText, ...]]:
        """Yield the texts without a vector, longest first, in windows."""
        keys = self._rows(
            f"""
            select embedding_key, max(token_count + length(context) // 4) as size
            from chunks {_WITHOUT_VECTOR}
            group by embedding_key
            order by size desc, embedding_key
            """
        )
        for start in range(0, len(keys), window):
            wanted = pa.table({"embedding_key": [key for key, _ in keys[start : start + window]]})
            with self._reading() as connection:
                rows = connection.execute(
                    f"""
                    select embedding_key, any_value({_EMBEDDED_TEXT})
                    from chunks semi join wanted using (embedding_key)
                    group by embedding_key
                    """
                ).fetchall()
            del wanted
            yield tuple(PendingText(key, text) for key, text in rows)

    def add_vectors(self, keys: Sequence[str], vectors: Vectors) -> None:
        """Store vectors of shape ``(len(keys), dimensions)`` under their keys, in one transaction."""
        if vectors.shape != (len(keys), self._dimensions):
            raise StoreError(f"expected vectors of shape {(len(keys), self._dimensions)}, found {vectors.shape}")
        flat = pa.array(vectors.reshape(-1), type=pa.float32())
        table = pa.table(
            {
                "embedding_key": pa.array(keys, type=pa.string()),
                "vector": pa.FixedSizeListArray.from_arrays(flat, self._dimensions),
            }
        )
        with self._transaction() as connection:
            _insert(connection, "embeddings", table)

    def counts(self) -> Counts:
        """Count everything that reconciliation compares."""
        # One row per number: as eleven columns of one row DuckDB 1.5.5 plans their join for a tenth of a second.
        rows = self._rows(
            f"""
            select 'documents', count(*) from documents
            union all select 'failed', count(*) from not_stored where outcome <> 'skipped'
            union all select 'stale', count(*) from not_stored semi join documents using (document_id)
            union all select 'skipped', count(*) from not_stored where outcome = 'skipped'
            union all select 'chunks', count(*) from chunks
            union all select 'tokens', coalesce(sum(token_count), 0) from chunks
            union all select 'texts', count(distinct embedding_key) from chunks
            union all select 'missing_vectors', count(distinct embedding_key) from chunks {_WITHOUT_VECTOR}
            union all select 'orphan_chunks', count(*) from chunks anti join documents using (document_id)
            union all select 'duplicate_chunk_ids', count(*) - count(distinct chunk_id) from chunks
            union all select 'duplicate_documents', count(*) - count(distinct document_id) from documents
            """
        )
        return Counts(**{name: int(number) for name, number in rows})

    def unpublished(self, facts: Mapping[str, str]) -> bool:
        """Tell whether a generation built now, with these facts, would differ from the newest publication."""
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
        if published_facts != canonical_json(self._facts(facts)):
            return True
        return self._has_changes()

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
        """Return the published generation."""
        return self._files.current()

    def build(self, run_id: str, facts: Mapping[str, str]) -> Candidate:
        """Build a generation that readers do not see yet."""
        generation = self._files.next()
        return self.build_file(self._files.build_path(generation), generation, run_id, facts)

    def build_file(self, file: Path, generation: GenerationId, run_id: str, facts: Mapping[str, str]) -> Candidate:
        """Build a file with what the working file holds, for a generation of this name."""
        publication = self._publication(generation, run_id)
        try:
            built = build_generation(
                self._connection, file, publication, self._settings, self._facts(facts), self._declared
            )
        except duckdb.Error as error:
            file.unlink(missing_ok=True)
            raise StoreError(
                f"{generation} could not be built from {self._file}, the published one stays: {explain(error)}"
            ) from error
        return built

    def publish(self, candidate: Candidate) -> Publication:
        """Point readers at the candidate, atomically, and remove generations beyond the limit."""
        before = self._files.current()
        self._lock.confirm()
        try:
            self._files.publish(candidate.generation)
        except OSError as error:
            raise StoreError(f"{candidate.generation} could not be published, the old one stays: {error}") from error
        # Killed between the pointer and this transaction, the next sync publishes the same content once more.
        self.record_publication(candidate)
        self._files.prune(self._settings.keep_generations)
        hand_over(self._lock, self._files, before, [self])
        return candidate.publication

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Close the working file for a while."""
        self._connection.close()
        try:
            yield
        finally:
            self._connection = open_working_file(self._file, self._dimensions)

    def record_publication(self, candidate: Candidate, file: str = "") -> None:
        """Record that a candidate is published, and in which file of a shard."""
        publication = candidate.publication
        with self._transaction() as connection:
            connection.execute("delete from published")
            connection.execute(f"insert into published {VERSIONS}")
            connection.execute("delete from meta where key in ('published_facts', 'published_file')")
            connection.execute("insert into meta values ('published_facts', ?)", [canonical_json(candidate.facts)])
            if file:
                connection.execute("insert into meta values ('published_file', ?)", [file])
            insert_publication(connection, "publications", publication)
            connection.execute(
                """
                delete from publications
                where created_at < (select created_at from publications order by created_at desc offset ? limit 1)
                """,
                [KEEP_PUBLICATIONS],
            )
            _age_vectors(connection, candidate.generation, self._settings.keep_generations)

    def discard(self, candidate: Candidate) -> None:
        """Remove a candidate that must not be published."""
        remove_candidate(self._files.build_path(candidate.generation))

    def _table(self, query: str, wanted: pa.Table | None = None) -> pa.Table:  # noqa: ARG002 - DuckDB reads it by name
        with self._reading() as connection:
            return connection.execute(query).to_arrow_table()

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self._reading() as connection:
            return connection.execute(statement).fetchall()


_EMBEDDED_TEXT = "if(context = '', content, context || chr(10) || content)"
_WITHOUT_VECTOR = "anti join embeddings using (embedding_key)"


def _roll_back(connection: Connection) -> None:
    try:
        connection.rollback()
    except duckdb.Error:
        logger.debug("nothing to roll back: DuckDB had ended the transaction itself")


def _delete(connection: Connection, table: str, identities: Sequence[DocumentId]) -> None:
    if identities:
        doomed = pa.table({"document_id": list(identities)})  # noqa: F841 - DuckDB reads it by name
        connection.execute(f"delete from {table} where document_id in (select document_id from doomed)")


def _touch(connection: Connection, touched: Sequence[tuple[DocumentId, str]]) -> None:
    if touched:
        seen = pa.table({"document_id": [one for one, _ in touched], "gate": [gate for _, gate in touched]})  # noqa: F841
        connection.execute(
            "update documents set gate = seen.gate from seen where documents.document_id = seen.document_id"
        )


def _insert(connection: Connection, table: str, rows: pa.Table) -> None:
    if rows.num_rows:
        connection.execute(f"insert into {table} by name select * from rows")


def _age_vectors(connection: Connection, generation: GenerationId, keep: int) -> None:
    """Forget vectors that no chunk has used for ``keep`` generations; until then an undone edit finds them again."""
    number = number_of(generation)
    connection.execute(
        "update embeddings set orphaned_in = null "
        "where orphaned_in is not null and embedding_key in (select embedding_key from chunks)"
    )
    connection.execute(
        "update embeddings set orphaned_in = ? "
        "where orphaned_in is null and embedding_key not in (select embedding_key from chunks)",
        [number],
    )
    connection.execute("delete from embeddings where orphaned_in <= ?", [number - keep])
