"""Read tables of settings: which cell is the name, the default, the type, the limits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.core.types import Attribute, Fact
from nornweave.disagree.facts.documentation.layout import Cell, columns_of
from nornweave.disagree.facts.documentation.literals import whole_value
from nornweave.disagree.facts.documentation.naming import CODE, identifier_of, is_like_identifier, is_type
from nornweave.disagree.facts.documentation.page import Page, Subject
from nornweave.disagree.facts.documentation.prose import prose_facts
from nornweave.disagree.facts.values import Value

MAX_ROWS = 400


def table_facts(
    page: Page, rows: list[list[Cell]], header: list[Cell] | None, subject: Subject | None, headings: str
) -> Iterator[Fact]:
    """Yield what the rows of a table state; a table without a name and a property yields nothing."""
    columns = columns_of(header) if header else {}
    if (
        header
        and "name" not in columns
        and columns.keys() & {"default", "type", "required"}
        and 0 not in columns.values()
    ):
        columns["name"] = 0
    if header and ("name" not in columns or len(columns) < 2):
        return
    owner = subject.path if subject is not None and not subject.is_weak else headings
    for row in rows[:MAX_ROWS]:
        placed = columns or _inferred(row)
        if placed:
            yield from _row(page, row, placed, owner)


def _inferred(row: list[Cell]) -> dict[str, int]:
    """Guess the columns of a row that lost its header: an identifier, a literal, and prose behind it."""
    if len(row) < 3 or not _names(row[0]) or len(row[-1].text.split()) < 3:
        return {}
    found = {"name": 0, "prose": len(row) - 1}
    for at in range(1, len(row) - 1):
        text = row[at].text
        if is_type(text.strip("`")) and "type" not in found:
            found["type"] = at
        elif len(text) <= 60 and "default" not in found and (whole_value(text) is not None):
            found["default"] = at
        elif text:
            return {}
    return found if "default" in found else {}


def _names(cell: Cell) -> list[str]:
    spans = [name for match in CODE.finditer(cell.text) if (name := identifier_of(re.split(r"[ =(<\[]", match[2])[0]))]
    if spans:
        longest = max(spans, key=len)
        return [longest] if all(one.startswith("-") for one in spans) else spans[:4]
    bare = cell.text.strip("*_` ")
    words = bare.split(" ")
    if len(words) == 1 and is_like_identifier(bare.split("=")[0]):
        return [bare.split("=")[0]]
    flags = re.findall(r"--[a-z][\w-]+", bare)
    return flags[:1]


def _row(page: Page, row: list[Cell], columns: dict[str, int], owner: str) -> Iterator[Fact]:
    if columns["name"] >= len(row):
        return
    name_cell = row[columns["name"]]
    names = _names(name_cell)
    if not names and "default" in columns and 3 <= len(name_cell.text) <= 40 and "`" not in name_cell.text:
        names = [name_cell.text.strip("*_ ")]
    unit = None
    if "unit" in columns and columns["unit"] < len(row):
        unit = row[columns["unit"]].text.strip("`() ").lower() or None
    told: set[str] = set()
    for name in names:
        subject = Subject(name=name, form="table", owner=owner, unit=unit)
        for kind, at in columns.items():
            if at < len(row) and (read := _READ.get(kind)) is not None:
                for attribute, value in read(row[at].text):
                    fact = page.fact(subject, attribute, value, name_cell.start, row[at].end)
                    if fact is not None:
                        told.add(fact.attribute)
                        yield fact
    if names and "prose" in columns and columns["prose"] < len(row):
        cell = row[columns["prose"]]
        subject = Subject(name=names[0], form="table", owner=owner, unit=unit)
        yield from (
            fact
            for fact in prose_facts(page, cell.start, cell.end, subject, headings=owner)
            if fact.attribute not in told
        )


def _valued(attribute: Attribute, text: str) -> Iterator[tuple[Attribute, Value]]:
    value = whole_value(text)
    if value is not None:
        yield attribute, value


_READ = {
    "default": lambda text: _valued("default", text),
    "value": lambda text: _valued("value", text),
}
