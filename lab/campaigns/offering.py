"""Offer sources over HTTP that lead to files, secrets and the network of the machine: nothing of it comes in."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from lab.apis.server import Api, Reply, Request, serving
from lab.campaigns.processes import command, until
from lab.campaigns.report import Order, Tally
from lab.campaigns.workspace import NO_MODELS
from nornweave.connect.connectors import CONNECTORS, load_settings
from nornweave.connect.edit import OFFERED
from nornweave.core.types import Domain, JsonValue

SECRET = "plantedword"  # noqa: S105 - what must not be found
SERVICE = "9f86d081884c7d659a2feaa0c55ad015"
AT_ONCE = 24
READY_S = 120.0
_FOLDERS = (
    "docs",
    ".",
    "var",
    "var/keys",
    "..",
    "~",
    "~root",
    "~nobody",
    "~/.ssh",
    "/etc",
    "/proc/self",
    "link",
    "OUT",
)
_FILES = (
    ".env",
    "keys.pem",
    "nornweave.yaml",
    "var/session.key",
    "~/.ssh/config",
    "link/out.md",
    "docs/page.md",
    "nowhere",
)
_FORMS = ("{}", "./{}", "{}/", "docs/../{}", "{}/.", "docs/./../{}", "{}\n", "{}\0", " {}", "%2e%2e/{}", "${{HOME}}/{}")
_GLOBS = (
    "**",
    "**/*",
    "*.pem",
    "*.key",
    ".env",
    "*.yaml",
    "var/**",
    "../**",
    "/etc/**",
    ".ssh/**",
    "[!",
    "!x",
    "#x",
    "",
)
_HOSTS = (
    *("127.0.0.1", "localhost", "0x7f.1", "2130706433", "127.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.0.0.1"),  # noqa: S104 - asked, not bound
    *("169.254.169.254", "100.100.100.200", "168.63.129.16", "[64:ff9b::7f00:1]", "[fd00:ec2::254]", "localhost."),
    *("user:pw@127.0.0.1", "example.invalid", "[bad", "-oProxyCommand=x", ""),
)
_SCHEMES = ("https", "https", "http", "HTTPS", "ssh", "file", "ext", "git", "ftp", "javascript")
_OTHERS: Mapping[str, tuple[JsonValue, ...]] = {
    "metadata": ("~/.ssh/config", ".env", "docs/page.md"),
    "ref": ("-x", "--upload-pack=touch pwned", "main\n--x", "a..b", "HEAD"),
    "web_url": ("javascript:alert(1)//{commit}{path}",),
    "prefix": ("http://other/", "https://127.0.0.1/"),
    "token_env": ("GITHUB_TOKEN", "HOME"),
    "credentials_env": ("GITHUB_TOKEN",),
    "repository": ("a/b", "../x"),
    "user": ("me",),
    "site": ("stackoverflow", "127.0.0.1"),
    "tags": (["x"],),
    "channels": (["x"],),
    "access": (["staff"], "x", [["x"]]),
    "public_addresses_only": (False, True),
}


class _StandIn(Api):
    """Answers whatever is asked; nothing may be."""

    def handle(self, request: Request) -> Reply:  # noqa: ARG002
        return Reply([])


def offer_sources(order: Order) -> Tally:
    """Offer ``order.runs`` sources to two serving processes, then sync and look for what was planted."""
    tally = Tally("sources over HTTP")
    chance = random.Random(order.seed)
    with serving(_StandIn()) as inside, _environment(order.folder / "home"):
        file = _workspace(order.folder)
        tally.ended_well("the first sync", command(order.folder / "sync.txt", file, "sync").wait())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        server = command(order.folder / "serve.txt", file, "serve", "--port", str(port), "--workers", "2")
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {SERVICE}"}, timeout=READY_S
            ) as client:
                if not until(lambda: _is_ready(client), READY_S, every_s=0.3):
                    tally.trouble.append("the server did not start")
                    return tally
                for number in range(order.runs):
                    _offer(client, number, _source(chance, number, inside.url), chance, tally)
                _offer_at_once(client, file, tally)
        finally:
            server.stop()
            tally.ended_well("the server", server.wait(READY_S))
        _look(order.folder, file, tally)
        tally.outcomes["requests to the network of the machine"] = len(inside.requests)
        tally.trouble += [f"asked inside: {request.method} {request.path}" for request in inside.requests]
    return tally


@contextmanager
def _environment(home: Path) -> Iterator[None]:
    before = dict(os.environ)
    os.environ |= {"HOME": str(home), "GITHUB_TOKEN": f"ghp_{SECRET}", "NORNWEAVE_SERVICE_TOKEN": SERVICE}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _workspace(folder: Path) -> Path:
    place = folder / "workspace"
    places = [folder / "home/.ssh/config", folder / "home/notes.md", folder / "outside/out.md"]
    places += [place / name for name in (".env", "keys.pem", "var/keys/own.pem", "var/session.key", ".ssh/x.md")]
    for each in places:
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_text(f"# It\n\n{SECRET} of {each.name}\n", encoding="utf-8")
    for name in ("docs", *(f"d{number}" for number in range(AT_ONCE))):
        (place / name).mkdir()
        (place / name / "page.md").write_text(f"# Page\n\nOrdinary text of {name}.\n", encoding="utf-8")
    (place / "link").symlink_to(folder / "outside")
    file = place / "nornweave.yaml"
    source = f"  - {{id: docs, domain: documentation, type: files, path: docs}}   # {SECRET}\n"
    domains = json.dumps({domain.value: NO_MODELS for domain in Domain})
    file.write_text(f"data_dir: var\nsources:\n{source}domains: {domains}\n", encoding="utf-8")
    return file


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/ready").is_success
    except httpx.HTTPError:
        return False


def _source(chance: random.Random, number: int, inside: str) -> dict[str, JsonValue]:
    """Return a source that nobody should be able to add, most often."""
    kind = chance.choice((*CONNECTORS, *OFFERED, "files"))
    fields = set(CONNECTORS[kind].settings.model_fields)
    keys: dict[str, Any] = {"id": f"s{number}", "type": kind, "domain": chance.choice(tuple(Domain)).value}
    if CONNECTORS[kind].settings.domains and chance.random() < 0.9:
        keys["domain"] = chance.choice(sorted(CONNECTORS[kind].settings.domains)).value
    if "url" in fields and chance.random() < 0.6:
        port = inside.rpartition(":")[2] if chance.random() < 0.8 else "99999"
        keys["url"] = f"{chance.choice(_SCHEMES)}://{chance.choice(_HOSTS)}:{port}/x"
    else:
        keys["path"] = chance.choice(_FORMS).format(chance.choice((*_FOLDERS, *_FILES)))
    if chance.random() < 0.5:
        keys["include"] = chance.sample(_GLOBS, 3)
    if "api_url" in fields and chance.random() < 0.5:
        keys["api_url"] = inside
    for key in sorted(_OTHERS.keys() & fields):
        if chance.random() < 0.25:
            keys[key] = chance.choice(_OTHERS[key])
    return keys


def _offer(
    client: httpx.Client, number: int, keys: Mapping[str, JsonValue], chance: random.Random, tally: Tally
) -> None:
    if chance.random() < 0.25:
        form = {"id": keys["id"], "domain": keys["domain"], "type": keys["type"]}
        form |= {"place": keys.get("url") or keys.get("path"), "preview": chance.choice(("on", ""))}
        origin = {"Origin": str(client.base_url).rstrip("/"), "Accept": "text/html"}
        answer = client.post("/status/sources", data={key: str(value) for key, value in form.items()}, headers=origin)
        tally.runs["by the page"] += 1
    else:
        answer = client.post("/sources", json=keys)
        tally.runs["by the API"] += 1
    tally.outcomes[f"{answer.status_code}"] += 1
    if answer.status_code >= 500 or SECRET in answer.text:
        tally.trouble.append(f"{number}: {keys} → {answer.status_code} {answer.text[:200]}")
    if answer.status_code in {201, 303}:
        client.delete(f"/sources/{keys['id']}") if chance.random() < 0.7 else None


def _offer_at_once(client: httpx.Client, file: Path, tally: Tally) -> None:
    def add(number: int) -> int:
        keys = {"id": f"r{number}", "domain": "documentation", "type": "files", "path": f"d{number}"}
        return client.post("/sources", json=keys).status_code

    with ThreadPoolExecutor(AT_ONCE) as pool:
        codes = list(pool.map(add, range(AT_ONCE)))
    ids = {source.id for source in load_settings(file).sources}
    there = [f"r{number}" in ids for number in range(AT_ONCE)]
    tally.runs["at once"] += AT_ONCE
    tally.outcomes["added at once and there"] += sum(there)
    # A server that is busy may say so; then nothing was added.
    if [code == 201 for code in codes] != there or set(codes) - {201, 503}:
        tally.trouble.append(f"of {AT_ONCE} sources added at once: {codes}, {there}")


def _look(folder: Path, file: Path, tally: Tally) -> None:
    """Sync what was added, and look for what was planted and for what is new in a source that was there."""
    (file.parent / "docs" / "new.md").write_text("# New\n\nA newer ordinary text.\n", encoding="utf-8")
    tally.ended_well("the sync of what was added", command(folder / "again.txt", file, "sync").wait())
    for words, is_wanted in ((SECRET, False), ("PRIVATE KEY", False), ("newer ordinary", True)):
        found = command(folder / "find.txt", file, "find", words, "--json").wait()
        if found.defect or (words in found.said.replace(f'"{words}"', "", 1)) != is_wanted:
            tally.trouble.append(f"find {words!r}: {found.said[:600]}")
    if left := [path.name for path in file.parent.glob(".nornweave.yaml.*") if path.suffix != ".lock"]:
        tally.trouble.append(f"left behind: {left}")
