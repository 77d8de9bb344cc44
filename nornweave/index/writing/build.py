"""Build a segment from the working file: chunks, BM25 tables, values of filters, the ``vss`` index, and arrays.

Nothing is read from the sources again: metadata, paths and names are in the generation, so that a new filter needs a
new generation and nothing else. What documents say is any JSON; it is read as values of the declared type.

Records become Arrow tables: DuckDB inserts them about fifty times as fast as bound lists.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import re
import secrets
from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import duckdb
import pyarrow as pa

from nornweave.config import FilterSettings, StorageSettings
from nornweave.core.access import encode_rule
from nornweave.core.errors import StoreError
from nornweave.core.text.dates import utc
from nornweave.core.text.terminal import field_key
from nornweave.core.types import FIELDS, Fact, JsonValue, canonical_json, digest
from nornweave.disagree.conflicts.comparable import keys_of
from nornweave.index.connection import (
    WRITER_MEMORY,
    Connection,
    attach,
    check_vss,
    limit_memory,
    load_vss,
    most_memory,
    statement_file,
)
from nornweave.index.port import Candidate, GenerationCounts, NotStored, Publication, StoredDocument
from nornweave.index.records import encode_facts
from nornweave.index.searching.arrays import ArrayWriter, arrays_file, writing_arrays
from nornweave.index.searching.conditions import capturing_expression
from nornweave.index.searching.inverted import write_cards, write_names, write_pairs, write_terms
from nornweave.index.searching.vectors import write_settings, write_token_vectors, write_vectors

MAX_CHARACTERS = 1_024
LARGEST_INTEGER = 2**53
"""Beyond it, JSON's numbers leave integers out."""
_LARGEST = 1e300
_INTEGER = re.compile(r"[+-]?\d{1,16}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)
_BOOLEANS = {"true": "true", "false": "false"}


class UnreadableValueError(ValueError):
    """A value is not of the declared type. The message says what was expected."""


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value in comparable form. It is a text, a number, or the first and last moment of a date."""

    text: str | None = None
    number: float | None = None
    first: datetime | None = None
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class TypedReading:
    """The typed values that were read from a value. ``problem`` says what could not be read; ``None`` if all could."""

    values: tuple[TypedValue, ...] = ()
    problem: str | None = None


def read_values(type_: str, said: JsonValue) -> TypedReading:
    """Return a value, or each member of a list, as ``keyword``, ``integer``, ``number``, ``boolean`` or ``date``.

    A text is read as the number, boolean or date that it spells, because reST, HTML and paths have only texts. Nulls
    and blank texts give no values.
    """
    members = said if isinstance(said, Sequence) and not isinstance(said, str) else [said]
    values: list[TypedValue] = []
    problem = None
    for member in members:
        if member is None or (isinstance(member, str) and not member.strip()):
            continue
        try:
            values.append(_READERS[type_](member))
        except UnreadableValueError as error:
            problem = problem or str(error)
    return TypedReading(tuple(dict.fromkeys(values)), problem)


def _keyword(said: JsonValue) -> TypedValue:
    if isinstance(said, bool):
        return TypedValue(text=str(said).lower())
    if not isinstance(said, str | int | float):
        raise UnreadableValueError("expected a text, or a list of texts")
    text = str(said)
    if len(text) > MAX_CHARACTERS:
        raise UnreadableValueError(f"expected at most {MAX_CHARACTERS:,} characters")
    return TypedValue(text=text)


def _whole_number(said: JsonValue) -> TypedValue:
    number: float | None = None
    if isinstance(said, str) and _INTEGER.fullmatch(said.strip()):
        number = int(said)
    elif (isinstance(said, int) and not isinstance(said, bool)) or (isinstance(said, float) and said.is_integer()):
        number = said
    if number is None or abs(number) > LARGEST_INTEGER:
        raise UnreadableValueError("expected an integer from -2^53 to 2^53")
    return TypedValue(number=float(number))


def _number(said: JsonValue) -> TypedValue:
    if isinstance(said, str):
        is_number = len(said) <= MAX_CHARACTERS and _NUMBER.fullmatch(said.strip()) is not None
    else:
        is_number = isinstance(said, int | float) and not isinstance(said, bool)
    number = float(str(said)) if is_number else math.nan
    if not abs(number) <= _LARGEST:
        raise UnreadableValueError("expected a number")
    return TypedValue(number=number)


def _boolean(said: JsonValue) -> TypedValue:
    text = str(said).strip().lower() if isinstance(said, bool | str) else ""
    if text not in _BOOLEANS:
        raise UnreadableValueError("expected true or false")
    return TypedValue(text=text)


def _date(said: JsonValue) -> TypedValue:
    text = str(said).strip() if isinstance(said, str | int) and not isinstance(said, bool) else ""
    covered = covered_by(text)
    if covered is None:
        raise UnreadableValueError("expected a date such as 2026-01-15, or a time such as 2026-01-15T10:00:00Z")
    return TypedValue(first=covered[0], last=covered[1])


def covered_by(text: str) -> tuple[datetime, datetime] | None:
    """Return the first and last moment in UTC of a year, month, day or time; ``None`` for any other text."""
    try:
        if match := _DAY.fullmatch(text):
            year, month, day = (int(part) if part else None for part in match.groups())
            first = date(year or 0, month or 1, day or 1)
            last = date(first.year, month or 12, day or monthrange(first.year, month or 12)[1])
            return datetime.combine(first, time.min, UTC), datetime.combine(last, time.max, UTC)
        moment = utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None
    return moment, moment


_READERS = {"keyword": _keyword, "integer": _whole_number, "number": _number, "boolean": _boolean, "date": _date}


# Raise it when the same documents may give other values.
VERSION = "values-1"
_NO_TYPES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DeclaredFilters:
    """The filters that a domain's configuration declares; ``source_types`` has the type of each source by its id."""

    filters: tuple[FilterSettings, ...] = ()
    source_types: Mapping[str, str] = field(default_factory=lambda: _NO_TYPES)

    @property
    def declaration(self) -> str:
        """Return a digest of the declarations."""
        stated = [[each.key, each.type, *each.origins] for each in self.filters]
        return f"{VERSION}/{digest(json.dumps(stated))}"

    @property
    def version(self) -> str:
        """Return the version for a generation's metadata. It changes whenever the values of a filter may change."""
        types = dict(self.source_types) if any("source.type" in each.origins for each in self.filters) else {}
        return f"{self.declaration}/{digest(json.dumps(types, sort_keys=True))}"

    def is_read_by(self, version: str) -> bool:
        """Tell whether a generation with this version has the values of these filters."""
        return version.startswith(f"{self.declaration}/")


NO_DECLARED_FILTERS = DeclaredFilters()


def fill_declared(connection: Connection, declared: DeclaredFilters) -> None:
    """Fill the temporary tables of ``declared.sql`` and ``facets.sql`` from a generation's chunks and documents.

    Raises:
        duckdb.Error: the file cannot be written.
    """
    connection.execute("create or replace temp table declared_said (field varchar, chunk_no integer, said varchar)")
    for each in declared.filters:
        query, values = _query_of_values(each, declared.source_types)
        connection.execute(f"insert into declared_said {query}", values)
    types = {each.column: each.type for each in declared.filters}
    distinct = connection.execute("select distinct field, said from declared_said").fetchall()
    readings = [(name, said, read_values(types[name], json.loads(said))) for name, said in distinct]
    rows = _rows(readings)  # noqa: F841 - DuckDB reads it by name
    connection.execute("create or replace temp table declared_values as select * from rows")


def _query_of_values(declared: FilterSettings, source_types: Mapping[str, str]) -> tuple[str, dict[str, object]]:
    """Return the query for the value of each chunk. The value is from the first origin that has one.

    If the chunk has no value, its document's value is used.
    """
    values: dict[str, object] = {"field": declared.column}
    of_document, of_chunk = [], []
    for number, origin in enumerate(declared.origins):
        name = f"origin_{number}"
        values[name] = _operand(origin, declared.key, source_types)
        if _kind(origin) in {"metadata", "front_matter"}:
            values[f"{name}_key"] = _spelled_key(origin)
        of_document.append(_EXPRESSIONS[_kind(origin)].format(name=name))
        if _kind(origin) == "metadata":
            of_chunk.append(_EXPRESSIONS["metadata"].format(name=name))
    return _SAID.format(of_document=", ".join(of_document), of_chunk=", ".join([*of_chunk, "null"])), values


# A chunk's own value has precedence over its document's.
_SAID = """
with by_document as (
  select document_no, coalesce({of_document}, null) as said
  from generation.documents
),
by_chunk as (
  select chunk_no, document_no, coalesce({of_chunk}) as said
  from generation.chunks
)
select $field, c.chunk_no, coalesce(c.said, d.said)::varchar
from by_chunk c
join by_document d using (document_no)
where coalesce(c.said, d.said) is not null
"""
# Looking for the key as it is spelled costs a tenth of parsing, and most metadata does not have it.
_METADATA = """
case when contains(metadata, ${name}_key) then
  nullif(nullif(json_extract(metadata, ${name}), 'null'::json), '""'::json)
end
"""
# RE2 answers in time linear in the path, whatever the pattern.
_EXPRESSIONS = {
    "metadata": _METADATA,
    "front_matter": _METADATA,
    "path": "to_json(nullif(regexp_extract(nfc_normalize(path), ${name}, 1), ''))",
    "source.id": "if(${name} = '', to_json(source_id), null)",
    "source.type": "json_extract(${name}::json, '/' || source_id)",
}


def _kind(origin: str) -> str:
    return "path" if origin.startswith("path:") else origin if origin in _EXPRESSIONS else origin.partition(".")[0]


def _operand(origin: str, key: str, source_types: Mapping[str, str]) -> str:
    kind, _, rest = origin.partition(".")
    match _kind(origin):
        case "path":
            return capturing_expression(origin.removeprefix("path:"), key)
        case "source.id":
            return ""
        case "source.type":
            return json.dumps(dict(source_types))
        case "front_matter":
            return _pointer([kind, *map(field_key, rest.split("."))])
        case _:
            return _pointer(rest.split("."))


def _spelled_key(origin: str) -> str:
    """Return the last key of an origin as a JSON string: ``"metadata.team" → '"team"'``."""
    key = origin.rpartition(".")[2]
    return json.dumps(field_key(key) if _kind(origin) == "front_matter" else key, ensure_ascii=False)


def _pointer(parts: Sequence[str]) -> str:
    """Return the JSON pointer (RFC 6901) to the value at some nested keys."""
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)


