"""Sources over HTTP: what is configured and how it is, adding and removing; what only the machine may configure."""

import asyncio
from pathlib import Path

import httpx
import pytest
from api_support import client_of, conforms, is_problem

from nornweave.ask.views.status import ConfiguredSource, SourcesDocument
from nornweave.config import Settings
from nornweave.connect.connectors import WebSettings, load_settings, open_source
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.core.errors import ConfigError, DocumentError, SourceUnavailableError
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
        assert sorted(path.name for path in settings.file.parent.iterdir() if path.suffix != ".lock") == [
            "guide",
            "more",
            "nornweave.yaml",
        ]
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
    (settings.file.parent / "circle").symlink_to("circle")
    async with client_of(settings, None) as client:
        before = settings.file.read_text(encoding="utf-8")
        is_problem(await client.post("/sources", json=GUIDE), 409)
        for keys in (
            {**GUIDE, "id": "other", "path": "/etc"},
            {**GUIDE, "id": "other", "path": "../.."},
            {**GUIDE, "id": "other", "path": "nowhere"},
            {**GUIDE, "id": "other", "path": "🦉" * 300},
            {**GUIDE, "id": "other", "path": f"guide/{'a' * 256}/b"},
            {**GUIDE, "id": "other", "path": "a/" * 3000},
            {**GUIDE, "id": "other", "path": "circle"},
            {**GUIDE, "id": "other", "metadata": "a" * 300},
            {**GUIDE, "id": "other", "wrong": 1},
            {"id": "chat", "domain": "conversations", "type": "slack", "token_env": "HOME", "channels": ["a"]},
            {"id": "api", "domain": "code", "type": "git", "url": "file:///etc"},
            {"id": "api", "domain": "code", "type": "git", "url": "git@git.example.org:team/api.git"},
        ):
            is_problem(await client.post("/sources", json=keys), 422)
        is_problem(await client.post("/sources", json=GUIDE, headers={"origin": "https://evil.example"}), 403)
        assert settings.file.read_text(encoding="utf-8") == before


# Each was taken once, or a variation of what was: nothing of it may come over HTTP.
REFUSED = [
    *({"path": path} for path in ("..", "/etc", "~", "~/.ssh", "~root", "./~/x", "~nobody-here", "guide/../..", "out")),
    *(
        {"path": path}
        for path in (
            "var",
            "var/keys",
            "in",
            ".git",
            ".git/hooks",
            "keys.pem",
            ".env",
            "nornweave.yaml",
            "who.yaml",
            ".ssh",
        )
    ),
    *(
        {"path": path}
        for path in (
            "a\0b",
            "~root\0",
            "~nobody-here\0",
            "nowhere",
            "",
            3,
            ["guide"],
            {"a": 1},
            None,
            "/proc/self/environ",
        )
    ),
    *({"path": "guide", "metadata": path} for path in ("~/.ssh/config", ".env", "guide/page.md")),
    *({"path": "guide", "include": glob} for glob in (["[!"], [""], ["#x"], "x")),
    *(
        {"type": "git", "path": "guide", **more}
        for more in ({}, {"web_url": "javascript:1//{commit}{path}"}, {"ref": "-x"})
    ),
    {"type": "git", "url": "https://example.org/x", "ref": "main\n--x"},
    {"type": "web", "url": "https://example.org/", "prefix": "http://other.example.org/"},
    *(
        {"type": ("git", "web", "feed")[number % 3], "url": url}
        for number, url in enumerate(
            (
                *(
                    "http://example.org/x",
                    "file:///etc",
                    "ssh://git@example.org/x",
                    "git@example.org:x",
                    "ext::sh -c x",
                ),
                *(
                    "https://127.0.0.1:1/x",
                    "https://0x7f.1/x",
                    "https://2130706433/x",
                    "https://[::1]/x",
                    "https://10.0.0.1/x",
                ),
                *("https://169.254.169.254/latest/meta-data", "https://[::ffff:127.0.0.1]/x", "https://localhost:1/x"),
                *(
                    "https://168.63.129.16/x",
                    "https://[64:ff9b::7f00:1]/x",
                    "https://100.100.100.200/x",
                    "https://user:pw@x/",
                ),
                "https://[bad/x",
            )
        )
    ),
    *(
        {"domain": "conversations", **keys}
        for keys in (
            {"type": "github", "repository": "a/b", "api_url": "http://127.0.0.1:1/"},
            {"type": "github", "repository": "a/b"},
            {"type": "slack", "token_env": "HOME", "channels": ["a"]},
            {"type": "slack", "path": "guide", "api_url": "https://example.org"},
            {"type": "jira", "url": "https://team.atlassian.net"},
            {"type": "messages", "path": "~/notes"},
            {"type": "inbox", "path": "guide"},
            {"type": "nothing", "path": "guide"},
            {"type": ["files"], "path": "guide"},
        )
    ),
    {"type": "confluence", "url": "https://127.0.0.1:1", "user": "x", "token_env": "SECRET"},
    {"domain": "research", "type": "stackexchange", "site": "x", "tags": ["x"], "api_url": "http://127.0.0.1:1"},
    {"path": "guide", "public_addresses_only": False},
]


