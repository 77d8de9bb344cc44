"""The app over the real engine and a small corpus: what was synced is what is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from api_support import client_of, conforms, is_problem, publish, write_corpus
from pydantic import TypeAdapter
from questions import question_of
from shown_answers import document as answered
from shown_answers import remembered

from nornweave.ask.feedback.book import REMEMBERED_DAYS, FeedbackBook
from nornweave.ask.feedback.database import FeedbackFile
from nornweave.ask.views.answer import FusionResult
from nornweave.ask.views.items import RecallDocument
from nornweave.ask.views.ledger import LedgerDocument
from nornweave.ask.views.texts import ChunkDocument, DocumentDocument
from nornweave.config import FeedbackSettings, Settings

READY_WITHIN_S = 120


def drive(settings: Settings, test: Callable[[httpx.AsyncClient], Awaitable[None]], **options: object) -> None:
    async def main() -> None:
        async with client_of(settings, None, **options) as client:
            await test(client)

    asyncio.run(main())


async def until_ready(client: httpx.AsyncClient) -> None:
    for _ in range(READY_WITHIN_S * 20):
        if (await client.get("/ready")).status_code == 200:
            return
        await asyncio.sleep(0.05)
    raise AssertionError((await client.get("/ready")).text)


def test_what_was_synced_is_found_at_once(published: Settings) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        answer = await client.post(
            "/agents/code/recall", json={"query_text": "post_entry", "explain": True, "timeout_ms": 60_000}
        )
        assert answer.status_code == 200, "asked while it starts"
        document = answer.json()
        declared = TypeAdapter(RecallDocument)
        assert declared.dump_python(declared.validate_python(document), mode="json") == document
        first = document["items"][0]
        assert "post_entry" in first["content"]
        assert (first["citation"]["source_id"], first["citation"]["source_path"]) == ("ledger", "ledger.py")
        assert first["citation"]["line_range"] == [1, 3]
        assert (document["agent_id"], document["generation"]) == ("code-memory", "gen-000001")
        assert document["total_searched"] == 3
        assert first["explanation"]["contributions"]

    drive(published, test)


def test_filters_and_wrong_filters(published: Settings) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        body = {"query_text": "payment", "filters": {"path_glob": "refund.py"}}
        found = (await client.post("/agents/code/recall", json=body)).json()
        assert {item["citation"]["source_path"] for item in found["items"]} == {"refund.py"}
        wrong = {"query_text": "payment", "filters": {"path_glob": 3}}
        problem = is_problem(await client.post("/agents/code/recall", json=wrong), 422)
        assert problem["errors"][0]["field"] == "filters.path_glob"
        unknown = {"query_text": "payment", "filters": {"author": "x"}}
        problem = is_problem(await client.post("/agents/code/recall", json=unknown), 422)
        assert problem["errors"][0]["field"] == "filters.author"
        assert "path_glob" in problem["errors"][0]["detail"]

    drive(published, test)


def test_a_deadline_of_a_millisecond_names_what_is_missing(published: Settings) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        await until_ready(client)
        answer = await client.post("/agents/code/recall", json={"query_text": "payment", "timeout_ms": 1})
        assert answer.status_code == 200, "nothing else is asked: its turn is at once"
        document = answer.json()
        late = {source for source, state in document["retrieval"].items() if state == "timeout"}
        assert all(any(source in notice for notice in document["notices"]) for source in late), document

    drive(published, test)


@pytest.mark.parametrize("text", ["x", "x" * 4096, "🙂🙂", "'; drop table chunks; --", "(a+)+$ [", "какой-то запрос"])
def test_strange_queries_get_answers(published: Settings, text: str) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        answer = await client.post("/agents/documentation/recall", json={"query_text": text})
        assert answer.status_code == 200, answer.text

    drive(published, test)


def test_before_the_first_sync_every_domain_says_so(tmp_path: Path) -> None:
    settings = write_corpus(tmp_path)

    async def test(client: httpx.AsyncClient) -> None:
        assert (await client.get("/health")).json() == {"status": "ok"}
        answer = await client.post("/agents/code/recall", json={"query_text": "payment"})
        assert "nornweave sync" in is_problem(answer, 503)["detail"]
        ready = await client.get("/ready")
        assert ready.status_code == 503
        assert all("nornweave sync" in one["reason"] for one in ready.json()["domains"].values())
        assert (await client.get("/agents/code/describe")).json()["generation"] is None

        publish(settings)
        await until_ready(client)
        assert (await client.post("/agents/code/recall", json={"query_text": "payment"})).json()["items"]

    drive(settings, test)


def test_a_new_publication_answers_without_a_failed_request(tmp_path: Path) -> None:
    settings = write_corpus(tmp_path)
    publish(settings)

    async def test(client: httpx.AsyncClient) -> None:
        statuses: list[int] = []
        generations: list[str] = []

        async def ask() -> None:
            while "gen-000002" not in generations:
                answer = await client.post("/agents/documentation/recall", json={"query_text": "zebracorn"})
                statuses.append(answer.status_code)
                generations.append(answer.json()["generation"])

        asking = [asyncio.create_task(ask()) for _ in range(4)]
        await asyncio.sleep(0.1)
        (tmp_path / "docs" / "added.md").write_text("# Zebra\n\nThe zebracorn endpoint returns 418.\n")
        await asyncio.to_thread(publish, settings)
        async with asyncio.timeout(READY_WITHIN_S):
            await asyncio.gather(*asking)
        assert set(statuses) == {200}
        assert set(generations) == {"gen-000001", "gen-000002"}
        found = (await client.post("/agents/documentation/recall", json={"query_text": "zebracorn"})).json()
        assert found["items"][0]["citation"]["source_path"] == "added.md"

    drive(settings, test)


def test_one_question_is_answered_from_every_domain(published: Settings) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        answer = await client.post("/query", json={"query": "refund payments", "timeout_ms": 60_000})
        assert answer.status_code == 200, "asked while it starts"
        document = answer.json()
        conforms(FusionResult, document)
        assert {item["citation"]["domain_id"] for item in document["items"]} == {"code", "documentation"}
        assert document["coverage_gaps"] == []
        assert document["coverage"]["code"]["generation"] == "gen-000001"
        filtered = {"query": "refund", "filters": {"code": {"path_glob": "refund.py"}}, "domains": ["code"]}
        items = (await client.post("/query", json=filtered)).json()["items"]
        assert {item["citation"]["source_path"] for item in items} == {"refund.py"}
        wrong = {"query": "refund", "filters": {"code": {"path_glob": 3}}}
        problem = is_problem(await client.post("/query", json=wrong), 422)
        assert problem["errors"][0]["field"] == "filters.code.path_glob"

    drive(published, test)


def test_text_has_a_section_a_domain_and_one_domain_alone_no_header(published: Settings) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        both = await client.post("/query", json={"query": "refund payments", "format": "text"})
        assert both.headers["content-type"] == "text/plain; charset=utf-8"
        assert both.text.count("\n---\n") == 1
        assert "[CODE — " in both.text and "[DOCUMENTATION — " in both.text
        one = await client.post("/query", json={"query": "refund", "format": "text", "domains": ["code"]})
        assert "def refund" in one.text
        assert "[CODE" not in one.text

    drive(published, test)


def test_from_an_item_to_its_chunk_and_its_document(published: Settings) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        items = (await client.post("/query", json={"query": "settle in two days"})).json()["items"]
        item = next(item for item in items if item["citation"]["source_path"] == "guide.md")
        chunk = (await client.get(f"/chunks/{item['chunk_id']}")).json()
        conforms(ChunkDocument, chunk)
        assert (chunk["content"], chunk["citation"]) == (item["content"], item["citation"])
        document = (await client.get("/documents/documentation/handbook/guide.md")).json()
        conforms(DocumentDocument, document)
        start, end = chunk["citation"]["char_range"]
        assert document["text"][start:end].strip() == chunk["content"].strip()
        assert item["chunk_id"] in document["chunks"]
        is_problem(await client.get("/chunks/nothing"), 404)
        is_problem(await client.get("/documents/documentation/handbook/..%2f..%2fnornweave.yaml"), 404)
        is_problem(await client.get("/documents/code/handbook/guide.md"), 404)

    drive(published, test)


def test_our_own_answers_fuse_as_they_do_inside(published: Settings) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        ask = {"query_text": "refund payments", "top_k": 20}
        responses = [(await client.post(f"/agents/{one}/recall", json=ask)).json() for one in ("code", "documentation")]
        fused = await client.post("/fuse", json={"original_text": "refund payments", "responses": responses})
        conforms(FusionResult, fused.json())
        inside = (await client.post("/query", json={"query": "refund payments", "top_k": 20})).json()
        assert {item["chunk_id"] for item in fused.json()["items"]} == {item["chunk_id"] for item in inside["items"]}

    drive(published, test)


def test_what_was_answered_can_be_judged_unless_queries_are_not_kept(published: Settings) -> None:
    async def judged(client: httpx.AsyncClient) -> httpx.Response:
        await until_ready(client)
        answer = (await client.post("/query", json={"query": "refund payments"})).json()
        body = {"query_id": answer["query_id"], "chunk_id": answer["items"][0]["chunk_id"], "useful": True}
        return await client.post("/feedback", json=body)

    async def kept(client: httpx.AsyncClient) -> None:
        assert (await judged(client)).status_code == 200

    async def not_kept(client: httpx.AsyncClient) -> None:
        is_problem(await judged(client), 404)

    drive(published, kept)
    drive(published.model_copy(update={"feedback": FeedbackSettings(keep_queries=False)}), not_kept)


def test_what_nobody_judged_in_a_month_is_forgotten_while_it_serves(tmp_path: Path) -> None:
    settings = write_corpus(tmp_path)
    folder = settings.data_dir / "feedback"
    for days in (REMEMBERED_DAYS + 1, 1):
        shown_at = datetime.now(UTC) - timedelta(days=days)
        book = FeedbackBook(FeedbackFile(folder), now=lambda at=shown_at: at)  # type: ignore[misc]
        book.shown(question_of("x"), answered(f"{days} days ago"))
        book.close()

    async def test(client: httpx.AsyncClient) -> None:
        for _ in range(READY_WITHIN_S * 20):
            if len(remembered(folder)) == 1:
                break
            await asyncio.sleep(0.05)
        assert remembered(folder) == ["1 days ago"]
        await client.get("/health")

    drive(settings, test)


def test_what_is_handed_in_is_found_after_the_next_sync(tmp_path: Path) -> None:
    settings = write_corpus(tmp_path)
    publish(settings)
    path, text = "größe/refunds #1.md", "# Chargebacks\n\nA chargeback is answered within ten days.\n"

    async def test(client: httpx.AsyncClient) -> None:
        await until_ready(client)
        body = {"documents": [{"source_path": path, "content": text}, {"source_path": "../x.md", "content": text}]}
        answer = await client.post("/agents/documentation/ingest", json=body)
        assert answer.status_code == 202
        accepted, rejected = answer.json()["documents"]
        assert accepted == {"source_path": path, "status": "ACCEPTED", "reason": None}
        assert (rejected["status"], "'..'" in rejected["reason"]) == ("REJECTED", True)
        again = (await client.post("/agents/documentation/ingest", json={"documents": body["documents"][:1]})).json()
        assert again["documents"][0]["reason"] == "duplicate"
        assert not list(tmp_path.rglob("x.md"))
        publish(settings)
        for _ in range(READY_WITHIN_S * 20):
            items = (await client.post("/query", json={"query": "chargeback", "top_k": 3})).json()["items"]
            if items and items[0]["citation"]["source_path"] == path:
                break
            await asyncio.sleep(0.05)
        assert items[0]["citation"]["source_path"] == path
        found = await client.get(f"/documents/documentation/{items[0]['citation']['source_id']}/{quote(path)}")
        assert found.json()["text"] == text

    drive(settings, test)


def test_a_file_that_changes_changes_the_answer(tmp_path: Path) -> None:
    settings = write_corpus(tmp_path)
    (tmp_path / "code" / "webhooks.py").write_text('"""Webhooks."""\n\nWEBHOOK_TIMEOUT_SECONDS = 10\n', "utf-8")
    guide = tmp_path / "docs" / "webhooks.md"
    guide.write_text("# Webhooks\n\nThe webhook timeout is 30 seconds.\n", "utf-8")
    publish(settings)
    question = {"query": "what is the webhook timeout"}

    async def test(client: httpx.AsyncClient) -> None:
        await until_ready(client)
        (conflict,) = (await client.post("/query", json=question)).json()["conflicts"]
        assert [claim["value"] for claim in conflict["claims"]] in (["10", "30"], ["30", "10"])
        guide.write_text("# Webhooks\n\nThe webhook timeout is 10 seconds.\n", "utf-8")
        publish(settings)
        for _ in range(READY_WITHIN_S * 20):
            answer = (await client.post("/query", json=question)).json()
            if not answer["conflicts"]:
                break
            await asyncio.sleep(0.05)
        assert answer["conflicts"] == []
        contents = [item["content"] for item in answer["items"]]
        assert any("10 seconds" in content for content in contents)
        assert not any("30 seconds" in content for content in contents)

    drive(settings, test)


def test_the_ledger_is_an_answer_before_and_after_the_first_publication(tmp_path: Path, published: Settings) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        answer = await client.get("/conflicts", params={"limit": 3})
        assert answer.status_code == 200, answer.text
        conforms(LedgerDocument, answer.json())

    drive(write_corpus(tmp_path), test)
    drive(published, test)
