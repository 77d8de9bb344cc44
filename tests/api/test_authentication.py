"""The bearer token, and where one may listen without."""

import logging
from random import Random
from string import ascii_letters, digits

import pytest
from api_support import Ask, is_problem
from scripted_engine import ScriptedAgent

from api.access.door import MIN_TOKEN_BITS, check_listening, service_token, shown_bits
from nornweave.ask.search.records import AgentState
from nornweave.config import Settings
from nornweave.core.access import OPERATOR
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain

TOKEN = "s3cret-tökén"
LOCKED = {"environment": {"NORNWEAVE_SERVICE_TOKEN": TOKEN}}


def bearing(token: str, scheme: str = "Bearer") -> dict[bytes, bytes]:
    return {b"authorization": f"{scheme} {token}".encode()}


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_token_opens(look: Ask, scheme: str) -> None:
    headers = bearing(TOKEN, scheme)
    assert look("GET", "/agents", app=LOCKED, headers=headers).status_code == 200
    body = {"query_text": "pay"}
    assert look("POST", "/agents/code/recall", app=LOCKED, headers=headers, json=body).status_code == 200


CLOSED = [
    ("POST", "/agents/code/recall"), ("POST", "/query"), ("POST", "/fuse"), ("POST", "/agents/code/ingest"),
    ("GET", "/chunks/chunk-0"), ("GET", "/documents/code/payments/a.py"), ("GET", "/conflicts"), ("GET", "/agents"),
    ("GET", "/evaluations"), ("GET", "/docs/nothing"), ("GET", "/openapi.json"), ("GET", "/nowhere"),
    ("POST", "/feedback"), ("GET", "/metrics"), ("GET", "/health/"), ("GET", "//health"),
]  # fmt: skip


@pytest.mark.parametrize("headers", [
    {}, bearing(""), bearing("s3cret"), bearing(TOKEN + "x"), bearing(TOKEN.upper()), bearing(TOKEN, "Basic"),
    bearing("", TOKEN), {b"authorization": TOKEN.encode()}, {b"authorization": b"\xff\xfe"},
])  # fmt: skip
def test_everything_else_stays_closed(look: Ask, still_code: ScriptedAgent, headers: dict[bytes, bytes]) -> None:
    # An app each: of one address only a number of wrong tokens are compared.
    app = {"environment": {**LOCKED["environment"], "OF": str(headers)}}
    for method, path in CLOSED:
        answer = look(method, f"http://nornweave{path}", app=app, headers=headers, content=b"x")
        is_problem(answer, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer"), path
        assert TOKEN not in answer.text
    assert still_code.asked == []


def test_health_is_open_but_says_no_more_than_that(ask: Ask, code: ScriptedAgent) -> None:
    assert ask("GET", "/health", app=LOCKED).json() == {"status": "ok"}
    alone = {**LOCKED, "agent": Domain.CODE}
    assert ask("GET", "/health", app=alone).json() == {"status": "ok"}
    told = ask("GET", "/health", app=alone, headers=bearing(TOKEN)).json()
    assert told.keys() == {"status", *code.health(OPERATOR)}


def test_readiness_is_open_without_its_reasons(ask: Ask, code: ScriptedAgent) -> None:
    assert ask("GET", "/ready", app=LOCKED).json() == {"ready": True}
    assert "domains" in ask("GET", "/ready", app=LOCKED, headers=bearing(TOKEN)).json()
    code.state = AgentState.OFFLINE
    refused = is_problem(ask("GET", "/ready", app=LOCKED), 503)
    assert (refused["ready"], refused["detail"]) == (False, "the reasons are for who shows a token")
    assert "code" not in str(refused)


def test_the_token_is_never_logged(ask: Ask, code: ScriptedAgent, caplog: pytest.LogCaptureFixture) -> None:
    code.failure = KeyError("secret detail of the implementation")
    with caplog.at_level(logging.DEBUG):
        ask("POST", "/agents/code/recall", app=LOCKED, headers=bearing(TOKEN), json={"query_text": "x"})
        ask("GET", "/agents", app=LOCKED, headers=bearing(TOKEN + "x"))
    assert "secret detail" in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(("value", "token"), [(None, None), ("", None), (" \n", None), (" abc\n", "abc")])
def test_the_token_comes_from_the_environment(value: str | None, token: str | None) -> None:
    assert service_token({} if value is None else {"NORNWEAVE_SERVICE_TOKEN": value}) == token


GUESSED = (
    *("a", "x" * 16, "x" * 500, "ab" * 40, "abc" * 20, "abcdefghijklmnop", "0123456789" * 3, "abcd1234abcd1234"),
    *("passwordpassword", "token-token-token-token", "xxxxxxxxxxxxxxx1", "fedcba9876543210", "x0x1x2x3x4x5x6x7x8x9"),
)


def test_a_random_token_shows_its_chance_whatever_its_length() -> None:
    random = Random(7)
    for alphabet, length in (("0123456789abcdef", 16), (ascii_letters + digits, 12), ("01", 64)):
        tokens = ("".join(random.choices(alphabet, k=length)) for _ in range(300))
        refused = sum(shown_bits(token) < MIN_TOKEN_BITS for token in tokens)
        assert refused <= 6, (alphabet, refused)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_this_machine_alone_needs_no_token(host: str, settings: Settings) -> None:
    check_listening(host, None, settings)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "192.168.1.5", "example.org", "localhost.example.org", "127.0.0.1.example.org"]
)
def test_listening_for_others_needs_a_token(host: str, settings: Settings) -> None:
    with pytest.raises(ConfigError, match="NORNWEAVE_SERVICE_TOKEN"):
        check_listening(host, None, settings)
    for token in GUESSED:
        with pytest.raises(ConfigError, match="can be guessed"):
            check_listening(host, token, settings)
    check_listening(host, "9f86d081884c7d65", settings)


def test_on_this_machine_a_token_may_be_short(settings: Settings) -> None:
    check_listening("127.0.0.1", "a", settings)
