"""Sign-in in the browser, with a provider on a real port: who comes in, what renews and ends it, and who is refused."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import jwt
import pytest
from api_support import CLIENT as CLIENT_URL
from api_support import is_problem
from identity_provider import CLIENT, PEOPLE, SECRET, Provider, ec_key, forged, jwk_of, pem_of
from scripted_engine import ScriptedEngine

from api.access import door, sign_in
from api.access import sign_in as renewal
from api.access.sessions import COOKIE, csrf_token, new_session, who_of
from api.app import create_app
from nornweave.config import Settings
from nornweave.config.access import AccessSettings, OidcSettings
from nornweave.core.errors import ConfigError

BROWSER = {"accept": "text/html,*/*;q=0.8"}
FORM = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
ENVIRONMENT = {"CLIENT_SECRET": SECRET, "NORNWEAVE_SERVICE_TOKEN": "s3cret"}


@pytest.fixture
def settings(published: Settings, tmp_path: Path) -> Settings:
    """Settings with a folder of their own for what says who people are; the engine has its index elsewhere."""
    return published.model_copy(update={"data_dir": tmp_path / "var"})


@pytest.fixture
def engine(still_engine: ScriptedEngine) -> ScriptedEngine:
    return still_engine


def with_client(settings: Settings, provider: Provider, **changed: Any) -> Settings:
    """Return settings with a client of the provider."""
    keys = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret_env": "CLIENT_SECRET", **changed}
    access = AccessSettings(oidc=OidcSettings(**keys), operators=("chiefs",))
    return settings.model_copy(update={"access": access})


@asynccontextmanager
async def browser_of(
    settings: Settings,
    engine: ScriptedEngine,
    provider: Provider,
    environment: dict[str, str] = ENVIRONMENT,
    **changed: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    """Run the app with a client of the provider; the client reads pages."""
    app = create_app(with_client(settings, provider, **changed), engine, environment=environment)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=CLIENT_URL, headers=BROWSER) as client:
        client.app = app  # type: ignore[attr-defined]
        yield client


async def sent_back(client: httpx.AsyncClient, target: str = "/?q=pay") -> str:
    """Begin to sign in, and go to the provider; return where it sends the browser."""
    begun = await client.get("/login", params={"next": target})
    assert begun.status_code == 303, begun.text
    there = await asyncio.to_thread(httpx.get, begun.headers["location"])
    assert there.status_code == 302
    return str(there.headers["location"])


async def signed_in(client: httpx.AsyncClient, target: str = "/?q=pay") -> httpx.Response:
    return await client.get(await sent_back(client, target))


def onward(page: httpx.Response) -> str | None:
    """Return where a page leads a browser."""
    found = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', page.text)
    return found[1].replace("&amp;", "&") if found else None


async def test_a_browser_signs_in_at_the_provider_and_comes_back(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    async with browser_of(settings, engine, provider) as client:
        asked = await client.get("/?q=a+b")
        assert asked.headers["location"] == "/login?" + urlencode({"next": "/?q=a+b"})
        begun = await client.get(asked.headers["location"])
        place = urlsplit(begun.headers["location"])
        sent = dict(parse_qsl(place.query))
        assert f"{place.scheme}://{place.netloc}{place.path}" == f"{provider.address}/authorize"
        assert sent["redirect_uri"] == "http://nornweave/callback"
        assert (sent["scope"], sent["code_challenge_method"]) == ("openid email profile", "S256")
        cookie = begun.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=lax", "Path=/callback"))
        assert sent["state"] not in cookie and sent["nonce"] not in cookie, "they are derived with our key"
        assert begun.headers["cache-control"] == "no-store"
        there = await asyncio.to_thread(httpx.get, begun.headers["location"])
        page = await client.get(there.headers["location"])
        assert (page.status_code, onward(page)) == (200, "/?q=a+b")
        session = next(each for each in page.headers.get_list("set-cookie") if each.startswith(COOKIE))
        assert all(word in session for word in ("HttpOnly", "SameSite=strict", "Path=/"))
        answered = await client.get("/?q=a+b")
        assert answered.status_code == 200 and "Log out" in answered.text
        assert (await client.get("/login", params={"next": "/find"})).headers["location"] == "/find"
        assert provider.redeemed[0]["code_verifier"] not in begun.text + str(begun.headers)


async def test_what_a_session_may_see_are_the_groups_of_the_provider(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    async with browser_of(settings, engine, provider) as client:
        for groups, operates in (["board"], False), (["chiefs"], True), ([], False):
            provider.person = {"sub": "bob", "groups": groups}
            await signed_in(client)
            assert (await client.get("/status.json")).status_code == (200 if operates else 403)
            assert who_of(client.cookies[COOKIE])["groups"] == groups
            client.cookies.clear()


@pytest.mark.parametrize("target", ["//evil", "https://evil", "/\\evil", "javascript:x", "/\tevil", "/" + "x" * 2_000])
async def test_a_sign_in_leads_nowhere_else(
    settings: Settings, engine: ScriptedEngine, provider: Provider, target: str
) -> None:
    async with browser_of(settings, engine, provider) as client:
        assert onward(await signed_in(client, target)) == "/"


async def test_a_page_of_another_site_leads_on_with_the_cookie(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    async with browser_of(settings, engine, provider) as client:
        page = await client.get("/login", params={"next": "/?q=pay"}, headers={"sec-fetch-site": "cross-site"})
        assert (page.status_code, onward(page)) == (200, "/?q=pay")


async def test_the_address_of_this_server_is_the_configured_one_and_no_clients_word(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    async with browser_of(settings, engine, provider) as client:
        begun = await client.get("/login", headers={"host": "evil.example"})
        assert dict(parse_qsl(urlsplit(begun.headers["location"]).query))["redirect_uri"] == "http://nornweave/callback"
    environment = {**ENVIRONMENT, "NORNWEAVE_URL": "https://ask.example.org/nw"}
    async with browser_of(settings, engine, provider, environment) as client:
        begun = await client.get("/login", headers={"host": "evil.example"})
        sent = dict(parse_qsl(urlsplit(begun.headers["location"]).query))
        assert sent["redirect_uri"] == "https://ask.example.org/nw/callback"
        cookie = begun.headers["set-cookie"]
        assert "Secure" in cookie and "Path=/nw/callback" in cookie
        back = (await asyncio.to_thread(httpx.get, begun.headers["location"])).headers["location"]
        header = {"cookie": cookie.partition(";")[0]}
        page = await client.get(back.replace("https://ask.example.org/nw", "http://nornweave"), headers=header)
        assert onward(page) == "/nw/"
        assert 'href="/nw/"' in page.text and "/nw/nw" not in page.text
        session = next(each for each in page.headers.get_list("set-cookie") if each.startswith(COOKIE))
        assert "Secure" in session and "Path=/nw;" in session + ";"


async def test_another_process_finishes_a_sign_in_and_knows_its_session(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    provider.gives_refresh = True
    async with (
        browser_of(settings, engine, provider) as one,
        browser_of(settings, engine, provider) as another,
    ):
        back = await sent_back(one)
        another.cookies = one.cookies
        assert onward(await another.get(back)) == "/?q=pay"
        one.cookies = another.cookies
        assert (await one.get("/agents")).status_code == 200
        key = one.app.state.serving.door.secret  # type: ignore[attr-defined]
        sent, copied = urlencode({"csrf": csrf_token(one.cookies[COOKIE], key)}), one.cookies[COOKIE]
        await one.post("/logout", content=sent, headers=FORM)
        assert (await another.get("/agents", headers={"cookie": f"{COOKIE}={copied}"})).status_code == 401


async def test_another_machine_knows_a_session_until_it_is_due(
    settings: Settings, engine: ScriptedEngine, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.gives_refresh = True
    elsewhere = settings.model_copy(update={"data_dir": tmp_path / "elsewhere"})
    shared = {**ENVIRONMENT, "NORNWEAVE_SESSION_KEY": "0f1e2d3c4b5a69788796a5b4c3d2e1f0"}
    async with (
        browser_of(settings, engine, provider, shared) as one,
        browser_of(elsewhere, engine, provider, shared) as another,
        browser_of(elsewhere, engine, provider) as stranger,
    ):
        back = await sent_back(one)
        stranger.cookies = another.cookies = one.cookies
        assert (await stranger.get(back)).status_code == 400, "it has a key of its own"
        assert (await another.get(back)).status_code == 200
        session = {"cookie": f"{COOKIE}={another.cookies[COOKIE]}"}
        assert (await one.get("/agents", headers=session)).status_code == 200
        assert (await stranger.get("/agents", headers=session)).status_code == 401
        moment = time.time() + 3_601
        monkeypatch.setattr(renewal, "time", SimpleNamespace(time=lambda: moment))
        assert (await one.get("/agents", headers=session)).status_code == 401, "there it cannot be renewed"
        assert (await another.get("/agents", headers=session)).status_code == 200
    with pytest.raises(ConfigError, match="can be guessed"):
        create_app(settings, engine, environment={"NORNWEAVE_SESSION_KEY": "0123456789abcdef0123456789abcdef"[:20]})


async def test_a_forged_answer_of_the_provider_is_refused(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    async with browser_of(settings, engine, provider) as client:
        back = await sent_back(client)
        given = dict(parse_qsl(urlsplit(back).query))
        state = given["state"]
        for changed in (
            {"state": None}, {"state": ""}, {"state": "x"}, {"state": state[:-1] + "g"}, {"state": "0" * 64},
            {"state": state[:16] + "0" * 48}, {"state": state.upper()}, {"state": f"{state}\0"},
        ):  # fmt: skip
            sent = {name: value for name, value in {**given, **changed}.items() if value is not None}
            answer = await client.get("/callback", params=sent)
            assert answer.status_code == 400, changed
            assert COOKIE not in client.cookies
        assert (await client.get("/callback?" + urlencode(given) + "&code=another")).status_code == 400
        assert provider.redeemed == [], "the provider is asked nothing for these"
        async with browser_of(settings, engine, provider) as another:
            assert (await another.get(back)).status_code == 400, "another browser began it"
        assert (await client.get(back)).status_code == 200
        again = await client.get(back)
        assert again.status_code == 400 and len(provider.redeemed) == 1, "an answer is used once"


async def test_an_answer_is_used_once_even_with_its_cookie(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    async with browser_of(settings, engine, provider) as client:
        back = await sent_back(client)
        cookies = {"cookie": "; ".join(f"{each.name}={each.value}" for each in client.cookies.jar)}
        assert (await client.get(back)).status_code == 200
        client.cookies.clear()
        again = await client.get(back, headers=cookies)
        assert again.status_code == 400 and "twice" in again.text
        assert len(provider.redeemed) == 1
        # A signed cookie of another purpose is none of a sign-in.
        ((name, value),) = [pair.split("=") for pair in cookies["cookie"].split("; ")]
        assert (await client.get("/?q=x", headers={"cookie": f"{COOKIE}={value}"})).status_code == 303
        key = client.app.state.serving.door.secret  # type: ignore[attr-defined]
        assert (await client.get(back, headers={"cookie": f"{name}={new_session(key)}"})).status_code == 400


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ({"iss": "https://evil.example"}, 400),
        ({"iss": None}, 400),
        ({"code": None}, 400),
        ({"code": ""}, 400),
        ({"code": "guessed"}, 403),
        ({"code": "x" * 5_000}, 400),
        ({"code": None, "error": "access_denied"}, 403),
        ({"error": "<script>alert(1)</script>"}, 403),
    ],
)
async def test_what_the_provider_does_not_say_is_refused(
    settings: Settings, engine: ScriptedEngine, provider: Provider, answers: dict[str, str | None], status: int
) -> None:
    provider.answers = answers
    async with browser_of(settings, engine, provider) as client:
        answer = await signed_in(client)
        assert answer.status_code == status
        assert COOKIE not in client.cookies
        assert "<script>alert" not in answer.text
        assert "Sign in" in answer.text, "and how to begin anew"


OTHER = ec_key()


def signed(claims: dict[str, Any], key: Any = PEOPLE, algorithm: str = "ES256", **header: Any) -> str:
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": "people", **header})


FORGED = {
    "another key": lambda claims: signed(claims, OTHER),
    "alg none": lambda claims: forged({"alg": "none", "kid": "people"}, claims, None),
    "HMAC with the public key": lambda claims: forged({"alg": "HS256", "kid": "people"}, claims, pem_of(PEOPLE)),
    "HMAC with the secret": lambda claims: forged({"alg": "HS256"}, claims, SECRET.encode()),
    "another issuer": lambda claims: signed({**claims, "iss": "https://evil.example"}),
    "another audience": lambda claims: signed({**claims, "aud": "another"}),
    "no audience": lambda claims: signed({name: each for name, each in claims.items() if name != "aud"}),
    "several audiences and nobody named": lambda claims: signed({**claims, "aud": [CLIENT, "another"]}),
    "made for another client": lambda claims: signed({**claims, "azp": "another"}),
    "another nonce": lambda claims: signed({**claims, "nonce": "0" * 64}),
    "no nonce": lambda claims: signed({name: each for name, each in claims.items() if name != "nonce"}),
    "nonce is no text": lambda claims: signed({**claims, "nonce": [claims["nonce"]]}),
    "expired": lambda claims: signed({**claims, "exp": int(time.time()) - 3_600}),
    "of the future": lambda claims: signed({**claims, "iat": int(time.time()) + 3_600}),
    "no time": lambda claims: signed({name: each for name, each in claims.items() if name != "iat"}),
    "no subject": lambda claims: signed({name: each for name, each in claims.items() if name != "sub"}),
    "no token": lambda claims: None,
    "no JWT": lambda claims: "opaque",
    "changed": lambda claims: signed(claims)[:-4] + "AAAA",
}


async def test_a_forged_id_token_is_nobodys(settings: Settings, engine: ScriptedEngine, provider: Provider) -> None:
    async with browser_of(settings, engine, provider) as client:
        for name, mint in FORGED.items():
            provider.mints = mint
            answer = await signed_in(client)
            assert answer.status_code == 403, name
            assert COOKIE not in client.cookies, name
        provider.mints = lambda claims: signed({**claims, "aud": [CLIENT, "another"], "azp": CLIENT})
        assert (await signed_in(client)).status_code == 200


async def test_who_fails_often_is_not_tried(
    settings: Settings, engine: ScriptedEngine, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "MAX_FAILURES", 3)
    provider.answers = {"code": "guessed"}
    async with browser_of(settings, engine, provider) as client:
        statuses = [(await signed_in(client)).status_code for _ in range(4)]
        assert statuses == [403, 403, 403, 429]


async def test_an_id_token_is_no_bearer_token_and_a_bearer_token_no_id_token(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    async with browser_of(settings, engine, provider) as client:
        token = provider.signed(provider.claims(aud=CLIENT))
        is_problem(await client.get("/agents", headers={"authorization": f"Bearer {token}"}), 401)
    async with browser_of(settings, engine, provider, audience="api") as client:
        bearer = {"authorization": f"Bearer {provider.signed(provider.claims(aud='api'))}"}
        assert (await client.get("/agents", headers=bearer)).status_code == 200
        is_problem(await client.get("/agents", headers={"authorization": f"Bearer {token}"}), 401)
        provider.mints = lambda claims: provider.signed({**claims, "aud": "api"})
        assert (await signed_in(client)).status_code == 403


async def test_only_the_groups_that_are_admitted_come_in(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    async with browser_of(settings, engine, provider, admit=["board"], audience="api") as client:
        provider.person = {"sub": "eve", "groups": ["guests"]}
        answer = await signed_in(client)
        assert answer.status_code == 403 and "none of the groups" in answer.text
        guest = provider.signed(provider.claims(aud="api", groups=["guests"]))
        is_problem(await client.get("/agents", headers={"authorization": f"Bearer {guest}"}), 401)
        provider.person = {"sub": "alice", "groups": ["board"]}
        assert (await signed_in(client)).status_code == 200


async def test_logging_out_ends_it_here_and_at_the_provider(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    async with browser_of(settings, engine, provider) as client:
        await signed_in(client)
        copied = client.cookies[COOKIE]
        key = client.app.state.serving.door.secret  # type: ignore[attr-defined]
        assert (await client.post("/logout", content="csrf=0", headers=FORM)).status_code == 403
        assert (await client.post("/logout", headers={**FORM, "sec-fetch-site": "cross-site"})).status_code == 403
        page = await client.post("/logout", content=urlencode({"csrf": csrf_token(copied, key)}), headers=FORM)
        assert COOKIE not in client.cookies
        address = onward(page)
        assert address
        left = await asyncio.to_thread(httpx.get, address)
        (said,) = provider.left
        assert said["post_logout_redirect_uri"] == left.headers["location"] == "http://nornweave/logout"
        hint = jwt.decode(said["id_token_hint"], options={"verify_signature": False})
        assert (hint["sub"], said["client_id"]) == ("alice", CLIENT)
        out = await client.get("/logout")
        assert out.status_code == 200 and "Signed out" in out.text and onward(out) is None
        client.cookies.set(COOKIE, copied)
        assert (await client.get("/?q=pay")).status_code == 303, "a copy of the cookie is worth nothing"


async def test_without_a_place_to_sign_out_it_ends_here(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    provider.says = {"end_session_endpoint": None}
    async with browser_of(settings, engine, provider) as client:
        await signed_in(client)
        key = client.app.state.serving.door.secret  # type: ignore[attr-defined]
        sent = urlencode({"csrf": csrf_token(client.cookies[COOKIE], key)})
        assert onward(await client.post("/logout", content=sent, headers=FORM)) == "/logout"


async def test_the_token_still_opens_a_session(settings: Settings, engine: ScriptedEngine, provider: Provider) -> None:
    async with browser_of(settings, engine, provider) as client:
        assert "<form" in (await client.get("/login?token")).text
        await client.post("/login", content=urlencode({"token": "s3cret", "next": "/"}), headers=FORM)
        assert (await client.get("/status.json")).status_code == 200
        key = client.app.state.serving.door.secret  # type: ignore[attr-defined]
        sent = urlencode({"csrf": csrf_token(client.cookies[COOKIE], key)})
        out = await client.post("/logout", content=sent, headers=FORM)
        assert out.headers["location"] == "/logout", "which does not sign anybody in"


async def test_a_provider_that_is_down_is_said_to_be(
    settings: Settings, engine: ScriptedEngine, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.status = 500
    async with browser_of(settings, engine, provider) as client:
        for _ in range(2):
            page = await client.get("/login")
            assert page.status_code == 503 and "does not answer now" in page.text
            assert page.headers["retry-after"]
    provider.status = 200
    async with browser_of(settings, engine, provider) as client:
        back = await sent_back(client)
        provider.status = 500
        page = await client.get(back)
        assert page.status_code == 503 and "Sign in" in page.text
    monkeypatch.setattr(door, "_ANSWERS_WITHIN_S", 0.2)
    provider.status, provider.slow_s = 200, 1.0
    async with browser_of(settings, engine, provider) as client:
        assert (await client.get("/login")).status_code == 503, "nobody waits for long"


async def test_a_browser_is_not_sent_to_a_provider_that_went_down(
    settings: Settings, engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(sign_in, "LOOK_S", 0.5)
    with ExitStack() as running:
        provider = running.enter_context(Provider(keys=[jwk_of(PEOPLE, "people")]))
        async with browser_of(settings, engine, provider) as client:
            back = await sent_back(client)
            provider.describes = 500  # people still sign in with the description that is known
            assert (await client.get("/login")).status_code == 303
            provider.describes = 200
            assert (await client.get(back)).status_code == 200
            key = client.app.state.serving.door.secret  # type: ignore[attr-defined]
            form = urlencode({"csrf": csrf_token(client.cookies[COOKIE], key)})
            provider.status = 502
            assert (await client.get("/login")).headers["location"] == "/", "who has a session needs no provider"
            out = await client.post("/logout", content=form, headers=FORM)
            assert (onward(out), provider.left) == ("/logout", []), "it ends here"
            for status, slow_s in ((502, 0.0), (200, 1.5), (404, 0.0)):
                provider.status, provider.slow_s = status, slow_s
                page = await client.get("/login", params={"next": "/?q=pay"})
                said = (page.status_code, "does not answer now" in page.text, onward(page), page.headers["retry-after"])
                assert said == (503, True, None, "10"), (status, slow_s)
                assert "/login?next=%2F%3Fq%3Dpay" in page.text and "/login?token" in page.text
                assert "set-cookie" not in page.headers
                provider.status, provider.slow_s = 200, 0.0
                assert (await client.get("/login")).status_code == 303, "it is back"
            running.close()
            assert (await client.get("/login")).status_code == 503, "nobody listens there"


@pytest.mark.parametrize("says", [
    {"authorization_endpoint": None}, {"authorization_endpoint": "http://evil.example/"},
    {"authorization_endpoint": "javascript:x"}, {"issuer": "https://evil.example"},
])  # fmt: skip
async def test_a_provider_that_describes_itself_wrongly_is_not_asked(
    settings: Settings, engine: ScriptedEngine, provider: Provider, says: dict[str, Any]
) -> None:
    provider.says = says
    async with browser_of(settings, engine, provider) as client:
        assert (await client.get("/login")).status_code == 503


async def test_a_client_shows_its_secret_as_the_provider_takes_it(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    for ways in (None, "client_secret_post", ["client_secret_basic", "none"]):
        provider.says = {"token_endpoint_auth_methods_supported": ways}
        async with browser_of(settings, engine, provider) as client:
            assert (await signed_in(client)).status_code == 200
            assert "client_secret" not in provider.redeemed[-1]
    provider.secret, provider.says = None, {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    async with browser_of(settings, engine, provider) as client:
        assert (await signed_in(client)).status_code == 200
        assert provider.redeemed[-1]["client_secret"] == SECRET
    async with browser_of(settings, engine, provider, client_secret_env=None) as client:
        assert (await signed_in(client)).status_code == 200, "a public client has none"
        assert "client_secret" not in provider.redeemed[-1]


async def test_a_provider_that_answers_nonsense_signs_nobody_in(
    settings: Settings, engine: ScriptedEngine, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser_of(settings, engine, provider) as client:
        for answer in (
            {}, {"id_token": 1}, {"id_token": None}, {"id_token": "a.b.c"}, {"id_token": {"sub": "alice"}},
            {"error": 5}, {"error": ["x"]}, [], "x", None, 1,
        ):  # fmt: skip
            monkeypatch.setattr(provider, "redeem", lambda *_, given=answer: given)
            assert (await signed_in(client)).status_code in {403, 503}, answer
            assert COOKIE not in client.cookies


async def test_a_session_is_renewed_and_ends_with_the_person(
    settings: Settings, engine: ScriptedEngine, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.gives_refresh = True
    provider.person = {"sub": "bob", "groups": ["chiefs"]}
    moment = time.time()
    monkeypatch.setattr(renewal, "time", SimpleNamespace(time=lambda: moment))
    async with browser_of(settings, engine, provider, renew_s=600) as client:
        await signed_in(client)
        async with browser_of(settings, engine, provider, renew_s=600) as another:
            assert (await client.get("/status.json")).status_code == 200
            provider.person = {"sub": "bob", "groups": ["board"]}
            moment += 599
            assert (await client.get("/status.json")).status_code == 200, "not yet asked again"
            moment += 2
            sent = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
            answers = await asyncio.gather(
                *[each.get("/find.json?text=a", headers=sent) for each in (client, another) * 4]
            )
            assert {answer.status_code for answer in answers} == {200}
            assert len(provider.redeemed) == 2, "one of several processes asks, for a token is good for one time"
            assert (await client.get("/status.json")).status_code == 403, "the groups are those of today"
            provider.status = 500
            moment += 601
            assert (await client.get("/agents")).status_code == 200, "a provider that is down ends nothing"
            moment += 900
            assert (await client.get("/agents")).status_code == 401, "for a while"
            provider.status = 200
            moment += 31
            assert (await client.get("/agents")).status_code == 200, "back, it renews what lasted"
            provider.person = {"sub": "eve", "groups": ["chiefs"]}
            moment += 601
            assert (await client.get("/agents")).status_code == 401, "a token of another person ends it"
            assert (await another.get("/agents", headers=sent)).status_code == 401, "in all processes"
        provider.person = {"sub": "bob", "groups": ["board"]}
        await signed_in(client)
        provider.refreshing.clear()
        moment += 601
        assert (await client.get("/agents")).status_code == 401, "the provider does not know them any more"
        provider.gives_refresh = False
        await signed_in(client)
        moment += 601
        assert (await client.get("/?q=pay")).headers["location"].startswith("/login"), "without one people sign in anew"


async def test_a_token_loses_the_groups_that_the_provider_takes_from_its_maker(
    settings: Settings, engine: ScriptedEngine, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.gives_refresh = True
    provider.person = {"sub": "bob", "groups": ["board", "chiefs"]}
    moment = time.time()
    monkeypatch.setattr(renewal, "time", SimpleNamespace(time=lambda: moment))
    async with browser_of(settings, engine, provider, renew_s=600) as client:
        await signed_in(client)
        page = await client.get("/tokens")
        csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert csrf, page.text
        wanted = {"csrf": csrf[1], "name": "ci", "scope": "operate", "expires_in_days": "9"}
        made = await client.post("/tokens/form", data=wanted, headers={"origin": CLIENT_URL})
        secret = f"nw_{made.text.partition('nw_')[2].partition('<')[0]}"
        program = {"authorization": f"Bearer {secret}", "cookie": ""}
        assert (await client.get("/status.json", headers=program)).status_code == 200
        provider.person = {"sub": "bob", "groups": ["board"]}
        moment += 601
        assert (await client.get("/status.json")).status_code == 403
        assert (await client.get("/status.json", headers=program)).status_code == 403
        assert (await client.get("/agents", headers=program)).status_code == 200, "what is left of it still asks"
        provider.person = {"sub": "bob", "groups": ["board", "chiefs"]}
        moment += 601
        assert (await client.get("/status.json")).status_code == 200
        assert (await client.get("/status.json", headers=program)).status_code == 403, "what it lost does not come back"


async def test_nothing_of_the_provider_is_readable_in_what_is_kept(
    settings: Settings, engine: ScriptedEngine, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.gives_refresh = True
    async with browser_of(settings, engine, provider) as client:
        await signed_in(client)
        kept = b"".join(each.read_bytes() for each in Path(settings.data_dir).glob("*.sqlite*"))
        (refresh,) = provider.refreshing
        assert refresh.encode() not in kept and b"eyJ" not in kept
        assert client.cookies[COOKIE].encode() not in kept, "nor a session"
        assert refresh not in caplog.text and SECRET not in caplog.text


async def test_groups_that_a_cookie_cannot_hold_are_kept_here(
    settings: Settings, engine: ScriptedEngine, provider: Provider
) -> None:
    provider.person = {"sub": "bob", "groups": ["chiefs", *(f"group-{number:04}" for number in range(500))]}
    async with browser_of(settings, engine, provider) as client:
        await signed_in(client)
        assert len(client.cookies[COOKIE]) < 1_000
        assert (await client.get("/status.json")).status_code == 200


def test_a_secret_that_is_missing_is_said_at_the_start(settings: Settings, provider: Provider) -> None:
    with pytest.raises(ConfigError, match="CLIENT_SECRET is not set"):
        create_app(with_client(settings, provider), environment={})


async def test_where_nobody_signs_in_there_is_no_callback(settings: Settings, engine: ScriptedEngine) -> None:
    app = create_app(settings, engine, environment={})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=CLIENT_URL) as client:
        is_problem(await client.get("/callback?state=x", headers={"accept": "application/json"}), 404)
        assert (await client.get("/logout", headers=BROWSER)).headers["location"] == "/"