_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("field", "said", "text")),
        ("number", pa.float64()),
        *((name, pa.timestamp("us", tz="UTC")) for name in ("first", "last")),
        ("problem", pa.string()),
    ]
)


def _rows(readings: Sequence[tuple[str, str, TypedReading]]) -> pa.Table:
    rows = [
        {"field": name, "said": said, "text": value.text, "number": value.number, "first": value.first,
         "last": value.last, "problem": reading.problem}
        for name, said, reading in readings
        for value in reading.values or (TypedValue(),)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


log = logging.getLogger(__name__)

GENERATION_SCHEMA = "10"
# DuckDB reads a column 2,048 rows at a time, which is more than a writer may hold where documents are megabytes long.
LARGE_MEMORY = "4GB"
# Sorting the word pairs of 375,000 chunks fits into a writer's memory, of 672,000 it does not.
_MANY = 300_000
# Chunks of a file with small blocks, which vss 1.5.5 does not know how to fill.
_SMALL = 4_096

_TIMESTAMP = pa.timestamp("us", tz="UTC")

DOCUMENT_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("document_id", "source_id", "path", "gate", "content_hash", "pipeline",
                                           "format", "title")),
        ("updated_at", _TIMESTAMP),
        *((name, pa.string()) for name in ("revision", "url", "metadata", "text", "access")),
        ("stored_at", _TIMESTAMP),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    """The settings for a domain's tables.

    Attributes:
        dimensions: the dimensions of the vectors. Only writers need it.
        token_vectors: the version of the token vectors; empty if there are none.
    """

    settings: StorageSettings
    dimensions: int
    declared: DeclaredFilters = NO_DECLARED_FILTERS
    token_vectors: str = ""

    @property
    def built_with(self) -> Literal["exact", "hnsw"]:
        """Return how a segment's vectors are searched: one by one, or with an HNSW index."""
        return "hnsw" if self.settings.vector_index == "hnsw" else "exact"

    def facts(self) -> dict[str, str]:
        """Return the versions that affect a build. If they change, the published generation is outdated."""
        return {
            "generation_schema": GENERATION_SCHEMA,
            "vector_index": self.settings.vector_index,
            "hnsw_ef_search": str(self.settings.hnsw_ef_search),
            "dimensions": str(self.dimensions),
            "filters": self.declared.version,
            "token_vectors": self.token_vectors,
        }


