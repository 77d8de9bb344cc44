"""Remote sources through the hourly schedule, end to end: first sync, change, an hour without the API, deletion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from workspace_support import HASHED

from evals.apis.confluence import SITE as WIKI
from evals.apis.confluence import ConfluenceServer
from evals.apis.github import REPOSITORY, TOKEN, GithubServer
from evals.apis.jira import SITE, USER, JiraServer
from evals.apis.server import Api, Reply, serving
from nornweave.access.viewer import OPERATOR
from nornweave.engine import Engine
from nornweave.retrieval.question import Question
from nornweave.settings import Settings, load_settings
from nornweave.types import Domain, present
from nornweave.views import answer_document
from nornweave.views.status import status_document
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


def confluence() -> ConfluenceServer:
    server = ConfluenceServer()
    server.token = TOKEN
    server.write(server.space("ENG"), "Zebracorns", "<h1>Status</h1><p>Zebracorns return 418.</p>")
    return server


def jira() -> JiraServer:
    server = JiraServer()
    server.token = TOKEN
    server.comment(server.open("PAY", "Zebracorns", "Do zebracorns return 418?"), "They do.")
    return server


CASES = {
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
    "confluence": Case(
        start=confluence,
        add=lambda server: server.write(*server.spaces, "Yellowtails", "<p>Yellowtails swim in shoals.</p>"),
        delete=lambda server, page: server.trash(page),
        source=lambda url: {
            "domain": "documentation",
            "type": "confluence",
            "url": url,
            "user": USER,
            "spaces": ["ENG"],
            "token_env": "API_TOKEN",
        },
        url=f"{WIKI}/spaces/ENG/pages/1002/Zebracorns",
    ),
    "jira": Case(
        start=jira,
        add=lambda server: server.open("PAY", "Yellowtails", "Yellowtails swim in shoals."),
        delete=lambda server, issue: server.delete(issue),
        source=lambda url: {
            "domain": "conversations",
            "type": "jira",
            "url": url,
            "user": USER,
            "projects": ["PAY"],
            "token_env": "API_TOKEN",
        },
        url=f"{SITE}/browse/PAY-1",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_api_is_followed_hour_by_hour(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, server = CASES[name], CASES[name].start()
    monkeypatch.setenv("API_TOKEN", TOKEN)
    with serving(server):
        settings = configure(tmp_path, case.source(server.url))
        hours = Hours(settings)
        assert hours.next() == []
        assert found(settings, "zebracorns") == [case.url]
        added = case.add(server)
        assert hours.next() == []
        assert len(found(settings, "yellowtails")) == 1
        assert status(settings)["documents"] == 2

        down(server)
        (problem,) = hours.next()
        assert "status 503" in problem
        assert "API_TOKEN" not in problem
        assert TOKEN not in problem
        assert (status(settings)["documents"], found(settings, "zebracorns")) == (2, [case.url])

        server.before = lambda _: None
        server.faults.clear()
        case.delete(server, added)
        assert hours.next() == []
        assert status(settings)["documents"] == 1
        assert found(settings, "yellowtails") in ([], [case.url])


def down(server: Api) -> None:
    server.before = lambda _: server.faults.append(Reply(b"Sorry", 503))


class Hours:
    """The hourly schedule; ``next`` runs what it asks for, and returns what the sources had to say."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._moment = datetime(2026, 1, 1, tzinfo=UTC)

    def next(self) -> list[str]:
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
        assert len(requests) == 1
        return list(status(self._settings)["unavailable"].values())


def configure(folder: Path, source: Mapping[str, object]) -> Settings:
    # Everything is listed again at every sync: what was deleted is found by the next one.
    keys = {"id": "remote", **source, "relist_hours": 0.000001}
    config = {"data_dir": "var", "sources": [keys], "domains": {str(source["domain"]): HASHED}}
    file = folder / "nornweave.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return load_settings(file, {})


def status(settings: Settings) -> Mapping[str, Any]:
    return status_document(settings, settings.sources[0].domain)


def found(settings: Settings, text: str) -> list[str]:
    """Return the addresses of the documents that say a word."""
    domain: Domain = settings.sources[0].domain
    with Engine(settings, [domain], watch=False) as engine:
        answered = answer_document(
            engine.answer(Question(text=text, now=present(), viewer=OPERATOR, domains=(domain,)))
        )
    word = text.removesuffix("s")
    urls = [item["citation"]["url"] for item in answered["items"] if word in item["content"].lower()]
    return sorted({(url or "").partition("#")[0] for url in urls})
