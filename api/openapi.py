"""How ``/openapi.json`` declares problem documents."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

from api.errors import MEDIA_TYPE, Problem

REFERENCE = "#/components/schemas/{model}"
OPEN_OPERATION: dict[str, Any] = {"security": []}


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Declare problem documents for these statuses."""
    content = {MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


PROBLEMS = problem_responses(400, 401, 404, 413, 415, 422, 500, 503)


class App(FastAPI):
    """An app whose description knows problem documents and the bearer token."""

    def openapi(self) -> dict[str, Any]:
        """Return the description; it is made once."""
        if self.openapi_schema:
            return self.openapi_schema
        document = super().openapi()
        components = document.setdefault("components", {})
        problem = TypeAdapter(Problem).json_schema(ref_template=REFERENCE)
        components.setdefault("schemas", {}).update({**problem.pop("$defs"), "Problem": problem})
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        # Either with the token or, where none is configured, without.
        document["security"] = [{"token": []}, {}]
        return document
