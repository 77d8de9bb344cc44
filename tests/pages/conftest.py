"""A server over a real engine, and a browser that looks at it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright
from recall_workspace import publish, write_workspace

from api.app import create_app
from api.listening import listen, url_of
from nornweave.settings import Settings

WAIT_S = 60.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Documents that want something of whoever reads them.
HOSTILE_NAME = "<img src=x onerror=window.hacked=1>.md"
HOSTILE = """# Refund policy <script>window.hacked=1</script>

A refund takes <b onmouseover=window.hacked=1>nine</b> days. [Read more](javascript:window.hacked=1)
![tracker](http://tracker.invalid/pixel.png) <iframe src="http://tracker.invalid/"></iframe>
The invoice is called \u202efdp.exe\u202c and its total is zero\u200bwidth. {{ 7 * 7 }} {% raw %}
"""
HOSTILE_PAPER = "# Chargebacks <svg onload=window.hacked=1>\n\nA chargeback \"quote' costs & takes a month.\n"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A small corpus of all four domains, published, with hostile documents in it; nobody may change it."""
    folder = tmp_path_factory.mktemp("pages")
    settings = write_workspace(folder)
    (folder / "docs" / HOSTILE_NAME).write_text(HOSTILE, "utf-8")
    (folder / "papers" / "evil.md").write_text(f"---\nurl: javascript:window.hacked=1\n---\n{HOSTILE_PAPER}", "utf-8")
    webhooks = folder / "code" / "src" / "payments" / "webhooks.py"
    webhooks.write_text('"""Webhooks."""\n\nWEBHOOK_TIMEOUT_SECONDS = 10\n', "utf-8")
    (folder / "docs" / "webhooks.md").write_text("# Webhooks\n\nThe webhook timeout is 30 seconds.\n", "utf-8")
    publish(settings)
    return settings


@contextmanager
def serving(settings: Settings, **environment: str) -> Iterator[str]:
    """Serve in a thread of this process, and yield the address."""
    app = create_app(settings, environment=environment)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", ws="none"))
    with listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            url = url_of(listener)
            wait_until_ready(url, environment)
            yield url
        finally:
            server.should_exit = True
            thread.join()


def wait_until_ready(url: str, environment: dict[str, str]) -> None:
    token = environment.get("NORNWEAVE_SERVICE_TOKEN")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            if httpx.get(f"{url}/ready", headers=headers).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError("the server is not ready")


@pytest.fixture(scope="module")
def url(corpus: Settings) -> Iterator[str]:
    with serving(corpus) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's own browser: one that Playwright downloads is another one, and there is no downloading in CI."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser on this machine: install {BROWSERS[0]} (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found,
            # In a container its own sandbox cannot be made; what it opens here is ours alone.
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        yield browser
        browser.close()


def is_here(address: str) -> bool:
    """Tell whether an address is of this machine, or holds its data itself."""
    parts = urlsplit(address)
    return parts.scheme == "data" or parts.hostname in {"127.0.0.1", "localhost"}


Opened = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Open an address in a fresh session; what a page asks of other hosts, or logs as an error, fails the test."""
    contexts, wrong = [], []

    def open_(address: str, **options: Any) -> Page:
        # Without motion: a colour on its way from one theme to the other has the contrast of neither.
        view = {"viewport": {"width": 1300, "height": 900}, "reduced_motion": "reduce"}
        context = browser.new_context(**{**view, **options})
        context.set_default_timeout(WAIT_S * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: is_here(request.url) or wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        page.on("console", lambda said: "Content Security" in said.text and wrong.append(said.text))
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []
