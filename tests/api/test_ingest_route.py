"""``/agents/{domain}/ingest``: what is handed in reaches the inbox, and each document learns what became of it."""

import json
import logging
from typing import Any

import pytest
from api_support import Ask, conforms, is_problem
from scripted_engine import ScriptedEngine

from api.routes.inbox import MAX_DOCUMENT_BYTES, IngestDocument
from api.server.limits import MAX_BODY_BYTES
from nornweave.config import Settings
from nornweave.core.text.decode import MAX_BYTES
from nornweave.core.types import Domain

INGEST = "/agents/documentation/ingest"
LEAST = {"source_path": "runbooks/refunds.md", "content": "# Refunds\n\nThey take a week.\n"}


def test_each_document_learns_what_became_of_it(ask: Ask, engine: ScriptedEngine) -> None:
    full = {
        "source_path": "größe/#1.md",
        "content": "zählt 🙂",
        "metadata": {"author": "Ada", "tags": ["a", {"b": None}]},
        "source_updated_at": "2026-01-20T12:00:00+02:00",
    }
    answer = ask("POST", INGEST, json={"documents": [LEAST, full, {**LEAST, "source_path": "../etc/passwd"}]})
    assert answer.status_code == 202
    conforms(IngestDocument, answer.json())
    first, second, third = answer.json()["documents"]
    assert first == {"source_path": "runbooks/refunds.md", "status": "ACCEPTED", "reason": None}
    assert second == {"source_path": "größe/#1.md", "status": "ACCEPTED", "reason": None}
    assert (third["source_path"], third["status"]) == ("../etc/passwd", "REJECTED")
    assert "holds an empty component, '.', '..'" in third["reason"]
    assert len(engine.handed_in) == 2
    listed = ask("GET", "/agents/documentation/documents").json()["documents"]
    waiting = [document["source_path"] for document in listed if document["status"] == "accepted"]
    assert waiting == ["größe/#1.md", "runbooks/refunds.md"]


@pytest.mark.parametrize("domain", ["research", "docs", "CODE", "%00", "..%2fcode"])
def test_only_what_is_served_has_an_inbox(look: Ask, still_engine: ScriptedEngine, domain: str) -> None:
    is_problem(look("POST", f"/agents/{domain}/ingest", json={"documents": [LEAST]}), 404)
    assert still_engine.handed_in == []


def test_an_inbox_that_cannot_be_written_is_said_without_its_place(
    ask: Ask, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = settings.inbox(Domain.DOCUMENTATION)
    inbox.parent.mkdir(parents=True, exist_ok=True)
    inbox.write_text("no folder")
    with caplog.at_level(logging.ERROR):
        answer = ask("POST", INGEST, json={"documents": [LEAST]})
    assert is_problem(answer, 503)["type"].endswith(":inbox-unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert str(inbox) not in answer.text
    assert str(inbox) in caplog.text


def document(**changes: Any) -> dict[str, Any]:
    return {"documents": [{key: value for key, value in {**LEAST, **changes}.items() if value is not ...}]}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "documents", "missing"),
    ({"documents": []}, "documents", "at least 1"),
    ({"documents": [LEAST] * 1001}, "documents", "at most 1000"),
    ({"documents": LEAST}, "documents", "found an object"),
    ({"documents": [LEAST], "mode": "full"}, "mode", "unknown field"),
    (document(source_path=...), "documents.0.source_path", "missing"),
    (document(source_path="x" * 4097), "documents.0.source_path", "4096"),
    (document(content=...), "documents.0.content", "missing"),
    (document(content="a\0b"), "documents.0.content", "NUL"),
    (document(metadata={"a": float("inf")}), "documents.0.metadata", "NaN or Infinity"),
    (document(source_updated_at="last week"), "documents.0.source_updated_at", "ISO 8601"),
    (document(path="x"), "documents.0.path", "unknown field"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "field", "said"), WRONG, ids=[f"{field}-{said}" for _, field, said in WRONG])
def test_a_wrong_field_is_named_and_nothing_is_kept(
    look: Ask, still_engine: ScriptedEngine, body: dict[str, Any], field: str, said: str
) -> None:
    problem = is_problem(look("POST", INGEST, json_of=body), 422)
    assert [one["field"] for one in problem["errors"]] == [field]
    assert said in problem["errors"][0]["detail"]
    assert still_engine.handed_in == []


def test_a_document_may_be_as_large_as_a_sync_takes(ask: Ask, engine: ScriptedEngine) -> None:
    assert MAX_DOCUMENT_BYTES == MAX_BYTES
    files = [("file", (f"{number}.md", b"x" * MAX_DOCUMENT_BYTES)) for number in range(3)]
    assert ask("POST", INGEST, files=files).status_code == 202
    assert len(engine.handed_in) == 3
    is_problem(ask("POST", INGEST, files=[*files, ("file", ("3.md", b"x" * MAX_DOCUMENT_BYTES))]), 413)
    larger = json.dumps(document()).encode() + b" " * MAX_BODY_BYTES
    refused = ask("POST", INGEST, content=larger, headers={"content-type": "application/json"})
    assert is_problem(refused, 413)["detail"].endswith("allowed; hand larger documents in as multipart/form-data")
