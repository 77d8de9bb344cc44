"""A sync from the status page: only our own page can ask for it, it runs beside the server, and everybody sees it."""

import json
import os
import signal
from typing import Any

import httpx
import psutil
import pytest
from api_support import publish
from live_server import live
from waiting import until

from api.app import create_app
from api.syncs import Syncs
from nornweave.config import Settings
from nornweave.core.types import Domain, present

FORM = "/status/sync"
DOCUMENTS = 40  # so many that removing them is held


def ask(url: str, *, origin: str | None = "", **fields: str) -> httpx.Response:
    headers = {} if origin is None else {"origin": origin or url}
    return httpx.post(f"{url}{FORM}", data=fields, headers=headers, timeout=60)


def finished(url: str) -> None:
    def is_over() -> bool:
        return "data-running" not in httpx.get(f"{url}/status", headers={"accept": "text/html"}, timeout=60).text

    until(is_over)


@pytest.mark.slow
def test_a_sync_publishes_and_what_is_held_goes_when_it_is_confirmed(settings: Settings) -> None:
    folder = settings.file.parent
    for number in range(DOCUMENTS):
        (folder / "docs" / f"page{number}.md").write_text(f"# Page {number}\n\nText {number}.\n", encoding="utf-8")
    publish(settings)
    with live(create_app(settings, environment={"NORNWEAVE_DAGSTER_URL": "http://127.0.0.1:3000"})) as url:
        for number in range(DOCUMENTS):
            (folder / "docs" / f"page{number}.md").unlink()
        assert ask(url, domain="documentation").status_code == 303
        page = httpx.get(f"{url}/status", headers={"accept": "text/html"}, timeout=60).text
        assert "A sync is under way" in page
        assert ask(url, domain="documentation").status_code == 409, "one at a time"
        finished(url)
        status = httpx.get(f"{url}/status.json", timeout=60).json()["documentation"]
        assert status["documents"] == DOCUMENTS + 2 and len(status["held"][0]["paths"]) == DOCUMENTS
        page = httpx.get(f"{url}/status", headers={"accept": "text/html"}, timeout=60).text
        assert f"Remove the {DOCUMENTS} held documents" in page
        assert f"http://127.0.0.1:3000/runs/{status['runs'][0]['run_id']}" in page

        stale = ask(url, domain="documentation", confirm_deletes="3")
        assert stale.status_code == 409 and f"{DOCUMENTS} removals are held" in stale.text
        assert ask(url, domain="documentation", confirm_deletes=str(DOCUMENTS)).status_code == 303
        finished(url)
        status = httpx.get(f"{url}/status.json", timeout=60).json()["documentation"]
        assert status["documents"] == 2 and status["held"] == []
    assert (settings.data_dir / "syncs" / "documentation.progress").exists()


def test_only_a_page_of_ours_can_ask_for_it(settings: Settings) -> None:
    with live(create_app(settings, environment={})) as url:
        assert ask(url, domain="code", origin=None).status_code == 403
        assert ask(url, domain="code", origin="http://evil.example").status_code == 403
        assert ask(url, domain="nonsense").status_code == 422
        cross = httpx.post(
            f"{url}{FORM}", data={"domain": "code"}, headers={"sec-fetch-site": "cross-site"}, timeout=60
        )
        assert cross.status_code == 403
    token = "a-token-of-32-characters-or-more-x"
    with live(create_app(settings, environment={"NORNWEAVE_SERVICE_TOKEN": token})) as url:
        assert ask(url, domain="code").status_code in {401, 403}
    assert not (settings.data_dir / "syncs").exists(), "nothing was started"


def test_another_process_sees_it_with_its_progress(settings: Settings) -> None:
    folder = settings.data_dir / "syncs"
    folder.mkdir()
    made = {"pid": os.getpid(), "created": psutil.Process().create_time(), "since": present().isoformat()}
    (folder / "code.json").write_text(json.dumps(made))
    (folder / "code.progress").write_text(
        json.dumps({"step": "code embed", "done": 3, "total": 7, "pace": "3 of 7 chunks"})
    )
    running = Syncs(settings).running(Domain.CODE)
    assert running is not None and (running.step, running.done, running.total) == ("code embed", 3, 7)
    with live(create_app(settings, environment={})) as url:
        page = httpx.get(f"{url}/status", headers={"accept": "text/html"}, timeout=60).text
    assert "computing vectors, 3 of 7 chunks" in page and 'max="7"' in page
    told = {"step": "code list issues", "done": 300, "total": 0, "pace": "300 documents, 1.5 MiB, 40/s"}
    (folder / "code.progress").write_text(json.dumps(told))
    with live(create_app(settings, environment={})) as url:
        page = httpx.get(f"{url}/status", headers={"accept": "text/html"}, timeout=60).text
    assert "reading issues, 300 documents, 1.5 MiB, 40/s." in page


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pid": 1, "created": 0, "since": "x"}', '{"pid": "x"}'])
def test_what_is_not_a_running_process_is_no_sync(settings: Settings, content: str) -> None:
    (settings.data_dir / "syncs").mkdir()
    (settings.data_dir / "syncs" / "code.json").write_text(content)
    assert Syncs(settings).running(Domain.CODE) is None


@pytest.mark.slow
@pytest.mark.parametrize("interrupts", [signal.default_int_handler, signal.SIG_IGN], ids=["terminal", "background"])
def test_a_sync_ends_with_the_server_that_started_it(settings: Settings, interrupts: Any) -> None:
    """Shells start background jobs of scripts with SIGINT ignored, which children inherit."""
    syncs = Syncs(settings)
    before = signal.signal(signal.SIGINT, interrupts)
    try:
        assert syncs.start(Domain.CODE)
    finally:
        signal.signal(signal.SIGINT, before)
    syncs.close()
    assert syncs.running(Domain.CODE) is None
