"""Read the ledger's input from all published generations: pairs of facts with the same name, and passages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from nornweave.core.errors import StoreError
from nornweave.core.text.dates import DATED_BY, dated
from nornweave.core.text.index_fields import is_aside
from nornweave.core.types import COMMIT, RELEASE
from nornweave.disagree.assertions.passage import AssertingPassage
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.comparable import MAX_BLOCK, OF_FILES, stands_apart
from nornweave.disagree.conflicts.records import lists_names
from nornweave.index.connection import Connection, connect_readers, statement_file
from nornweave.index.records import decode_fact
from nornweave.index.searching.generation_file import DataFile

# Chunks that are read at a time: some 10 MB of facts.
_WINDOW = 16_384


def read_fact_pairs(files: Mapping[str, Sequence[DataFile]]) -> tuple[list[LocatedFact], list[tuple[int, int]]]:
    """Return the facts that share a name with a comparable fact in another place, and the pairs of such facts.

    Args:
        files: domain → files of its generation, one for each segment.

    Returns:
        The facts, sorted by domain and place, and the pairs. A pair is two positions in the facts. Each pair is there
        once, and pairs are sorted. Tests, changelogs and similar files are left out, as in drift.

    Raises:
        StoreError: a file is missing, damaged or older than facts.
    """
    with TemporaryDirectory(prefix="nornweave-ledger-") as spill:
        segments = [(domain, file) for domain in sorted(files) for file in files[domain]]
        named = {f"segment_{number:d}": file.path for number, (_, file) in enumerate(segments)}
        connection = connect_readers(named, spill=Path(spill))
        try:
            return _joined(connection, segments)
        except duckdb.Error as error:
            raise StoreError(f"the facts of {sorted(files)} cannot be read ({error}); run `nornweave sync`") from error
        finally:
            connection.close()


def _joined(
    connection: Connection, segments: Sequence[tuple[str, DataFile]]
) -> tuple[list[LocatedFact], list[tuple[int, int]]]:
    connection.execute("create temp table fact_keys (segment_no usmallint, key varchar, chunk_no integer, "
                       "position usmallint, side varchar, attribute varchar)")  # fmt: skip
    for number, (_, file) in enumerate(segments):
        connection.execute(
            f"""
            insert into fact_keys
            select {number:d}, k.*
            from segment_{number:d}.fact_keys k
            semi join (
              select chunk_no from segment_{number:d}.chunks where document_no not in (select unnest(?::integer[]))
            ) using (chunk_no)
            """,
            [str([*file.gone])],
        )
    connection.execute(statement_file("fact_pairs"), {"most": MAX_BLOCK})
    found = [
        ((number, chunk_no, position), located)
        for number, (domain, _) in enumerate(segments)
        for chunk_no, position, located in _read(connection, number, domain)
        if domain not in OF_FILES or not stands_apart(located.path)
    ]
    # Segments number chunks by source and path as well: the order is the same, however many there are.
    found.sort(key=lambda one: (one[1].domain, one[1].source_id, one[1].path, *one[0]))
    places = {key: number for number, (key, _) in enumerate(found)}
    facts = [located for _, located in found]
    rows = connection.execute("select * from fact_pairs order by all").fetchall()
    sides = ((tuple(row[:3]), tuple(row[3:])) for row in rows)
    pairs = [(places[one], places[other]) for one, other in sides if one in places and other in places]
    return facts, sorted({(min(pair), max(pair)) for pair in pairs})


def _read(connection: Connection, number: int, domain: str) -> list[tuple[int, int, LocatedFact]]:
    found = []
    rows = connection.execute(
        f"""
        with wanted as (
          select chunk_no, list(distinct position) as positions
          from (
            select first_chunk as chunk_no, first_position as position from fact_pairs where first_segment = {number:d}
            union all
            select second_chunk, second_position from fact_pairs where second_segment = {number:d}
          )
          group by chunk_no
        )
        select
          c.chunk_no, w.positions, c.facts, c.chunk_id, c.title, d.title, c.section, c.page,
          len(c.message_ids), d.source_id, d.path, c.metadata, d.updated_at, d.revision
        from segment_{number:d}.chunks c
        join wanted w using (chunk_no)
        join segment_{number:d}.documents d using (document_no)
        order by c.chunk_no
        """
    )
    while window := rows.fetchmany(_WINDOW):
        for row in window:
            found += _located(domain, row)
    return found


def _moment(domain: str, metadata: str, saved_at: datetime | None) -> datetime | None:
    """Return when a message or a paper was published, else when its document changed."""
    return (dated(domain, json.loads(metadata), saved_at) if domain in DATED_BY else None) or saved_at


def _located(domain: str, row: tuple[Any, ...]) -> list[tuple[int, int, LocatedFact]]:
    chunk_no, positions, stored, chunk_id, own, whole, section, page, messages, source_id, path, *stated = row
    metadata, updated_at, revision = stated
    title = _title(domain, own, whole)
    facts = json.loads(stored)
    found = []
    for position in sorted(positions):
        fact = decode_fact(facts[position])
        line = fact.line + 1
        located = LocatedFact(
            fact=fact,
            domain=domain,
            source_id=source_id,
            path=path,
            section=section,
            title=title,
            updated_at=_moment(domain, metadata, updated_at),
            revision=revision,
            chunk_id=chunk_id,
            line_range=None if page or messages else (line, line),
        )
        found.append((chunk_no, position, located))
    return found


def _title(domain: str, own: str | None, whole: str | None) -> str | None:
    """Return the title of a chunk: ``own``, its own title, or ``whole``, its document's title, which may be ``None``.

    The document's title is used if the chunk has none, or if it is a chunk of code whose title only lists names.
    """
    return whole if own is None or (domain == "code" and lists_names(own)) else own


def read_passages(files: Mapping[str, Sequence[DataFile]]) -> list[AssertingPassage]:
    """Return the chunks of generations, sorted by domain, source, path and place.

    Args:
        files: domain → files of its generation, one for each segment.

    Raises:
        StoreError: a file cannot be read.
    """
    with TemporaryDirectory(prefix="nornweave-ledger-") as spill:
        named = {
            f"{domain}_{number:d}": (domain, file)
            for domain in sorted(files)
            for number, file in enumerate(files[domain])
        }
        connection = connect_readers({name: file.path for name, (_, file) in named.items()}, spill=Path(spill))
        return _read_passages(connection, named)


def _read_passages(connection: Connection, named: Mapping[str, tuple[str, DataFile]]) -> list[AssertingPassage]:
    try:
        passages = [
            passage for name, (domain, file) in named.items() for passage in _passages(connection, name, file, domain)
        ]
        # Those of a document are in one file, in order.
        return sorted(passages, key=lambda each: (each.domain, each.source_id, each.path))
    except duckdb.Error as error:
        raise StoreError(f"the passages of {[*named]} cannot be read ({error}); run `nornweave sync`") from error
    finally:
        connection.close()


def _passages(connection: Connection, name: str, file: DataFile, domain: str) -> Iterator[AssertingPassage]:
    rows = connection.execute(
        f"""
        select
          c.content, c.char_start, c.line_start, coalesce(c.page, len(c.message_ids), 0) > 0, c.chunk_id,
          c.title, d.title, c.section, d.source_id, d.path, c.metadata, d.updated_at, d.revision
        from {name}.chunks c
        join {name}.documents d using (document_no)
        where c.document_no not in (select unnest(?::integer[])) and d.format not in (?, ?)
        order by c.chunk_no
        """,
        [str([*file.gone]), COMMIT, RELEASE],
    ).fetchall()
    for text, start, line, has_no_lines, chunk_id, own, whole, section, source_id, path, *stated in rows:
        metadata, saved_at, revision = stated
        if domain == "code" and is_aside(path):  # tests and examples state nothing about the product
            continue
        yield AssertingPassage(
            text=text, start=start, line=None if has_no_lines or line is None else line - 1, place=chunk_id,
            domain=domain, source_id=source_id, path=path, title=_title(domain, own, whole), section=section,
            updated_at=_moment(domain, metadata, saved_at), saved_at=saved_at, revision=revision,
        )  # fmt: skip