def build_generation(
    connection: Connection,
    file: Path,
    publication: Publication,
    layout: Layout,
    facts: Mapping[str, str],
    picked: str = "select document_id from documents",
) -> Candidate:
    """Build ``file`` from the open working file, with the documents that ``picked`` selects.

    The index over the vectors is created last and never changed, because ``vss`` 1.5.5 silently loses deletes and
    updates of a persisted index.

    Raises:
        StoreError: the file still has a write-ahead log, or ``vss`` is needed and cannot be loaded.
        duckdb.Error: the disk is full, or the working file is damaged.
    """
    if layout.built_with == "hnsw":
        check_vss()
    connection.execute(f"create or replace temp table picked as {picked}")
    chunks = _integer(connection, "select count(*) from chunks where document_id in (select document_id from picked)")
    build = partial(_build, connection, file, publication, layout, facts, chunks)
    # A build of 1.2 million chunks of code ran out of 4 GB.
    limits = [*([] if chunks > _MANY else [WRITER_MEMORY]), LARGE_MEMORY, most_memory()]
    try:
        for limit, next_limit in pairwise(limits):
            limit_memory(connection, limit)
            try:
                return build()
            except duckdb.OutOfMemoryException:
                log.warning("%s: too much for %s of memory, building with %s", file.name, limit, next_limit)
        limit_memory(connection, limits[-1])
        return build()
    finally:
        connection.execute("drop table if exists temp.picked")
        limit_memory(connection, WRITER_MEMORY)


