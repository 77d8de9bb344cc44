"""``POST /feedback``: what is said of an answer reaches the book; what cannot be said is refused with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from api_support import Ask, client_of, conforms, is_problem
from scripted_engine import ScriptedEngine

from nornweave.ask.feedback.book import FeedbackBook, FeedbackDocument
from nornweave.config import Settings

FEEDBACK = "/feedback"
Drive = Callable[[Callable[[httpx.AsyncClient], Awaitable[None]]], None]
LEAST: dict[str, Any] = {"query_id": "q-1", "chunk_id": "c-1", "useful": True}


def said(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**LEAST, **changes}.items() if value is not ...}


@pytest.mark.parametrize("useful", [True, False])
def test_what_is_said_is_stored_and_returned(ask: Ask, engine: ScriptedEngine, useful: bool) -> None:
    engine.remember("q-1", "c-1")
    answer = ask("POST", FEEDBACK, json=said(useful=useful))
    assert answer.status_code == 200, "nothing is left to be done"
    conforms(FeedbackDocument, answer.json())
    assert engine.judged == [("q-1", "c-1", useful)]


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (said(query_id=...), "query_id", "missing"),
    (said(query_id=""), "query_id", "at least 1"),
    (said(query_id=7), "query_id", "found 7"),
    (said(query_id=None), "query_id", "found null"),
    (said(query_id="x" * 65), "query_id", "at most 64"),
    (said(query_id="a\0b"), "query_id", "NUL"),
    (said(query_id="\ud800"), "query_id", "unicode"),
    (said(chunk_id=...), "chunk_id", "missing"),
    (said(chunk_id=""), "chunk_id", "at least 1"),
    (said(chunk_id=["c-1"]), "chunk_id", "found a list"),
    (said(chunk_id="x" * 513), "chunk_id", "at most 512"),
    (said(chunk_id="\udfff"), "chunk_id", "unicode"),
    (said(useful=...), "useful", "missing"),
    (said(useful=1), "useful", "found 1"),
    (said(useful=0), "useful", "found 0"),
    (said(useful=1.0), "useful", "found 1.0"),
    (said(useful="yes"), "useful", "found 'yes'"),
    (said(useful="true"), "useful", "found 'true'"),
    (said(useful=None), "useful", "found null"),
    (said(useful=float("nan")), "useful", "found NaN"),
    (said(useful={}), "useful", "found an object"),
    (said(comment="great"), "comment", "unknown field"),
    (said(chunk_id="not shown"), "chunk_id", "'not shown' is not among the 2 items"),
]


@pytest.mark.parametrize(("body", "field", "found"), WRONG, ids=[f"{field}-{found}" for _, field, found in WRONG])
def test_a_wrong_field_is_named_and_nothing_is_stored(
    ask: Ask, engine: ScriptedEngine, body: dict[str, Any], field: str, found: str
) -> None:
    engine.remember("q-1", "c-1", "c-2")
    problem = is_problem(ask("POST", FEEDBACK, json_of=body), 422)
    assert [one["field"] for one in problem["errors"]] == [field]
    assert found in problem["errors"][0]["detail"]
    assert engine.judged == []


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"[]", 422), (b"NaN", 422), (b"", 422)])
def test_a_body_that_is_none(ask: Ask, body: bytes, status: int) -> None:
    is_problem(ask("POST", FEEDBACK, content=body, headers={"content-type": "application/json"}), status)


def test_an_answer_that_is_not_remembered(ask: Ask) -> None:
    detail = is_problem(ask("POST", FEEDBACK, json=said(query_id="gone")), 404)["detail"]
    assert all(part in detail for part in ("'gone'", "/query", "/fuse", "30 days", "feedback.keep_queries"))


def test_it_takes_the_token(ask: Ask, engine: ScriptedEngine) -> None:
    engine.remember("q-1", "c-1")
    is_problem(ask("POST", FEEDBACK, json=LEAST, app={"environment": {"NORNWEAVE_SERVICE_TOKEN": "s3cret"}}), 401)
    assert engine.judged == []


@pytest.fixture
def book(engine: ScriptedEngine) -> FeedbackBook:
    return engine.path.feedback


@pytest.fixture
def drive(settings: Settings, engine: ScriptedEngine) -> Drive:
    """Run the app over the engine and its book."""

    def run(test: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
        async def main() -> None:
            async with client_of(settings, engine) as client:
                await test(client)

        asyncio.run(main())

    return run


def test_an_answer_can_be_judged_as_soon_as_it_is_read(drive: Drive, book: FeedbackBook) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        asked = {"query": "refund a payment", "filters": {"code": {"language": "python"}}}
        answer = (await client.post("/query", json=asked)).json()
        chunks = [item["chunk_id"] for item in answer["items"]]
        body = {"query_id": answer["query_id"], "chunk_id": chunks[-1], "useful": True}
        first = await client.post(FEEDBACK, json=body)
        assert first.status_code == 200, first.text
        assert first.json()["previous"] is None
        second = (await client.post(FEEDBACK, json={**body, "useful": False})).json()
        assert (second["useful"], second["previous"]) == (False, True)
        (judged,) = book.judged()
        assert (judged.text, dict(judged.filters["code"])) == ("refund a payment", {"language": "python"})
        assert [item.chunk_id for item in judged.items] == chunks
        assert dict(judged.votes) == {chunks[-1]: False}
        citation = answer["items"][0]["citation"]
        shown = judged.items[0]
        assert (shown.domain_id, shown.source_path) == (citation["domain_id"], citation["source_path"])
        assert shown.score == answer["items"][0]["score"]["value"]

    drive(test)


def test_only_what_the_answer_showed_can_be_judged(drive: Drive, book: FeedbackBook) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        answer = (await client.post("/query", json={"query": "pay", "top_k": 1})).json()
        body = {"query_id": answer["query_id"], "chunk_id": "c-1", "useful": True}
        assert "'c-1' is not among the 1 items" in is_problem(await client.post(FEEDBACK, json=body), 422)["detail"]
        assert book.judged() == ()

    drive(test)


def test_what_others_found_and_texts_cannot_be_judged(drive: Drive, book: FeedbackBook) -> None:
    items = [{"chunk_id": "c-1", "content": "A refund takes three days.", "score": 1.0}]
    fused = {"original_text": "refunds", "responses": [{"agent_id": "wiki", "domain_id": "wiki", "items": items}]}

    async def test(client: httpx.AsyncClient) -> None:
        answer = (await client.post("/fuse", json=fused)).json()
        body = {"query_id": answer["query_id"], "chunk_id": "c-1", "useful": True}
        is_problem(await client.post(FEEDBACK, json=body), 404)
        assert (await client.post("/query", json={"query": "pay", "format": "text"})).status_code == 200
        assert not list(book._database._file.parent.glob("*")), "nothing is kept of either"

    drive(test)


def test_a_disk_that_cannot_be_written_costs_the_query_nothing(drive: Drive, book: FeedbackBook) -> None:
    book._database._file.parent.parent.mkdir(exist_ok=True)
    book._database._file.parent.write_text("no folder")

    async def test(client: httpx.AsyncClient) -> None:
        answer = await client.post("/query", json={"query": "pay"})
        assert answer.status_code == 200
        document = answer.json()
        body = {"query_id": document["query_id"], "chunk_id": document["items"][0]["chunk_id"], "useful": True}
        refused = await client.post(FEEDBACK, json=body)
        assert "cannot be stored" in is_problem(refused, 503)["detail"]
        assert str(book._database._file.parent) not in refused.text

    drive(test)


def test_a_query_that_fails_is_not_remembered(drive: Drive, book: FeedbackBook) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        is_problem(await client.post("/query", json={"query": "pay", "filters": {"code": {"colour": "red"}}}), 422)
        assert not book._database._file.exists()

    drive(test)
