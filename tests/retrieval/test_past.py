"""Questions about the past are answered by commits and releases, and others as if there were none."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from command_line import HASHED, nornweave
from git_repository import Repository
from live_server import live

from api.app import create_app
from lab.apis.gitlab import PROJECT, TOKEN, GitlabServer
from lab.apis.server import serving
from nornweave.ask.search.history import asks_for_past, commits_in, without_past
from nornweave.connect.connectors import load_settings

PAST = [
    "who added the retry limit?",
    "Who wrote parse_config",
    "who has changed the default port last",
    "when was support for XML removed",
    "since when does it read TOML?",
    "which commit introduced the cache",
    "what changed in 2.1",
    "what has changed since 1.9.0?",
    "what's new in v3",
    "why was the vendor folder deleted",
    "why did we drop Python 3.8",
    "what did 1a2b3c4d change",
    "is the old parser still used?",
    "in which release was the --json flag added",
    "last changed parse_config",
    "history of the upload limit",
    "changes since January",
    "who translated the manual",
    "does it still depend on atty",
    "who rounded amounts to cents",
    "what did 1.23.0 bring",
    "changes in 1.51.0",
    "the last commit of the parser",
    "what breaks when I go to version 4",
    "what do I have to change when upgrading from 2 to 3.1",
]
PRESENT = [
    "why does my upload fail",
    "when does a session expire",
    "who may delete a document",
    "who needs a token",
    "what is the default of retries",
    "where is parse_config",
    "how do I commit offsets",
    "what changes the port",
    "deadbeef",
    "what does decade mean",
    "1234567",
    "how to undo the last migration",
    "what is still missing",
    "what is changed by set fallback",
    "why was my request refused",
    "who starts the worker",
    "who supports windows",
    "what is done with errors",
    "which transaction commits first",
    "what does the flag change in a build",
    "how do I update the chart to my own values",
    "what breaks the build",
]


@pytest.mark.parametrize("text", PAST)
def test_the_past_is_asked_for(text: str) -> None:
    assert asks_for_past(text)


@pytest.mark.parametrize("text", PRESENT)
def test_the_present_is_asked_for(text: str) -> None:
    assert not asks_for_past(text)


def test_a_commit_is_called_by_its_first_digits() -> None:
    sha = "0123456789abcdef0123456789abcdef01234567"
    assert commits_in(f"what does {sha.upper()} do") == commits_in(sha[:12]) == {"commit:0123456789ab"}
    assert commits_in(sha[:6]) == set()
    assert without_past("who added retries") == "  retries"
    assert not asks_for_past("who added it? " + "x" * 3_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("past")
    repository = Repository(folder / "api")

    def commit(message: str, day: int, author: str, **files: str) -> None:
        for name, text in files.items():
            (repository.root / f"{name}.py").write_text(text, encoding="utf-8")
        date = f"2025-03-{day:02}T12:00:00Z"
        repository.git("add", "-A")
        identity = ("--author", f"{author} <a@example.com>", "--date", date)
        repository.git("commit", "-q", "-m", message, *identity, GIT_COMMITTER_DATE=date)

    commit("Begin with a queue", 1, "Ada", jobs='"""Jobs wait in a queue."""\n\n\ndef enqueue(job):\n    ...\n')
    repository.git("tag", "v1.0.0")
    commit(
        "Retry failed jobs three times\n\nWorkers lost jobs when the broker restarted.", 2, "Grace Hopper",
        retry='"""Failed jobs are retried."""\n\nRETRIES = 3\n\n\ndef retry(job):\n    ...\n',
    )  # fmt: skip
    commit("Drop the status page", 3, "Ada", page="")
    repository.git("tag", "v1.1.0")
    settings = {"data_dir": "var", "sources": [{"id": "api", "domain": "code", "type": "git", "path": "api"}]}
    (folder / "nornweave.yaml").write_text(json.dumps({**settings, "domains": {"code": HASHED}}), encoding="utf-8")
    done = nornweave(folder, "sync")
    assert done.returncode == 0, done.stderr
    assert "api  3 files: 2 read, 5 of history, 1 empty" in done.stdout + done.stderr
    yield folder


def asked(folder: Path, text: str, *options: str) -> dict:  # type: ignore[type-arg]
    done = nornweave(folder, "query", text, "--json", *options)
    assert done.returncode == 0, done.stderr
    answer: dict = json.loads(done.stdout)  # type: ignore[type-arg]
    return answer


def titles(answer: dict) -> list[str]:  # type: ignore[type-arg]
    return [item["citation"]["title"] for item in answer["items"]]


def test_a_question_about_the_past_leads_with_the_commit_and_says_who_and_when(folder: Path) -> None:
    answer = asked(folder, "who added that failed jobs are retried three times?")
    assert titles(answer)[0] == "Retry failed jobs three times"
    first = answer["items"][0]
    assert first["metadata"]["kind"] == "commit" and first["metadata"]["author"] == "Grace Hopper"
    assert first["citation"]["source_path"].startswith("commits/")
    assert "2025-03-02 by Grace Hopper" in first["content"]


def test_other_questions_are_answered_as_if_there_were_no_commits(folder: Path, tmp_path: Path) -> None:
    source = {"id": "api", "domain": "code", "type": "git", "path": str(folder / "api"), "history": 0}
    settings = {"data_dir": "var", "sources": [source], "domains": {"code": HASHED}}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    for text in ("how often are failed jobs retried three times?", "queue jobs", "broker restarted", "retyr"):
        answer, without = asked(folder, text), asked(tmp_path, text)
        found, expected = (
            [(item["chunk_id"], item["sources"]) for item in each["items"]] for each in (answer, without)
        )
        assert found and found == expected
        assert (answer["extract"], answer["answerable"]) == (without["extract"], without["answerable"])


def test_filters_find_commits_whatever_is_asked(folder: Path) -> None:
    kind = ("--filter", "code.kind=commit")
    assert {*titles(asked(folder, "jobs", *kind))} >= {"Retry failed jobs three times", "Begin with a queue"}
    assert titles(asked(folder, "jobs", *kind, "--filter", "code.author=hopper")) == ["Retry failed jobs three times"]
    assert titles(asked(folder, "jobs", "--filter", "code.touches=retry")) == ["Retry failed jobs three times"]
    found = titles(asked(folder, "jobs", *kind, "--filter", "code.path=jobs.py"))
    assert found == ["Begin with a queue"]
    assert titles(asked(folder, "jobs", "--filter", "code.kind=release", "--filter", "code.since=2025-03-03")) == [
        "Release v1.1.0"
    ]


def test_a_commit_and_a_release_are_found_by_name(folder: Path) -> None:
    sha = subprocess.run(["git", "rev-parse", "HEAD~1"], cwd=folder / "api", capture_output=True, check=True).stdout
    sha = sha.decode()
    assert titles(asked(folder, f"what did {sha[:8]} do"))[0] == "Retry failed jobs three times"
    assert titles(asked(folder, "what changed in 1.1.0"))[0] == "Release v1.1.0"


def test_a_passage_names_the_commit_that_changed_its_file_last(folder: Path) -> None:
    answer = asked(folder, "how often are failed jobs retried three times?")
    settings = load_settings(folder / "nornweave.yaml", {})
    with live(create_app(settings, environment={})) as url, httpx.Client(base_url=url) as client:
        chunk = client.get(f"/chunks/{answer['items'][0]['chunk_id']}").json()
        change = chunk["last_change"]
        assert (change["subject"], change["author"]) == ("Retry failed jobs three times", "Grace Hopper")
        page = client.get(f"/passages/{chunk['chunk_id']}").text
        assert f'href="/passages/{change["chunk_id"]}"' in page
        assert "2025-03-02 by Grace Hopper: Retry failed jobs three times" in page
        commit = client.get(f"/chunks/{change['chunk_id']}").json()
        assert commit["last_change"] is None
        assert "last change" not in client.get(f"/passages/{change['chunk_id']}").text


def test_what_changed_names_the_commits_in_between(folder: Path) -> None:
    api = Repository(folder / "api")
    for name, message in (("page", "Bring the page back"), ("mail", "Send a mail")):
        (api.root / f"{name}.py").write_text(f'"""A {name} for all who wait."""\n', encoding="utf-8")
        api.git("add", "-A")
        api.git("commit", "-q", "-m", message)
    assert nornweave(folder, "sync").returncode == 0
    told = ("diff", "gen-000001", "gen-000002", "--domain", "code")
    (code,) = json.loads(nornweave(folder, *told, "--json").stdout)["domains"].values()
    assert {commit["subject"] for commit in code["commits"]} == {"Bring the page back", "Send a mail"}
    assert code["counts"] == {"added": 2, "changed": 0, "removed": 0, "commits": 2}
    assert {place["source_path"] for place in code["added"]} == {"mail.py", "page.py"}
    text = nornweave(folder, *told).stdout
    assert re.search(r"^  commit [0-9a-f]{10} of \d{4}-\d\d-\d\d by \S.*: Send a mail$", text, re.MULTILINE), text


def test_a_commit_and_the_issues_that_it_names_lead_to_each_other(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "api")
    repository.git("remote", "add", "origin", "https://github.com/acme/api.git")
    (repository.root / "page.py").write_text('"""A page for all who wait."""\n', encoding="utf-8")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "Show who waits (#12)\n\nFixes #7")
    (tmp_path / "talk").mkdir()
    for name, number, kind in (("api", 12, "pull"), ("api", 7, "issues"), ("api", 8, "issues"), ("web", 7, "issues")):
        opened = {
            "number": number, "title": f"Waiting in {name}", "body": f"Nobody sees who waits, says {number} of {name}.",
            "html_url": f"https://github.com/acme/{name}/{kind}/{number}", "user": {"login": "ada"},
            "created_at": "2025-03-01T12:00:00Z",
        }  # fmt: skip
        (tmp_path / "talk" / f"{name}-{number}.json").write_text(json.dumps([opened]), encoding="utf-8")
    sources = [
        {"id": "api", "domain": "code", "type": "git", "path": "api"},
        {"id": "talk", "domain": "conversations", "type": "github", "path": "talk"},
    ]
    domains = {"code": HASHED, "conversations": HASHED}
    settings = {"data_dir": "var", "sources": sources, "domains": domains}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(settings), encoding="utf-8")
    done = nornweave(tmp_path, "sync")
    assert done.returncode == 0, done.stderr
    commit = asked(tmp_path, "which commit shows who waits")["items"][0]["chunk_id"]
    app = create_app(load_settings(tmp_path / "nornweave.yaml", {}), environment={})
    with live(app) as url, httpx.Client(base_url=url) as client:
        about = client.get(f"/chunks/{commit}").json()["about"]
        assert {each["url"] for each in about} == {
            "https://github.com/acme/api/pull/12", "https://github.com/acme/api/issues/7",
        }  # fmt: skip
        (back,) = client.get(f"/chunks/{about[0]['chunk_id']}").json()["about"]
        assert (back["chunk_id"], back["domain_id"]) == (commit, "code")
        assert f'href="/passages/{about[0]["chunk_id"]}"' in client.get(f"/passages/{commit}").text


def test_a_merge_request_and_an_issue_of_the_same_number_are_two_on_gitlab(tmp_path: Path) -> None:
    server = GitlabServer()
    repository = Repository(tmp_path / "api")
    repository.git("remote", "add", "origin", f"https://gitlab.com/{PROJECT}.git")
    for name, message in (
        ("page", f"Show who waits\n\nCloses #2\n\nSee merge request {PROJECT}!1"),
        ("mail", "Mail whom nobody saw (#1)"),
    ):
        (repository.root / f"{name}.py").write_text(f'"""A {name} for all."""\n', encoding="utf-8")
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", message)
    for title in ("Nobody gets a mail", "Nobody sees who waits"):
        server.open(title)
    server.open("Show who waits, as asked for", merge=True)
    with serving(server):
        sources = [
            {"id": "api", "domain": "code", "type": "git", "path": "api"},
            {"id": "talk", "domain": "conversations", "type": "gitlab", "project": PROJECT, "url": server.url,
             "token_env": "TOKEN_OF_TALK"},
        ]  # fmt: skip
        settings = {"data_dir": "var", "sources": sources, "domains": {"code": HASHED, "conversations": HASHED}}
        (tmp_path / "nornweave.yaml").write_text(json.dumps(settings), encoding="utf-8")
        done = nornweave(tmp_path, "sync", variables={**os.environ, "TOKEN_OF_TALK": TOKEN})
    assert done.returncode == 0, done.stderr
    (commit,) = (
        each["chunk_id"]
        for each in asked(tmp_path, "which commit shows who waits")["items"]
        if each["citation"]["title"] == "Show who waits (!1)"
    )
    app = create_app(load_settings(tmp_path / "nornweave.yaml", {}), environment={})
    with live(app) as url, httpx.Client(base_url=url) as client:
        about = client.get(f"/chunks/{commit}").json()["about"]
        threads = f"https://gitlab.com/{PROJECT}/-"
        assert {each["url"] for each in about} == {f"{threads}/merge_requests/1", f"{threads}/issues/2"}
        request = next(each for each in about if "merge_requests" in each["url"])
        (back,) = client.get(f"/chunks/{request['chunk_id']}").json()["about"]
        assert back["chunk_id"] == commit