def _build(
    connection: Connection, file: Path, publication: Publication, layout: Layout, facts: Mapping[str, str], chunks: int
) -> Candidate:
    file.unlink(missing_ok=True)
    attach(connection, file, "generation", is_small=chunks <= _SMALL and layout.built_with != "hnsw")
    try:
        connection.execute(statement_file("generation"))
        fill_declared(connection, layout.declared)
        connection.execute(statement_file("declared") + statement_file("facets"))
        if layout.built_with == "hnsw":
            connection.execute("create table generation.vectors as select chunk_no, vector from vectors")
            index_vectors(connection, layout.settings)
        counts = _count(connection)
        described = {
            **facts,
            "generation": publication.generation,
            "built_at": publication.created_at.isoformat(),
            "built_with": layout.built_with,
            "arrays": secrets.token_hex(8),
        }
        connection.executemany("insert into generation.meta values (?, ?)", list(described.items()))
        with writing_arrays(file, described["arrays"]) as arrays:
            _write_arrays(connection, arrays, counts.chunks, layout.dimensions)
        connection.execute("checkpoint generation")
    finally:
        connection.execute("detach generation")
        _drop_temporary_tables(connection)
    if file.with_name(f"{file.name}.wal").exists():
        raise StoreError(f"{file}: still has a write-ahead log after its checkpoint")
    return Candidate(
        generation=publication.generation,
        counts=counts,
        vector_index=layout.built_with,
        size_bytes=file.stat().st_size + arrays_file(file).stat().st_size,
        publication=publication,
        facts=facts,
    )


