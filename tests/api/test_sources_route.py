"""Sources over HTTP: what is configured and how it is, adding and removing; what only the machine may configure."""

import asyncio
from pathlib import Path

import httpx
import pytest
from api_support import client_of, conforms, is_problem

from nornweave.ask.views.status import ConfiguredSource, SourcesDocument
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

GUIDE = {"id": "guide", "domain": "documentation", "type": "files", "path": "guide"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    for name in ("guide", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text("# Page\n\nA text about retries.\n", encoding="utf-8")
    file = tmp_path / "nornweave.yaml"
    file.write_text(
        "sources:\n  # the guide\n  - {id: guide, domain: documentation, type: files, path: guide}\n"
        "domains:\n  documentation: {embedding: {model: 'hash:64', dimensions: 64}}\n",
        encoding="utf-8",
    )
    return load_settings(file)


async def test_a_source_is_added_synced_and_removed(settings: Settings) -> None:
    async with client_of(settings, None) as client:
        assert await states(client) == {"guide": "empty"}
        added = await client.post("/sources", json={**GUIDE, "id": "more", "path": "more", "access": ["staff"]})
        assert added.status_code == 201, added.text
        conforms(ConfiguredSource, added.json())
        assert (added.json()["state"], added.json()["access"]) == ("empty", ["staff"])
        await asyncio.to_thread(synced, settings.file)
        assert await states(client) == {"guide": "ok", "more": "ok"}
        assert (await client.delete("/sources/more")).json() == {"id": "more", "status": "REMOVED"}
        assert await states(client) == {"guide": "ok"}
        is_problem(await client.delete("/sources/more"), 404)
        assert "# the guide" in settings.file.read_text(encoding="utf-8")


async def test_a_source_is_added_and_removed_on_the_page_of_the_status(settings: Settings) -> None:
    async with client_of(settings, None) as client:
        page = {"origin": str(client.base_url).rstrip("/"), "accept": "text/html"}
        form = {"id": "more", "domain": "documentation", "type": "files", "place": "more"}
        is_problem(await client.post("/status/sources", data=form, headers={"accept": "application/json"}), 403)
        before = settings.file.read_text(encoding="utf-8")
        preview = await client.post("/status/sources", data={**form, "preview": "on"}, headers=page)
        assert preview.status_code == 200 and "A sync would read 1 document." in preview.text
        assert "page.md" in preview.text and 'name="id" value="more"' in preview.text, "the form is as it was sent"
        assert "Remove more" not in preview.text and settings.file.read_text(encoding="utf-8") == before
        for place, words in (("/etc", "not below the folder"), ("nowhere", "does not exist"), (".", "A sync would")):
            shown = await client.post("/status/sources", data={**form, "place": place, "preview": "on"}, headers=page)
            assert words in shown.text, shown.text
        assert sorted(path.name for path in settings.file.parent.iterdir()) == ["guide", "more", "nornweave.yaml"]
        added = await client.post("/status/sources", data=form, headers=page)
        assert (added.status_code, added.headers["location"]) == (303, "/status#sources"), added.text
        shown = (await client.get("/status", headers=page)).text
        assert "Remove more" in shown and "not synced yet" in shown
        refused = await client.post("/status/sources", data={**form, "id": "other", "place": "/etc"}, headers=page)
        assert refused.status_code == 422 and "not below the folder" in refused.text
        assert (await client.post("/status/sources", data={"remove": "more"}, headers=page)).status_code == 303
        assert await states(client) == {"guide": "empty"}
        settings.file.write_text("sources: 3\n", encoding="utf-8")
        assert "nornweave.yaml is wrong" in (await client.get("/status", headers=page)).text


async def test_what_cannot_be_added_is_said(settings: Settings) -> None:
    async with client_of(settings, None) as client:
        before = settings.file.read_text(encoding="utf-8")
        is_problem(await client.post("/sources", json=GUIDE), 409)
        for keys in (
            {**GUIDE, "id": "other", "path": "/etc"},
            {**GUIDE, "id": "other", "path": "../.."},
            {**GUIDE, "id": "other", "path": "nowhere"},
            {**GUIDE, "id": "other", "wrong": 1},
            {"id": "chat", "domain": "conversations", "type": "slack", "token_env": "HOME", "channels": ["a"]},
            {"id": "api", "domain": "code", "type": "git", "url": "file:///etc"},
            {"id": "api", "domain": "code", "type": "git", "url": "git@git.example.org:team/api.git"},
        ):
            is_problem(await client.post("/sources", json=keys), 422)
        is_problem(await client.post("/sources", json=GUIDE, headers={"origin": "https://evil.example"}), 403)
        assert settings.file.read_text(encoding="utf-8") == before


async def states(client: httpx.AsyncClient) -> dict[str, str]:
    answer = await client.get("/sources")
    assert answer.status_code == 200, answer.text
    conforms(SourcesDocument, answer.json())
    return {each["id"]: each["state"] for each in answer.json()["sources"]}


def synced(file: Path) -> None:
    run(domain_parts(load_settings(file), Domain.DOCUMENTATION), SyncOptions(run_id="test", wait_s=0))
