"""Addresses: what may be opened, where a login may lead, what a client prefers."""

import pytest

from api.pages.addresses import local, original, passage_address
from api.schemas import prefers_html

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"


@pytest.mark.parametrize("url", ["https://doi.org/10.5555/x", "http://wiki:8080/a?b#c"])
def test_web_addresses_may_be_opened(url: str) -> None:
    assert original(url) == url


@pytest.mark.parametrize(
    "url",
    [None, 3, "", "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "file:///etc/passwd", "//evil",
     "https:", "http://", "/relative", " https://x", "java\nscript:x", "https://x\ty", "http://[",
     "https://" + "x" * 3000],
)  # fmt: skip
def test_nothing_else_may(url: object) -> None:
    assert original(url) is None


@pytest.mark.parametrize("path", ["/", "/?q=a+b&domain=code", "/passages/abc#L4"])
def test_a_login_leads_to_a_page_of_ours(path: str) -> None:
    assert local(path) == path


@pytest.mark.parametrize("path", ["", "x", "//evil", "/\\evil", "https://evil", "/\t/evil", "/a\nb", "/a\\b"])
def test_and_nowhere_else(path: str) -> None:
    assert local(path) == "/"


def test_a_permalink_is_one_part_of_a_path() -> None:
    assert passage_address("a/b?c#d") == "/passages/a%2Fb%3Fc%23d"


@pytest.mark.parametrize(("accept", "html"), [
    (BROWSER, True), ("text/html", True), ("text/*", True), ("application/json, text/html;q=0.9", False),
    ("application/json", False), ("text/html;q=0, */*", False),
    ("text/html;q=broken, application/json;q=0.1", False),
])  # fmt: skip
def test_browsers_prefer_html(accept: str, html: bool) -> None:
    assert prefers_html(accept, otherwise=not html) is html


@pytest.mark.parametrize("accept", ["", "*/*", "image/png", "text/html, application/json"])
def test_who_does_not_mind_gets_what_stands_there(accept: str) -> None:
    assert prefers_html(accept, otherwise=True)
    assert not prefers_html(accept, otherwise=False)
