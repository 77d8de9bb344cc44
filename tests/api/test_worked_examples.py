"""The worked examples are requests that are right, or wrong as they say, and answers of the declared shape."""

from __future__ import annotations

import re
from typing import Any

import pytest
from api_support import Ask, conforms
from pydantic import BaseModel

from api.chat_documents import CompletionDocument, ModelsDocument
from api.deletion import ReceiptBody, ReceiptDocument
from api.errors import Problem
from api.openapi import Worked, worked_examples
from api.requests.chat import ChatBody
from api.requests.fuse import FuseBody
from api.requests.ingest import IngestBody, IngestDocument
from api.requests.query import QueryBody, WhyBody
from api.requests.registration import HeartbeatBody, LeaseDocument, RegistrationBody, RemovedDocument
from api.routes.feedback import FeedbackBody
from api.schemas import LivenessDocument, ReadinessDocument, RecallBody, RegistryDocument
from lab.record_examples import shortened, with_ids
from nornweave.ask.feedback.book import FeedbackDocument
from nornweave.ask.views.answer import FusionResult
from nornweave.ask.views.changes import ChangesDocument
from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationsDocument
from nornweave.ask.views.items import RecallDocument
from nornweave.ask.views.ledger import LedgerDocument
from nornweave.ask.views.texts import (
    ChunkDocument,
    CompletionsDocument,
    DocumentDocument,
    DocumentsDocument,
    FindDocument,
    WithdrawnDocument,
)
from nornweave.ask.views.why import WhyDocument
from nornweave.core.types import Domain

BODIES: dict[str, type[BaseModel]] = {
    "/query": QueryBody,
    "/fuse": FuseBody,
    "/feedback": FeedbackBody,
    "/v1/chat/completions": ChatBody,
    "/recall": RecallBody,
    "/agents/{domain}/recall": RecallBody,
    "/agents/{domain}/ingest": IngestBody,
    "/ingest": IngestBody,
    "/agents/register": RegistrationBody,
    "/agents/{agent_id}/heartbeat": HeartbeatBody,
    "/receipts": ReceiptBody,
    "/why": WhyBody,
}
ANSWERS: dict[str, Any] = {
    "/query": FusionResult,
    "/fuse": FusionResult,
    "/feedback": FeedbackDocument,
    "/v1/models": ModelsDocument,
    "/v1/chat/completions": CompletionDocument,
    "/recall": RecallDocument,
    "/agents/{domain}/recall": RecallDocument,
    "/agents/{domain}/ingest": IngestDocument,
    "/ingest": IngestDocument,
    "/agents/{domain}/documents": DocumentsDocument,
    "/agents/{domain}/documents/{source_path}": WithdrawnDocument,
    "/agents": RegistryDocument,
    "/agents/register": LeaseDocument,
    "/agents/{agent_id}/heartbeat": LeaseDocument,
    "/agents/{agent_id}": RemovedDocument,
    "/chunks/{chunk_id}": ChunkDocument,
    "/documents/{domain}/{source_id}/{path}": DocumentDocument,
    "/receipts": ReceiptDocument,
    "/why": WhyDocument,
    "/receipts/{receipt_id}": ReceiptDocument,
    "/generations/{a}/diff/{b}": ChangesDocument,
    "/find": FindDocument,
    "/complete": CompletionsDocument,
    "/conflicts": LedgerDocument,
    "/evaluations": EvaluationsDocument,
    "/evaluations/compare": ComparisonDocument,
    "/health": LivenessDocument,
    "/ready": ReadinessDocument,
}
by_name = pytest.mark.parametrize("example", worked_examples(), ids=lambda example: example.name)


@by_name
def test_its_body_is_one_that_is_taken(example: Worked) -> None:
    # The keys of a source are known to its connector alone.
    if example.body is not None and example.status < 400 and example.path != "/sources":
        BODIES[example.path].model_validate(example.body)


@by_name
def test_its_answer_has_the_declared_shape(example: Worked) -> None:
    if example.status >= 400:
        conforms(Problem, example.answer)
    elif example.media_type == "text/plain":
        assert isinstance(example.answer, str) and example.answer
    elif example.path in ANSWERS:
        conforms(ANSWERS[example.path], example.answer)
    else:
        assert isinstance(example.answer, dict) and example.answer


def test_every_operation_has_one_with_its_request_and_answer(look: Ask) -> None:
    document = look("GET", "/openapi.json", app={"agent": Domain.CODE}).json()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            kinds = [
                kind for status, answer in operation["responses"].items() if status < "300"
                for kind in answer.get("content", {}).values()
            ]  # fmt: skip
            assert any(kind.get("examples") for kind in kinds), path
            if "requestBody" in operation:
                assert operation["requestBody"]["content"]["application/json"]["examples"], path
            for parameter in operation.get("parameters", ()):
                assert "example" in parameter or not parameter["required"], (path, parameter["name"])


def test_a_later_request_names_the_ids_of_todays_answers() -> None:
    judged = next(example for example in worked_examples() if example.name == "useful")
    ids = {str(judged.body[key]): f"new {key}" for key in ("query_id", "chunk_id")}  # type: ignore[index,call-overload]
    assert with_ids(judged, ids).body == {"query_id": "new query_id", "chunk_id": "new chunk_id", "useful": True}
    assert with_ids(judged, {}) == judged


def test_nothing_of_the_machine_that_recorded_is_in_them() -> None:
    for example in worked_examples():
        assert not re.search(r"/(?:home|root|tmp|Users|work)/", str(example.answer)), example.name


def test_the_first_shows_a_conflict_and_its_resolution() -> None:
    first: Any = worked_examples()[0].answer
    assert any(conflict["resolved_to"] in conflict["items"] for conflict in first["conflicts"])


def test_long_texts_and_lists_are_shortened() -> None:
    assert shortened({"a": "x" * 500, "b": list(range(20)), "c": ["y"]}) == {
        "a": "x" * 400 + " …", "b": list(range(8)), "c": ["y"],
    }  # fmt: skip
