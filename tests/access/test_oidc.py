"""Tokens of an identity provider, against a real server with real keys: who is let in, and everything that is not."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from identity_provider import AUDIENCE, Key, Provider, ec_key, forged, jwk_of, pem_of, rsa_key
from pydantic import ValidationError
from waiting import Clock

from api.access import oidc
from api.access.door import Door
from api.access.oidc import ASK_AGAIN_S, OUTDATED_S, SigningKeys
from api.access.oidc import Provider as Checker
from api.errors import ProblemError
from nornweave.config.access import AccessSettings, OidcSettings
from nornweave.core.access import Viewer

ONE, OTHER, CURVE = rsa_key(), rsa_key(), ec_key()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(keys=[jwk_of(ONE, "one"), jwk_of(CURVE, "curve")]) as provider:
        yield provider


def settings_of(provider: Provider, **changed: Any) -> OidcSettings:
    return OidcSettings(**{"issuer": provider.issuer, "audience": AUDIENCE, **changed})


def checker_of(provider: Provider, clock: Clock | None = None, **changed: Any) -> Checker:
    settings = settings_of(provider, **changed)
    return Checker(settings, SigningKeys(settings, now=clock or Clock(1000)))


@pytest.mark.parametrize(("key", "key_id", "algorithm"), [(ONE, "one", "RS256"), (CURVE, "curve", "ES256")])
def test_a_signed_token_says_who_and_in_which_groups(provider: Provider, key: Key, key_id: str, algorithm: str) -> None:
    identity = checker_of(provider).identity(provider.token(key, algorithm, key_id))
    assert identity is not None
    assert identity.name == f"{provider.issuer} alice"
    assert identity.groups == {"board"}
    assert time.time() < identity.expires <= time.time() + 300


def test_other_algorithms_have_to_be_configured(provider: Provider) -> None:
    edwards = ed25519.Ed25519PrivateKey.generate()
    provider.keys.append(jwk_of(edwards, "edwards"))
    for key, algorithm, key_id in ((ONE, "PS256", "one"), (edwards, "EdDSA", "edwards")):
        token = provider.token(key, algorithm, key_id)
        assert checker_of(provider).identity(token) is None
        assert checker_of(provider, algorithms=[algorithm]).identity(token) is not None


@pytest.mark.parametrize("changed", [
    {"exp": int(time.time()) - 60}, {"exp": None}, {"exp": "tomorrow"}, {"nbf": int(time.time()) + 86_400},
    {"iat": int(time.time()) + 86_400}, {"iss": "https://elsewhere.example.org"}, {"iss": None},
    {"aud": "another-service"}, {"aud": ["another", "service"]}, {"aud": None}, {"sub": None}, {"sub": ""},
    {"groups": {"board": True}}, {"groups": ["board", 3]}, {"groups": ["g"] * 1001},
])  # fmt: skip
def test_a_token_with_wrong_claims_is_nobodys(provider: Provider, changed: dict[str, Any]) -> None:
    assert checker_of(provider).identity(provider.token(ONE, "RS256", **changed)) is None


def test_clocks_may_differ_by_the_leeway(provider: Provider) -> None:
    token = provider.token(ONE, "RS256", exp=int(time.time()) - 20)
    assert checker_of(provider, leeway_s=30).identity(token) is not None
    assert checker_of(provider, leeway_s=0).identity(token) is None


@pytest.mark.parametrize("key_id", ["one", "curve", None, "nobodys"])
def test_what_is_not_signed_with_a_private_key_is_nobodys(provider: Provider, key_id: str | None) -> None:
    """``none``, and a public key used as the secret of HMAC (RFC 8725, sections 2.1 and 3.1)."""
    checker = checker_of(provider)
    named = {} if key_id is None else {"kid": key_id}
    claims = provider.claims()
    public = json.dumps(jwk_of(ONE, "one")).encode()
    for header, secret in (
        ({"alg": "none"}, None), ({"alg": "None"}, None), ({"alg": "nOnE"}, b"x"), ({"alg": "HS256"}, pem_of(ONE)),
        ({"alg": "HS256"}, pem_of(ONE).strip()), ({"alg": "HS256"}, public), ({"alg": "HS256"}, b""),
        ({"alg": "RS256"}, pem_of(ONE)), ({"alg": "RS256"}, None), ({}, None), ({"alg": ["RS256"]}, pem_of(ONE)),
        ({"alg": "RS256", "jwk": jwk_of(OTHER, "one")}, b"x"), ({"alg": "RS256", "crit": ["exp"]}, b"x"),
    ):  # fmt: skip
        assert checker.identity(forged({**header, **named}, claims, secret)) is None, header
    assert checker.identity(provider.token(OTHER, "RS256", key_id)) is None, "signed with somebody else's key"


@pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "e30.e30.", "é.é.é", "x" * 5000, "\0.\0.\0"])
def test_what_is_no_token_is_nobodys(provider: Provider, token: str) -> None:
    checker = checker_of(provider)
    assert checker.identity(token) is None
    assert checker.has_to_wait(token) is False


def test_a_changed_token_is_nobodys(provider: Provider) -> None:
    checker = checker_of(provider)
    head, body, signature = provider.token(ONE, "RS256").split(".")
    other = provider.token(ONE, "RS256", groups=["staff"]).split(".")[1]
    assert checker.identity(f"{head}.{other}.{signature}") is None
    assert checker.identity(f"{head}.{body}.") is None


def test_shared_and_private_and_other_keys_of_a_set_are_not_used(provider: Provider) -> None:
    secret = b"0123456789abcdef0123456789abcdef"
    provider.keys = [
        {"kty": "oct", "kid": "shared", "k": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"},
        jwk_of(ONE, "one", use="enc"),
        {"kty": "nonsense", "kid": "x"},
        jwk_of(OTHER, "other", alg="RS512"),
    ]
    checker = checker_of(provider, algorithms=["RS256", "RS512"])
    assert checker.identity(forged({"alg": "HS256", "kid": "shared"}, provider.claims(), secret)) is None
    assert checker.identity(provider.token(ONE, "RS256")) is None
    assert checker.identity(provider.token(OTHER, "RS256", "other")) is None, "the key is for another algorithm"
    assert checker.identity(provider.token(OTHER, "RS512", "other")) is not None


def test_a_token_without_a_key_id_needs_a_single_key(provider: Provider) -> None:
    assert checker_of(provider).identity(provider.token(ONE, "RS256", None)) is not None
    provider.keys.append(jwk_of(OTHER, "other"))
    assert checker_of(provider).identity(provider.token(ONE, "RS256", None)) is None


def test_a_rotated_key_is_fetched_and_made_up_ones_are_not_asked_for_again_and_again(provider: Provider) -> None:
    clock = Clock(1000)
    checker = checker_of(provider, clock)
    assert checker.identity(provider.token(ONE, "RS256")) is not None
    assert provider.asked == 1
    clock.now += ASK_AGAIN_S
    for number in range(20):
        assert checker.identity(provider.token(OTHER, "RS256", f"made-up-{number}")) is None
    assert provider.asked == 2
    provider.keys = [jwk_of(OTHER, "two")]
    rotated = provider.token(OTHER, "RS256", "two")
    assert checker.identity(rotated) is None, "asked a moment ago"
    clock.now += ASK_AGAIN_S
    assert checker.has_to_wait(rotated)
    assert checker.identity(rotated) is not None
    assert not checker.has_to_wait(rotated)
    assert checker.identity(provider.token(ONE, "RS256")) is None, "the old key is gone"
    assert provider.asked == 3


def test_keys_are_read_again_when_they_are_old_and_kept_for_a_day_without_the_provider(provider: Provider) -> None:
    clock = Clock(1000)
    checker = checker_of(provider, clock, keys_fresh_s=60)
    token = provider.token(ONE, "RS256")
    assert checker.identity(token) is not None
    clock.now += 61
    assert checker.identity(token) is not None
    assert provider.asked == 2
    provider.status = 500
    clock.now += OUTDATED_S - 1
    assert checker.identity(token) is not None
    clock.now += 2
    with pytest.raises(ProblemError) as raised:
        checker.identity(token)
    assert (raised.value.status_code, raised.value.kind) == (503, "access-unavailable")
    assert provider.address not in raised.value.detail
    provider.status = 200
    clock.now += ASK_AGAIN_S
    assert checker.identity(token) is not None


def test_what_is_nested_too_deeply_is_not_read(provider: Provider, tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(b'{"keys":' + b"[" * 200_000)
    with pytest.raises(ProblemError):
        checker_of(provider, jwks=str(file)).identity(provider.token(ONE, "RS256"))


def test_a_provider_that_calls_itself_another_one_is_not_believed(provider: Provider) -> None:
    provider.calls_itself = "https://elsewhere.example.org"
    with pytest.raises(ProblemError):
        checker_of(provider).identity(provider.token(ONE, "RS256"))


def test_keys_come_from_an_address_or_a_file(provider: Provider, tmp_path: Path) -> None:
    token = provider.token(ONE, "RS256")
    assert checker_of(provider, jwks=f"{provider.address}/keys").identity(token) is not None
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": provider.keys}))
    asked = provider.asked
    assert checker_of(provider, jwks=str(file)).identity(token) is not None
    assert provider.asked == asked
    for broken in ("", "[]", "{", '{"keys": 3}', "x" * (oidc.MAX_BYTES + 2)):
        file.write_text(broken)
        with pytest.raises(ProblemError):
            checker_of(provider, jwks=str(file)).identity(token)


@pytest.mark.parametrize("expires", ["9999999999", True, [9999999999], None])
def test_the_expiry_is_a_number(provider: Provider, expires: object) -> None:
    assert checker_of(provider).identity(provider.token(ONE, "RS256", exp=expires)) is None


@pytest.mark.parametrize(("claim", "claims", "groups"), [
    ("groups", {"groups": "board"}, {"board"}),
    ("groups", {"groups": None}, set()),
    ("roles", {"roles": ["a", " b "]}, {"a"}),
    ("realm_access.roles", {"realm_access": {"roles": ["a"]}}, {"a"}),
    ("https://example.org/groups", {"https://example.org/groups": ["a"]}, {"a"}),
    ("realm_access.roles", {"realm_access": "x"}, set()),
])  # fmt: skip
def test_groups_come_from_the_claim_that_is_configured(
    provider: Provider, claim: str, claims: dict[str, Any], groups: set[str]
) -> None:
    identity = checker_of(provider, groups_claim=claim).identity(provider.token(ONE, "RS256", **claims))
    assert identity is not None
    assert identity.groups == groups


@pytest.mark.parametrize("changed", [
    {"issuer": "http://login.example.org"}, {"issuer": "https://user:secret@login.example.org"}, {"issuer": "x"},
    {"jwks": "http://login.example.org/keys"}, {"algorithms": ["HS256"]}, {"algorithms": ["none"]},
    {"algorithms": []}, {"audience": []}, {"audience": ""},
    {"client_secret_env": "SECRET"}, {"scopes": ["email"]},
    {"client_id": "x", "scopes": ["openid a"]}, {"client_id": "x", "renew_s": 0}, {"client_id": "x", "admit": [""]},
    {"leeway_s": 3600}, {"unknown": 1},
])  # fmt: skip
def test_settings_that_would_let_others_in_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OidcSettings(**{"issuer": "https://login.example.org", "audience": AUDIENCE, **changed})


def test_the_door_lets_in_who_shows_a_signed_token(provider: Provider, tmp_path: Path) -> None:
    access = AccessSettings(oidc=settings_of(provider), operators=("chiefs",))
    door = Door("service", access, tmp_path)

    async def entered(token: str) -> Viewer | None:
        entry = await door.enter(token, "127.0.0.1")
        return entry.viewer if entry else None

    board = asyncio.run(entered(provider.token(ONE, "RS256")))
    chief = asyncio.run(entered(provider.token(ONE, "RS256", groups=["chiefs"], sub="bob")))
    assert board is not None and chief is not None
    assert (board.groups, board.sees_everything, board.operates) == ({"board"}, False, False)
    assert (chief.sees_everything, chief.operates) == (True, True)
    assert board.name != chief.name
    assert asyncio.run(entered(provider.token(OTHER, "RS256"))) is None
    operator = asyncio.run(entered("service"))
    assert operator is not None and operator.sees_everything
