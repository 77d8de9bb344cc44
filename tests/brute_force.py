"""Which chunks meet a condition, the slow and plain way: an oracle for the filters.

It reads chunks and documents as a generation keeps them, metadata as JSON, and knows nothing of the tables that the
store looks filters up in.
"""

import calendar
import json
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from nornweave.index.connection import Connection
from nornweave.index.searching.conditions import AnyName, AnyOf, Between, Condition, PathGlob, select_chunks


@dataclass(frozen=True)
class Row:
    """A chunk with what is known of it; what it says itself goes before what its document says."""

    source: str
    path: str
    format: str
    updated_at: datetime | None
    facts: dict[str, Any]
    headings: tuple[str, ...]
    message_ids: tuple[str, ...]


class Corpus:
    """A published generation, and its chunks as brute force reads them, by number."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.rows = read_rows(connection)

    def selected(self, *conditions: Condition) -> list[int]:
        """Return the numbers of the chunks that the store says meet all conditions."""
        mask = select_chunks(self.connection, conditions, len(self.rows))
        assert mask.shape == (len(self.rows),)
        return [number for number, is_met in enumerate(mask) if is_met]

    def expected(self, *conditions: Condition) -> list[int]:
        """Return the numbers of the chunks that do meet all conditions."""
        return [number for number, row in enumerate(self.rows) if all(meets(each, row) for each in conditions)]


def read_rows(connection: Connection) -> list[Row]:
    """Return every chunk, by number."""
    found = connection.execute(
        """
        select d.source_id, d.path, d.format, epoch_us(d.updated_at), d.metadata, c.metadata, c.section, c.message_ids
        from chunks c
        join documents d using (document_no)
        order by c.chunk_no
        """
    ).fetchall()
    return [
        Row(
            source=source,
            path=path,
            format=format_,
            updated_at=None if moment is None else datetime.fromtimestamp(moment / 1e6, UTC),
            facts={**json.loads(of_document), **json.loads(of_chunk)},
            headings=tuple(section.split(" > ")) if section else (),
            message_ids=tuple(ids or ()),
        )
        for source, path, format_, moment, of_document, of_chunk, section, ids in found
    ]


def meets(condition: Condition, row: Row) -> bool:
    if isinstance(condition, PathGlob):
        literal = unicodedata.normalize("NFC", condition.pattern)
        paths = [row.path, *(_values("changed", row) if condition.or_changed else ())]
        return any(
            literal == unicodedata.normalize("NFC", path) or glob_matches(condition.pattern, path) for path in paths
        )
    if isinstance(condition, Between):
        return any(_overlaps(condition, *moment) for moment in _moments(condition.field, row))
    if isinstance(condition, AnyOf):
        values = {_bare(condition.field, value) for value in _values(condition.field, row)}
        return any(_bare(condition.field, value) in values for value in condition.values)
    if isinstance(condition, AnyName):
        names = [_words(name) for name in _values(condition.field, row)]
        return any(_words(asked) and _words(asked) <= name for asked in condition.names for name in names)
    asked = [_folded(heading) for heading in condition.heading.split(" > ")]
    headings = [_folded(heading) for heading in row.headings]
    return any(headings[at : at + len(asked)] == asked for at in range(len(headings)))


def _values(field: str, row: Row) -> list[str]:
    value = row.source if field == "source" else row.facts.get(field)
    if field == "authors" and not value:
        value = row.facts.get("author")
    if field in {"format", "source_type"} and value is None:
        value = row.format
    return [str(each) for each in (value if isinstance(value, list) else [value]) if each is not None]


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def _bare(field: str, text: str) -> str:
    return _folded(text).lstrip("#") if field == "channel" else _folded(text)


def _words(name: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", _folded(name)))


def _moments(field: str, row: Row) -> list[tuple[datetime, datetime]]:
    if field == "updated_at":
        return [(row.updated_at, row.updated_at)] if row.updated_at else []
    found = [moment for value in _values(field, row) if (moment := _covered(value))]
    if field == "message_timestamp" and "slack" in _values("source_type", row):
        times = [datetime.fromtimestamp(int(float(each)), UTC) for each in row.message_ids]
        found += [(moment, moment) for moment in times]
    return found


def _covered(text: str) -> tuple[datetime, datetime] | None:
    """Return the first and the last moment that a date stands for."""
    if re.fullmatch(r"\d{4}", text):
        first, last = date(int(text), 1, 1), date(int(text), 12, 31)
    elif re.fullmatch(r"\d{4}-\d{2}", text):
        year, month = int(text[:4]), int(text[5:])
        first, last = date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])
    elif re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        first = last = date.fromisoformat(text)
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        moment = moment.replace(tzinfo=moment.tzinfo or UTC)
        return moment, moment
    return datetime.combine(first, time.min, UTC), datetime.combine(last, time.max, UTC)


def _overlaps(condition: Between, first: datetime, last: datetime) -> bool:
    return (condition.start is None or last >= condition.start) and (condition.end is None or first <= condition.end)


def glob_matches(glob: str, path: str) -> bool:
    """Match component by component, character by character, trying everything; for short globs."""
    parts = [part for part in glob.split("/") if part not in {"", "."}]
    if "/" not in glob.rstrip("/"):
        parts = ["**", *parts]
    if glob.endswith("/") or not parts:
        parts = [*parts, "**"]
    return _parts_match(parts, path.split("/"))


def _parts_match(globs: list[str], parts: list[str]) -> bool:
    if not globs:
        return not parts
    if globs[0] == "**":
        if len(globs) == 1:
            return bool(parts)
        return _parts_match(globs[1:], parts) or (bool(parts) and _parts_match(globs, parts[1:]))
    return bool(parts) and _part_matches(globs[0], parts[0]) and _parts_match(globs[1:], parts[1:])


def _part_matches(glob: str, text: str) -> bool:
    if not glob:
        return not text
    head, rest = glob[0], glob[1:]
    if head == "*":
        return any(_part_matches(rest, text[at:]) for at in range(len(text) + 1))
    if not text:
        return False
    if head == "\\" and rest:
        return text[0] == rest[0] and _part_matches(rest[1:], text[1:])
    if head == "[" and (closed := re.match(r"([!^]?)(\]?(?:\\.|[^\]\\])*)\]", rest)) and closed[2]:
        members = _members(closed[2])
        is_in = any(low <= text[0] <= high for low, high in members)
        return is_in is not bool(closed[1]) and _part_matches(rest[closed.end() :], text[1:])
    return (head == "?" or head == text[0]) and _part_matches(rest, text[1:])


def _members(content: str) -> list[tuple[str, str]]:
    """Return the ranges of a class, single characters as ranges of one."""
    found = re.findall(r"(\\.|[^\\])(?:-(\\.|[^\\]))?", content)
    return [(low[-1], (high or low)[-1]) for low, high in found]
