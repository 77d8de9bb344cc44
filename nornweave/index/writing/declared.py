"""Values of declared filters, read from a generation's documents when it is built.

Nothing is read from the sources again: metadata, paths and names are in the generation, so that a new filter needs a
new generation and nothing else. What documents say is any JSON; it is read as values of the declared type.
"""

from __future__ import annotations

import json
import math
import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from types import MappingProxyType

import pyarrow as pa

from nornweave.config import FilterSettings
from nornweave.core.text.dates import utc
from nornweave.core.text.legible import field_key
from nornweave.core.types import JsonValue, digest
from nornweave.index.connection import Connection
from nornweave.index.searching.conditions import capturing_expression

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


def _integer(said: JsonValue) -> TypedValue:
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


_READERS = {"keyword": _keyword, "integer": _integer, "number": _number, "boolean": _boolean, "date": _date}


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
