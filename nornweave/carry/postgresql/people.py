"""Documents and chunks of the published generation as SQL tables with row-level security.

They are written where the roles of ``nornweave roles`` are there. Rows have the segment that they are in: a publication
writes those of its new segments, and removes those that are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Literal

import duckdb

from nornweave.carry.postgresql.server import Connection
from nornweave.core.access import decode_rule, decode_source_rules, encode_rule, rule_of
from nornweave.core.errors import StoreError
from nornweave.index.connection import Connection as FileConnection
from nornweave.index.connection import connect_reader
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.searching.generation_file import DataFile

_BATCH_ROWS = 2_000
# PostgreSQL stores no NUL in a text; another character in its place keeps every position.
_NO_NUL = str.maketrans("\0", "\N{REPLACEMENT CHARACTER}")
_ARE_THERE = """
select from pg_roles where rolname = 'nornweave_people' and has_table_privilege(oid, 'documents'::regclass, 'select')
"""
_DOCUMENT = """
select document_no, document_id, source_id, path, gate, content_hash, format, title, updated_at, revision, url,
  metadata, "text", access, stale
from documents
where document_no in (select unnest({}::integer[]))
"""
_CHUNK = """
select chunk_no, document_no, chunk_id, position, char_start, char_end, line_start, line_end, page, content, context,
  title, section, message_ids, token_count, metadata, facts
from chunks
where document_no in (select unnest({}::integer[]))
"""


def show(connection: Connection, files: GenerationFiles) -> None:
    """Write the published generation of this machine to the tables that people query with SQL.

    Raises:
        StoreError, psycopg.Error: the tables were not written.
    """
    current = files.current()
    if current is None or connection.execute(_ARE_THERE).fetchone() is None:
        return
    held = {file.path.name: file for file in files.data_files(current)}
    connection.execute("delete from documents where segment <> all(%s)", [list(held)])
    for name, file in held.items():
        _show_segment(connection, name, file)


def _show_segment(connection: Connection, name: str, file: DataFile) -> None:
    rows = connection.execute("select document_no from documents where segment = %s", [name]).fetchall()
    shown = {number for (number,) in rows}
    reader = connect_reader(file.path)
    try:
        live = {number for (number,) in reader.execute("select document_no from documents").fetchall()} - {*file.gone}
        statement = "delete from documents where segment = %s and document_no = any(%s)"
        connection.execute(statement, [name, list(shown - live)])  # their chunks go with them
        if missing := sorted(live - shown):
            rules: dict[int, str] = {}
            _insert(connection, "documents", ([name, *row] for row in _documents(reader, missing, rules)))
            chunks = _rows(reader, _CHUNK, missing)
            _insert(connection, "chunks", ([name, *row, rules[row[1]]] for row in chunks))
    finally:
        reader.close()


def _insert(connection: Connection, table: Literal["documents", "chunks"], rows: Iterator[list[Any]]) -> None:
    """Insert rows. ``insert`` is used because ``copy`` does not work with row-level security."""
    first = next(rows, None)
    if first is not None:
        statement = f"insert into {table} values ({', '.join(['%s'] * len(first))})"
        connection.cursor().executemany(statement, chain([first], rows))


def _documents(reader: FileConnection, numbers: list[int], rules: dict[int, str]) -> Iterator[list[Any]]:
    """Yield the rows of the documents with these numbers, each with the document's full access rule as JSON.

    Store each rule in ``rules`` by document number. A full rule joins the document's own rule and its source's.
    """
    ((sources,),) = reader.execute("select value from meta where key = 'access'").fetchall()
    stated = decode_source_rules(sources)
    for row in _rows(reader, _DOCUMENT, numbers):
        source_id, own = row[2], decode_rule(row[13])
        rules[row[0]] = encode_rule(rule_of(source_id, own, stated)) or "[]"
        yield [*row, rules[row[0]]]


def _rows(reader: FileConnection, statement: str, numbers: list[int]) -> Iterator[list[Any]]:
    try:
        for batch in reader.sql(statement.format(numbers)).to_arrow_reader(_BATCH_ROWS):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield [value.translate(_NO_NUL) if isinstance(value, str) else value for value in row]
    except duckdb.Error as error:
        raise StoreError(f"a segment cannot be read: {error}; roll back, or sync again") from error
