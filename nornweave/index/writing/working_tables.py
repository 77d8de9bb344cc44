"""The tables of a working file, as transactions: documents, chunks, vectors, failures and publications.

A working file is opened or created, and replaced if its version or its model differs.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nornweave.core.deletion import Deleted
from nornweave.core.errors import StoreError
from nornweave.core.files.paths import Within
from nornweave.core.files.writing import sync_path
from nornweave.core.types import HISTORY_GATE, DocumentId, GenerationId, canonical_json
from nornweave.index.connection import (
    Connection,
    attach,
    connect_memory,
    connect_writer,
    explain,
    quote,
    statement_file,
)
from nornweave.index.generations.kept import number_of
from nornweave.index.outcomes import Outcome
from nornweave.index.port import (
    Batch,
    Candidate,
    Counts,
    Failure,
    PendingText,
    Publication,
    Remains,
    Stored,
    Tally,
    Tokens,
    Vectors,
)
from nornweave.index.writing.build import Layout, chunk_rows, document_rows, not_stored_rows

# Publications are history for people; older ones than this are of no use to anybody.
KEEP_PUBLICATIONS = 200

VERSIONS = """
select
  document_id,
  source_id || '/' || path as name,
  content_hash || '/' || pipeline as version,
  document_id in (select document_id from not_stored) as stale
from documents
"""

# The changes of a publication made now, one row per document.
_CHANGES = f"""
select
  coalesce(now.name, was.name) as name,
  case when was.document_id is null then 'added' when now.document_id is null then 'removed' else 'changed' end as kind
from ({VERSIONS}) now
full join published was using (document_id)
where now.version is distinct from was.version or now.stale is distinct from was.stale
"""

_MANIFEST = """
select
  coalesce(d.document_id, f.document_id) as document_id,
  coalesce(d.source_id, f.source_id) as source_id,
  coalesce(d.path, f.path) as path,
  coalesce(f.gate, d.gate) as gate,
  d.content_hash,
  coalesce(f.pipeline, d.pipeline) as pipeline,
  coalesce(f.outcome, 'stored') as outcome,
  coalesce(f.reason, '') as reason,
  f.content_hash as failed_hash
from documents d
full join not_stored f using (document_id)
"""

# Leave unchanged rows alone: a rewritten table would be copied to other machines completely.
_NOTE_PUBLISHED = (
    f"""
    delete from published p where not exists (
      select 1 from ({VERSIONS}) now
      where now.document_id = p.document_id and now.version = p.version and now.stale = p.stale
    )
    """,
    f"""
    insert into published (document_id, name, version, stale)
    select document_id, name, version, stale
    from ({VERSIONS}) now
    where not exists (select 1 from published p where p.document_id = now.document_id)
    """,
)

EMBEDDED_TEXT = "case when context = '' then content else context || chr(10) || content end"
# Every text that is encoded.
_TEXTS = f"""(
select embedding_key, {EMBEDDED_TEXT} as "text", token_count + floor(length(context) / 4.0) as size from chunks
union all
select embedding_key, "text", floor(length("text") / 4.0) as size from
  (select unnest(settings, recursive := true) from chunks)
)"""

# Events of removals are not remains: they stay.
_REMAINS = f"""
select 'working rows', (select count(*) from documents where document_id = ?)
  + (select count(*) from chunks where document_id = ?) + (select count(*) from not_stored where document_id = ?)
union all
select 'vectors that no text uses', count(*)
from embeddings where embedding_key not in (select embedding_key from {_TEXTS} t)
union all
select 'events of publications', count(*) from publications where ? = any(added) or ? = any(changed)
"""

_WITHOUT_VECTOR = f"""
{_TEXTS} c left join embeddings e on e.embedding_key = c.embedding_key where e.embedding_key is null
"""

# One row per number: as eleven columns of one row DuckDB 1.5.5 plans their join for a tenth of a second.
_COUNTS = f"""
select 'documents', count(*) from documents
union all select 'failed', count(*) from not_stored where outcome <> 'skipped'
union all select 'stale', count(*) from not_stored join documents using (document_id)
union all select 'skipped', count(*) from not_stored where outcome = 'skipped'
union all select 'chunks', count(*) from chunks
union all select 'tokens', coalesce(sum(token_count), 0) from chunks
union all select 'texts', count(distinct embedding_key) from {_TEXTS} t
union all select 'missing_vectors', count(distinct c.embedding_key) from {_WITHOUT_VECTOR}
union all select 'orphan_chunks', count(*)
  from chunks c left join documents d on d.document_id = c.document_id where d.document_id is null
