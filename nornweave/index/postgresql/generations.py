"""The generations of one domain in PostgreSQL, and the row that points at the published one.

A generation is a file in parts, ``g000007_file``, beside tables for people with SQL; all are stored in one transaction.
Publication moves one row. Readers search a copy on their machine, so a generation may be removed while it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from psycopg import sql

from nornweave.core.access.rules import Statement
from nornweave.core.errors import NoGenerationError, QueryError, StoreError
from nornweave.core.types import GenerationId
from nornweave.index.generations.kept import number_of
from nornweave.index.index import Index
from nornweave.index.postgresql.copies import LocalCopies
from nornweave.index.postgresql.nearest import ServerIndex
from nornweave.index.postgresql.pool import Connection
from nornweave.index.postgresql.schema import name_of, prefix_of
from nornweave.index.postgresql.server import Server
from nornweave.index.searching.access_today import AccessToday
from nornweave.index.searching.generation import open_generation
from nornweave.index.searching.visibility import NO_STATEMENTS


class PostgresGenerations:
    """What readers ask for generations; every method may be called from any thread.

    Raises:
        StoreError: from every method, when the server cannot be asked.
    """

    def __init__(self, server: Server, folder: Path, candidate: GenerationId | None = None) -> None:
        """Store the parameters; a ``candidate`` counts as published, and no other generation answers then."""
        self.server = server
        self.copies = LocalCopies(server, folder / "copies")
        self._folder = folder
        self._candidate = candidate

    def of_candidate(self, candidate: GenerationId) -> PostgresGenerations:
        """Return the generations as if a candidate was published."""
        return PostgresGenerations(self.server, self._folder, candidate)

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
        return tuple(self.complete())

    def complete(self) -> dict[GenerationId, str]:
        """Return the checksums of the complete generations, oldest first; an earlier version's have none."""
        rows = self.server.rows_if_there(
            "select number, meta->>'checksum' from generations where complete and meta ? 'checksum' order by number"
        )
        return {name_of(number): checksum for number, checksum in rows}

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

    def open(
        self,
        generation: GenerationId,
        statements: Mapping[str, Statement] = NO_STATEMENTS,
        today: AccessToday | None = None,
    ) -> Index:
        """Open the copy of a generation on this machine, which is fetched unless it is there."""
        meta = self.meta(generation)
        nearest = None
        if meta["built_with"] == "hnsw":
            table, width = f"{prefix_of(generation)}vectors", int(meta["hnsw_ef_search"])
            nearest = ServerIndex(self.server, table, int(meta["dimensions"]), width)
        return open_generation(self.local_file(generation), statements, nearest, today)

    def moves(self) -> NoReturn:
        """Refuse: PostgreSQL stores no history of publications."""
        raise QueryError("as_of", "domains that are stored in PostgreSQL ('storage') answer from what is published now")

    def access_today(self, generation: GenerationId) -> NoReturn:
        """Refuse, as ``moves``."""
        raise QueryError("as_of", f"{generation} is stored in PostgreSQL, which answers from what is published now")

    def local_file(self, generation: GenerationId) -> Path:
        """Return the copy of a generation on this machine; a newly fetched one takes the place of older ones."""
        checksum = self.meta(generation).get("checksum")
        if checksum is None:
            raise StoreError(f"{self.server.name}: an earlier version stored {generation}; run `nornweave sync`")
        is_new = not self.copies.path(generation, checksum).is_file()
        file = self.copies.fetch(generation, checksum)
        if is_new:
            self.copies.prune(self.complete())
        return file


def prune(connection: Connection, schema: str, keep: int) -> None:
    """Remove all but the newest ``keep`` complete generations; never the published one."""
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


def remove(connection: Connection, schema: str, number: int) -> None:
    """Remove a generation with whatever tables it has."""
    with connection.transaction():
        tables = connection.execute(
            """
            select relname from pg_class
            where relnamespace = to_regnamespace(%s) and relkind = 'r' and starts_with(relname, %s)
            """,
            [schema, prefix_of(name_of(number))],
        ).fetchall()
        if tables:  # all at once: the policies of one look at another
            names = sql.SQL(", ").join(sql.Identifier(name) for (name,) in tables)
            connection.execute(sql.SQL("drop table {}").format(names))
        connection.execute("delete from generations where number = %s", [number])


def point_at(connection: Connection, generation: GenerationId) -> None:
    """Point readers at a complete generation."""
    connection.execute(
        """
        insert into pointer (number, published_at) values (%s, clock_timestamp())
        on conflict (one) do update set number = excluded.number, published_at = excluded.published_at
        """,
        [number_of(generation)],
    )
