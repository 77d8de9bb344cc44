"""Below a path of another site: every address that leaves is below it, behind a real nginx too."""

import html
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest
from api_support import client_of, is_problem
from live_server import live
from scripted_engine import ScriptedEngine
from waiting import until

from api.access.origins import plain_prefix
from api.app import create_app
from api.pages.addresses import configured_url
from nornweave.config import Settings
from nornweave.core.errors import ConfigError

TOKEN = "a-token-of-32-characters-or-more-x"
BROWSER = {"accept": "text/html"}
ADDRESS = re.compile(r'\s(?:href|action|src|data-next)="([^"#]+)')


def addresses(page: httpx.Response) -> set[str]:
    """Return where a page leads on its own site, and what it is made of."""
    found = {urljoin(str(page.url), html.unescape(address)) for address in ADDRESS.findall(page.text)}
    return {address for address in found if httpx.URL(address).host == page.url.host}


@pytest.mark.parametrize(("stated", "prefix"), [
    ("/nw", "/nw"), ("/nw/", "/nw"), ("/a/b.c/~d", "/a/b.c/~d"), ("/", ""), ("", ""), ("nw", ""),
    ("//evil.example", ""), ("/\\evil.example", ""), ("https://evil.example", ""), ("/nw//x", ""), ("/nw/../x", ""),
    ("/.", ""), ('/nw"onload="x', ""), ("/nw x", ""), ("/%2e%2e", ""), ("/nw\n", ""), ("/a" * 9, ""), ("/nw,/x", ""),
])  # fmt: skip
def test_a_prefix_is_a_path_of_plain_segments(stated: str, prefix: str) -> None:
    assert plain_prefix(stated) == prefix


async def test_what_a_client_states_leads_to_the_same_host(settings: Settings, engine: ScriptedEngine) -> None:
    async with client_of(settings, engine) as client:
        for stated in ("//evil.example", "/nw/../..", "https://evil.example", '/"><script>'):
            page = await client.get("/nothing", headers={**BROWSER, "X-Forwarded-Prefix": stated})
            assert "evil" not in page.text and "<script>" not in page.text and 'src="/web/' in page.text
        twice = [*BROWSER.items(), ("X-Forwarded-Prefix", "/a"), ("X-Forwarded-Prefix", "/b")]
        assert 'src="/web/' in (await client.get("/nothing", headers=twice)).text
        page = await client.get("/?q=a%20href%3D%22/x", headers={**BROWSER, "X-Forwarded-Prefix": "/nw"})
        assert " href=&#34;/x" in page.text, "what was asked is text and stays as it is"
        assert all(httpx.URL(address).path.startswith("/nw/") for address in addresses(page))


async def test_the_configured_address_says_the_prefix_and_nobody_else(
    settings: Settings, engine: ScriptedEngine
) -> None:
    environment = {"NORNWEAVE_URL": "http://nornweave/nw", "NORNWEAVE_SERVICE_TOKEN": TOKEN}
    async with client_of(settings, engine, environment=environment) as client:
        stated = {**BROWSER, "X-Forwarded-Prefix": "/other"}
        for path in ("/quality", "/nw/quality"):  # a proxy may take the prefix away, or leave it
            answer = await client.get(path, headers=stated)
            assert (answer.status_code, answer.headers["location"]) == (303, "/nw/login?next=%2Fquality")
        assert is_problem(await client.get("/nw/v1/models"), 401)["error"]["code"] == "unauthorized"
        form = {"token": TOKEN, "next": "/quality"}
        entered = await client.post("/nw/login", data=form, headers={"Origin": "http://nornweave"})
        assert entered.headers["location"] == "/nw/quality" and "Path=/nw;" in entered.headers["set-cookie"]
        bearing = {"Authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/nwx/v1/models", headers=bearing)).status_code == 404
    with pytest.raises(ConfigError, match="NORNWEAVE_URL: the path"):
        configured_url({"NORNWEAVE_URL": "https://example.org/n%20w"})


async def test_an_app_that_mounts_this_one_says_the_prefix(settings: Settings, engine: ScriptedEngine) -> None:
    app = create_app(settings, engine, environment={})
    transport = httpx.ASGITransport(app, root_path="/nw")
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        for path in ("/nw/?q=refund", "/?q=refund"):
            page = await client.get(path, headers={**BROWSER, "X-Forwarded-Prefix": "/other"})
            assert page.status_code == 200
            assert addresses(page) and all(httpx.URL(address).path.startswith("/nw/") for address in addresses(page))


def is_listening(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def nginx(folder: Path, upstream: str, *, strips: bool) -> Iterator[str]:
    """Serve ``upstream`` at /nw below another address; give that address."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed (apt-get install nginx-light)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    kept = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    stripped = f"proxy_pass {upstream}/; proxy_set_header X-Forwarded-Prefix /nw;"
    (folder / "nginx.conf").write_text(
        f"{'user root;' if os.geteuid() == 0 else ''} daemon off; pid {folder}/pid; worker_processes 1; events {{}}\n"
        f"http {{ access_log off; {kept} server {{ listen 127.0.0.1:{port}; location /nw/ {{\n"
        f"{stripped if strips else f'proxy_pass {upstream};'} proxy_http_version 1.1;\n"
        "proxy_set_header Host $http_host; proxy_buffering off; } } }\n"
    )
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command)
    try:
        until(lambda: is_listening(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("strips", [True, False], ids=["the header", "the configured address"])
def test_behind_nginx_every_link_leads_somewhere_below_the_prefix(
    settings: Settings, engine: ScriptedEngine, tmp_path: Path, strips: bool
) -> None:
    environment = {"NORNWEAVE_SERVICE_TOKEN": TOKEN}
    if not strips:
        environment["NORNWEAVE_URL"] = "http://127.0.0.1/nw"
    app = create_app(settings, engine, environment=environment)
    with (
        live(app) as upstream,
        nginx(tmp_path, upstream, strips=strips) as outside,
        httpx.Client(base_url=f"{outside}/nw/", follow_redirects=True, trust_env=False, headers=BROWSER) as client,
    ):
        entered = client.post("login", data={"token": TOKEN, "next": "/?q=refund"})
        assert entered.status_code == 200 and str(entered.url) == f"{outside}/nw/?q=refund"
        seen, waiting = set(), [f"{outside}/nw/?q=refund"]
        while waiting and len(seen) < 60:
            seen.add(address := waiting.pop(0))
            page = client.get(address)
            assert page.status_code in {200, 405}, (address, page.status_code)  # where only a form may be sent
            if "text/html" in page.headers["content-type"]:
                assert all(found.startswith(f"{outside}/nw/") for found in addresses(page)), address
                waiting += sorted(addresses(page) - seen - {*waiting})
        paths = {httpx.URL(address).path for address in seen}
        assert {"/nw/", "/nw/conflicts", "/nw/quality", "/nw/status", "/nw/docs", "/nw/web/page.js"} <= paths
        assert any(path.startswith("/nw/passages/") for path in paths)
        asked = {"model": "nornweave", "messages": [{"role": "user", "content": "refund"}]}
        bearing = {"Authorization": f"Bearer {TOKEN}"}
        url = client.post("v1/chat/completions", json=asked, headers=bearing).json()["citations"][0]["url"]
        wanted = f"{outside}/nw/passages/" if strips else "http://127.0.0.1/nw/passages/"
        assert url.startswith(wanted)
