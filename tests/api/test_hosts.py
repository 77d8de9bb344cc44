"""By which names the API may be called when nothing but its address guards it."""

import pytest
from api_support import Ask, is_problem
from starlette.requests import Request

from api.access.origins import answered_names, host_name
from api.pages.addresses import page_links

GUARDED = {"names": answered_names("127.0.0.1")}


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8082", "localhost", "LocalHost:1", "[::1]", "[::1]:8082", "localhost:"]
)
def test_this_machine_is_answered(look: Ask, host: str) -> None:
    assert look("GET", "/agents", app=GUARDED, headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:8082", "localhost.evil.example", "127.0.0.1.evil.example",
    "127.0.0.1@evil.example", "::1", "[::1].evil.example", "", "localhost:80:80", "0.0.0.0",
])  # fmt: skip
def test_any_other_name_is_not(look: Ask, host: str) -> None:
    for path in ("/agents", "/health", "/openapi.json", "/docs", "/nowhere"):
        assert "localhost" in is_problem(look("GET", path, app=GUARDED, headers={"host": host}), 421)["detail"]


def test_two_names_are_none(look: Ask) -> None:
    headers = [("host", "localhost"), ("host", "evil.example")]
    is_problem(look("GET", "/agents", app=GUARDED, headers=headers), 421)


def test_the_configured_host_is_answered(look: Ask) -> None:
    guarded = {"names": answered_names("127.0.0.2")}
    assert look("GET", "/agents", app=guarded, headers={"host": "127.0.0.2:80"}).status_code == 200
    assert answered_names("::1") == {"localhost", "127.0.0.1", "[::1]"}


def test_behind_a_token_every_name_is_answered(look: Ask) -> None:
    assert look("GET", "/agents", headers={"host": "search.company.example"}).status_code == 200


@pytest.mark.parametrize(("header", "name"), [
    ("a:1", "a"), ("A", "a"), ("[::1]:8", "[::1]"), ("[::1]", "[::1]"), ("::1", ":"), ("a:b", "a:b"), (" a ", "a"),
    (":80", ""),
])  # fmt: skip
def test_the_port_is_no_part_of_the_name(header: str, name: str) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize(("host", "base"), [
    ("127.0.0.1:8082", "http://127.0.0.1:8082"), ("localhost:8082", "http://localhost:8082"),
    ("10.0.0.5:8082", "http://10.0.0.5:8082"), ("evil.example", "http://10.0.0.5:8082"),
    ("evil.example:8082", "http://10.0.0.5:8082"), ("", "http://10.0.0.5:8082"),
])  # fmt: skip
def test_a_foreign_host_gets_into_no_link(host: str, base: str) -> None:
    scope = {"type": "http", "scheme": "http", "server": ("10.0.0.5", 8082), "path": "/mcp", "query_string": b""}
    request = Request({**scope, "headers": [(b"host", host.encode())]})
    assert page_links(None, request)("a", None) == f"{base}/passages/a"
    assert page_links("https://search.example.org", request)("a", None) == "https://search.example.org/passages/a"


def test_links_to_an_ipv6_address_have_brackets() -> None:
    scope = {"type": "http", "scheme": "http", "server": ("::1", 8082), "path": "/mcp", "query_string": b""}
    request = Request({**scope, "headers": [(b"host", b"evil.example")]})
    assert page_links(None, request)("a", None) == "http://[::1]:8082/passages/a"
