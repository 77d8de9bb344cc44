"""``/docs``: a page of this machine's files alone."""

import re

import pytest
from api_support import Ask, is_problem

LOCKED = {"environment": {"NORNWEAVE_SERVICE_TOKEN": "s3cret"}}


def test_the_page_asks_nobody_else_for_anything(look: Ask) -> None:
    page = look("GET", "/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "://" not in page.text
    parts = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(parts) == 5
    for part in parts:
        answer = look("GET", f"/{part}")
        assert answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert len(answer.content) > 20
    assert re.search(r"<script(?![^>]* src=)", page.text) is None, "no script of its own in the page"


@pytest.mark.parametrize("path", ["/docs/", "/docs/redoc.standalone.js", "/docs/..%2fauth.py", "/docs/x", "/redoc"])
def test_nothing_else_is_there(look: Ask, path: str) -> None:
    is_problem(look("GET", path), 404)


def test_the_page_is_open_and_what_it_shows_is_not(look: Ask) -> None:
    for path in ("/docs", "/docs/docs.js", "/docs/swagger-ui.css"):
        assert look("GET", path, app=LOCKED).status_code == 200
    is_problem(look("GET", "/openapi.json", app=LOCKED), 401)
    is_problem(look("GET", "/docs/x", app=LOCKED), 401)