union all select 'duplicate_chunk_ids', count(*) - count(distinct chunk_id) from chunks
union all select 'duplicate_documents', count(*) - count(distinct document_id) from documents
"""

logger = logging.getLogger(__name__)

# Changes when the tables do; a working file of a schema that no migration leads from is rebuilt from the sources.
SCHEMA = "10"
# Schema → what makes it the next one. Vectors are worth keeping: encoding is nine tenths of a first sync.
# From schema 7 on, which is that of November 23rd, 2026.
MIGRATIONS = {
    "7": ("8", "alter table embeddings add column tokens blob"),
    # No document has a segment yet: the next sync writes all of them.
    "8": ("9", "alter table published add column segment varchar"),
    "9": (
        "10",
        'alter table chunks add column settings struct(position usmallint, "text" varchar, embedding_key varchar)[]',
    ),
}


class WorkingTables(ABC):
    """The part of a writer that reads."""

    def __init__(self, file: Path, layout: Layout) -> None:
        self._file = file
        self._layout = layout

    @property
    @abstractmethod
    def _connection(self) -> Connection:
        """The open working file."""

    @abstractmethod
    def _overwrite(self) -> None:
        """Rewrite the tables without deleted rows."""

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except duckdb.Error as error:
            raise StoreError(f"{self._file}: cannot be read: {explain(error)}") from error

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Open a transaction: all statements take effect, or none."""
        connection = self._connection
        connection.begin()
        try:
            yield connection
            connection.commit()
        except BaseException as error:
            with suppress(duckdb.Error):  # DuckDB may have ended it itself
                connection.rollback()
            if isinstance(error, duckdb.Error):
                raise StoreError(f"{self._file}: nothing of this step was stored: {explain(error)}") from error
            raise

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return the outcomes of documents that were not stored. Failures are first."""
        rows = self._rows(
            """
            select source_id, path, gate, outcome, reason, strftime(looked_at, '%Y-%m-%dT%H:%M:%SZ')
            from not_stored
            order by outcome = 'skipped', source_id, path
            """
        )
        return tuple(Outcome(*row) for row in rows)

    def remains(self, deleted: Deleted) -> Mapping[Remains, int]:
        counts = self._rows(_REMAINS, [*[deleted.document_id] * 3, deleted.name, deleted.name])
        WorkingTables._rows(self, "checkpoint")
        left = deleted_rows(self._rows)
        return {**{Remains(kind): int(count) for kind, count in counts}, Remains.DELETED: left}

    def erase(self, deleted: Deleted) -> None:
        with self._transaction() as connection:
            connection.execute(
                f"delete from embeddings where embedding_key not in (select embedding_key from {_TEXTS} t)"
            )
            for names in ("added", "changed"):
                rest = f"list_filter({names}, lambda name: name <> ?)"
                connection.execute(
                    f"update publications set {names} = {rest} where ? = any({names})", [deleted.name, deleted.name]
                )
        self._overwrite()

    def pending_count(self, *, of_chunks: bool = False) -> int:
        texts = "chunks" if of_chunks else _TEXTS
        return self._integer(
            f"select count(distinct embedding_key) from {texts} t anti join embeddings using (embedding_key)"
        )

    def pending_texts(self, window: int) -> Iterator[tuple[PendingText, ...]]:
        rows = self._rows(
            f"""
            select c.embedding_key, max(size) as size
            from {_WITHOUT_VECTOR}
            group by c.embedding_key
            order by size desc, c.embedding_key
            """
        )
        keys = [key for key, _ in rows]
        for start in range(0, len(keys), window):
            texts = self._rows(
                f"""
                select embedding_key, any_value("text")
                from {_TEXTS} t semi join (select unnest(?) as embedding_key) wanted using (embedding_key)
                group by embedding_key
                """,
                [keys[start : start + window]],
            )
            yield tuple(PendingText(key, text) for key, text in texts)

    def counts(self) -> Counts:
        return Counts(**{name: int(number) for name, number in self._rows(_COUNTS)})

    def size(self) -> tuple[int, int]:
        ((documents, chunks),) = self._rows("select (select count(*) from documents), (select count(*) from chunks)")
        return int(documents), int(chunks)

    def manifest(self, within: Mapping[str, Within | None] | None = None) -> Mapping[tuple[str, str], Stored]:
        if within is None:
            rows = self._rows(f"select * from ({_MANIFEST}) known")
        else:
            rows = [row for source_id, paths in within.items() for row in self._known_of(source_id, paths)]
        known = [Stored(**dict(zip(Stored.__slots__, row, strict=True))) for row in rows]
        return {(stored.source_id, stored.path): stored for stored in known}

    def _known_of(self, source_id: str, within: Within | None) -> list[tuple[Any, ...]]:
        paths = sorted(within.paths) if within else [""]
        return self._rows(
            f"""
            select * from ({_MANIFEST}) known where source_id = ? and exists (
              select 1 from (select unnest(?::text[]) as path) told
              where told.path in ('', known.path) or starts_with(known.path, told.path || '/')
            )
            """,
            [source_id, paths],
        )

    def tally(self) -> tuple[Tally, ...]:
        statement = f"""
            select source_id, pipeline, count(*), count(content_hash), count(*) filter (starts_with(gate, ?))
            from ({_MANIFEST}) known
            group by 1, 2
        """
        return tuple(Tally(*row) for row in self._rows(statement, [HISTORY_GATE]))

    def failures(self) -> tuple[Failure, ...]:
        return self._not_stored("outcome <> 'skipped'")

    def skips(self) -> tuple[Failure, ...]:
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

    def _has_changes(self) -> bool:
        """Tell whether the tables differ from the last publication."""
        return self._integer(f"select count(*) from ({_CHANGES}) changes") > 0

    def _publication(self, generation: GenerationId, run_id: str) -> Publication:
        rows = self._rows(f"{_CHANGES} order by name")
        names = {kind: tuple(name for name, of in rows if of == kind) for kind in ("added", "changed", "removed")}
        return Publication(generation=generation, run_id=run_id, created_at=datetime.now(UTC), **names)

    def _record(self, connection: Connection, candidate: Candidate) -> None:
        """Record a publication within a transaction. The caller writes its event.

        Vectors that no chunk uses are kept for ``keep_generations`` more publications, so that an undone edit finds its
        vectors again.
        """
        for statement in _NOTE_PUBLISHED:
            connection.execute(statement)
        connection.execute("delete from meta where key = 'published_facts'")
        facts = canonical_json(candidate.facts)
        connection.execute("insert into meta values ('published_facts', ?)", [facts])
        connection.execute(
            """
            delete from publications where created_at <
              (select created_at from publications order by created_at desc offset ? limit 1)
            """,
            [KEEP_PUBLICATIONS],
        )
        number = number_of(candidate.generation)
        used = f"e.embedding_key in (select embedding_key from {_TEXTS} t)"
        connection.execute(f"update embeddings e set orphaned_in = null where orphaned_in is not null and {used}")
        connection.execute(
            f"update embeddings e set orphaned_in = ? where orphaned_in is null and not {used}", [number]
        )
        last = number - self._layout.settings.keep_generations
        connection.execute("delete from embeddings where orphaned_in <= ?", [last])

    def _drop_unwanted_tokens(self) -> None:
        """Delete vectors without token vectors if token vectors are configured. Otherwise delete all token vectors."""
        wanted = bool(self._layout.token_vectors)
        unwanted = f"from embeddings where tokens is {'' if wanted else 'not '}null"
        if self._integer(f"select count(*) from (select 1 {unwanted} limit 1) one"):
            with self._transaction() as connection:
                connection.execute(
                    f"delete {unwanted}" if wanted else "update embeddings set tokens = null where tokens is not null"
                )

    def _check_shape(self, keys: Sequence[str], vectors: Vectors) -> None:
        if vectors.shape != (expected := (len(keys), self._layout.dimensions)):
            raise StoreError(f"expected vectors of shape {expected}, found {vectors.shape}")

    def _facts(self, facts: Mapping[str, str]) -> dict[str, str]:
        return {**facts, **self._layout.facts()}

    def _integer(self, statement: str) -> int:
        return sum(int(number) for (number,) in self._rows(statement))


class DuckDBTables(WorkingTables):
    """The part of a writer that stores documents and vectors."""

    def apply(self, batch: Batch) -> None:
        stored_ids = [one.document.id for one in batch.stored]
        looked_at = [*stored_ids, *batch.removed, *(identity for identity, _ in batch.touched)]
        with self._transaction() as connection:
            for table in ("chunks", "documents"):
                _delete(connection, table, [*stored_ids, *batch.removed])
            _delete(connection, "not_stored", [*looked_at, *(one.document_id for one in batch.not_stored)])
            _write_again(connection, stored_ids)
            _insert(connection, "documents", document_rows(batch.stored))
            _insert(connection, "chunks", chunk_rows(batch.stored))
            _insert(connection, "not_stored", not_stored_rows(batch.not_stored))
            _touch(connection, batch.touched)

    def adopt(self, pipelines: Collection[str], key_of: Callable[[str], str]) -> None:
        rows = self._rows(
            f"""
            select chunk_id, embedding_key, {EMBEDDED_TEXT}
            from chunks semi join (select document_id from documents where pipeline not in (select unnest(?)))
            using (document_id)
            """,
            [list(pipelines)],
        )
        keys = [(chunk_id, key) for chunk_id, before, text in rows if (key := key_of(text)) != before]
        self._drop_unwanted_tokens()
        if keys:
            renamed = pa.table({"chunk_id": [one for one, _ in keys], "embedding_key": [key for _, key in keys]})
            with self._transaction() as connection:
                connection.execute(
                    "update chunks set embedding_key = renamed.embedding_key, settings = null from renamed "
                    "where chunks.chunk_id = renamed.chunk_id"
                )
            del renamed

    def add_vectors(self, keys: Sequence[str], vectors: Vectors, tokens: Tokens = None) -> None:
        self._check_shape(keys, vectors)
        flat = pa.array(vectors.reshape(-1), type=pa.float32())
        table = pa.table(
            {
                "embedding_key": pa.array(keys, type=pa.string()),
                "vector": pa.FixedSizeListArray.from_arrays(flat, self._layout.dimensions),
                "tokens": pa.array(tokens, type=pa.binary()) if tokens else pa.nulls(len(keys), pa.binary()),
            }
        )
        with self._transaction() as connection:
            _insert(connection, "embeddings", table)


def _delete(connection: Connection, table: str, identities: Sequence[DocumentId]) -> None:
    if identities:
        doomed = pa.table({"document_id": list(identities)})  # noqa: F841 - DuckDB reads it by name
        connection.execute(f"delete from {table} where document_id in (select document_id from doomed)")


def _write_again(connection: Connection, identities: Sequence[DocumentId]) -> None:
    """Mark documents to be written by the next build, even if their text is unchanged."""
    if identities:
        stored = pa.table({"document_id": list(identities)})  # noqa: F841 - DuckDB reads it by name
        connection.execute(
            "update published set segment = null "
            "where segment is not null and document_id in (select document_id from stored)"
        )


def _touch(connection: Connection, touched: Sequence[tuple[DocumentId, str]]) -> None:
    if touched:
        seen = pa.table({"document_id": [one for one, _ in touched], "gate": [gate for _, gate in touched]})  # noqa: F841
        connection.execute(
            "update documents set gate = seen.gate from seen where documents.document_id = seen.document_id"
        )


def _insert(connection: Connection, table: str, rows: pa.Table) -> None:
    if rows.num_rows:
        connection.execute(f"insert into {table} by name select * from rows")


def open_working_file(file: Path, dimensions: int) -> Connection:
    """Open a domain's working file for writing.

    Args:
        file: the path. The file is created if it is missing, and replaced if it has another schema.
        dimensions: the dimensions of the vectors. Stored vectors of other dimensions are deleted.

    Raises:
        StoreError: the file is damaged. The message says what to do.
    """
    connection = connect_writer(file)
    try:
        found = read_meta(connection)
        found = _migrate(connection, found)
        if found and found.get("schema") != SCHEMA:
            logger.warning("%s has schema %s, this version needs %s: rebuilding it from the sources", file,
                           found.get("schema"), SCHEMA)  # fmt: skip
            connection.close()
            file.unlink()
            connection, found = connect_writer(file), {}
        if not found:
            _create(connection, dimensions)
        elif int(found["dimensions"]) != dimensions:
            _replace_embeddings(connection, dimensions)
    except duckdb.Error as error:
        connection.close()
        raise StoreError(
            f"{file}: is damaged ({error}); remove it: the next sync rebuilds it from the sources"
        ) from error
    return connection


def read_meta(connection: Connection) -> dict[str, str]:
    """Return the metadata of the file; empty if it is new."""
    exists = connection.execute("select 1 from duckdb_tables() where table_name = 'meta'").fetchone()
    return dict(connection.execute("select key, value from meta").fetchall()) if exists else {}


def _migrate(connection: Connection, meta: dict[str, str]) -> dict[str, str]:
    """Update an older working file step by step, as far as there are steps. Return its metadata."""
    while step := MIGRATIONS.get(meta.get("schema", "")):
        schema, statement = step
        connection.begin()
        connection.execute(statement)
        connection.execute("update meta set value = ? where key = 'schema'", [schema])
        connection.commit()
        meta = {**meta, "schema": schema}
    return meta


def _create(connection: Connection, dimensions: int) -> None:
    connection.begin()
    connection.execute(statement_file("working"))
    connection.execute("insert into meta values ('schema', ?)", [SCHEMA])
    connection.commit()
    _replace_embeddings(connection, dimensions)


def _replace_embeddings(connection: Connection, dimensions: int) -> None:
    """Replace the table of vectors. Vectors of another model are useless and differ in size."""
    connection.begin()
    connection.execute(
        f"create or replace table embeddings "
        f"(embedding_key varchar, vector float[{dimensions:d}], orphaned_in integer, tokens blob)"
    )
    connection.execute("delete from meta where key = 'dimensions'")
    connection.execute("insert into meta values ('dimensions', ?)", [str(dimensions)])
    connection.commit()


# DuckDB 1.5.5 marks deleted rows in their row group and keeps the group; blocks that it frees keep their bytes, too.
TABLES = {
    "documents": "document_id", "chunks": "chunk_id", "embeddings": "embedding_key", "not_stored": "document_id",
    "published": "document_id", "publications": "generation",
}  # fmt: skip


def deleted_rows(rows: Callable[[str], list[tuple[Any, ...]]]) -> int:
    """Return the number of deleted rows that are still stored, plus the number of free blocks.

    All changes must be checkpointed before. ``rows`` executes a query and returns its rows.
    """
    free = rows("select free_blocks from pragma_database_size() where database_name = current_database()")
    deleted = 0
    for table, column in TABLES.items():
        stored = rows(
            f"""
            select coalesce(sum(count), 0)
            from pragma_storage_info('{table}')
            where column_name = '{column}' and segment_type not in ('VALIDITY')
            """
        )
        deleted += int(stored[0][0]) - int(rows(f"select count(*) from {table}")[0][0])
    return deleted + sum(int(count) for (count,) in free)


def overwrite(file: Path) -> None:
    """Rewrite a closed working file without the bytes of deleted rows.

    Raises:
        StoreError: the file is damaged, or the disk is full. The file is unchanged.
    """
    fresh = file.with_name(f".{file.name}.overwrite")
    try:
        for left in (fresh, fresh.with_name(f"{fresh.name}.wal")):
            left.unlink(missing_ok=True)
        with connect_memory(spill=file.parent / "spill") as connection:
            connection.execute(f"attach {quote(str(file))} as before")
            attach(connection, fresh, "after")
            connection.execute("copy from database before to after")
            connection.execute("checkpoint after")
        sync_path(fresh)
        fresh.replace(file)
        sync_path(file.parent)
    except (duckdb.Error, OSError) as error:
        fresh.unlink(missing_ok=True)
        reason = explain(error) if isinstance(error, duckdb.Error) else error
        raise StoreError(f"{file}: cannot be written anew: {reason}") from error
