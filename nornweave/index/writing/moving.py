"""Working tables for several machines: the documents' table travels first, the working file only when needed.

A sync compares what its sources list with what is known of each document, and mostly finds nothing to do. That needs
neither chunks nor vectors nor texts, which are nearly all of a working file: where it lies on another machine, a writer
opens ``documents.duckdb`` in its place, and fetches the working file once it asks for what that does not have.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import duckdb

from nornweave.core.errors import StoreError
from nornweave.core.files.lock import Lock
from nornweave.index.connection import Connection, attach, connect_reader
from nornweave.index.port import Counts
from nornweave.index.writing.build import Layout
from nornweave.index.writing.working_tables import SCHEMA, DuckDBTables, open_working_file

log = logging.getLogger(__name__)

WORKING_FILE = "working.duckdb"
DOCUMENTS_FILE = "documents.duckdb"
# A table or a column that is left out here makes a question an error, never a wrong answer.
_TABLES = """
create table short.meta as select * from meta;
create table short.documents as select document_id, source_id, path, gate, content_hash, pipeline from documents;
create table short.not_stored as select * from not_stored;
create table short.published as select * from published;
create table short.publications as select generation from publications;
"""
_COUNTED = "counts"
_WITH_TOKENS, _WITHOUT_TOKENS = "vectors_with_tokens", "vectors_without_tokens"


class MovingTables(DuckDBTables):
    """The part of a writer that opens the working file, or only the table of documents if that is enough."""

    def __init__(self, file: Path, lock: Lock, layout: Layout) -> None:
        super().__init__(file, layout)
        self._lock = lock
        self._working: Connection | None = None
        self._documents: Connection | None = None
        """What is asked while the working file lies elsewhere."""
        self._resources = ExitStack()

    def _begin(self) -> None:
        if self._lock.shares_files and not self._file.exists():
            connection, meta = self._resources.enter_context(_reading(self._documents_file))
            known = (SCHEMA, str(self._layout.dimensions))
            is_usable = _COUNTED in meta and (meta.get("schema"), meta.get("dimensions")) == known
            self._documents = connection if is_usable else None
        if self._documents is None:
            self._bring()

    def _bring(self) -> None:
        self._lock.bring(self._file)
        self._open()
        self._documents = None

    def _open(self) -> None:
        if self._file.with_name(f"{self._file.name}.wal").exists():
            self._documents_file.unlink(missing_ok=True)  # a killed writer's changes are not in it
        self._working = open_working_file(self._file, self._layout.dimensions)

    def _end(self) -> None:
        with self._resources:
            self._write_documents()
            if self._working is not None:
                self._working.close()

    @contextmanager
    def _closed(self) -> Iterator[None]:
        """Close the working file for the duration of a block."""
        self._write_documents()
        self._connection.close()
        try:
            yield
        finally:
            self._open()

    @property
    def _connection(self) -> Connection:
        if self._working is None:
            self._bring()
        assert self._working
        return self._working

    @property
    def _documents_file(self) -> Path:
        return self._file.with_name(DOCUMENTS_FILE)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with super()._transaction() as connection:
            self._documents_file.unlink(missing_ok=True)  # it is outdated now
            yield connection

    def _write_documents(self) -> None:
        """Write the file of the documents' table for the next machine, if it is missing. A failure is only logged."""
        if self._working is None or not self._lock.shares_files or self._documents_file.exists():
            return
        try:
            ((vectors, with_tokens),) = self._rows("select count(*), count(tokens) from embeddings")
            counted = {**asdict(self.counts()), _WITH_TOKENS: with_tokens, _WITHOUT_TOKENS: vectors - with_tokens}
            _write(self._working, self._documents_file, counted)
        except (StoreError, duckdb.Error, OSError) as error:
            log.warning("%s: the next machine fetches the whole working file: %s", self._documents_file, error)

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if self._documents is not None:
            # It has no such table or column, or is damaged; another error is the statement's.
            with suppress(duckdb.CatalogException, duckdb.BinderException, duckdb.IOException):
                return self._documents.execute(statement, values).fetchall()
        return super()._rows(statement, values)

    def _stored_counts(self) -> dict[str, int]:
        """Return the counts of a working file that is on another machine."""
        return dict(json.loads(dict(self._rows("select key, value from meta"))[_COUNTED]))

    def counts(self) -> Counts:
        """Count everything that reconciliation compares."""
        if self._documents is None:
            return super().counts()
        counted = self._stored_counts()
        return Counts(**{each.name: counted[each.name] for each in fields(Counts)})

    def size(self) -> tuple[int, int]:
        """Count the stored documents and their chunks."""
        if self._documents is None:
            return super().size()
        counts = self.counts()
        return counts.documents, counts.chunks

    def pending_count(self, *, of_chunks: bool = False) -> int:
        """Count the distinct texts without a vector. With ``of_chunks``, count only texts of chunks."""
        is_asked = self._documents is None or self.counts().missing_vectors
        return super().pending_count(of_chunks=of_chunks) if is_asked else 0

    def adopt(self, pipelines: Collection[str], key_of: Callable[[str], str]) -> None:
        """Give the chunks that were made with another pipeline new vector keys from ``key_of``."""
        others = "select count(*) from documents where pipeline not in (select unnest(?))"
        unwanted = _WITHOUT_TOKENS if self._layout.token_vectors else _WITH_TOKENS
        if (
            self._documents is None
            or self._stored_counts()[unwanted]
            or self._rows(others, [list(pipelines)]) != [(0,)]
        ):
            super().adopt(pipelines, key_of)


def _write(connection: Connection, file: Path, counted: Mapping[str, int]) -> None:
    fresh = file.with_name(f".{file.name}.fresh")
    fresh.unlink(missing_ok=True)
    attach(connection, fresh, "short", is_small=True)
    try:
        connection.execute(_TABLES)
        connection.execute("insert into short.meta values (?, ?)", [_COUNTED, json.dumps(counted)])
        connection.execute("checkpoint short")
    finally:
        connection.execute("detach short")
    fresh.replace(file)


def facts_ahead(folder: Path, generation: str) -> Mapping[str, str] | None:
    """Return how ``generation`` was made, from the documents' table; ``None`` if the table is of another generation."""
    with _reading(folder / DOCUMENTS_FILE) as (_, meta):
        manifest = json.loads(meta.get("published_manifest", "{}"))
        if manifest.get("generation") != generation:
            return None
        return {**json.loads(meta["published_facts"]), "generation": generation, "built_at": manifest["built_at"]}


@contextmanager
def _reading(file: Path) -> Iterator[tuple[Connection | None, Mapping[str, str]]]:
    """Open a file. Yield its connection and metadata; ``None`` and empty metadata if it is missing or damaged."""
    with ExitStack() as stack:
        connection, meta = None, {}
        if file.is_file():
            try:
                connection = stack.enter_context(connect_reader(file))
                meta = dict(connection.execute("select key, value from meta").fetchall())
            except (StoreError, duckdb.Error) as error:
                log.warning("%s: cannot be read: %s", file, error)
        yield connection, meta
