"""The OpenAPI document, with worked examples of every route: requests to the example corpus and recorded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

from api.errors import MEDIA_TYPE, Problem
from nornweave.core.types import JsonValue

FILE = Path(__file__).parent / "worked.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """One request with its answer.

    Attributes:
        path: the path of the route, with its parameters in braces.
        method: the HTTP method, in lower case.
        parameters: the values of parameters in the path and in the query.
        answer: JSON, or text if ``media_type`` says so.
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


REFERENCE = "#/components/schemas/{model}"
OPEN_OPERATION: dict[str, Any] = {"security": []}
DESCRIPTION = """\
One question, one answer out of code, documentation, conversations and research: deduplicated, conflicts shown with both
sides, what was not searched named. Errors are problem documents (RFC 9457). The examples are answers from the example
corpus, shortened where `…` stands.
"""
TAGS = [
    {"name": "answers", "description": "Questions to all domains, and the fusion of any agents' answers."},
    {"name": "chat", "description": "NornWeave as a model, for clients that speak OpenAI's interface."},
    {"name": "feedback", "description": "What users say of answers, for evaluations."},
    {"name": "evaluations", "description": "The history of measures, and generations beside each other."},
    {"name": "agents", "description": "One domain each: recall, description, health."},
    {"name": "agent", "description": "The one agent that is served alone."},
    {"name": "inbox", "description": "Documents handed in over HTTP."},
    {"name": "hooks", "description": "Webhooks of the services that sources are read from."},
    {"name": "receipts", "description": "Signed statements that nothing holds a deleted document."},
    {"name": "texts", "description": "The text behind a citation."},
    {"name": "conflicts", "description": "The ledger: what domains disagree about in the whole corpus."},
    {"name": "tokens", "description": "Tokens that people make for their programs."},
    {"name": "health", "description": "Liveness and readiness."},
]


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the declaration of a route's responses with these statuses, which are problem documents."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {
                MEDIA_TYPE: {
                    "schema": {"$ref": REFERENCE.format(model="Problem")},
                    "example": {
                        "type": "about:blank",
                        "title": HTTPStatus(status).phrase,
                        "status": status,
                        "detail": "what was found, what is allowed, what to do",
                    },
                }
            },
        }
        for status in statuses
    }


PROBLEMS = problem_responses(400, 401, 404, 413, 415, 421, 422, 500, 503)


class App(FastAPI):
    """An app whose OpenAPI document has problem documents, the bearer token and worked examples."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document, which is made once."""
        if self.openapi_schema:
            return self.openapi_schema
        document = super().openapi()
        components = document.setdefault("components", {})
        problem = TypeAdapter(Problem).json_schema(ref_template=REFERENCE)
        components.setdefault("schemas", {}).update({**problem.pop("$defs"), "Problem": problem})
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        # Either with the token or, where none is configured, without.
        document["security"] = [{"token": []}, {}]
        for example in worked_examples():
            operation = document["paths"].get(example.path, {}).get(example.method)
            if operation:
                _add(operation, example)
        return document


def _add(operation: dict[str, Any], example: Worked) -> None:
    """Add an example to an operation: its parameters, its body and its answer."""
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in example.parameters and "example" not in parameter:
            parameter["example"] = example.parameters[parameter["name"]]
            parameter["schema"].pop("examples", None)
    shown = {"summary": example.summary}
    if example.body is not None:
        kinds = operation["requestBody"]["content"]
        kinds["application/json"].setdefault("examples", {})[example.name] = {**shown, "value": example.body}
    kinds = operation["responses"][str(example.status)]["content"]
    # Problem documents are declared once for all operations: each gets its own before an example joins it.
    kind = {key: value for key, value in kinds[example.media_type].items() if key != "example"}
    kinds[example.media_type] = {
        **kind,
        "examples": {**kind.get("examples", {}), example.name: {**shown, "value": example.answer}},
    }
