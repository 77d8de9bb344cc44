"""Tokens that people make: what they may do, for how long, and that nobody makes one with more rights than theirs."""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from access_workspace import BOARD, CHIEF, SERVICE, STAFF, TOKENS, tools_as, write_tokens
from api_support import CLIENT, is_problem
from identity_provider import Provider
from scripted_engine import ScriptedEngine

from api.access import tokens as own_tokens
from api.access.sessions import COOKIE, csrf_token
from api.app import create_app
from nornweave.ask.agents.exchange import GROUPS_HEADER
from nornweave.config import Settings
from nornweave.config.access import AccessSettings, OidcSettings

WANTED = {"name": "CI of payments", "scope": "ask", "expires_in_days": 7}
HTML = "text/html,*/*;q=0.8"


@pytest.fixture
def settings(published: Settings, tmp_path: Path) -> Settings:
    """Settings with a folder of their own for what says who people are; the engine has its index elsewhere."""
    return published.model_copy(update={"data_dir": tmp_path / "var"})


@pytest.fixture
def engine(still_engine: ScriptedEngine) -> ScriptedEngine:
    return still_engine


@pytest.fixture
def app(settings: Settings, engine: ScriptedEngine, provider: Provider, tmp_path: Path) -> Any:
    return app_of(settings, engine, provider, tmp_path)


def app_of(
    settings: Settings, engine: ScriptedEngine, provider: Provider, folder: Path, service: str = SERVICE, **changed: Any
) -> Any:
    if not (folder / "tokens.yaml").exists():
        write_tokens(folder, TOKENS)
    oidc = OidcSettings(issuer=provider.issuer, audience=("api",))
    keys = {"tokens": folder / "tokens.yaml", "oidc": oidc, "operators": ("chiefs",), **changed}
    served = settings.model_copy(update={"access": AccessSettings(**keys)})
    return create_app(served, engine, environment={"NORNWEAVE_SERVICE_TOKEN": service})


@asynccontextmanager
async def as_(app: Any, token: str, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    sent = {"authorization": f"Bearer {token}", **headers}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=CLIENT, headers=sent) as client:
        yield client


async def made(app: Any, maker: str, **changed: Any) -> dict[str, Any]:
    async with as_(app, maker) as client:
        answer = await client.post("/tokens", json={**WANTED, **changed})
        assert answer.status_code == 201, answer.text
        document: dict[str, Any] = answer.json()
        return document


async def may(app: Any, token: str) -> tuple[bool, bool]:
    """Tell whether a token lets somebody ask and operate."""
    async with as_(app, token) as client:
        return (await client.get("/agents")).status_code == 200, (await client.get("/sources")).status_code == 200


