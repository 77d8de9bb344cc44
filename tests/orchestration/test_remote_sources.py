"""Remote sources through the hourly schedule, end to end: first sync, change, an hour without the API, deletion.

A website and an API stand for all: what each feed promises is tested in ``tests/sources``.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from configurations import configured
from questions import query

from lab.apis import site
from lab.apis.github import REPOSITORY, TOKEN, GithubServer
from lab.apis.server import Api, Reply, serving
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.ask.views.status import status_document
from nornweave.config import Settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import present
from orchestration.automation import SYNC_JOB
from orchestration.definitions import build_definitions
from orchestration.instance import open_instance


@pytest.mark.slow
def test_apis_are_followed_hour_by_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", TOKEN)
    web, forge = site.small(), GithubServer(needs_token=True)
    forge.comment(forge.open("Zebracorns", "Do zebracorns return 418?"), "They do.")
    with serving(web), serving(forge):
        issues = {"type": "github", "repository": REPOSITORY, "api_url": forge.url, "token_env": "API_TOKEN"}
        settings = configure(
            tmp_path,
            {"id": "web", "domain": "documentation", "type": "web", "url": f"{web.url}/guide/"},
            {"id": "github", "domain": "conversations", **issues},
        )
        hours = Hours(settings)
        assert hours.next() == {}
        urls = {f"{web.url}/guide/", f"https://github.com/{REPOSITORY}/issues/1"}
        assert found(settings, "zebracorns") == urls
        fish = web.put("/guide/fish.html", "Yellowtails swim in shoals.")
        issue = forge.open("Yellowtails", "Yellowtails swim in shoals.")
        assert hours.next() == {}
        assert len(found(settings, "yellowtails")) == 2
        assert documents(settings) == 4

        for server in (web, forge):
            down(server)
        problems = hours.next()
        assert problems.keys() == {"web", "github"}
        for problem in problems.values():
            assert "status 503" in problem
            assert TOKEN not in problem
        assert (documents(settings), found(settings, "zebracorns")) == (4, urls)

        for server in (web, forge):
            server.before = lambda _: None
            server.faults.clear()
        web.delete(fish)
        forge.delete(issue)
        assert hours.next() == {}
        assert documents(settings) == 2
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
            schedule = definitions.resolve_schedule_def("corpus_refresh")
            # Closed here: as garbage it would set Dagster's storage back later, to that of an instance that is gone.
            with dg.build_schedule_context(instance=instance, scheduled_execution_time=self._moment) as context:
                requests = schedule.evaluate_tick(context).run_requests or []
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


def configure(folder: Path, *sources: Mapping[str, object]) -> Settings:
    return configured(folder, *sources)


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
