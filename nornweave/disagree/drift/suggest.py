"""Suggest a corrected documentation line with the other side's value, if the value stands there exactly once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact, ValueKind
from nornweave.disagree.facts.comparison import FactComparison, compare
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.units import UNITS
from nornweave.disagree.facts.values import Value, show

MAX_LINE = 1_000
"""Characters of a line in which a value is looked for."""

_NUMBER = lazy_pattern(
    r"(?<![\w.,-])(?P<number>\d[\d_]*(?:,\d{3}(?!\d))*(?:\.\d+)?)(?P<blank> ?)(?P<unit>[A-Za-zµ%]{1,12})?(?![\w])"
)
_QUOTED = lazy_pattern(r"\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|``[^`\n]{1,200}``|`[^`\n]{1,200}`")
_WORD = lazy_pattern(r"(?<![\w.-])[A-Za-z][\w./:-]{0,60}(?<![.:])")
_LIST = lazy_pattern(r"\[[^\[\]\n]{0,400}\]")
_VERSION = lazy_pattern(r"(?<![\w.])v?(?P<version>\d{1,5}(?:\.\d{1,6}){0,4})(?![\w.]*\d)")
_OPPOSITE = {
    "true": "false", "yes": "no", "on": "off", "enabled": "disabled",
}  # fmt: skip
_OPPOSITES = {**_OPPOSITE, **{no: yes for yes, no in _OPPOSITE.items()}}


# What may be written where a word or a string stood.
_IN_PLACE_OF: dict[ValueKind, frozenset[ValueKind]] = {
    "string": frozenset(("string", "none", "unlimited")),
    "status": frozenset(("status",)),
    "none": frozenset(("string", "number", "boolean", "unlimited")),
    "unlimited": frozenset(("number", "none")),
}


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


def with_value(line: str, stated: Fact, wanted: Fact) -> str | None:
    """Return a line with its value replaced.

    Args:
        line: the line as it stands.
        stated: what it states.
        wanted: the fact whose value it should state.

    Returns:
        ``None`` if the value is not found in the line, is found twice, or cannot be written in its place.
    """
    if len(line) > MAX_LINE or stated.negated or wanted.negated:
        return None
    edits = list(dict.fromkeys(_edits(line, stated, wanted)))
    if len(edits) != 1:
        return None
    (edit,) = edits
    changed = line[: edit.start] + edit.text + line[edit.end :]
    return changed if changed != line else None


def _edits(line: str, stated: Fact, wanted: Fact) -> Iterator[_Edit]:
    if stated.kind == "number" and wanted.kind == "number":
        yield from _numbers(line, stated, wanted)
    elif stated.kind == "boolean" and wanted.kind == "boolean":
        yield from _switches(line, stated)
    elif stated.kind == "version" and wanted.kind == "version":
        yield from _versions(line, stated, wanted)
    elif stated.kind == "list" and wanted.kind == "list":
        yield from _lists(line, stated, wanted)
    elif wanted.kind in _IN_PLACE_OF.get(stated.kind, ()):
        yield from _texts(line, stated, wanted)
    elif stated.kind == "number" and wanted.kind in {"none", "unlimited", "boolean"}:
        for match in _NUMBER.finditer(line):
            if _reads_as(match[0], stated):
                yield _Edit(match.start(), match.end(), wanted.value)


def _reads_as(text: str, stated: Fact) -> bool:
    value = read_value(text)
    fact = Value(stated.kind, stated.value, stated.unit)
    return (
        value is not None
        and value.is_literal
        and value.kind == fact.kind
        and compare(value, fact) is FactComparison.AGREE
    )


def _numbers(line: str, stated: Fact, wanted: Fact) -> Iterator[_Edit]:
    if stated.unit and not wanted.unit:  # 0.05 beside 15 %: nobody says what it counts
        return
    for match in _NUMBER.finditer(line):
        number = Fraction(re.sub("[_,]", "", match["number"]))
        unit = match["unit"] if (match["unit"] or "").lower() in UNITS else None
        end = match.end() if unit else match.end("number")
        if not number or not _reads_as(line[match.start() : end], stated):
            continue
        # What one of the line's own unit is, by what the line is known to say: 20 with "20000 ms", 3600 with "2 hours".
        scaled = Fraction(wanted.value) * number / Fraction(stated.value)
        if (scaled * 1000).denominator != 1 or stated.unit != wanted.unit:
            yield _Edit(match.start(), end, show(wanted.kind, wanted.value, wanted.unit))
            continue
        written = f"{scaled.numerator:,}" if "," in match["number"] and scaled.denominator == 1 else _decimal(scaled)
        yield _Edit(match.start(), end, written + (match["blank"] + _plural(unit, scaled) if unit else ""))


def _decimal(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.3f}".rstrip("0")


def _plural(unit: str, number: Fraction) -> str:
    """Write ``1 hour`` and ``2 hours``; short units have no plural."""
    singular = unit[:-1] if unit.endswith("s") else unit
    if len(singular) < 3 or singular.lower() not in UNITS or f"{singular.lower()}s" not in UNITS:
        return unit
    return singular if number == 1 else f"{singular}s"


def _switches(line: str, stated: Fact) -> Iterator[_Edit]:
    for match in _WORD.finditer(line):
        other = _OPPOSITES.get(match[0].lower())
        if other is None or not _reads_as(match[0], stated):
            continue
        same_case = other.upper() if match[0].isupper() else other.capitalize() if match[0][0].isupper() else other
        yield _Edit(match.start(), match.end(), same_case)


def _versions(line: str, stated: Fact, wanted: Fact) -> Iterator[_Edit]:
    least = re.search(r"\d[\d.]*", stated.value)
    new = re.search(r"\d[\d.]*", wanted.value)
    for match in _VERSION.finditer(line) if least and new else ():
        if least and new and match["version"] == least[0]:
            yield _Edit(match.start("version"), match.end("version"), new[0])


def _lists(line: str, stated: Fact, wanted: Fact) -> Iterator[_Edit]:
    for match in _LIST.finditer(line):
        if _reads_as(match[0], stated):
            quote = next((mark for mark in "\"'`" if mark in match[0]), "")
            items = ", ".join(f"{quote}{item}{quote}" for item in json.loads(wanted.value))
            yield _Edit(match.start(), match.end(), f"[{items}]")


def _texts(line: str, stated: Fact, wanted: Fact) -> Iterator[_Edit]:
    """Replace a string in its quotes; a word that stands without quotes only by another word."""
    new = wanted.value if wanted.kind in {"string", "status"} else show(wanted.kind, wanted.value, wanted.unit)
    if not new or "\n" in new:
        return
    for match in _QUOTED.finditer(line):
        marks = len(match[0]) - len(match[0].lstrip(match[0][0]))
        inner = match[0][marks:-marks]
        bare = inner.strip("\"'")
        if bare == stated.value:
            start = match.start() + marks + inner.index(bare)
            yield _Edit(start, start + len(bare), new)
            return
    for match in _WORD.finditer(line):
        if match[0] == stated.value or (stated.kind in {"none", "unlimited"} and _reads_as(match[0], stated)):
            yield _Edit(match.start(), match.end(), new)
