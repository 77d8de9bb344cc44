"""A server over a real engine in a thread of the tests, and documents that want something of whoever reads them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from urllib.parse import urlsplit

import httpx
from axe_playwright_python.sync_playwright import Axe
from live_server import live
from playwright.sync_api import Page
from waiting import until

from api.app import create_app
from nornweave.config import Settings

WAIT_S = 60.0
# Documents that want something of whoever reads them.
HOSTILE_NAME = "<img src=x onerror=window.hacked=1>.md"
HOSTILE = """# Refund policy <script>window.hacked=1</script>

A refund `<script>window.hacked=1</script>` takes <b onmouseover=window.hacked=1>nine</b> days.
[Read more](javascript:window.hacked=1)
![tracker](http://tracker.invalid/pixel.png) <iframe src="http://tracker.invalid/"></iframe>
The invoice is called \u202efdp.exe\u202c and its total is zero\u200bwidth. {{ 7 * 7 }} {% raw %}
"""
HOSTILE_PAPER = "# Chargebacks <svg onload=window.hacked=1>\n\nA chargeback \"quote' costs & takes a month.\n"


@contextmanager
def serving(settings: Settings, **environment: str) -> Iterator[str]:
    """Serve in a thread of this process, and yield the address once every domain answers."""
    token = environment.get("NORNWEAVE_SERVICE_TOKEN")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with live(create_app(settings, environment=environment)) as url:
        until(lambda: httpx.get(f"{url}/ready", headers=headers, timeout=WAIT_S).status_code == 200)
        yield url


def is_here(address: str) -> bool:
    """Tell whether an address is of this machine, or holds its data itself."""
    parts = urlsplit(address)
    return parts.scheme == "data" or parts.hostname in {"127.0.0.1", "localhost"}


Opened = Callable[..., Page]
# Axe is a script of ours in the page, which the page's own policy forbids.
WITH_AXE = {"bypass_csp": True}
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# What may change with theme and width alone.
LOOKS = ["color-contrast", "target-size", "scrollable-region-focusable", "link-in-text-block"]


def check(page: Page, name: str) -> None:
    """Look at a page by all rules once, and in every theme and width by those that these can change."""
    rules = STANDARDS
    for theme, width in product(("light", "dark"), (360, 1920)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        results = Axe().run(page, options={"runOnly": rules})
        assert results.violations_count == 0, f"{name}, {theme}, {width}: {results.generate_report()}"
        is_wider = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not is_wider, f"{name} at {width}"
        rules = LOOKS
