"""The app over the real engine and a small corpus: what was synced is what is answered."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from api_support import client_of, publish, write_corpus
from questions import question_of
from shown_answers import document as answered
from shown_answers import remembered

from nornweave.ask.feedback import REMEMBERED_DAYS, FeedbackBook
from nornweave.config import Settings

READY_WITHIN_S = 120


async def until_ready(client: httpx.AsyncClient) -> None:
    for _ in range(READY_WITHIN_S * 20):
        if (await client.get("/ready")).status_code == 200:
            return
        await asyncio.sleep(0.05)
    raise AssertionError((await client.get("/ready")).text)


async def test_a_new_publication_answers_without_a_failed_request(settings: Settings, tmp_path: Path) -> None:
    async with client_of(settings, None) as client:
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


async def test_text_has_a_section_a_domain_and_one_domain_alone_no_header(published: Settings) -> None:
    async with client_of(published, None) as client:
        both = await client.post("/query", json={"query": "refund payments", "format": "text"})
        assert both.headers["content-type"] == "text/plain; charset=utf-8"
        assert both.text.count("\n---\n") == 1
        assert "[CODE — " in both.text and "[DOCUMENTATION — " in both.text
        one = await client.post("/query", json={"query": "refund", "format": "text", "domains": ["code"]})
        assert "def refund" in one.text
        assert "[CODE" not in one.text


async def test_what_nobody_judged_in_a_month_is_forgotten_while_it_serves(tmp_path: Path) -> None:
    settings = write_corpus(tmp_path)
    folder = settings.data_dir / "feedback"
    for days in (REMEMBERED_DAYS + 1, 1):
        shown_at = datetime.now(UTC) - timedelta(days=days)
        book = FeedbackBook(folder, now=lambda at=shown_at: at)  # type: ignore[misc]
        book.shown(question_of("x"), answered(f"{days} days ago"))
        book.close()
    async with client_of(settings, None) as client:
        for _ in range(READY_WITHIN_S * 20):
            if len(remembered(folder)) == 1:
                break
            await asyncio.sleep(0.05)
        assert remembered(folder) == ["1 days ago"]
        await client.get("/health")
