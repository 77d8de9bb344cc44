"""The working file of one domain: documents, chunks, vectors and failures, as transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import pyarrow as pa

from nornweave.errors import StoreError
from nornweave.settings import StorageSettings
from nornweave.store.build import build_facts, build_generation, insert_publication
from nornweave.store.checksums import check
from nornweave.store.connection import Connection, explain
from nornweave.store.declared import NO_DECLARED_FILTERS, DeclaredFilters
from nornweave.store.generation import facts_of
from nornweave.store.lock import WriterLock
from nornweave.store.outcomes import Outcome, write_outcomes
from nornweave.store.port import (
    Batch,
    Candidate,
    Counts,
    PendingText,
    Publication,
    Stored,
    Vectors,
)
from nornweave.store.publish import GenerationFiles, number_of
from nornweave.store.rows import chunk_rows, document_rows, not_stored_rows
from nornweave.store.working_file import open_working_file, read_meta
from nornweave.types import DocumentId, Failure, GenerationId, canonical_json

logger = logging.getLogger(__name__)

# Publications are history for people; older ones than this are of no use to anybody.
KEEP_PUBLICATIONS = 200


class DuckDBStore:
    """One domain's storage in one folder; implements ``port.Store``."""

    def __init__(
        self,
        folder: Path,
        settings: StorageSettings,
        *,
        dimensions: int,
        declared: DeclaredFilters = NO_DECLARED_FILTERS,
    ) -> None:
        self.folder = folder
        self.files = GenerationFiles(folder / "generations")
        self._settings = settings
        self._dimensions = dimensions
        self._declared = declared

    def writer(self, *, wait_s: float = 0, purpose: str = "sync") -> DuckDBWriter:
        """Return the domain's writer; entering it takes the lock."""
        lock = WriterLock(self.folder / "writer.lock", purpose=purpose, wait_s=wait_s)
        return DuckDBWriter(
            self.folder / "working.duckdb", self.files, lock, self._settings, self._dimensions, self._declared
        )

    def current(self) -> GenerationId | None:
        """Return the published generation, or ``None``."""
        return self.files.current()

    def generations(self) -> tuple[GenerationId, ...]:
        """Return the generations that can be served, oldest first."""
        return self.files.all()

    def published_facts(self) -> Mapping[str, str]:
        """Return the versions that the published generation was built with; empty if none can be read."""
        try:
            current = self.current()
            return {} if current is None else facts_of(self.files.path(current))
        except StoreError as error:
            logger.warning("%s: how it was made cannot be told: %s", self.folder, error)
            return {}

    def rollback(self, generation: GenerationId | None = None) -> GenerationId:
        """Publish an older generation: the one before the current, unless named."""
        with WriterLock(self.folder / "writer.lock", purpose="rollback"):
            target = generation or self.files.previous()
            self.files.point_at(target)
        return target


