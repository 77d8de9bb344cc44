"""Remote sources through the hourly schedule, end to end: first sync, change, an hour without the API, deletion.

A website and an API stand for all: what each feed promises is tested in ``tests/sources``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import dagster as dg
import pytest
import yaml
from questions import query
from workspace_support import HASHED

from lab.apis import site
from lab.apis.github import REPOSITORY, TOKEN, GithubServer
from lab.apis.server import Api, Reply, serving
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.ask.views.status import status_document
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import present
from orchestration.automation import SYNC_JOB
from orchestration.definitions import build_definitions
from orchestration.instance import open_instance


@dataclass(frozen=True, slots=True)
class Case:
    """An API and what happens to it.

    Attributes:
        start: returns the server, with one document that speaks of zebracorns.
        add: adds one that speaks of yellowtails; returns what ``delete`` takes.
        source: its keys in ``nornweave.yaml``, given the server's address.
        url: of the first document.
    """

    start: Callable[[], Any]
    add: Callable[[Any], Any]
    delete: Callable[[Any, Any], None]
    source: Callable[[str], Mapping[str, object]]
    url: str


def github() -> GithubServer:
    server = GithubServer(needs_token=True)
    server.comment(server.open("Zebracorns", "Do zebracorns return 418?"), "They do.")
    return server


CASES = {
    "web": Case(
        start=site.small,
        add=lambda server: server.put("/guide/fish.html", "Yellowtails swim in shoals."),
        delete=lambda server, path: server.delete(path),
        source=lambda url: {"domain": "documentation", "type": "web", "url": f"{url}/guide/"},
        url="/guide/",
    ),
    "github": Case(
        start=github,
        add=lambda server: server.open("Yellowtails", "Yellowtails swim in shoals."),
        delete=lambda server, number: server.delete(number),
        source=lambda url: {
            "domain": "conversations",
            "type": "github",
            "repository": REPOSITORY,
            "api_url": url,
            "token_env": "API_TOKEN",
        },
        url=f"https://github.com/{REPOSITORY}/issues/1",
    ),
}


@pytest.mark.slow
def test_apis_are_followed_hour_by_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", TOKEN)
    servers = {name: case.start() for name, case in CASES.items()}
    with ExitStack() as serve:
        for server in servers.values():
            serve.enter_context(serving(server))
        settings = configure(tmp_path, {name: CASES[name].source(server.url) for name, server in servers.items()})
        hours = Hours(settings)
        assert hours.next() == {}
        urls = {urljoin(server.url, CASES[name].url) for name, server in servers.items()}
        assert found(settings, "zebracorns") == urls
        added = {name: CASES[name].add(server) for name, server in servers.items()}
        assert hours.next() == {}
        assert len(found(settings, "yellowtails")) == len(CASES)
        assert documents(settings) == 2 * len(CASES)

        for server in servers.values():
            down(server)
        problems = hours.next()
        assert problems.keys() == CASES.keys()
        for problem in problems.values():
            assert "status 503" in problem
            assert TOKEN not in problem
        assert (documents(settings), found(settings, "zebracorns")) == (2 * len(CASES), urls)

        for name, server in servers.items():
            server.before = lambda _: None
            server.faults.clear()
            CASES[name].delete(server, added[name])
        assert hours.next() == {}
        assert documents(settings) == len(CASES)
        assert found(settings, "yellowtails") <= urls


def down(server: Api) -> None:
    server.before = lambda _: server.faults.append(Reply(b"Sorry", 503))


class Hours:
    """The hourly schedule; ``next`` runs what it asks for, and returns what the sources had to say."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._moment = datetime(2026, 1, 1, tzinfo=UTC)

    def next(self) -> dict[str, str]:
        self._moment += timedelta(hours=1)
        definitions = build_definitions(self._settings)
        with open_instance(self._settings) as instance:
            context = dg.build_schedule_context(instance=instance, scheduled_execution_time=self._moment)
            requests = definitions.resolve_schedule_def("corpus_refresh").evaluate_tick(context).run_requests or []
            for request in requests:
                run = definitions.resolve_job_def(SYNC_JOB).execute_in_process(
                    run_config=request.run_config,
                    instance=instance,
                    asset_selection=list(request.asset_selection or ()),
                    tags=request.tags,
                )
                assert run.success
        assert len(requests) == len(self._settings.served_domains)
        said = (status_document(self._settings, domain) for domain in self._settings.served_domains)
        return {source: problem for each in said for source, problem in each["unavailable"].items()}


def configure(folder: Path, sources: Mapping[str, Mapping[str, object]]) -> Settings:
    listed = [{"id": name, **source} for name, source in sources.items()]
    config = {
        "data_dir": "var",
        "sources": listed,
        "domains": dict.fromkeys({str(each["domain"]) for each in listed}, HASHED),
    }
    file = folder / "nornweave.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return load_settings(file, {})


def documents(settings: Settings) -> int:
    return sum(status_document(settings, domain)["documents"] for domain in settings.served_domains)


def found(settings: Settings, text: str) -> set[str]:
    """Return the addresses of the documents that say a word."""
    word = text.removesuffix("s")
    urls = set()
    with Engine(settings, settings.served_domains, watch=False) as engine:
        for source in settings.sources:
            question = Question(text=text, now=present(), viewer=OPERATOR, domains=(source.domain,), top_k=20)
            items = query(engine, question)["items"]
            saying = [item for item in items if word in item["content"].lower()]
            # What says the same is one item, with all its places.
            urls |= {place["url"] for item in saying for place in (item["citation"], *item["corroborated_by"])}
    return {str(url).partition("#")[0].partition("?")[0] for url in urls}
