"""A server that lacked something for a while, file descriptors or a file, is as it should be soon after."""

import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_support import publish
from processes import SERVE, Started

from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.core.types import Domain

WITHIN_S = 120.0
# Numbers 0 to 2 are taken: no file can be opened any more, those that are open go on.
NOTHING_MORE = 3

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are set on Linux alone"),
]


@pytest.fixture
def server(started: Started, settings: Settings) -> Iterator[tuple[int, httpx.Client]]:
    """Serve in a process of its own; return its id and a client with one connection that stays open."""
    process, url = started(SERVE, settings.file)
    with httpx.Client(base_url=url, trust_env=False, timeout=WITHIN_S) as client:
        yield process.pid, client


def until(client: httpx.Client, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask ``/ready`` until the code domain is as wanted."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        domain = client.get("/ready").json()["domains"]["code"]
        if condition(domain):
            return dict(domain)
        assert time.monotonic() < deadline, domain
        time.sleep(0.1)


@contextmanager
def kept_open(client: httpx.Client) -> Iterator[None]:
    """Go on asking from a thread: the server ends idle connections after 5 s, and cannot accept another one."""
    done = threading.Event()

    def ask() -> None:
        while not done.wait(0.2):
            client.get("/health")

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        done.set()
        asking.join()


def test_a_publication_that_could_not_be_opened_answers_once_it_can(
    server: tuple[int, httpx.Client], settings: Settings, tmp_path: Path
) -> None:
    pid, client = server
    first = until(client, lambda one: one["ready"])
    assert (first["state"], first["published"], first["behind_s"]) == ("READY", first["generation"], 0)
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (NOTHING_MORE, limits[1]))
    (tmp_path / "code/late.py").write_text("def arrive_late():\n    return 7\n", encoding="utf-8")
    with kept_open(client):
        publish(settings)
    lacking = until(client, lambda one: one["state"] == "DEGRADED")
    assert (lacking["ready"], lacking["generation"]) == (True, first["generation"])
    assert "Too many open files" in lacking["reason"]

    files = store_of(settings, Domain.CODE).files
    second = files.current()
    assert second
    place = files.path(second)
    aside = place.rename(files.folder / "aside")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    behind = until(client, lambda one: one["behind_s"] > 0)
    assert (behind["generation"], behind["published"]) == (first["generation"], second)
    assert f"{second}.json: cannot be read" in behind["reason"]
    assert "roll back, or sync again" in behind["reason"]

    aside.rename(place)
    healed = until(client, lambda one: one["generation"] == second)
    assert (healed["state"], healed["reason"], healed["behind_s"]) == ("READY", None, 0)
    assert healed["age_s"] < first["age_s"] + WITHIN_S
    answer = client.post("/agents/code/recall", json={"query_text": "arrive_late"}).json()
    assert answer["items"][0]["citation"]["source_path"] == "late.py"
