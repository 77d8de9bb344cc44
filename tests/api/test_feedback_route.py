"""``POST /feedback``: what is said of an answer reaches the book; what cannot be said is refused with its reason."""

from typing import Any

import pytest
from api_support import Ask, client_of, conforms, is_problem
from scripted_engine import ScriptedEngine

from nornweave.ask.feedback import FeedbackBook, FeedbackDocument, feedback_of
from nornweave.config import FeedbackSettings, Settings

FEEDBACK = "/feedback"
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
    (said(query_id="x" * 65), "query_id", "at most 64"),
    (said(query_id="\ud800"), "query_id", "unicode"),
    (said(chunk_id=...), "chunk_id", "missing"),
    (said(chunk_id="x" * 513), "chunk_id", "at most 512"),
    (said(useful=...), "useful", "missing"),
    (said(useful=1), "useful", "found 1"),
    (said(useful="yes"), "useful", "found 'yes'"),
    (said(comment="great"), "comment", "unknown field"),
    (said(chunk_id="not shown"), "chunk_id", "'not shown' is not among the 2 items"),
]


@pytest.mark.parametrize(("body", "field", "found"), WRONG, ids=[f"{field}-{found}" for _, field, found in WRONG])
def test_a_wrong_field_is_named_and_nothing_is_stored(
    look: Ask, still_engine: ScriptedEngine, body: dict[str, Any], field: str, found: str
) -> None:
    still_engine.remember("q-1", "c-1", "c-2")
    problem = is_problem(look("POST", FEEDBACK, json_of=body), 422)
    assert [one["field"] for one in problem["errors"]] == [field]
    assert found in problem["errors"][0]["detail"]
    assert still_engine.judged == []


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"[]", 422), (b"NaN", 422), (b"", 422)])
def test_a_body_that_is_none(look: Ask, body: bytes, status: int) -> None:
    is_problem(look("POST", FEEDBACK, content=body, headers={"content-type": "application/json"}), status)


def test_an_answer_that_is_not_remembered(look: Ask) -> None:
    detail = is_problem(look("POST", FEEDBACK, json=said(query_id="gone")), 404)["detail"]
    assert all(part in detail for part in ("'gone'", "/query", "/fuse", "30 days", "feedback.keep_queries"))


@pytest.fixture
def book(engine: ScriptedEngine) -> FeedbackBook:
    return engine.path.feedback


async def test_an_answer_can_be_judged_as_soon_as_it_is_read(
    settings: Settings, engine: ScriptedEngine, book: FeedbackBook
) -> None:
    async with client_of(settings, engine) as client:
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


async def test_what_others_found_and_texts_cannot_be_judged(
    settings: Settings, engine: ScriptedEngine, book: FeedbackBook
) -> None:
    items = [{"chunk_id": "c-1", "content": "A refund takes three days.", "score": 1.0}]
    fused = {"original_text": "refunds", "responses": [{"agent_id": "wiki", "domain_id": "wiki", "items": items}]}
    async with client_of(settings, engine) as client:
        answer = (await client.post("/fuse", json=fused)).json()
        body = {"query_id": answer["query_id"], "chunk_id": "c-1", "useful": True}
        is_problem(await client.post(FEEDBACK, json=body), 404)
        assert (await client.post("/query", json={"query": "pay", "format": "text"})).status_code == 200
        assert not list(book.file.parent.glob("*")), "nothing is kept of either"


async def test_a_disk_that_cannot_be_written_costs_the_query_nothing(
    settings: Settings, engine: ScriptedEngine, book: FeedbackBook
) -> None:
    book.file.parent.parent.mkdir(exist_ok=True)
    book.file.parent.write_text("no folder")
    async with client_of(settings, engine) as client:
        answer = await client.post("/query", json={"query": "pay"})
        assert answer.status_code == 200
        document = answer.json()
        body = {"query_id": document["query_id"], "chunk_id": document["items"][0]["chunk_id"], "useful": True}
        refused = await client.post(FEEDBACK, json=body)
        assert "cannot be stored" in is_problem(refused, 503)["detail"]
        assert str(book.file.parent) not in refused.text


def test_settings_say_whether_queries_are_kept(settings: Settings) -> None:
    off = settings.model_copy(update={"feedback": FeedbackSettings(keep_queries=False)})
    assert [feedback_of(each)._keep_queries for each in (settings, off)] == [True, False]
