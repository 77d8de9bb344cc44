"""``/openapi.json``: what programs learn about the API is what it does."""

from typing import Any

import pytest
from api_support import Ask
from fastapi.routing import APIRoute

from api.app import create_app
from nornweave.config import Settings
from nornweave.core.types import Domain


@pytest.fixture
def document(look: Ask) -> dict[str, Any]:
    answer = look("GET", "/openapi.json", app={"agent": Domain.CODE})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_every_route_is_described(document: dict[str, Any]) -> None:
    assert set(document["paths"]) == {
        "/agents/register", "/agents/{agent_id}/heartbeat", "/agents/{agent_id}",
        "/agents", "/agents/{domain}/recall", "/agents/{domain}/describe", "/agents/{domain}/health",
        "/health", "/ready", "/metrics", "/recall", "/describe", "/query", "/feedback", "/fuse",
        "/agents/{domain}/ingest", "/ingest", "/agents/{domain}/documents", "/agents/{domain}/documents/{source_path}",
        "/evaluations", "/evaluations/compare", "/v1/models", "/v1/models/{model}",
        "/v1/chat/completions", "/v1/responses", "/v1/embeddings",
        "/find", "/uses", "/why", "/complete", "/chunks/{chunk_id}", "/documents/{domain}/{source_id}/{path}",
        "/conflicts", "/conflicts/{conflict_id}/dismiss", "/tokens", "/tokens/{token_id}",
        "/hooks/{service}",
        "/receipts", "/receipts/{receipt_id}", "/sources", "/sources/{source_id}", "/generations/{a}/diff/{b}",
    }  # fmt: skip
    for operations in document["paths"].values():
        for operation in operations.values():
            assert operation["summary"] and operation["description"]


def test_errors_are_declared_as_problem_documents(document: dict[str, Any]) -> None:
    responses = document["paths"]["/agents/{domain}/recall"]["post"]["responses"]
    assert set(responses) == {"200", "400", "401", "404", "413", "415", "421", "422", "500", "503"}
    for status, response in responses.items():
        if status != "200":
            assert set(response["content"]) == {"application/problem+json"}
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_bodies_say_what_is_needed_and_refuse_the_rest(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    needed = {
        "RecallBody": ["query_text"], "QueryBody": ["query"], "FuseBody": ["original_text", "responses"],
        "IngestBody": ["documents"], "HandedInBody": ["source_path", "content"],
        "FeedbackBody": ["query_id", "chunk_id", "useful"],
    }  # fmt: skip
    for name, fields in needed.items():
        assert schemas[name]["required"] == fields
        assert schemas[name]["additionalProperties"] is False
    assert schemas["ItemBody"]["required"] == ["chunk_id", "content", "score"]
    assert "additionalProperties" not in schemas["ItemBody"], "other agents may say more"


def test_the_token_is_described(document: dict[str, Any]) -> None:
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert document["security"] == [{"token": []}, {}]
    assert document["paths"]["/health"]["get"]["security"] == []


def test_the_operations_of_a_process_are_built_once(published: Settings) -> None:
    first, second = (create_app(published, environment={}).routes for _ in range(2))
    operations = [route for route in first if isinstance(route, APIRoute)]
    assert {"/query", "/health"} <= {route.path for route in operations}
    assert set(map(id, operations)) <= set(map(id, second))