class DuckDBWriter:
    """The one writer of a working file; implements ``port.Writer``."""

    def __init__(
        self,
        file: Path,
        files: GenerationFiles,
        lock: WriterLock,
        settings: StorageSettings,
        dimensions: int,
        declared: DeclaredFilters,
    ) -> None:
        self._file = file
        self._files = files
        self._lock = lock
        self._settings = settings
        self._dimensions = dimensions
        self._declared = declared
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._lock)
            self._files.folder.mkdir(parents=True, exist_ok=True)
            self._files.clear_builds()
            self._connection = open_working_file(self._file, self._dimensions)
            stack.callback(self._close)
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def _close(self) -> None:
        try:
            write_outcomes(self._file.parent, self._outcomes())
        except StoreError as error:
            logger.warning("%s", error)
        finally:
            self._connection.close()

    def _outcomes(self) -> tuple[Outcome, ...]:
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

    def manifest(self) -> Mapping[tuple[str, str], Stored]:
        """Return the manifest: what is known of every document, by source id and path."""
        rows = self._rows(
            """
            select
              coalesce(d.document_id, f.document_id),
              coalesce(d.source_id, f.source_id),
              coalesce(d.path, f.path),
              coalesce(f.gate, d.gate),
              d.content_hash,
              coalesce(f.pipeline, d.pipeline),
              coalesce(f.outcome, 'stored'),
              coalesce(f.reason, ''),
              f.content_hash
            from documents d
            full join not_stored f using (document_id)
            """
        )
        return {
            (source_id, path): Stored(
                document_id=DocumentId(identity),
                source_id=source_id,
                path=path,
                gate=gate,
                content_hash=content_hash,
                pipeline=pipeline,
                outcome=outcome,
                reason=reason,
                failed_hash=failed_hash,
            )
            for identity, source_id, path, gate, content_hash, pipeline, outcome, reason, failed_hash in rows
        }

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

    def failures(self) -> tuple[Failure, ...]:
        """Return what failed, by source and path."""
        return self._not_stored("outcome <> 'skipped'")

    def skips(self) -> tuple[Failure, ...]:
        """Return the documents that were read and then skipped on purpose, by source and path."""
        return self._not_stored("outcome = 'skipped'")

    def _not_stored(self, condition: str) -> tuple[Failure, ...]:
        rows = self._rows(
            f"""
            select path, reason, source_id, document_id in (select document_id from documents)
            from not_stored
            where {condition}
            order by source_id, path
            """
        )
        return tuple(Failure(path, reason, source_id, stale) for path, reason, source_id, stale in rows)

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
        with self._reading() as connection:
            published_facts = read_meta(connection).get("published_facts")
        if not self._is_published_sound() or published_facts != canonical_json(self._facts(facts)):
            return True
        return self._integer(f"select count(*) from ({_CHANGES})") > 0

    def _is_published_sound(self) -> bool:
        """Tell whether there is a published generation, complete as it was published."""
        current = self._files.current()
        if current is None or not self._files.path(current).is_file():
            return False
        try:
            check(self._files.path(current))
        except StoreError as error:
            logger.warning("%s; it is built again", error)
            return False
        return True

    def _facts(self, facts: Mapping[str, str]) -> dict[str, str]:
        return {**facts, **build_facts(self._settings, self._dimensions, self._declared)}

    def current(self) -> GenerationId | None:
        """Return the published generation."""
        return self._files.current()

    def build(self, run_id: str, facts: Mapping[str, str]) -> Candidate:
        """Build a generation that readers do not see yet."""
        generation = self._files.next()
        publication = self._publication(generation, run_id)
        file = self._files.build_path(generation)
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
        publication = candidate.publication
        try:
            self._files.publish(candidate.generation)
        except OSError as error:
            raise StoreError(f"{candidate.generation} could not be published, the old one stays: {error}") from error
        # Killed between the pointer and this transaction, the next sync publishes the same content once more.
        with self._transaction() as connection:
            connection.execute("delete from published")
            connection.execute(f"insert into published {_VERSIONS}")
            connection.execute("delete from meta where key = 'published_facts'")
            connection.execute("insert into meta values ('published_facts', ?)", [canonical_json(candidate.facts)])
            insert_publication(connection, "publications", publication)
            connection.execute(
                """
                delete from publications
                where created_at < (select created_at from publications order by created_at desc offset ? limit 1)
                """,
                [KEEP_PUBLICATIONS],
            )
            _age_vectors(connection, candidate.generation, self._settings.keep_generations)
        self._files.prune(self._settings.keep_generations)
        return publication

    def discard(self, candidate: Candidate) -> None:
        """Remove a candidate that must not be published."""
        self._files.build_path(candidate.generation).unlink(missing_ok=True)

    def _publication(self, generation: GenerationId, run_id: str) -> Publication:
        changes: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
        for name, kind in self._rows(f"{_CHANGES} order by name"):
            changes[kind].append(name)
        return Publication(
            generation=generation,
            run_id=run_id,
            created_at=datetime.now(UTC),
            added=tuple(changes["added"]),
            changed=tuple(changes["changed"]),
            removed=tuple(changes["removed"]),
        )

    def _integer(self, query: str) -> int:
        return sum(int(number) for (number,) in self._rows(query))

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._reading() as connection:
            return connection.execute(query).fetchall()


_EMBEDDED_TEXT = "if(context = '', content, context || chr(10) || content)"
_WITHOUT_VECTOR = "anti join embeddings using (embedding_key)"

_VERSIONS = """
select
  document_id,
  source_id || '/' || path as name,
  content_hash || '/' || pipeline as version,
  document_id in (select document_id from not_stored) as stale
from documents
"""

# What a publication now would change, one row a document.
_CHANGES = f"""
select
  coalesce(now.name, was.name) as name,
  case when was.document_id is null then 'added' when now.document_id is null then 'removed' else 'changed' end as kind
from ({_VERSIONS}) now
full join published was using (document_id)
where now.version is distinct from was.version or now.stale is distinct from was.stale
"""


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
