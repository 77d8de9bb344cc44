"""Which page sent a request: pages of other sites change nothing, ask nothing and use no tools, on every route."""

import pytest
from api_support import CLIENT, Ask, is_problem, routes_of
from scripted_engine import ScriptedEngine
from starlette.datastructures import Headers

from api.access.origins import READING, TOOLS, foreign_page
from api.app import create_app
from nornweave.config import Settings
from nornweave.core.types import Domain

FOREIGN = [
    {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": "http://nornweave:3000"},
    {"origin": "http://nornweave.evil.example"}, {"origin": "http://evil.example/http://nornweave"}, {"origin": ""},
    {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "anything"},
    {"origin": CLIENT, "sec-fetch-site": "cross-site"},
]  # fmt: skip
OWN = [
    {}, {"origin": CLIENT}, {"origin": CLIENT.upper()}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"},
]  # fmt: skip
MULTIPART = "multipart/form-data; boundary=x"
FILE = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\nplanted\r\n--x--\r\n'


def test_no_route_takes_anything_from_a_page_of_another_site(
    look: Ask, ask: Ask, settings: Settings, engine: ScriptedEngine
) -> None:
    app = create_app(settings, engine, agent=Domain.CODE, environment={})
    routes = {route for route in routes_of(app.router.routes) if route.split()[0] not in READING}
    assert {"POST /query", "POST /agents/{domain}/ingest", f"POST {TOOLS}"} <= routes
    for method, path in map(str.split, sorted(routes)):
        address = path.replace("{domain}", "code").replace("{agent_id}", "a").replace("{source_path:path}", "a.md")
        for headers in FOREIGN:
            problem = is_problem(look(method, address, headers=headers), 403)
            assert "other sites" in problem["detail"], (method, path, headers)
        assert ask(method, address, headers={"origin": CLIENT}).status_code != 403, (method, path)


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_document_is_not_planted(look: Ask, headers: dict[str, str]) -> None:
    for kind in (MULTIPART, "text/plain", "application/x-www-form-urlencoded", "application/json"):
        sent = look("POST", "/agents/code/ingest", content=FILE, headers={"content-type": kind, **headers})
        is_problem(sent, 403)


@pytest.mark.parametrize("headers", OWN)
def test_own_pages_and_programs_are_answered(look: Ask, headers: dict[str, str]) -> None:
    assert look("POST", "/query", json={"query": "pay"}, headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_the_tools_check_every_method(look: Ask, method: str) -> None:
    is_problem(look(method, "/mcp", headers={"origin": "http://evil.example"}), 403)


def test_reading_is_not_refused(look: Ask) -> None:
    """A person may follow a link to a page, and the browser lets no other page read an answer."""
    for more in ({}, {"sec-fetch-mode": "navigate"}, {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}):
        assert look("GET", "/agents", headers={"sec-fetch-site": "cross-site", **more}).status_code == 200


@pytest.mark.parametrize("path", ["/?q=pay", "/.json?q=pay", "/find?text=pay"])
def test_no_image_and_no_frame_of_another_site_asks(look: Ask, path: str) -> None:
    for mode, destination in (("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("navigate", "object")):
        headers = {"sec-fetch-mode": mode, "sec-fetch-dest": destination}
        is_problem(look("GET", path, headers={"sec-fetch-site": "cross-site", **headers}), 403)
        assert look("GET", path, headers={"sec-fetch-site": "same-origin", **headers}).status_code != 403


def test_behind_a_proxy_the_public_address_is_our_own(look: Ask) -> None:
    proxied = {"environment": {"NORNWEAVE_URL": "https://search.example.org/docs"}}
    asked = {"json": {"query": "pay"}, "app": proxied}
    assert look("POST", "/query", headers={"origin": "https://search.example.org"}, **asked).status_code == 200
    detail = is_problem(look("POST", "/query", headers={"origin": "https://example.org"}, **asked), 403)["detail"]
    assert "NORNWEAVE_URL" in detail and "search.example.org" in detail


def test_two_origins_are_as_good_as_the_worse() -> None:
    raw = [(b"origin", b"http://nornweave"), (b"origin", b"http://evil.example")]
    assert foreign_page(Headers(raw=raw), {"http://nornweave"}) is not None
