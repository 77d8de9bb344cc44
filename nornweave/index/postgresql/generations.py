"""The generations of one domain in PostgreSQL, and the row that points at the published one.

A generation is a set of tables, ``g000007_chunks`` and others, created and filled in one transaction. Publication moves
one row. Who reads a generation holds a shared advisory lock on its number; it is not removed as long as somebody does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psycopg

from nornweave.core.access.rules import Statement
from nornweave.core.errors import NoGenerationError
from nornweave.core.types import GenerationId
from nornweave.index.postgresql.index import PostgresIndex
from nornweave.index.postgresql.local_copy import copied
from nornweave.index.postgresql.names import TABLES, lock_class, name_of, prefix_of
from nornweave.index.postgresql.server import Connection, Server
from nornweave.index.publish import number_of
from nornweave.index.visibility import NO_STATEMENTS


class PostgresGenerations:
    """What readers ask for generations; every method may be called from any thread.

    Raises:
        StoreError: from every method, when the server cannot be asked.
    """

    def __init__(self, server: Server, folder: Path, candidate: GenerationId | None = None) -> None:
        """Store the parameters.

        Args:
            server: with the schema of the domain.
            folder: of the domain on this machine, for copies.
            candidate: what counts as published, to measure it before it is; no other generation answers then.
        """
        self.server = server
        self.folder = folder
        self._candidate = candidate

    def of_candidate(self, candidate: GenerationId) -> PostgresGenerations:
        """Return the generations as if a candidate was published."""
        return PostgresGenerations(self.server, self.folder, candidate)

    def current(self) -> GenerationId | None:
        """Return the published generation, or ``None`` when nothing was published."""
        if self._candidate:
            return self._candidate
        rows = self.server.rows_if_there("select number from pointer")
        return name_of(rows[0][0]) if rows else None

    def published_at(self) -> float | None:
        """Return when the pointer was moved last, in seconds since 1970; ``None`` when nothing was published."""
        rows = self.server.rows_if_there("select extract(epoch from published_at)::float8 from pointer")
        return float(rows[0][0]) if rows else None

    def all(self) -> tuple[GenerationId, ...]:
        """Return the complete generations, oldest first."""
        if self._candidate:
            return (self._candidate,)
        rows = self.server.rows_if_there("select number from generations where complete order by number")
        return tuple(name_of(number) for (number,) in rows)

    def meta(self, generation: GenerationId) -> Mapping[str, str]:
        """Return how a generation was built.

        Raises:
            NoGenerationError: there is no such generation.
        """
        rows = self.server.rows_if_there("select meta from generations where number = %s", [number_of(generation)])
        if not rows:
            raise NoGenerationError(f"{self.server.name}: no generation {generation!r}; run `nornweave sync`")
        meta: Mapping[str, str] = rows[0][0]
        return meta

    def open(self, generation: GenerationId, statements: Mapping[str, Statement] = NO_STATEMENTS) -> PostgresIndex:
        """Open a generation for reading; it stays until it is closed.

        Args:
            generation: by name.
            statements: what the configuration says now about who may see each source.
        """
        pin = Pin(self.server, generation)
        try:
            return PostgresIndex(self.server, generation, self.meta(generation), statements, pin, self.local_file)
        except BaseException:
            pin.close()
            raise

    def size_bytes(self, generation: GenerationId) -> int:
        """Return how many bytes the tables of a generation take."""
        rows = self.server.rows_if_there(
            """
            select coalesce(sum(pg_total_relation_size(c.oid)), 0)::int8
            from pg_class c
            where c.relnamespace = to_regnamespace(%s) and c.relkind = 'r' and starts_with(c.relname, %s)
            """,
            [self.server.schema, prefix_of(generation)],
        )
        return int(rows[0][0]) if rows else 0

    def local_file(self, generation: GenerationId) -> Path:
        """Return a DuckDB file with the documents, chunks and facts of a generation, copied when it is first asked for.

        For what reads a whole generation, not for queries: the ledger, and sets that are made out of a corpus.
        """
        return copied(self.server, generation, dict(self.meta(generation)), self.folder / "copies")


class Pin:
    """A shared advisory lock that keeps a generation from being removed, on a connection of its own.

    A server that restarts forgets it; the generation is then kept as long as the limit of generations says.
    """

    def __init__(self, server: Server, generation: GenerationId) -> None:
        self._connection = server.connect()
        try:
            self._connection.execute(
                "select pg_advisory_lock_shared(%s, %s)", [lock_class(server.schema), number_of(generation)]
            )
        except psycopg.Error as error:
            self._connection.close()
            raise server.unreadable(error) from error

    def close(self) -> None:
        """Give the generation free."""
        self._connection.close()


def prune(connection: Connection, schema: str, keep: int) -> None:
    """Remove all but the newest ``keep`` complete generations; never the published one, nor one that is read."""
    numbers = connection.execute(
        """
        select number from generations
        where complete and number not in (select number from pointer)
        and number not in (select number from generations where complete order by number desc limit %s)
        """,
        [keep],
    ).fetchall()
    for (number,) in numbers:
        remove(connection, schema, number)


def remove(connection: Connection, schema: str, number: int) -> bool:
    """Remove a generation unless somebody reads it; tell whether it is gone."""
    with connection.transaction():
        row = connection.execute("select pg_try_advisory_xact_lock(%s, %s)", [lock_class(schema), number]).fetchone()
        if not row or not row[0]:
            return False
        # All at once: the policies of one look at another.
        tables = ", ".join(f"{prefix_of(name_of(number))}{table}" for table in TABLES)
        connection.execute(f"drop table if exists {tables}")
        connection.execute("delete from generations where number = %s", [number])
    return True


def point_at(connection: Connection, generation: GenerationId) -> None:
    """Point readers at a complete generation."""
    connection.execute(
        """
        insert into pointer (number, published_at) values (%s, clock_timestamp())
        on conflict (one) do update set number = excluded.number, published_at = excluded.published_at
        """,
        [number_of(generation)],
    )
