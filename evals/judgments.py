"""Judged sets: queries, and which places of which documents answer them (contract §3, ``eval``).

A folder holds ``queries.jsonl`` (``{"id", "text"}``, optional ``"filters"``) and ``qrels.tsv`` (header line, then
``query_id``, ``doc_id``, ``grade``). Judgments name documents and places in them, never chunks: they outlive every
change of the chunker.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from nornweave.recall.records import Citation
from nornweave.types import NO_METADATA, Metadata, freeze

QUERIES = "queries.jsonl"
QRELS = "qrels.tsv"
COLUMNS = ("query_id", "doc_id", "grade")

_LINES = re.compile(r"L(\d{1,9})(?:-L?(\d{1,9}))?", re.ASCII)
_FILE_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}")


class JudgmentError(ValueError):
    """A judged set is wrong: the file and line, what was found, what is expected."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question of a judged set, with the filters of its own domain, if it has any."""

    id: str
    text: str
    filters: Metadata = field(default_factory=lambda: NO_METADATA)


@dataclass(frozen=True, slots=True)
class Judgment:
    """A place that answers a query.

    Attributes:
        path: of the document, relative to its source.
        lines: first and last line, from 1, both included; ``None`` when another place or the whole document is meant.
        message_id: the message that answers, in a conversation.
        grade: above 0 is relevant, and more is better; 0 and below are judged not relevant.
    """

    query_id: str
    path: str
    lines: tuple[int, int] | None
    message_id: str | None
    grade: int

    @property
    def key(self) -> str:
        """Return the place as one text, the same for every way of writing it."""
        if self.lines:
            return f"{self.path}#L{self.lines[0]}-{self.lines[1]}"
        return f"{self.path}#{self.message_id or ''}"

    @property
    def whole_document(self) -> bool:
        """Return whether any part of the document answers."""
        return self.lines is None and self.message_id is None

    def hit_by(self, item: Citation) -> bool:
        """Return whether an item lies in this document and overlaps the lines or holds the message."""
        if item.source_path != self.path:
            return False
        if self.lines:
            return item.line_range is not None and (
                item.line_range[0] <= self.lines[1] and self.lines[0] <= item.line_range[1]
            )
        return self.message_id is None or self.message_id in (item.message_ids or ())


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Queries in the order of their file, and judgments in the order of theirs."""

    name: str
    queries: tuple[Query, ...]
    judgments: tuple[Judgment, ...]

    @property
    def relevant(self) -> Mapping[str, tuple[Judgment, ...]]:
        """Return the judgments above grade 0 by query; a query without any is not in it, and cannot be measured."""
        found: dict[str, list[Judgment]] = {}
        for judgment in self.judgments:
            if judgment.grade > 0:
                found.setdefault(judgment.query_id, []).append(judgment)
        return MappingProxyType({query: tuple(judgments) for query, judgments in found.items()})


def read_judgments(folder: Path) -> JudgedSet:
    """Read a judged set; it is named like its folder.

    Raises:
        JudgmentError: a file is missing, unreadable or empty; a line is no query or no judgment; a query id comes
            twice; a judgment names an unknown query or contradicts another; no query has a relevant judgment.
    """
    queries = _read_queries(folder / QUERIES)
    judged = JudgedSet(folder.resolve().name, queries, _read_qrels(folder / QRELS, {query.id for query in queries}))
    if not judged.relevant:
        raise JudgmentError(f"{folder / QRELS}: no query has a judgment with a grade above 0; nothing can be measured")
    return judged


def parse_place(doc_id: str) -> tuple[str, tuple[int, int] | None, str | None]:
    """Split a ``doc_id`` into path, lines and message id.

    ``path#L12-40``, ``path#L12-L40`` and ``path#L12`` name lines. Otherwise what follows the last ``#`` is a message
    id, unless it belongs to the path: it starts with ``/``, or what precedes it has no file ending while it has one or
    goes deeper (``C#/intro.md``, ``notes/c#-tips.md``, ``team#4/log``). A ``#`` at the very end says that the path ends
    there, for the names that these rules get wrong (``v1.x#notes.md#``).

    Raises:
        ValueError: there is no path, or the lines do not count from 1 upwards.
    """
    path, mark, fragment = doc_id.rpartition("#")
    lines = _LINES.fullmatch(fragment) if mark else None
    if not mark or (not lines and _belongs_to_the_path(path, fragment)):
        path, fragment = doc_id, ""
    if not path:
        raise ValueError("the path is missing")
    if not lines:
        return path, None, fragment or None
    first, last = int(lines[1]), int(lines[2] or lines[1])
    if not 1 <= first <= last:
        raise ValueError(f"lines {first} to {last}; they count from 1, the first is not after the last")
    return path, (first, last), None


def _belongs_to_the_path(before: str, fragment: str) -> bool:
    """Return whether a ``#`` is part of a file name.

    Message ids may look like files, too (``mail.jsonl#1@example.com``), but the file that holds them has an ending.
    """
    if _has_file_ending(before):
        return fragment.startswith("/")
    return "/" in fragment or _has_file_ending(fragment)


def _has_file_ending(path: str) -> bool:
    return bool(_FILE_ENDING.fullmatch(PurePosixPath(path).suffix))


def _read_queries(file: Path) -> tuple[Query, ...]:
    queries: dict[str, Query] = {}
    for number, line in _lines(file):
        query = _query(line, f"{file}:{number}")
        if query.id in queries:
            raise JudgmentError(f"{file}:{number}: query id {query.id!r} is used twice; every query needs its own")
        queries[query.id] = query
    if not queries:
        raise JudgmentError(f'{file}: holds no query; expected one {{"id", "text"}} a line')
    return tuple(queries.values())


def _query(line: str, where: str) -> Query:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise JudgmentError(f'{where}: not JSON ({error}); expected {{"id": …, "text": …}}') from error
    if not isinstance(fields, dict):
        raise JudgmentError(f'{where}: found {_shown(fields)}; expected an object {{"id": …, "text": …}}')
    identifier = fields.get("id")
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        identifier = str(identifier)
    if not isinstance(identifier, str) or not identifier.strip():
        raise JudgmentError(f"{where}: 'id' is {_shown(identifier)}; expected a text that names the query")
    if not isinstance(text := fields.get("text"), str):
        raise JudgmentError(f"{where}: 'text' of query {identifier!r} is {_shown(text)}; expected a text")
    filters = fields.get("filters")
    if not isinstance(filters, dict | None):
        raise JudgmentError(f"{where}: 'filters' of query {identifier!r} are {_shown(filters)}; expected an object")
    return Query(identifier, text, freeze(filters or {}))


def _read_qrels(file: Path, known: set[str]) -> tuple[Judgment, ...]:
    rows = _lines(file)
    columns = _header(file, next(rows, (1, "")))
    judgments: dict[tuple[str, str], Judgment] = {}
    for number, line in rows:
        where = f"{file}:{number}"
        judgment = _judgment(line.split("\t"), columns, where)
        if judgment.query_id not in known:
            raise JudgmentError(f"{where}: query {judgment.query_id!r} is not in {QUERIES}")
        before = judgments.setdefault((judgment.query_id, judgment.key), judgment)
        if before.grade != judgment.grade:
            found = f"{judgment.key!r} has grades {before.grade} and {judgment.grade} for query {judgment.query_id!r}"
            raise JudgmentError(f"{where}: {found}; one place has one grade")
    return tuple(judgments.values())


def _header(file: Path, first: tuple[int, str]) -> tuple[int, int, int]:
    """Return where the three columns stand; more columns are allowed."""
    names = [name.strip() for name in first[1].split("\t")]
    if missing := [column for column in COLUMNS if column not in names]:
        expected = "a header line with the tab-separated columns " + ", ".join(COLUMNS)
        raise JudgmentError(f"{file}:{first[0]}: found {_shown(first[1])}, without {missing[0]!r}; expected {expected}")
    query, document, grade = (names.index(column) for column in COLUMNS)
    return query, document, grade


def _judgment(cells: list[str], columns: tuple[int, int, int], where: str) -> Judgment:
    if len(cells) <= max(columns):
        expected = ", ".join(COLUMNS)
        raise JudgmentError(f"{where}: found {len(cells)} tab-separated columns; expected {expected}, as in the header")
    query_id, doc_id, grade = (cells[column].strip() for column in columns)
    try:
        path, lines, message_id = parse_place(doc_id)
    except ValueError as error:
        expected = "'path', 'path#L12-40' or 'path#<message id>'"
        raise JudgmentError(f"{where}: doc_id {doc_id!r}: {error}; expected {expected}") from error
    return Judgment(query_id, path, lines, message_id, _grade(grade, where))


def _grade(cell: str, where: str) -> int:
    """Return a grade; ``1.0`` is one as well, since tables that passed through a spreadsheet hold it."""
    try:
        grade = float(cell)
    except ValueError:
        grade = math.nan
    if not (math.isfinite(grade) and grade.is_integer() and abs(grade) < 2**31):
        raise JudgmentError(f"{where}: grade {cell!r}; expected a whole number, above 0 for relevant")
    return int(grade)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, numbered from 1, without their endings."""
    try:
        with file.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except FileNotFoundError as error:
        expected = f"a judged set is a folder with {QUERIES} and {QRELS}"
        raise JudgmentError(f"{file}: no such file; {expected}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise JudgmentError(f"{file}: cannot be read as UTF-8 text: {error}") from error


def _shown(value: Any) -> str:
    """Return a value as an error shows it: no longer than one can read."""
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