@pytest.fixture
def guarded(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    folder = settings.file.parent
    for name in ("keys.pem", ".env", "who.yaml", "var/keys/signing.pem", ".ssh/config", ".git/hooks/x.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}\n", encoding="utf-8")
    (folder / "out").symlink_to("/etc")
    (folder / "in").symlink_to("var/keys")
    monkeypatch.setenv("HOME", "/etc")
    text = settings.file.read_text(encoding="utf-8").replace("sources:", "access: {tokens: who.yaml}\nsources:")
    settings.file.write_text(text, encoding="utf-8")
    return settings  # served without tokens: what is looked at is what the file says


async def test_nothing_of_the_machine_comes_in_over_http_and_nothing_is_left_behind(guarded: Settings) -> None:
    before = guarded.file.read_text(encoding="utf-8")
    async with client_of(guarded, None) as client:
        page = {"origin": str(client.base_url).rstrip("/"), "accept": "text/html"}
        for keys in REFUSED:
            body = {"id": "other", "domain": "documentation", "type": "files", **keys}
            answer = await client.post("/sources", json=body)
            assert answer.status_code == 422, (keys, answer.text)
            is_problem(answer, 422)
            place = body.get("url") or body.get("path")
            if isinstance(place, str) and keys in REFUSED[::8]:
                form = {"id": "other", "domain": body["domain"], "type": str(body["type"]), "place": place}
                for more in ({"preview": "on"}, {}):
                    shown = await client.post("/status/sources", data={**form, **more}, headers=page)
                    assert shown.status_code in {200, 422} and "other" not in guarded.file.read_text(), keys
        assert guarded.file.read_text(encoding="utf-8") == before
        assert {path.name for path in guarded.file.parent.glob(".nornweave.yaml.*")} <= {".nornweave.yaml.lock"}


async def test_the_whole_folder_may_be_added_and_holds_no_secret(guarded: Settings) -> None:
    keys = {**GUIDE, "id": "all", "path": ".", "include": ["**", "*.pem", ".env", "*.yaml", ".ssh", "var/**"]}
    async with client_of(guarded, None) as client:
        assert (await client.post("/sources", json=keys)).status_code == 201
    settings = load_settings(guarded.file)
    listing = open_source(settings.sources[1], settings.own_files).list()
    assert [entry.path for entry in listing.entries] == ["guide/page.md", "more/page.md"]
    assert {skip.path.rstrip("/") for skip in listing.skipped if "no source reads it" in skip.reason} == {
        *(".env", ".nornweave.yaml.lock", ".ssh", "keys.pem", "nornweave.yaml", "var", "who.yaml")
    }


async def test_a_place_is_written_without_links_and_none_leads_it_out_later(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = settings.file.parent, tmp_path_factory.mktemp("elsewhere")
    for place in (folder / "more", elsewhere):
        place.mkdir(exist_ok=True)
        (place / "page.md").write_text("# Page\n\nText.\n", encoding="utf-8")
    (folder / "by-link").symlink_to("more")
    monkeypatch.chdir(folder)
    async with client_of(settings, None) as client:
        for number, path in enumerate(("/proc/self/cwd/more", f"/{folder}/more", "by-link", "./more/../more/")):
            keys = {**GUIDE, "id": f"r{number}", "path": path, "exclude": [f"{number}.md"]}
            assert (await client.post("/sources", json=keys)).status_code == 201, path
    assert settings.file.read_text(encoding="utf-8").count("path: more,") == 4
    (folder / "more").rename(folder / "away")
    loaded = load_settings(settings.file)
    source = open_source(loaded.sources[-1].model_copy(update={"path": folder / "away"}), loaded.own_files)
    (entry,) = source.list().entries
    (folder / "away").rename(folder / "gone")
    (folder / "away").symlink_to(elsewhere)
    with pytest.raises(SourceUnavailableError, match="leads to"):
        source.list()
    with pytest.raises(DocumentError, match="leads outside"):
        source.fetch(entry)
    (folder / "more").symlink_to(elsewhere)
    with pytest.raises(ConfigError, match="leads to"):
        open_source(loaded.sources[-1], loaded.own_files)


async def test_sources_that_are_added_at_once_are_all_there(settings: Settings) -> None:
    folder = settings.file.parent
    for number in range(12):
        (folder / f"d{number}").mkdir()
        (folder / f"d{number}" / "page.md").write_text("# Page\n\nText.\n", encoding="utf-8")
    async with client_of(settings, None) as client:
        bodies = [{**GUIDE, "id": f"r{number}", "path": f"d{number}"} for number in range(12)]
        answers = await asyncio.gather(*(client.post("/sources", json=body) for body in (*bodies, bodies[0])))
        assert sorted(answer.status_code for answer in answers)[:12] == [201] * 12
        assert answers[0].status_code != answers[12].status_code
        assert (await asyncio.gather(*(client.delete(f"/sources/r{number}") for number in range(6))))[5].is_success
    assert {source.id for source in load_settings(settings.file).sources} == {"guide", *(f"r{n}" for n in range(6, 12))}


async def test_an_address_that_came_over_http_is_written_with_its_bound(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MirroredSource, "check", lambda _: None)  # nothing on the internet is asked by tests
    async with client_of(settings, None) as client:
        body = {"id": "site", "domain": "documentation", "type": "web", "url": "https://docs.example.org/"}
        assert (await client.post("/sources", json=body)).status_code == 201
    written = load_settings(settings.file).sources[1]
    assert isinstance(written, WebSettings) and written.public_addresses_only


async def states(client: httpx.AsyncClient) -> dict[str, str]:
    answer = await client.get("/sources")
    assert answer.status_code == 200, answer.text
    conforms(SourcesDocument, answer.json())
    return {each["id"]: each["state"] for each in answer.json()["sources"]}


def synced(file: Path) -> None:
    run(domain_parts(load_settings(file), Domain.DOCUMENTATION), SyncOptions(run_id="test", wait_s=0))