async def test_a_token_is_shown_once_and_kept_as_a_hash(app: Any, settings: Settings) -> None:
    token = await made(app, STAFF)
    assert token["token"].startswith("nw_") and token["groups"] == ["staff"]
    expires = datetime.fromisoformat(token["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < expires <= timedelta(days=7)
    assert await may(app, token["token"]) == (True, False)
    kept = b"".join(each.read_bytes() for each in Path(settings.data_dir).glob("tokens.sqlite*"))
    assert token["token"].encode() not in kept and token["token"][3:].encode() not in kept
    async with as_(app, STAFF) as client:
        (listed,) = (await client.get("/tokens")).json()["tokens"]
        assert "token" not in listed and (listed["id"], listed["name"]) == (token["id"], "CI of payments")
        assert listed["used_on"] == datetime.now(UTC).date().isoformat()
    for changed in (token["token"].upper(), token["token"][:-1], token["token"] + "0", token["id"]):
        assert await may(app, changed) == (False, False)


async def test_nobody_makes_a_token_with_more_rights_than_they_have(app: Any, provider: Provider) -> None:
    async with as_(app, STAFF) as client:
        is_problem(await client.post("/tokens", json={**WANTED, "scope": "operate"}), 403)
        is_problem(await client.get("/tokens?all=true"), 403)
        is_problem(await client.post("/tokens", json={**WANTED, "groups": ["board"]}), 422)
        narrowed = await client.post("/tokens", json=WANTED, headers={GROUPS_HEADER: "board,guests"})
        assert narrowed.status_code == 201 and narrowed.json()["groups"] == []
    ask, operate = await made(app, CHIEF), await made(app, CHIEF, scope="operate")
    assert await may(app, ask["token"]) == (True, False), "for asking it is no operator's"
    assert await may(app, operate["token"]) == (True, True)
    assert await may(app, (await made(app, SERVICE, scope="operate"))["token"]) == (True, True)
    assert await may(app, (await made(app, SERVICE))["token"]) == (True, False)
    for token in (ask, operate):
        async with as_(app, token["token"]) as program:
            for answer in (await program.get("/tokens"), await program.post("/tokens", json=WANTED),
                           await program.delete(f"/tokens/{ask['id']}")):  # fmt: skip
                assert "made by people" in is_problem(answer, 403)["detail"], "none makes itself last for ever"
    form = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
    async with as_(app, "") as browser:
        del browser.headers["authorization"]
        answer = await browser.post("/login", content=urlencode({"token": operate["token"]}), headers=form)
        assert answer.status_code == 401 and COOKIE not in browser.cookies


async def test_a_token_uses_the_tools_until_it_is_revoked(app: Any, settings: Settings, engine: ScriptedEngine) -> None:
    token = await made(app, STAFF)
    async with app.state.tools.run():
        async with tools_as(app, token["token"]) as tools:
            assert {tool.name for tool in (await tools.list_tools()).tools}
        async with as_(app, STAFF) as client:
            await client.delete(f"/tokens/{token['id']}")
        async with as_(app, token["token"]) as program:
            is_problem(await program.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), 401)


async def test_a_token_is_its_makers_alone(app: Any) -> None:
    token = await made(app, STAFF)
    async with as_(app, BOARD) as another, as_(app, CHIEF) as chief, as_(app, STAFF) as maker:
        assert (await another.get("/tokens")).json()["tokens"] == []
        is_problem(await another.delete(f"/tokens/{token['id']}"), 404)
        assert (await chief.get("/tokens")).json()["tokens"] == []
        assert len((await chief.get("/tokens?all=true")).json()["tokens"]) == 1
        assert await may(app, token["token"]) == (True, False)
        assert (await chief.delete(f"/tokens/{token['id']}")).json() == {"id": token["id"], "status": "REVOKED"}
        assert await may(app, token["token"]) == (False, False)
        is_problem(await maker.delete(f"/tokens/{token['id']}"), 404)


async def test_a_revoked_token_stops_at_once_in_every_process(
    app: Any, settings: Settings, engine: ScriptedEngine, provider: Provider, tmp_path: Path
) -> None:
    another = app_of(settings, engine, provider, tmp_path)
    for _ in range(5):
        token = await made(app, STAFF)
        assert await may(another, token["token"]) == (True, False)
        async with as_(another, STAFF) as client:
            assert (await client.delete(f"/tokens/{token['id']}")).status_code == 200
        assert await may(app, token["token"]) == (False, False)


async def test_a_token_ends_with_its_day_and_with_what_its_maker_may(
    app: Any, settings: Settings, engine: ScriptedEngine, provider: Provider, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    jwt = provider.signed(provider.claims(aud="api", groups=["chiefs"]))
    by_chief, by_person, by_service = [
        (await made(app, maker, scope="operate"))["token"] for maker in (CHIEF, jwt, SERVICE)
    ]
    assert [await may(app, each) for each in (by_chief, by_person, by_service)] == [(True, True)] * 3
    write_tokens(tmp_path, {**TOKENS, CHIEF: ["staff"]})
    assert await may(app, by_chief) == (True, False), "its maker operates no more"
    write_tokens(tmp_path, {STAFF: ["staff"]})
    assert await may(app, by_chief) == (False, False), "nor is there any more"
    rotated = app_of(settings, engine, provider, tmp_path, service="another-service-token")
    assert await may(rotated, by_service) == (False, False), "another service token ends what was made with it"
    assert await may(rotated, by_person) == (True, True)
    demoted = app_of(settings, engine, provider, tmp_path, operators=("others",))
    assert await may(demoted, by_person) == (True, False)
    oidc = OidcSettings(issuer=provider.issuer, audience=("api",), admit=("staff",))
    assert await may(app_of(settings, engine, provider, tmp_path, oidc=oidc), by_person) == (False, False)
    assert await may(app_of(settings, engine, provider, tmp_path, oidc=None), by_person) == (False, False)
    later = datetime.now(UTC) + timedelta(days=7)
    monkeypatch.setattr(own_tokens, "present", lambda: later)
    assert await may(app, by_person) == (False, False)


@pytest.mark.parametrize("body", [
    {"expires_in_days": 0}, {"expires_in_days": 91}, {"expires_in_days": 367}, {"expires_in_days": "7"},
    {"expires_in_days": None}, {"expires_in_days": 1.5}, {"scope": "all"}, {"name": ""}, {"name": "  "},
    {"name": "x" * 101}, {"maker": "somebody else"}, {"id": "x"},
])  # fmt: skip
async def test_what_is_wrong_makes_none(app: Any, body: dict[str, Any]) -> None:
    async with as_(app, STAFF) as client:
        is_problem(await client.post("/tokens", json={**WANTED, **body}), 422)
        assert (await client.get("/tokens")).json() == {"tokens": [], "max_days": 90}


async def test_people_make_some_and_not_any_number(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_tokens, "MAX_EACH", 2)
    await made(app, BOARD)
    for _ in range(2):
        await made(app, STAFF)
    async with as_(app, STAFF) as client:
        is_problem(await client.post("/tokens", json=WANTED), 409)


async def test_where_nobody_makes_any_it_is_said(
    settings: Settings, engine: ScriptedEngine, provider: Provider, tmp_path: Path
) -> None:
    none = app_of(settings, engine, provider, tmp_path, max_token_days=0)
    async with as_(none, SERVICE) as client:
        assert "max_token_days" in is_problem(await client.post("/tokens", json=WANTED), 404)["detail"]
    alone = create_app(settings, engine, environment={"NORNWEAVE_SERVICE_TOKEN": SERVICE})
    async with as_(alone, SERVICE) as client:
        is_problem(await client.get("/tokens"), 404)


async def test_a_file_that_cannot_be_read_lets_no_token_in(app: Any, settings: Settings) -> None:
    token = (await made(app, STAFF))["token"]
    file = Path(settings.data_dir) / "tokens.sqlite"
    whole = file.read_bytes()
    file.write_bytes(b"no database" * 1_000)
    async with as_(app, token) as client:
        is_problem(await client.get("/agents"), 503)
    assert await may(app, STAFF) == (True, False), "others are not concerned"
    file.write_bytes(whole)
    assert await may(app, token) == (True, False)
    file.unlink()
    assert await may(app, token) == (False, False)


async def test_the_page_makes_shows_and_revokes(app: Any) -> None:
    form = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
    async with as_(app, "", accept=HTML) as browser:
        del browser.headers["authorization"]
        assert (await browser.get("/tokens")).headers["location"] == "/login?next=%2Ftokens"
        await browser.post("/login", content=urlencode({"token": CHIEF, "next": "/"}), headers=form)
        assert 'href="/tokens"' in (await browser.get("/")).text
        csrf = csrf_token(browser.cookies[COOKIE], app.state.serving.door.secret)
        wanted = {"name": "<b>agent</b>", "scope": "operate", "expires_in_days": "30"}
        assert (await browser.post("/tokens/form", content=urlencode(wanted), headers=form)).status_code == 403
        page = await browser.post("/tokens/form", content=urlencode({**wanted, "csrf": csrf}), headers=form)
        assert page.status_code == 200 and "<b>agent" not in page.text
        token = page.text.partition("nw_")[2].partition("<")[0]
        assert await may(app, f"nw_{token}") == (True, True)
        listed = await browser.get("/tokens")
        assert f"nw_{token}" not in listed.text and "&lt;b&gt;agent" in listed.text
        (found,) = (await browser.get("/tokens", headers={"accept": "application/json"})).json()["tokens"]
        for days in ("never", "", "-1", "0", "9" * 5_000, "٣"):
            wrong = {"name": "x", "expires_in_days": days, "csrf": csrf}
            assert (await browser.post("/tokens/form", content=urlencode(wrong), headers=form)).status_code == 422
        await browser.post("/tokens/form", content=urlencode({"revoke": found["id"], "csrf": csrf}), headers=form)
        assert await may(app, f"nw_{token}") == (False, False)
        foreign = {**form, "origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        sent = urlencode({**wanted, "csrf": csrf})
        assert (await browser.post("/tokens/form", content=sent, headers=foreign)).status_code == 403


async def test_every_form_of_a_page_is_taken_with_the_token_of_its_page(app: Any) -> None:
    form = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
    async with as_(app, "", accept="application/json") as browser:
        del browser.headers["authorization"]
        await browser.post("/login", content=urlencode({"token": CHIEF, "next": "/"}), headers=form)
        sent = urlencode({"csrf": csrf_token(browser.cookies[COOKIE], app.state.serving.door.secret)})
        for path in ("/conflicts/form", "/status/sources", "/status/sync", "/tokens/form", "/feedback/form"):
            for content, of_another_site in ((sent, False), ("", True)):
                answer = await browser.post(path, content=content, headers=form)
                refused = answer.status_code == 403 and "another site" in answer.text
                assert refused is of_another_site, (path, answer.text)
                assert "x-csrf-token" not in answer.text


def test_many_tokens_cost_a_request_little(tmp_path: Path) -> None:
    tokens = own_tokens.OwnTokens(tmp_path)
    tokens.make("somebody", "first", ["a"], "ask", 1)
    with sqlite3.connect(tmp_path / own_tokens.FILE) as connection:
        row = ("name", "nobody", "[]", "ask", "2026-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00", None)
        connection.executemany(
            "insert into tokens values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((f"{number:x}", f"sha256:{number}", *row) for number in range(20_000)),
        )
    connection.close()
    os.utime(tmp_path / own_tokens.FILE, (1, 1))  # it was changed a while ago
    assert len(tokens.listed("nobody")) == 20_000
    read = tokens._rows.current()
    assert tokens._rows.current() is read, "the file is read when it changed alone"
