"""The app over the real engine and a small corpus: what was synced is what is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from api_support import client_of, is_problem, publish, write_corpus
from pydantic import TypeAdapter

from nornweave.documents import RecallDocument
from nornweave.settings import Settings

READY_WITHIN_S = 30


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
        answer = await client.post("/agents/code/recall", json={"query_text": "post_entry", "explain": True})
        assert answer.status_code == 200, "asked while it starts"
        document = answer.json()
        declared = TypeAdapter(RecallDocument)
        assert declared.dump_python(declared.validate_python(document), mode="json") == document
        first = document["items"][0]
        assert "post_entry" in first["content"]
        assert (first["citation"]["source_id"], first["citation"]["source_path"]) == ("ledger", "ledger.py")
        assert first["citation"]["line_range"] == [1, 3]
        assert (document["agent_id"], document["generation"]) == ("code-memory", "gen-000001")
        assert document["total_searched"] == 2
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