def insert_publication(connection: Connection, publication: Publication) -> None:
    """Append the event of a publication."""
    row = publication_row(publication)
    connection.register("publication_row", row)
    connection.execute("insert into publications by name from publication_row")
    connection.unregister("publication_row")


def _write_arrays(connection: Connection, arrays: ArrayWriter, count: int, dimensions: int) -> None:
    """Write the arrays for queries from the views of ``generation.sql``, in the order of its BM25 tables."""
    connection.execute("set preserve_insertion_order = true")
    try:
        write_vectors(connection, arrays, count, dimensions)
        write_token_vectors(connection, arrays, count)
        write_settings(connection, arrays, count, dimensions)
        write_terms(connection, arrays)
        write_pairs(connection, arrays)
        write_names(connection, arrays)
        write_cards(connection, arrays, count)
    finally:
        connection.execute("set preserve_insertion_order = false")


def index_vectors(connection: Connection, settings: StorageSettings) -> None:
    """Build the ``vss`` index over ``generation.vectors``, once and as the last step.

    It takes 94 % of the build time and, in each process, 4 kB of memory per chunk. It saves a few milliseconds per
    query.
    """
    load_vss(connection)
    connection.execute("set hnsw_enable_experimental_persistence = true")
    connection.execute(
        f"""
        create index vectors_hnsw on generation.vectors using hnsw (vector)
        with (metric = 'cosine', m = {settings.hnsw_m:d}, ef_construction = {settings.hnsw_ef_construction:d})
        """
    )


def _count(connection: Connection) -> GenerationCounts:
    return GenerationCounts(
        documents=_integer(connection, "select count(*) from generation.documents"),
        chunks=_integer(connection, "select count(*) from generation.chunks"),
        vectors=_integer(connection, "select count(*) from embedded"),
        indexed_chunks=_integer(
            connection,
            "select (select count(distinct chunk_no) from postings)"
            " + (select count(*) from chunks where rowid in (select place from numbered) and len(terms) = 0)",
        ),
        orphans=_integer(
            connection,
            """
            select
              (select count(*) from embedded anti join generation.chunks using (chunk_no))
              + (select count(*) from postings anti join generation.chunks using (chunk_no))
              + (select count(*) from generation.chunks anti join generation.documents using (document_no))
            """,
        ),
        terms=_terms(connection),
    )


def _terms(connection: Connection) -> tuple[int, ...]:
    columns = ", ".join(f"coalesce(sum(in_{field}), 0)::bigint" for field in FIELDS)
    (terms,) = connection.execute(f"select {columns} from generation.lengths").fetchall()
    return tuple(terms)


def _drop_temporary_tables(connection: Connection) -> None:
    for view in ("cards", "vectors", "settings", "pairs", "named", "lengths"):
        connection.execute(f"drop view if exists temp.{view}")
    for table in ("numbered_documents", "numbered", "embedded", "described", "occurrences", "terms", "postings",
                  "declared_said", "declared_values"):  # fmt: skip
        connection.execute(f"drop table if exists temp.{table}")


def _integer(connection: Connection, query: str) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def document_rows(stored: Sequence[StoredDocument]) -> pa.Table:
    """Return one row per document."""
    now = datetime.now(UTC)
    rows = [
        {
            "document_id": one.document.id,
            "source_id": one.document.source_id,
            "path": one.document.path,
            "gate": one.gate,
            "content_hash": one.document.content_hash,
            "pipeline": one.pipeline,
            "format": one.document.format,
            "title": one.document.title,
            "updated_at": one.document.updated_at,
            "revision": one.document.revision,
            "url": one.document.url,
            "metadata": canonical_json(one.document.metadata),
            "text": one.document.text,
            "access": encode_rule(one.access),
            "stored_at": now,
        }
        for one in stored
    ]
    return pa.Table.from_pylist(rows, schema=DOCUMENT_SCHEMA)


