"""A server over a real engine in a thread of the tests, and documents that want something of whoever reads them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import uvicorn
from playwright.sync_api import Page

from api.app import create_app
from api.listening import listen, url_of
from nornweave.settings import Settings

WAIT_S = 60.0
# Documents that want something of whoever reads them.
HOSTILE_NAME = "<img src=x onerror=window.hacked=1>.md"
HOSTILE = """# Refund policy <script>window.hacked=1</script>

A refund <script>window.hacked=1</script> takes <b onmouseover=window.hacked=1>nine</b> days.
[Read more](javascript:window.hacked=1)
![tracker](http://tracker.invalid/pixel.png) <iframe src="http://tracker.invalid/"></iframe>
The invoice is called \u202efdp.exe\u202c and its total is zero\u200bwidth. {{ 7 * 7 }} {% raw %}
"""
HOSTILE_PAPER = "# Chargebacks <svg onload=window.hacked=1>\n\nA chargeback \"quote' costs & takes a month.\n"


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


def is_here(address: str) -> bool:
    """Tell whether an address is of this machine, or holds its data itself."""
    parts = urlsplit(address)
    return parts.scheme == "data" or parts.hostname in {"127.0.0.1", "localhost"}


Opened = Callable[..., Page]
