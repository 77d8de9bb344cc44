"""A published corpus, a server over it, and a browser that looks at its pages."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_server import HOSTILE, HOSTILE_NAME, HOSTILE_PAPER, WAIT_S, Opened, is_here, serving
from playwright.sync_api import Browser, Page, expect, sync_playwright
from recall_workspace import publish, write_workspace

from nornweave.config import Settings
from nornweave.config.workspace import FusionSettings

expect.set_options(timeout=WAIT_S * 1000)
PAPER = Path(__file__).parents[2] / "examples" / "payments" / "research" / "retry-storms.pdf"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A small corpus of all four domains, published, with hostile documents in it; nobody may change it."""
    folder = tmp_path_factory.mktemp("pages")
    settings = write_workspace(folder)
    (folder / "docs" / HOSTILE_NAME).write_text(HOSTILE, "utf-8")
    (folder / "papers" / "evil.md").write_text(f"---\nurl: javascript:window.hacked=1\n---\n{HOSTILE_PAPER}", "utf-8")
    shutil.copy(PAPER, folder / "papers" / "retry-storms.pdf")
    webhooks = folder / "code" / "src" / "payments" / "webhooks.py"
    webhooks.write_text('"""Webhooks."""\n\nWEBHOOK_TIMEOUT_SECONDS = 10\n', "utf-8")
    (folder / "docs" / "webhooks.md").write_text("# Webhooks\n\nThe webhook timeout is 30 seconds.\n", "utf-8")
    publish(settings)
    # However busy the machine is: no domain is late.
    return settings.model_copy(update={"fusion": FusionSettings(fusion_timeout_seconds=WAIT_S)})


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
