"""Read judged sets from files.

A folder holds ``queries.jsonl`` (``{"id", "text"}``, optional ``"filters"``, ``"kind"``, ``"answerable"``, ``"hide"``)
and ``qrels.tsv`` (header line, then ``query_id``, ``doc_id``, ``grade``); ``set.yaml`` beside them may say where the
set comes from (``origin``, ``note``) and that it is judged in all domains at once (``across_domains``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from evals.judgments import HiddenText, JudgedQuery, JudgedSet, Judgment, JudgmentError, JudgmentOrigin, parse_place
from nornweave.core.types import freeze

QUERIES = "queries.jsonl"
QRELS = "qrels.tsv"
ABOUT = "set.yaml"
COLUMNS = ("query_id", "doc_id", "grade")


def read_judgments(folder: Path) -> JudgedSet:
    """Read a judged set. Its name is that of its folder.

    Raises:
        JudgmentError: a file is missing, unreadable or empty; a line is no query or no judgment; a query id comes
            twice; a judgment names an unknown query or contradicts another; no query has a relevant judgment.
    """
    queries = _read_queries(folder / QUERIES)
    judgments = _read_qrels(folder / QRELS, {query.id for query in queries})
    judged = JudgedSet(folder.resolve().name, queries, judgments, *_read_about(folder / ABOUT))
    if not judged.relevant:
        raise JudgmentError(f"{folder / QRELS}: no query has a judgment with a grade above 0; nothing can be measured")
    if answered := [query.id for query in judged.unanswerable if query.id in judged.relevant]:
        raise JudgmentError(
            f"{folder / QRELS}: query {answered[0]!r} has a judgment with a grade above 0, and is marked as "
            f"unanswerable in {QUERIES}"
        )
    return judged


def _read_queries(file: Path) -> tuple[JudgedQuery, ...]:
    queries: dict[str, JudgedQuery] = {}
    for number, line in _lines(file):
        query = _query(line, f"{file}:{number}")
        if query.id in queries:
            raise JudgmentError(f"{file}:{number}: query id {query.id!r} is used twice; every query needs its own")
        queries[query.id] = query
    if not queries:
        raise JudgmentError(f'{file}: holds no query; expected one {{"id", "text"}} a line')
    return tuple(queries.values())


def _query(line: str, where: str) -> JudgedQuery:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise JudgmentError(f'{where}: not JSON ({error}); expected {{"id": …, "text": …}}') from error
    if not isinstance(fields, dict):
        raise JudgmentError(f'{where}: found {_quote_value(fields)}; expected an object {{"id": …, "text": …}}')
    identifier = fields.get("id")
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        identifier = str(identifier)
    if not isinstance(identifier, str) or not identifier.strip():
        raise JudgmentError(f"{where}: 'id' is {_quote_value(identifier)}; expected a text that names the query")
    if not isinstance(text := fields.get("text"), str):
        raise JudgmentError(f"{where}: 'text' of query {identifier!r} is {_quote_value(text)}; expected a text")
    filters = fields.get("filters")
    if not isinstance(filters, dict | None):
        raise JudgmentError(
            f"{where}: 'filters' of query {identifier!r} are {_quote_value(filters)}; expected an object"
        )
    if not isinstance(kind := fields.get("kind"), str | None):
        raise JudgmentError(f"{where}: 'kind' of query {identifier!r} is {_quote_value(kind)}; expected a text")
    if not isinstance(answerable := fields.get("answerable", True), bool):
        expected = "expected true or false"
        raise JudgmentError(f"{where}: 'answerable' of query {identifier!r} is {_quote_value(answerable)}; {expected}")
    return JudgedQuery(identifier, text, freeze(filters or {}), kind, answerable, _hidden(fields.get("hide"), where))


def _hidden(value: Any, where: str) -> HiddenText | None:
    if value is None:
        return None
    path, start, end = (value.get(key) for key in ("path", "start", "end")) if isinstance(value, dict) else (None,) * 3
    if isinstance(path, str) and path and type(start) is int and type(end) is int and 0 <= start <= end:
        return HiddenText(path, start, end)
    expected = 'expected {"path": …, "start": character, "end": character}'
    raise JudgmentError(f"{where}: 'hide' is {_quote_value(value)}; {expected}")


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
    """Return the positions of the three columns. More columns are allowed."""
    names = [name.strip() for name in first[1].split("\t")]
    if missing := [column for column in COLUMNS if column not in names]:
        expected = "a header line with the tab-separated columns " + ", ".join(COLUMNS)
        raise JudgmentError(
            f"{file}:{first[0]}: found {_quote_value(first[1])}, without {missing[0]!r}; expected {expected}"
        )
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
    """Return a grade. ``1.0`` is accepted too, because spreadsheets write it."""
    try:
        grade = float(cell)
    except ValueError:
        grade = math.nan
    if not (math.isfinite(grade) and grade.is_integer() and abs(grade) < 2**31):
        raise JudgmentError(f"{where}: grade {cell!r}; expected a whole number, above 0 for relevant")
    return int(grade)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with numbers from 1 and without line ends."""
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


def _quote_value(value: Any) -> str:
    """Return a value for an error message, cut to a readable length."""
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _read_about(file: Path) -> tuple[JudgmentOrigin, str, bool]:
    if not file.is_file():
        return JudgmentOrigin.PEOPLE, "", False
    try:
        about = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise JudgmentError(f"{file}: cannot be read: {error}") from error
    allowed = ", ".join(JudgmentOrigin)
    if not isinstance(about, dict) or about.get("origin", JudgmentOrigin.PEOPLE) not in list(JudgmentOrigin):
        raise JudgmentError(f"{file}: expected a mapping with 'origin' (one of {allowed}) and 'note', found {about!r}")
    if not isinstance(across := about.get("across_domains", False), bool):
        raise JudgmentError(f"{file}: 'across_domains' is {_quote_value(across)}; expected true or false")
    return JudgmentOrigin(about.get("origin", JudgmentOrigin.PEOPLE)), str(about.get("note", "")).strip(), across