_FACT_KEY = pa.struct(
    [("key", pa.string()), ("position", pa.uint16()), ("side", pa.string()), ("attribute", pa.string())]
)
_SETTING = pa.struct([("position", pa.uint16()), ("text", pa.string()), ("embedding_key", pa.string())])
CHUNK_SCHEMA = pa.schema(
    [
        ("chunk_id", pa.string()),
        ("document_id", pa.string()),
        *((name, pa.int32()) for name in ("position", "char_start", "char_end", "line_start", "line_end", "page")),
        *((name, pa.string()) for name in ("content", "context", "title", "section")),
        ("message_ids", pa.list_(pa.string())),
        ("token_count", pa.int32()),
        ("metadata", pa.string()),
        ("embedding_key", pa.string()),
        ("terms", pa.list_(pa.string())),
        *((f"in_{field}", pa.list_(pa.uint16())) for field in FIELDS),
        ("pairs", pa.list_(pa.uint32())),
        ("keys", pa.list_(pa.string())),
        ("facts", pa.string()),
        ("fact_keys", pa.list_(_FACT_KEY)),
        ("settings", pa.list_(_SETTING)),
    ]
)


def chunk_rows(stored: Sequence[StoredDocument]) -> pa.Table:
    """Return one row per chunk, numbered within its document."""
    rows = [
        {
            "chunk_id": indexed.chunk_id,
            "document_id": one.document.id,
            "position": position,
            "char_start": indexed.chunk.span.start,
            "char_end": indexed.chunk.span.end,
            "line_start": indexed.lines[0],
            "line_end": indexed.lines[1],
            "page": indexed.chunk.page,
            "content": indexed.chunk.content,
            "context": indexed.chunk.context,
            "title": indexed.chunk.title,
            "section": indexed.chunk.section,
            "message_ids": indexed.chunk.message_ids,
            "token_count": indexed.chunk.token_count,
            "metadata": canonical_json(indexed.chunk.metadata),
            "embedding_key": indexed.embedding_key,
            "terms": list(indexed.terms),
            **{
                f"in_{field}": [min(counts[place], 65535) for counts in indexed.terms.values()]
                for place, field in enumerate(FIELDS)
            },
            "pairs": list(indexed.pairs),
            "keys": list(indexed.keys),
            "facts": encode_facts(indexed.facts),
            "fact_keys": _fact_keys(indexed.facts),
            "settings": [setting._asdict() for setting in indexed.settings],
        }
        for one in stored
        for position, indexed in enumerate(one.chunks)
    ]
    return pa.Table.from_pylist(rows, schema=CHUNK_SCHEMA)


def _fact_keys(facts: Sequence[Fact]) -> list[dict[str, object]]:
    return [
        {"key": key, "position": position, "side": fact.side, "attribute": fact.attribute}
        for position, fact in enumerate(facts)
        for key in sorted(keys_of(fact))
    ]


NOT_STORED_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("document_id", "source_id", "path", "gate", "pipeline", "content_hash")),
        *((name, pa.string()) for name in ("reason", "outcome")),
        ("looked_at", _TIMESTAMP),
    ]
)


def not_stored_rows(documents: Sequence[NotStored]) -> pa.Table:
    """Return one row per document that was read but not stored."""
    now = datetime.now(UTC)
    rows = [{**dataclasses.asdict(document), "looked_at": now} for document in documents]
    return pa.Table.from_pylist(rows, schema=NOT_STORED_SCHEMA)


def publication_row(publication: Publication) -> pa.Table:
    """Return the row of a publication's event. Its lists may be as long as the corpus."""
    names = pa.list_(pa.string())
    schema = pa.schema(
        [
            ("generation", pa.string()),
            ("run_id", pa.string()),
            ("created_at", _TIMESTAMP),
            ("added", names),
            ("changed", names),
            ("removed", names),
        ]
    )
    return pa.Table.from_pylist([dataclasses.asdict(publication)], schema=schema)
