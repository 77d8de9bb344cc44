"""Types of values in request bodies, with their checks. Only dates are converted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from nornweave.core.text.dates import utc
from nornweave.core.types import JsonValue

MAX_QUERY_CHARACTERS = 32_000
MAX_DEPTH = 32
MAX_NAME_CHARACTERS = 512
MAX_LINE_CHARACTERS = 4096
# The length of dates that Python parses; a longer text is not a date.
MAX_DATE_CHARACTERS = 64

# Short names that other agents use for our domains.
DOMAIN_SHORTHANDS = {"docs": "documentation", "convo": "conversations"}
_DOMAIN = r"^[A-Za-z0-9_-]{1,64}$"


def textual(text: str) -> str:
    """Return a text. Refuse a text that contains the character NUL or cannot be encoded in UTF-8.

    Raises:
        ValueError: the text has a NUL, or half a surrogate pair, which UTF-8 cannot hold.
    """
    if "\0" in text:
        raise ValueError("holds the character NUL, which no text has")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half a character (a lone surrogate)") from None
    return text


def readable(text: str) -> str:
    """Return a text. Refuse a blank text and any text that ``textual`` refuses."""
    if not text.strip():
        raise ValueError("blank; ask something")
    return textual(text)


def plain_json(values: dict[str, Any]) -> dict[str, Any]:
    """Return an object. Refuse an object that JSON cannot express or that is nested too deeply.

    Raises:
        ValueError: it has NaN, an infinite number, text that ``textual`` refuses, or more than ``MAX_DEPTH`` levels.
    """
    for value, depth in _values(values):
        if depth > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("holds NaN or Infinity, which JSON does not have")
        if isinstance(value, str):
            textual(value)
    return values


def _values(values: Mapping[str, Any]) -> Iterator[tuple[JsonValue, int]]:
    """Yield every key and value with its level. The outermost level is 1. Objects and lists are yielded as ``None``."""
    pending: list[tuple[Any, int]] = [(values, 0)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, dict):
            pending.extend((inner, depth + 1) for pair in value.items() for inner in pair)
        elif isinstance(value, list):
            pending.extend((inner, depth + 1) for inner in value)
        yield (None if isinstance(value, dict | list) else value), depth


def moment(value: object) -> object:
    """Return the moment in UTC of a text with an ISO 8601 date or time. A value that is no text is unchanged.

    Raises:
        ValueError: the text is not a date, or lies outside the years 1 to 9999.
    """
    if not isinstance(value, str):
        return value
    expected = "expected an ISO 8601 date or time such as 2026-01-20T10:00:00Z"
    if len(value) > MAX_DATE_CHARACTERS:
        raise ValueError(expected)
    try:
        read = datetime.fromisoformat(value)
        return utc(read)
    except (ValueError, OverflowError):
        raise ValueError(expected) from None


def score_number(value: object) -> object:
    """Return the score in a value: ``{"value": 0.5}``, as in our own answers, → 0.5. Other values are unchanged."""
    if not isinstance(value, Mapping):
        return value
    if "value" not in value:
        raise ValueError("an object without 'value'; expected a number or {'value': number}")
    return value["value"]


def domain_name(name: str) -> str:
    """Return the full name of a domain for a shorthand; any other name is unchanged."""
    return DOMAIN_SHORTHANDS.get(name, name)


def _pair(value: object) -> object:
    """Turn a JSON list into a tuple, because strict validation refuses lists."""
    return tuple(value) if isinstance(value, list) else value


def _ascending(pair: tuple[int, int]) -> tuple[int, int]:
    if pair[0] > pair[1]:
        raise ValueError("ends before it starts")
    return pair


def _switch(value: object) -> object:
    """Return the boolean for ``true`` or ``false`` from a URL; any other value is unchanged."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _count(value: object) -> object:
    """Return the whole number for its digits from a URL; any other value is unchanged."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,6}", value) else value


QuestionText = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARACTERS), AfterValidator(readable)
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARACTERS), AfterValidator(textual)]
Line = Annotated[str, StringConstraints(max_length=MAX_LINE_CHARACTERS), AfterValidator(textual)]
PlainJson = Annotated[dict[str, Any], AfterValidator(plain_json)]
Moment = Annotated[
    datetime,
    BeforeValidator(moment),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-01-20T10:00:00Z"]}),
]
DomainId = Annotated[str, StringConstraints(pattern=_DOMAIN), AfterValidator(domain_name)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Score = Annotated[
    float,
    Field(allow_inf_nan=False),
    BeforeValidator(score_number),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number"},
                {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]},
            ]
        }
    ),
]
_RANGE_SCHEMA = {"type": "array", "minItems": 2, "maxItems": 2}
Lines = Annotated[
    tuple[Annotated[int, Field(ge=1, le=10**9)], Annotated[int, Field(ge=1, le=10**9)]],
    BeforeValidator(_pair),
    AfterValidator(_ascending),
    WithJsonSchema({**_RANGE_SCHEMA, "items": {"type": "integer", "minimum": 1, "maximum": 10**9}}),
]
Characters = Annotated[
    tuple[Annotated[int, Field(ge=0, le=10**9)], Annotated[int, Field(ge=0, le=10**9)]],
    BeforeValidator(_pair),
    AfterValidator(_ascending),
    WithJsonSchema({**_RANGE_SCHEMA, "items": {"type": "integer", "minimum": 0, "maximum": 10**9}}),
]
UrlSwitch = Annotated[bool, BeforeValidator(_switch)]
UrlCount = Annotated[int, BeforeValidator(_count)]
