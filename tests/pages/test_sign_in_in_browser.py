"""Signing in, tokens and signing out in a real browser, at a provider of another site, with two serving processes."""

import re
from collections.abc import Iterator

import httpx
import pytest
from identity_provider import CLIENT, PEOPLE, SECRET, Provider, jwk_of
from page_server import WITH_AXE, Opened, check, serving
from playwright.sync_api import expect

from nornweave.config import Settings
from nornweave.config.access import AccessSettings, OidcSettings

ASKED = "/?q=refund"


@pytest.fixture
def provider() -> Iterator[Provider]:
    # Another port of one host is the same site to a browser; `localhost` beside 127.0.0.1 is another.
    with Provider(keys=[jwk_of(PEOPLE, "people")], host="localhost", gives_refresh=True) as provider:
        yield provider


def test_a_person_signs_in_makes_a_token_and_signs_out(corpus: Settings, provider: Provider, open_page: Opened) -> None:
    oidc = OidcSettings(issuer=provider.issuer, client_id=CLIENT, client_secret_env="CLIENT_SECRET")
    settings = corpus.model_copy(update={"access": AccessSettings(oidc=oidc, operators=("chiefs",))})
    environment = {"CLIENT_SECRET": SECRET, "NORNWEAVE_SERVICE_TOKEN": "s3cret"}
    with serving(settings, **environment) as one, serving(settings, **environment) as another:
        page = open_page(one + ASKED)
        page.wait_for_url(one + ASKED)
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
        assert len(provider.authorized) == 1
        page.goto(another + ASKED)
        expect(page.get_by_role("button", name="Log out")).to_be_visible()

        page.goto(f"{provider.address}/keys")
        page.evaluate("address => { location.href = address }", one + ASKED)
        page.wait_for_url(one + ASKED)
        assert len(provider.authorized) == 1, "a link from another site needs no second sign-in"

        page.get_by_role("link", name="Tokens").click()
        page.get_by_label("For").fill("an agent")
        page.get_by_role("button", name="Make a token").click()
        token = page.locator(".notice code").inner_text()
        bearer = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{another}/agents", headers=bearer).status_code == 200
        page.get_by_role("button", name="Revoke an agent").click()
        expect(page.get_by_text("You have none.")).to_be_visible()
        assert [httpx.get(f"{each}/agents", headers=bearer).status_code for each in (one, another)] == [401, 401]

        page.get_by_role("button", name="Log out").click()
        page.wait_for_url(f"{one}/logout")
        expect(page.get_by_role("heading", name="Signed out")).to_be_visible()
        (left,) = provider.left
        assert re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", left["id_token_hint"])
        provider.answers = {"code": None, "error": "access_denied"}
        page.get_by_role("link", name="Sign in").click()
        expect(page.get_by_role("heading", name="Not signed in")).to_be_visible()
        assert len(provider.authorized) == 2, "it asked the provider anew"

        provider.answers = {}
        page = open_page(f"{one}/logout", **WITH_AXE)
        check(page, "signed out")
        page.goto(f"{one}/tokens")
        page.wait_for_url(f"{one}/tokens")
        page.get_by_label("For").fill("an agent")
        page.get_by_role("button", name="Make a token").click()
        expect(page.get_by_role("button", name="Revoke an agent")).to_be_visible()
        check(page, "tokens")
