"""``python -m lab.access.sign_in FOLDER``: sign in with npm's certified ``oidc-provider``, in Chromium.

``FOLDER`` is one in which ``npm install oidc-provider`` was run. Two servers share one workspace. Alice signs in, sees
what her groups may see, makes a token, is renewed with a refresh token in other groups, is removed, and signs out here
and at the provider. Each step is printed; the first that fails ends it. It takes three minutes, which are those that
pass before a session is renewed.

The suite walks the same way with a provider of its own (``tests/pages/test_sign_in_in_browser.py``): it needs no npm.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import typer
from playwright.sync_api import Page, expect, sync_playwright

from lab.access.serving import publish, write_workspace

SECRET = {"OIDC_SECRET": "a secret: with 100% of everything"}
RENEW_S = 60
WITHIN_S = 60.0
DOCUMENTS = {
    "docs/open.md": "# Open\n\nThe retry limit is 3.\n",
    "docs/board.md": "---\naccess: [board]\n---\n# Board\n\nThe zebracorn deal closes in May.\n",
}
SOURCES = [{"id": "docs", "domain": "documentation", "type": "files", "path": "docs"}]


def main(folder: str) -> None:
    """Walk through it."""
    with tempfile.TemporaryDirectory(prefix="nornweave-sign-in-") as made, ExitStack() as stack:
        workspace, (provider, one, another) = Path(made), (_free_port() for _ in range(3))
        people = workspace / "people.json"
        people.write_text(json.dumps({"alice": ["board"]}))
        here, other, issuer = f"http://127.0.0.1:{one}", f"http://127.0.0.1:{another}", f"http://localhost:{provider}"
        publish(write_workspace(workspace, DOCUMENTS, SOURCES, {}))
        configured = json.loads((workspace / "nornweave.yaml").read_text())
        oidc = {"issuer": issuer, "client_id": "nornweave", "client_secret_env": "OIDC_SECRET", "renew_s": RENEW_S}
        (workspace / "nornweave.yaml").write_text(json.dumps({**configured, "access": {"oidc": oidc}}))
        node = ["node", str(Path(__file__).with_name("provider.mjs").resolve()), str(Path(folder).resolve())]
        addresses = [f"{here}/callback", f"{here}/logout", str(people)]
        stack.enter_context(_running([*node, str(provider), *addresses], f"{issuer}/jwks", workspace))
        serve = [str(Path(sys.executable).with_name("nornweave")), "serve", "--workers", "1", "--port"]
        for port, address in ((one, here), (another, other)):
            stack.enter_context(_running([*serve, str(port)], f"{address}/ready", workspace))
        page = stack.enter_context(_browser())
        walk(page, here, other, issuer, people)


def walk(page: Page, here: str, other: str, issuer: str, people: Path) -> None:
    """Sign in, make a token, change and remove the person, sign out."""
    asked = "/?q=zebracorn"
    page.goto(here + asked)
    assert page.url.startswith(issuer), page.url
    _sign_in_there(page, here + asked)
    expect(page.get_by_text("closes in May").first).to_be_visible()
    _say("alice signed in, and sees what is for the board")
    page.goto(other + asked)
    expect(page.get_by_text("closes in May").first).to_be_visible()
    _say("the other server knows her session")
    page.goto(f"{here}/tokens")
    page.get_by_label("For").fill("an agent")
    page.get_by_role("button", name="Make a token").click()
    bearer = {"authorization": f"Bearer {page.locator('.notice code').inner_text()}"}
    assert httpx.get(f"{other}/agents", headers=bearer).status_code == httpx.codes.OK
    page.get_by_role("button", name="Revoke an agent").click()
    expect(page.get_by_text("You have none.")).to_be_visible()
    assert httpx.get(f"{other}/agents", headers=bearer).status_code == httpx.codes.UNAUTHORIZED
    _say("a token of hers asks at the other server, and is refused there once she revoked it here")
    people.write_text(json.dumps({"alice": ["guests"]}))
    time.sleep(RENEW_S + 1)
    page.goto(other + asked)
    assert page.url == other + asked, page.url
    expect(page.get_by_text("closes in May")).to_have_count(0)
    _say("a minute later she is renewed, in the groups of then")
    page.goto(here + asked)
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    page.wait_for_url(f"{here}/logout")
    _say("she signed out here, and the provider asked whether there too")
    page.goto(here + asked)
    assert page.url.startswith(issuer), page.url
    _sign_in_there(page, here + asked)
    people.write_text("{}")
    time.sleep(RENEW_S + 1)
    page.goto(here + asked)
    assert page.url.startswith(issuer), page.url
    _say("a minute after she was removed at the provider she is out")


def _sign_in_there(page: Page, target: str) -> None:
    """Fill in the pages of the provider."""
    page.locator("[name=login]").fill("alice")
    page.locator("[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(target)


def _say(text: str) -> None:
    typer.echo(f"held: {text}")


@contextmanager
def _browser() -> Iterator[Page]:
    executable = next(path for name in ("chromium", "google-chrome") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield browser.new_page()
        browser.close()


@contextmanager
def _running(
    command: Sequence[str], address: str, folder: Path, environment: Mapping[str, str] = SECRET
) -> Iterator[None]:
    """Run a program in a folder, from when it answers on."""
    with subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}) as process:
        try:
            end = time.monotonic() + WITHIN_S
            while not _answers(address):
                assert process.poll() is None and time.monotonic() < end, f"{command} does not answer at {address}"
                time.sleep(0.1)
            yield
        finally:
            process.terminate()


def _answers(address: str) -> bool:
    try:
        return httpx.get(address).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    main(*sys.argv[1:])
