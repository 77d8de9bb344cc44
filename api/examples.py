"""Worked examples of every route: requests to the example corpus, with the answers that were recorded (evals)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nornweave.core.types import JsonValue

FILE = Path(__file__).parent / "worked.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """One request with its answer.

    Attributes:
        path: of the route, its parameters in braces.
        method: in lower case.
        parameters: of the path and behind the question mark.
        answer: JSON, or text where ``media_type`` says so.
    """

    name: str
    summary: str
    method: str
    path: str
    parameters: Mapping[str, JsonValue]
    body: JsonValue
    status: int
    media_type: str
    answer: JsonValue


@cache
def worked_examples() -> tuple[Worked, ...]:
    """Return all examples, in the order of the routes."""
    return tuple(Worked(**one) for one in json.loads(FILE.read_text(encoding="utf-8")))
