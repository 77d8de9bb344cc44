"""The working file of one domain: documents, chunks, vectors and failures, as transactions."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from nornweave.errors import StoreError
from nornweave.settings import StorageSettings
from nornweave.store.build import build_facts, build_generation, insert_publication
from nornweave.store.connection import Connection
from nornweave.store.lock import WriterLock
from nornweave.store.port import (
    Batch,
    Candidate,
    Counts,
    PendingText,
    Publication,
    Stored,
    Vectors,
)
from nornweave.store.publish import GenerationFiles
from nornweave.store.rows import chunk_rows, document_rows, not_stored_rows
from nornweave.store.working_file import open_working_file, read_meta
from nornweave.types import DocumentId, Failure, GenerationId, canonical_json

logger = logging.getLogger(__name__)

# Publications are history for people; older ones than this are of no use to anybody.
KEEP_PUBLICATIONS = 200


class DuckDBStore:
    """One domain's storage in one folder; implements ``port.Store``."""

    def __init__(self, folder: Path, settings: StorageSettings, *, dimensions: int) -> None:
        self.folder = folder
        self.files = GenerationFiles(folder / "generations")
        self._settings = settings
        self._dimensions = dimensions

    def writer(self, *, wait_s: float = 0, purpose: str = "sync") -> DuckDBWriter:
        """Return the domain's writer; entering it takes the lock."""
        lock = WriterLock(self.folder / "writer.lock", purpose=purpose, wait_s=wait_s)
        return DuckDBWriter(self.folder / "working.duckdb", self.files, lock, self._settings, self._dimensions)

    def current(self) -> GenerationId | None:
        """Return the published generation, or ``None``."""
        return self.files.current()

    def generations(self) -> tuple[GenerationId, ...]:
        """Return the generations that can be served, oldest first."""
        return self.files.all()

    def rollback(self, generation: GenerationId | None = None) -> GenerationId:
        """Publish an older generation: the one before the current, unless named."""
        with WriterLock(self.folder / "writer.lock", purpose="rollback"):
            target = generation or self.files.previous()
            self.files.point_at(target)
        return target


class DuckDBWriter:
    """The one writer of a working file; implements ``port.Writer``."""

    def __init__(
        self, file: Path, files: GenerationFiles, lock: WriterLock, settings: StorageSettings, dimensions: int
    ) -> None:
        self._file = file
        self._files = files
        self._lock = lock
        self._settings = settings
        self._dimensions = dimensions
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
        self._connection.close()

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
                raise StoreError(f"{self._file}: nothing of this step was stored: {error}") from error
            raise

    def manifest(self) -> Mapping[tuple[str, str], Stored]:
        """Return what is known of every document, by source id and path."""
        rows = self._connection.execute(
            """
            select
              coalesce(d.document_id, f.document_id),
              coalesce(d.source_id, f.source_id),
              coalesce(d.path, f.path),
              coalesce(f.gate, d.gate),
              d.content_hash,
              coalesce(f.pipeline, d.pipeline),
              coalesce(f.outcome, 'stored')
            from documents d
            full join not_stored f using (document_id)
            """
        ).fetchall()
        return {
            (source_id, path): Stored(
                document_id=DocumentId(identity),
                source_id=source_id,
                path=path,
                gate=gate,
                content_hash=content_hash,
                pipeline=pipeline,
                outcome=outcome,
            )
            for identity, source_id, path, gate, content_hash, pipeline, outcome in rows
        }

    def apply(self, batch: Batch) -> None:
        """Store a batch in one transaction: new chunks come as the old ones go."""
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

    def pending_count(self) -> int:
        """Count the distinct texts without a vector."""
        return self._integer(f"select count(distinct embedding_key) from chunks {_WITHOUT_VECTOR}")

    def pending_texts(self, window: int) -> Iterator[tuple[PendingText, ...]]:
        """Yield the texts without a vector, longest first, in windows."""
        keys = self._connection.execute(
            f"""
            select embedding_key, max(token_count + length(context) // 4) as size
            from chunks {_WITHOUT_VECTOR}
            group by embedding_key
            order by size desc, embedding_key
            """
        ).fetchall()
        for start in range(0, len(keys), window):
            wanted = pa.table({"embedding_key": [key for key, _ in keys[start : start + window]]})
            rows = self._connection.execute(
                """
                select embedding_key, any_value(if(context = '', content, context || chr(10) || content))
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
        """Return what was left out on purpose after looking at it, by source and path."""
        return self._not_stored("outcome = 'skipped'")

    def _not_stored(self, condition: str) -> tuple[Failure, ...]:
        rows = self._connection.execute(
            f"""
            select path, reason, source_id, document_id in (select document_id from documents)
            from not_stored
            where {condition}
            order by source_id, path
            """
        ).fetchall()
        return tuple(Failure(path, reason, source_id, stale) for path, reason, source_id, stale in rows)

    def counts(self) -> Counts:
        """Count everything that reconciliation compares."""
        row = self._connection.execute(
            f"""
            select
              (select count(*) from documents),
              (select count(*) from not_stored where outcome <> 'skipped'),
              (select count(*) from not_stored semi join documents using (document_id)),
              (select count(*) from not_stored where outcome = 'skipped'),
              (select count(*) from chunks),
              (select coalesce(sum(token_count), 0) from chunks),
              (select count(distinct embedding_key) from chunks),
              (select count(distinct embedding_key) from chunks {_WITHOUT_VECTOR}),
              (select count(*) from chunks anti join documents using (document_id)),
              (select count(*) - count(distinct chunk_id) from chunks),
              (select count(*) - count(distinct document_id) from documents)
            """
        ).fetchone()
        assert row is not None, "an aggregate without group by always answers"
        names = [field.name for field in dataclasses.fields(Counts)]  # the query's columns are in their order
        return Counts(**dict(zip(names, map(int, row), strict=True)))

    def unpublished(self, facts: Mapping[str, str]) -> bool:
        """Tell whether a generation built now, with these facts, would differ from the newest publication."""
        if self._files.current() is None or read_meta(self._connection).get("published_facts") != canonical_json(
            self._facts(facts)
        ):
            return True
        return self._integer(f"select count(*) from ({_CHANGES})") > 0

    def _facts(self, facts: Mapping[str, str]) -> dict[str, str]:
        return {**facts, **build_facts(self._settings, self._dimensions)}

    def current(self) -> GenerationId | None:
        """Return the published generation."""
        return self._files.current()

    def build(self, run_id: str, facts: Mapping[str, str]) -> Candidate:
        """Build a generation aside; readers see nothing of it."""
        generation = self._files.next()
        publication = self._publication(generation, run_id)
        file = self._files.build_path(generation)
        try:
            built = build_generation(self._connection, file, publication, self._settings, self._facts(facts))
        except duckdb.Error as error:
            file.unlink(missing_ok=True)
            raise StoreError(f"{generation} could not be built, the published one stays: {error}") from error
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
        for name, kind in self._connection.execute(f"{_CHANGES} order by name").fetchall():
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
        row = self._connection.execute(query).fetchone()
        return int(row[0]) if row else 0


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
    number = int(generation.removeprefix("gen-"))
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
