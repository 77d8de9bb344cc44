"""Sessions: a form instead of a header, a cookie that holds no token, forms that only our pages can send."""

import re
from collections.abc import Mapping
from urllib.parse import urlencode

import httpx
import pytest
from api_support import Ask, client_of, is_problem
from scripted_engine import ScriptedEngine

from api.access.sessions import COOKIE, LASTS_S, csrf_token, is_csrf_token, is_valid, new_session
from nornweave.config import Settings

TOKEN = "s3cret"
LOCKED = {"environment": {"NORNWEAVE_SERVICE_TOKEN": TOKEN}}
BROWSER = {"accept": "text/html,*/*;q=0.8"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
JUDGED = {"query_id": "q1", "chunk_id": "chunk-0", "useful": True}


async def log_in(
    client: httpx.AsyncClient, token: str = TOKEN, target: str = "/?q=pay", headers: Mapping[str, str] = FORM
) -> httpx.Response:
    return await client.post("/login", content=urlencode({"token": token, "next": target}), headers={**FORM, **headers})


def test_a_session_is_made_from_the_token_and_ends_with_it() -> None:
    session = new_session(TOKEN, now=1000.0)
    assert TOKEN not in session
    assert is_valid(session, TOKEN, now=1001.0)
    assert not is_valid(session, TOKEN, now=1001.0 + LASTS_S)
    assert not is_valid(session, TOKEN, now=1000.0 - 3_600), "it was made while the clock was ahead"
    assert not is_valid(session, "another", now=1001.0)
    assert new_session(TOKEN) != new_session(TOKEN)
    longer = "9" + session
    for broken in ("", ".", "..", "x", longer, session + "0", session[:-1], session.upper()):
        assert not is_valid(broken, TOKEN, now=1001.0), broken


def test_a_form_knows_its_session() -> None:
    session = new_session(TOKEN)
    sent = csrf_token(session, TOKEN)
    assert is_csrf_token(sent, session, TOKEN)
    assert not is_csrf_token(sent, new_session(TOKEN), TOKEN)
    assert not is_csrf_token("", session, TOKEN)
    assert sent not in session and session not in sent


@pytest.mark.parametrize(
    "path",
    ["/", "/?q=a+b&domain=code", "/passages/x", "/conflicts", "/conflicts/x", "/quality", "/status", "/find", "/why"],
)
def test_a_page_without_a_session_leads_to_the_login_and_back(look: Ask, path: str) -> None:
    answer = look("GET", path, app=LOCKED, headers=BROWSER)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?" + urlencode({"next": path})
    is_problem(look("GET", path, app=LOCKED, headers={"accept": "application/json"}), 401)
    page = look("GET", answer.headers["location"], app=LOCKED, headers=BROWSER)
    assert page.status_code == 200
    assert "conflicts" not in page.text.lower() or "/conflicts" in path, "nothing of what is behind it"


@pytest.mark.parametrize("path", ["/openapi.json", "/agents", "/nothing", "/docs/x"])
def test_everything_else_is_a_401_also_to_browsers(look: Ask, path: str) -> None:
    is_problem(look("GET", path, app=LOCKED, headers=BROWSER), 401)


async def test_the_token_opens_a_session(settings: Settings, engine: ScriptedEngine) -> None:
    async with client_of(settings, engine, **LOCKED) as client:
        proxied = await log_in(client, headers={"Origin": f"https://{client.base_url.netloc.decode()}"})
        assert "Secure" in proxied.headers["set-cookie"], "a proxy speaks TLS before this server"
        client.cookies.clear()
        answer = await log_in(client)
        assert (answer.status_code, answer.headers["location"]) == (303, "/?q=pay")
        cookie = answer.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age="))
        assert TOKEN not in cookie
        page = await client.get("/?q=pay", headers=BROWSER)
        assert page.status_code == 200
        assert "Log out" in page.text
        assert (await client.get("/agents")).status_code == 200, "what the page's script asks for"
        again = await client.get("/login", params={"next": "/status"})
        assert (again.status_code, again.headers["location"]) == (303, "/status")
        assert "Secure" not in cookie


@pytest.mark.parametrize("token", ["", "wrong", "S3CRET", "s3cret\0"])
async def test_another_token_opens_none(
    settings: Settings, engine: ScriptedEngine, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.routes.login.PAUSE_S", 0.0)
    async with client_of(settings, engine, **LOCKED) as client:
        answer = await log_in(client, token)
        assert answer.status_code == 401
        assert "not the token" in answer.text
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("target", ["//evil", "https://evil", "/\\evil", "javascript:x"])
async def test_a_login_leads_nowhere_else(settings: Settings, engine: ScriptedEngine, target: str) -> None:
    async with client_of(settings, engine, **LOCKED) as client:
        assert (await log_in(client, target=target)).headers["location"] == "/"


async def test_a_script_sends_the_token_of_its_page(settings: Settings, engine: ScriptedEngine) -> None:
    async with client_of(settings, engine, **LOCKED) as client:
        await log_in(client)
        engine.remember("q1", "chunk-0")
        is_problem(await client.post("/feedback", json=JUDGED), 403)
        is_problem(await client.post("/query", json={"query": "pay"}, headers={"x-csrf-token": "guessed"}), 403)
        page = await client.get("/", headers=BROWSER)
        (sent,) = re.findall(r'<meta name="csrf-token" content="([0-9a-f]+)">', page.text)
        judged = await client.post("/feedback", json=JUDGED, headers={"x-csrf-token": sent})
        assert judged.status_code == 200
        assert engine.judged == [("q1", "chunk-0", True)]


async def test_a_form_sends_the_token_of_its_page(settings: Settings, engine: ScriptedEngine) -> None:
    async with client_of(settings, engine, **LOCKED) as client:
        await log_in(client)
        session = client.cookies[COOKIE]
        engine.remember("q1", "chunk-0")
        fields = {"query_id": "q1", "chunk_id": "chunk-0", "useful": "true"}
        # `same-origin`: with a session what a browser says of itself is not enough.
        headers = {**FORM, "sec-fetch-site": "same-origin"}
        for csrf in ({}, {"csrf": ""}, {"csrf": csrf_token(new_session(TOKEN), TOKEN)}):
            answer = await client.post("/feedback/form", content=urlencode({**fields, **csrf}), headers=headers)
            assert answer.status_code == 403
        sent = urlencode({**fields, "csrf": csrf_token(session, TOKEN)})
        assert (await client.post("/feedback/form", content=sent, headers=headers)).status_code == 303
        assert len(engine.judged) == 1


async def test_logging_out_takes_the_session(settings: Settings, engine: ScriptedEngine) -> None:
    async with client_of(settings, engine, **LOCKED) as client:
        await log_in(client)
        assert (await client.post("/logout", headers=FORM)).status_code == 403, "not by another site"
        copied = client.cookies[COOKIE]
        sent = urlencode({"csrf": csrf_token(copied, TOKEN)})
        answer = await client.post("/logout", content=sent, headers=FORM)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert COOKIE not in client.cookies
        assert (await client.get("/", headers=BROWSER)).status_code == 303
        client.cookies.set(COOKIE, copied)
        assert (await client.get("/", headers=BROWSER)).status_code == 303, "a copy of the cookie is worth nothing"
        client.cookies.clear()
        await log_in(client)
        assert (await client.get("/", headers=BROWSER)).status_code == 200


def test_the_header_needs_no_session_and_no_form(ask: Ask, engine: ScriptedEngine) -> None:
    header = {"authorization": f"Bearer {TOKEN}"}
    assert ask("GET", "/", app=LOCKED, headers={**BROWSER, **header}).status_code == 200
    engine.remember("q1", "chunk-0")
    assert ask("POST", "/feedback", app=LOCKED, json=JUDGED, headers=header).status_code == 200
    fields = urlencode({"query_id": "q1", "chunk_id": "chunk-0", "useful": "true"})
    assert ask("POST", "/feedback/form", app=LOCKED, content=fields, headers={**FORM, **header}).status_code == 303


def test_a_form_without_a_session_is_refused(ask: Ask, engine: ScriptedEngine) -> None:
    fields = urlencode({"query_id": "q1", "chunk_id": "chunk-0", "useful": "true"})
    assert ask("POST", "/feedback/form", app=LOCKED, content=fields, headers=FORM).status_code == 401
    assert engine.judged == []


def test_without_a_token_there_is_nothing_to_log_in_to(look: Ask) -> None:
    assert look("GET", "/login", headers=BROWSER).headers["location"] == "/"
    assert look("POST", "/login", content="token=x", headers=FORM).headers["location"] == "/"


async def test_a_session_that_cannot_be_ended_is_said_to_last(settings: Settings, engine: ScriptedEngine) -> None:
    async with client_of(settings, engine, **LOCKED) as client:
        await log_in(client)
        (settings.data_dir / "sessions.sqlite").mkdir()
        sent = urlencode({"csrf": csrf_token(client.cookies[COOKIE], TOKEN)})
        assert "12 hours" in is_problem(await client.post("/logout", content=sent, headers=FORM), 503)["detail"]
        assert (await client.get("/", headers=BROWSER)).status_code == 200
