"""Questions about the past are answered by commits and releases, and others as if there were none."""

import itertools
import json
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import pytest
from command_line import HASHED, nornweave
from git_repository import Repository, write
from live_server import live

from api.app import create_app
from lab.apis.gitlab import PROJECT, TOKEN, GitlabServer
from lab.apis.server import serving
from nornweave.ask.engine import Engine
from nornweave.ask.search.combine import Ranking
from nornweave.ask.search.history import (
    BESIDE,
    LAST,
    asks_for_past,
    commits_in,
    days_in,
    may_ask_for_past,
    names_value,
    of_past,
    releases_in,
    weigh_changes,
    with_titles,
    without_past,
)
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR
from nornweave.core.text.index_fields import tag_version
from nornweave.core.types import Domain

PAST = [
    "which release first had a cold start",
    "in which version could jars first be sealed",
    "how long has the probe existed",
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
    "what did 1.23.0 bring",
    "changes in 1.51.0",
    "the last commit of the parser",
    "who got it to run on Windows",
    "in which year was the --json flag added",
    "tell me when parse_config was added",
    "by whom was parse_config added",
    "which commit fixed #12",
    "when was #12 merged",
    "who came up with the queue",
    "What changed for Windows users in early 2019?",
    "what breaks when I go to version 4",
    "what do I have to change when upgrading from 2 to 3.1",
    "when did the prompt begin to time out",
    "when was it made the default",
    "what is not released yet",
    "what did commit 1234567 change",
    "what was the reason for pinning numpy",
    "what made them split the client package",
    "what prompted the move to a single repository",
    "who is behind the new scheduler",
    "whose idea was the plugin folder",
    "The dial was put back in spring: which change undid it?",
    "when could people first plan a post",
    "what is in the 1.2.3 release",
    "what's new in 3.15",
    "what was the reason for not retrying uploads",
    "whose change broke the nightly build",
    "which developer ported it to Windows",
    "last change to load_settings",
    "most recent edit of router.ts",
    "who was the last to change retry_policy",
    "which release brought the dark theme",
    "from which version on may groups be nested",
    "as of which release is brotli read",
    "the first release with a build for arm64",
    "what is new between 2.0 and 2.3",
    "what came with 4.0",
    "differences between 1.2 and 1.3",
    "why don't we ship a tarball any more",
    "when did the wizard disappear",
    "what was the reason for the wider margin",
    "which release first let people drag a card",
    "what came after version 2.1",
    "what is different between 2.1 and 2.2",
    "why on earth the cache was removed",
    "what was reworked about the search by number in 2022",
    "what was repaired this August in the import",
    "was the second parser reverted",
    "has the split of the client been backed out",
]
PRESENT = [
    "what is added by the quiet option",
    "what gets removed by the sweeper",
    "how do I list only what changed since Monday",
    "how can I see the history of my orders",
    "how long has a name to be before it is cut",
    "what is in 10.0.0.0/8",
    "when could a retry happen",
    "what is in the config file",
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
    "which is the oldest glaze that potters can still use in a new kiln",
    "what is changed by set fallback",
    "why was my request refused",
    "who starts the worker",
    "who supports windows",
    "what is done with errors",
    "which transaction commits first",
    "what does the flag change in a build",
    "how do I update the chart to my own values",
    "what breaks the build",
    "what is the reason code of a refused login",
    "which version of node is required",
    "which version does the server speak",
    "from which version can I migrate data",
    "who is behind a proxy",
    "what was the reason for the failure of the nightly job",
    "what is different with the verbose flag",
    "who is responsible for backups",
    "whose permissions are checked first",
    "what made my build fail",
    "how do I revert the last change",
    "what is the last argument of map",
    "which release channel should I choose",
    "why does the job no longer run for me",
    "what was measured about latency",
    "was my change reverted",
]


MAY_BE_PAST = [
    "why does the parser refuse empty names",
    "Why is there no Windows build?",
    "are 256 levels still the most that may be nested",
    "which platforms are no longer built",
    "who rounded amounts to cents",
    "who rang the bell",
    "when was the connection made",
    "when was the configuration last loaded",
    "when did the prompt time out",
    "1234567",
    "how come there is no tarball",
    "what is the reason that two queues are read",
    "what became of the legacy driver",
    "did we ever read XML",
    "has the wizard been removed",
    "which change keeps large numbers exact",
    "how did the default limit change over time",
    "how is the history of orders kept",
    "what was measured about latency in 2022",
    "was the old wording restored",
    "My jars are gone from the shelf: why is there no lid on them?",
    "When the kiln is read over https, does it still take any name?",
]


@pytest.mark.parametrize("text", MAY_BE_PAST)
def test_the_past_may_answer_beside_the_present(text: str) -> None:
    assert may_ask_for_past(text) and not asks_for_past(text)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what changed in July 2023", "2023-07-01", "2023-07-31"),
        ("what changed for Windows in early 2019?", "2019-01-01", "2019-06-30"),
        ("who moved it in the winter of 2020", "2020-12-01", "2021-02-28"),
        ("reminders in late 2016", "2016-07-01", "2016-12-31"),
        ("all of 2017", "2017-01-01", "2017-12-31"),
    ],
)
def test_a_question_names_days(text: str, first: str, last: str) -> None:
    days = days_in(text)
    assert days and tuple(map(str, days)) == (first, last)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what was done this August", "2025-08-01", "2025-08-31"),
        ("fixes of this spring", "2026-03-01", "2026-05-31"),
        ("all of this year", "2026-01-01", "2026-12-31"),
    ],
)
def test_this_august_is_the_last_one_that_has_begun(text: str, first: str, last: str) -> None:
    days = days_in(text, datetime(2026, 5, 3, tzinfo=UTC))
    assert days and tuple(map(str, days)) == (first, last)
    assert days_in(text) is None


@pytest.mark.parametrize("text", ["what changed on 2023-07-01", "a market 20190", "version 2023.1"])
def test_other_numbers_are_no_days(text: str) -> None:
    assert days_in(text) is None


@pytest.mark.parametrize(
    ("text", "among", "not_among"),
    [
        ("what changed in 2.17", [(2, 17, 0), (2, 17, 3)], [(2, 16, 9), (2, 18, 0)]),
        ("what changed in 1.8.0", [(1, 8, 0)], [(1, 8, 1)]),
        ("what changed between 1.8.1 and 1.8.3", [(1, 8, 2), (1, 8, 3)], [(1, 8, 1), (1, 8, 4)]),
        ("what is new since 1.9", [(1, 10, 0), (2, 0, 0)], [(1, 9, 0)]),
        ("why was it renamed before 1.7?", [(1, 6, 0), (1, 7, 0)], [(1, 8, 0)]),
        ("what has changed since the last release", [(LAST,)], [(1, 8, 0)]),
        ("what is not yet released", [(LAST,)], [(1, 8, 0)]),
    ],
)
def test_a_question_names_releases(text: str, among: list[tuple[int, ...]], not_among: list[tuple[int, ...]]) -> None:
    releases = releases_in(text)
    assert releases
    assert all(releases[0] <= each <= releases[1] for each in among)
    assert not any(releases[0] <= each <= releases[1] for each in not_among)


def test_a_number_behind_the_name_of_something_else_is_no_release() -> None:
    assert releases_in("why can people with Python 3.8 no longer install it") is None


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        ("v1.2.3", (1, 2, 3)),
        ("jq-1.7", (1, 7)),
        ("my-tool-v2.0.1", (2, 0, 1)),
        ("release_1.4", (1, 4)),
        ("nightly", ()),
    ],
)
def test_a_tag_is_called_by_a_version(tag: str, version: tuple[int, ...]) -> None:
    assert tag_version(tag) == version


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


@pytest.mark.parametrize(
    "text", ["{} fails with 'no such file'", "ERROR: segment '{}' is gone", "cannot open {}.ready"]
)
def test_digits_are_a_commit_only_if_it_is_known(text: str) -> None:
    asked = text.format("0123456789abcdef")
    assert not asks_for_past(asked) and not may_ask_for_past(asked, ["f" * 40])
    assert asks_for_past(asked, ["f" * 40, "0123456789abcdef" + "0" * 24])
    assert asks_for_past(f"which commit is it: {asked}")


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
        "Retry failed jobs three times\n\nWorkers lost jobs when the broker restarted.\n\n"
        "Co-authored-by: Cy Novak <cy@example.com>", 2, "Grace Hopper",
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


def test_the_answer_says_what_the_commit_says_who_made_it_and_when(folder: Path) -> None:
    def said(text: str) -> list[str]:
        return [each["text"] for each in asked(folder, text)["extract"]]

    made = "Committed on 2025-03-02 by Grace Hopper with Cy Novak as "
    subject, *others = said("who added that failed jobs are retried three times?")
    assert subject == "Retry failed jobs three times" and others[-1].startswith(made)
    subject, why, when = said("why did we retry failed jobs three times when the broker restarted?")
    assert why == "Workers lost jobs when the broker restarted." and when.startswith(made)


def test_a_word_that_only_commits_hold_is_not_said_to_be_nowhere(folder: Path) -> None:
    for text in ("what was changed by Cy Novak in the queue of jobs", "why was a queue of jobs begun before broker"):
        assert not re.search("Novak|broker", asked(folder, text)["answerable"]["words"])
    assert "“zeppelin”" in asked(folder, "who added the zeppelin to the queue")["answerable"]["words"]


@pytest.mark.parametrize("word", ["", "commit ", "what did commit "])
def test_a_commit_is_found_by_digits_that_are_all_numerals(tmp_path: Path, word: str) -> None:
    repository = Repository(tmp_path / "api")
    for number in itertools.count():
        (repository.root / "page.py").write_text(f'"""A page for all who wait."""\n\nSTEP = {number}\n')
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", f"Step {number}")
        sha = repository.git("rev-parse", "HEAD").strip()
        if sha[:7].isdigit():
            break
    settings = {"data_dir": "var", "sources": [{"id": "api", "domain": "code", "type": "git", "path": "api"}]}
    (tmp_path / "nornweave.yaml").write_text(json.dumps({**settings, "domains": {"code": HASHED}}), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    answer = asked(tmp_path, f"{word}{sha[:7]}")
    assert titles(answer)[0] == f"Step {number}" and sha[:7] not in answer["answerable"]["words"]


def test_a_range_of_releases_has_those_in_between_and_none_before(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "api")
    sections = list[str]()
    for number in range(5):
        sections.insert(0, f"## 1.{number}.0\n\nThe parser reads format number {number} now.\n\n")
        head = "# Changelog\n\nAll that changed in each version is told here, between releases too.\n\n"
        coming = "## Unreleased\n\nThe parser reads format number 5 now.\n\n"
        (repository.root / "CHANGELOG.md").write_text(head + coming + "".join(sections))
        (repository.root / f"step{number}.py").write_text(f'"""Reads the format number {number}."""\n')
        repository.git("add", "-A")
        day = f"2026-02-0{number + 1}T10:00:00Z"  # commits of one second have no order
        repository.git("commit", "-q", "-m", f"Read the format number {number}", "--date", day, GIT_COMMITTER_DATE=day)
        repository.git("tag", f"v1.{number}.0")
    (repository.root / "last.py").write_text('"""Writes formats."""\n')
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "Write formats", "--date", "2026-02-09T10:00:00Z",
                   GIT_COMMITTER_DATE="2026-02-09T10:00:00Z")  # fmt: skip
    git = {"type": "git", "path": "api"}
    sources = [{"id": "api", "domain": "code", **git}, {"id": "docs", "domain": "documentation", **git}]
    settings = {"data_dir": "var", "sources": sources, "domains": {"code": HASHED, "documentation": HASHED}}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0

    def led_by(text: str, *options: str) -> list[str]:
        found = [item["citation"] for item in asked(tmp_path, text, *options)["items"]]
        return [(each["section"] or "").rpartition(" > ")[2] or each["title"] for each in found]

    code, pages = ("--domain", "code"), ("--domain", "documentation")
    assert set(led_by("what changed between 1.0.0 and 1.3.0", *code)[:3]) == {
        "Release v1.1.0", "Release v1.2.0", "Release v1.3.0"
    }  # fmt: skip
    assert led_by("what changed in the parser from 1.2.0 to 1.3.0", *pages)[0] == "1.3.0"
    for text in ("what changed between 1.0.0 and 1.3.0", "what changed between v1.0.0 and v1.3.0"):
        assert led_by(text)[:3] == ["1.1.0", "1.2.0", "1.3.0"]
        quoted = " ".join(each["text"] for each in asked(tmp_path, text)["extract"])
        assert "All that changed" not in quoted and "number 5" not in quoted and "number 1" in quoted
    for since in ("what is new since 1.0.0", "what came after 1.0.0"):
        notes = [section for section in led_by(since) if section in {"1.1.0", "1.2.0", "1.3.0", "1.4.0"}]
        assert notes == sorted(notes) and notes[0] == led_by(since)[0] == "1.1.0"
    for text in ("what changed since the last release", "what is not released yet"):
        assert led_by(text, *code)[0] == "Write formats"


@pytest.mark.parametrize("path", ["RELNOTES.md", "docs/journal.md", "docs/releases/{}.md"])
def test_the_notes_of_a_release_lead_whatever_their_file_is_called(tmp_path: Path, path: str) -> None:
    repository = Repository(tmp_path / "api")
    for number in range(9, 12):
        notes = [
            f"\n### {part}\n\n- {part} the shelf of oven {number}\n" for part in ("Moves", "Mends", "Drops", "Adds")
        ]
        section = f"## 1.{number}.0 (2026-02-{number:02})\n\nA release of fixes.\n{''.join(notes)}\n"
        file = repository.root / path.format(f"1.{number}.0")
        file.parent.mkdir(exist_ok=True, parents=True)
        before = file.read_text().partition("\n\n")[2] if file.exists() else ""
        file.write_text(f"# Kiln notes\n\n{section}{before}")
        (repository.root / f"oven{number}.py").write_text(f'"""Moves the shelf of oven {number}."""\n')
        repository.git("add", "-A")
        day = f"2026-02-{number:02}T10:00:00Z"
        repository.git("commit", "-q", "-m", f"Write notes of the newest release 1.{number}.0", "--date", day,
                       GIT_COMMITTER_DATE=day)  # fmt: skip
        repository.git("tag", f"v1.{number}.0")
    git = {"type": "git", "path": "api"}
    sources = [{"id": "kiln", "domain": "code", **git}, {"id": "kiln-docs", "domain": "documentation", **git}]
    settings = {"data_dir": "var", "sources": sources, "domains": {"code": HASHED, "documentation": HASHED}}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    asked_for = ("what is new in the newest release of Kiln?", "newest release?", "what changed in 1.11.0?")
    for text in asked_for:
        answer = asked(tmp_path, text)
        first, *others = (item["citation"] for item in answer["items"])
        said = [sentence["text"] for sentence in answer["extract"]]
        assert first["source_path"] == path.format("1.11.0") and "1.11.0" in first["section"], text
        assert not any(each["source_path"] == first["source_path"] and "1.11.0" in each["section"] for each in others)
        assert any(each.endswith("the shelf of oven 11") for each in said) and "A release of fixes." not in said, text


def test_versions_are_known_without_a_changelog(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "api")
    files = {
        "pyproject.toml": '[project]\nname = "kiln"\nversion = "1.11.0.dev2"\nrequires-python = ">=3.11"\n\n'
        '[project.optional-dependencies]\nglaze = ["slip"]\n',
        "go.mod": "module example.org/kiln\n\ngo 1.24.1\n\nrequire example.org/slip v0.3.0\n",
        "part/pyproject.toml": '[project]\nname = "part"\nversion = "7.1"\nrequires-python = ">=3.8"\n',
        "package.json": '{\n  "name": "kiln",\n  "engines": {\n    "node": ">= 20"\n  }\n}\n',
        "glaze.py": '"""The version of Python is asked for here, and the version of a glaze is needed."""\n',
    }
    for name, text in files.items():
        (repository.root / name).parent.mkdir(exist_ok=True, parents=True)
        (repository.root / name).write_text(text, encoding="utf-8")
    for number, tag in enumerate(("v1.9.0", "v1.10.0", "v1.11.0-rc.1"), 1):
        (repository.root / f"oven{number}.py").write_text(f'"""Moves the shelf of oven {number}."""\n')
        repository.git("add", "-A")
        day = f"2026-02-{number:02}T10:00:00Z"
        repository.git("commit", "-q", "-m", f"Move shelf {number}", "--date", day, GIT_COMMITTER_DATE=day)
        repository.git("tag", tag)
    source = {"id": "kiln", "domain": "code", "type": "git", "path": "api"}
    settings = {"data_dir": "var", "sources": [source], "domains": {"code": HASHED}}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    said = {
        "what is the newest version of kiln?": "Release v1.10.0 of 2026-02-02",  # a candidate is none yet
        "latest release": "Release v1.10.0 of 2026-02-02",
        "what is the current version of kiln?": 'version = "1.11.0.dev2"',
        "which version is this?": 'version = "1.11.0.dev2"',
        "which python version is needed?": 'requires-python = ">=3.11"',
        "which Python do I need for kiln?": 'requires-python = ">=3.11"',
        "minimum golang version": "go 1.24.1",
        "what version of node.js is required to build kiln?": '"node": ">= 20"',
    }
    for text, line in said.items():
        answer = asked(tmp_path, text)
        first = next(iter(answer["extract"]), {"text": ""})["text"]
        assert first.startswith(line), (text, first, [item["citation"]["source_path"] for item in answer["items"]])


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


def test_why_something_is_so_is_answered_by_files_and_commits(folder: Path) -> None:
    answer = asked(folder, "why does it retry failed jobs three times?")
    kinds = [item["metadata"].get("kind") for item in answer["items"]]
    commit = next(item for item in answer["items"] if item["citation"]["title"] == "Retry failed jobs three times")
    assert "commit" in kinds and None in kinds
    assert commit["sources"], "what found it is told"


def test_changes_of_the_time_that_is_named_lead_and_those_of_pages_alone_come_later(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "api")

    def commit(message: str, day: str, name: str) -> None:
        (repository.root / name).write_text(
            "How it is used is told here.\n" if name.endswith("archive_backups.md") else f'"""{message}."""\n'
        )
        date = f"{day}T12:00:00Z"
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", message, "--date", date, GIT_COMMITTER_DATE=date)

    commit("Compress reports before they are sent to the archive", "2023-07-02", "reports.py")
    commit("Compress uploads before they are sent to the archive", "2024-02-03", "uploads.py")
    commit("Compress backups before they are sent to the archive", "2024-09-01", "archive_backups.md")
    commit("Compress backups before they are sent to the archive", "2024-09-02", "zipped.py")
    commit("Compress mails (#7)", "2024-10-01", "mails.py")
    for day in ("2025-01-01", "2025-02-01", "2025-03-01"):
        commit(f"Let zip_all be asked for, step {day[6]}", day, f"step{day[6]}.py")
    written = {"data_dir": "var", "sources": [{"id": "api", "domain": "code", "type": "git", "path": "api"}]}
    (tmp_path / "nornweave.yaml").write_text(
        json.dumps({**written, "domains": {"code": {"embedding": {"model": "hash:4096"}}}}), encoding="utf-8"
    )
    assert nornweave(tmp_path, "sync").returncode == 0

    def files_of_commits(time: str, what: str = "files") -> list[str]:
        answer = asked(tmp_path, f"which commit compresses {what} before they are sent to the archive{time}")
        return re.findall(r"\nChanged:\n- (\S+)", "".join(item["content"] for item in answer["items"]))

    assert files_of_commits(" in July 2023")[0] == "reports.py"
    assert files_of_commits(" in early 2024")[0] == "uploads.py"

    assert titles(asked(tmp_path, "which commit fixed #7"))[0] == "Compress mails (#7)"
    assert titles(asked(tmp_path, "who last changed zip_all"))[0].endswith("step 3")
    assert titles(asked(tmp_path, "who added zip_all"))[0].endswith("step 1")
    settings = load_settings(tmp_path / "nornweave.yaml", {})
    with (
        Engine(settings, [Domain.CODE], watch=False) as engine,
        engine.agents[Domain.CODE].generation.using(OPERATOR, None) as (generation, _),
    ):
        commits = of_past(generation)
        alike = Ranking(commits, np.ones(len(commits)), {}, np.ones(len(commits)))
        weighed = weigh_changes(alike, "which commit compresses backups", generation)
        last = generation.chunks(weighed.numbers[-1:])[weighed.numbers[-1].item()]
        assert "- archive_backups.md" in last.content, "who describes it has not made it"
        assert weighed.scores.tolist() == [1] * (len(commits) - 1) + [BESIDE]
        asked_about = weigh_changes(alike, "which commit documents backups in the manual", generation)
        assert asked_about.scores.tolist() == [1] * len(commits)


def test_commits_gain_that_changed_the_code_that_is_found(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "jars")
    for step, name in enumerate(("seal", "seal", "shelve")):
        write(repository.root, {f"{name}.py": f"def {name}_jar():\n    return {step}\n"})
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", f"Step {step}")
    written = {"data_dir": "var", "sources": [{"id": "jars", "domain": "code", "type": "git", "path": "jars"}]}
    (tmp_path / "nornweave.yaml").write_text(json.dumps({**written, "domains": {"code": HASHED}}), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    settings = load_settings(tmp_path / "nornweave.yaml", {})
    with (
        Engine(settings, [Domain.CODE], watch=False) as engine,
        engine.agents[Domain.CODE].generation.using(OPERATOR, None) as (generation, _),
    ):
        commits = of_past(generation)
        code = [n for n, chunk in generation.chunks(np.arange(generation.size)).items() if chunk.title == "seal_jar"]
        half = np.full(len(commits), 0.5)
        alike = Ranking(commits, half, {}, half)
        found = Ranking(np.array(code), np.ones(1), {}, np.ones(1))
        ranked = weigh_changes(alike, "which commit waits for the wax", generation, code=found)
        titles_of = generation.chunks(ranked.numbers)
        gained = [titles_of[n].title for n, score in zip(ranked.numbers, ranked.scores, strict=True) if score > 0.5]
        assert sorted(map(str, gained)) == ["Step 0", "Step 1"], "their code is near, whatever they say"
        without = weigh_changes(alike, "which commit waits for the wax", generation)
        assert without.scores.tolist() == half.tolist()


def test_filters_find_commits_whatever_is_asked(folder: Path) -> None:
    kind = ("--filter", "code.kind=commit")
    assert {*titles(asked(folder, "jobs", *kind))} >= {"Retry failed jobs three times", "Begin with a queue"}
    assert titles(asked(folder, "jobs", *kind, "--filter", "code.author=hopper")) == ["Retry failed jobs three times"]
    assert titles(asked(folder, "jobs", "--filter", "code.touches=retry")) == ["Retry failed jobs three times"]
    found = titles(asked(folder, "jobs", *kind, "--filter", "code.path=jobs.py"))
    assert found == ["Begin with a queue"]
    assert titles(asked(folder, "jobs", "--filter", "code.author=hopper"))[0] == "Retry failed jobs three times"
    assert titles(asked(folder, "page", "--filter", "code.since=2025-03-03"))[0] == "Drop the status page"
    assert titles(asked(folder, "jobs", "--filter", "code.kind=release", "--filter", "code.since=2025-03-03")) == [
        "Release v1.1.0"
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("who last changed fit_lid", "Tidy up"),
        ("last modification of lids.py", "Tidy up"),
        ("when was fit_lid added", "Work on jars"),
        ("who last changed sealing.py", "Begin to seal"),
        ("who last changed seal_jar", "Begin to seal"),
        ("who last changed Seal_Jar", "Seal"),
        ("who last changed SEAL_JAR", "Begin to seal"),
    ],
)
def test_the_first_and_last_change_of_a_name_are_found_whatever_the_commits_say(
    tmp_path: Path, text: str, title: str
) -> None:
    repository = Repository(tmp_path / "api")
    for message, day in (("Seal", 9), ("Begin to seal", 8)):  # rebased: the author of the newer one was earlier
        sealed = "def seal_jar():\n    return 0\n" if day == 8 else ""
        write(repository.root, {"sealing.py": f"def Seal_Jar():\n    return 9\n\n\n{sealed}"})
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", message, "--date", f"2026-01-0{day}T10:00:00Z")
    others = "".join(f"def other_{number}():\n    return 0\n\n\n" for number in range(120))
    for day, (message, value) in enumerate([("Work on jars", 1), ("Close the fit_lid talk", 1), ("Tidy up", 2)], 1):
        (repository.root / "lids.py").write_text(
            others.replace("0", str(value)) + f"def fit_lid():\n    return {value}\n"
        )
        (repository.root / "page.py").write_text(f'"""Tells how to fit a lid, {day}."""\n')
        repository.git("add", "-A")
        date = f"2026-02-{day:02}T10:00:00Z"
        repository.git("commit", "-q", "-m", message, "--date", date, GIT_COMMITTER_DATE=date)
    repository.git("checkout", "-q", "-b", "quiet")
    write(repository.root, {"cellar.py": "LABELS = 3\n"})
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", 'Revert "Oil the cellar door"')
    repository.git("checkout", "-q", "-")
    repository.git("merge", "-q", "--no-ff", "quiet", "-m", "Less noise")
    settings = {"data_dir": "var", "sources": [{"id": "api", "domain": "code", "type": "git", "path": "api"}]}
    (tmp_path / "nornweave.yaml").write_text(json.dumps({**settings, "domains": {"code": HASHED}}), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    assert titles(asked(tmp_path, text))[0] == title


def test_a_last_change_older_than_what_is_read_is_said_to_be(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "api")
    for name in ("old_lid", "new_lid", "any_lid"):
        write(repository.root, {f"{name}.py": f"def {name}():\n    return 0\n"})
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", f"Work on {name}")
    git = {"id": "api", "domain": "code", "type": "git", "path": "api", "history": 2}
    written = {"data_dir": "var", "sources": [git], "domains": {"code": HASHED}}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(written), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    for name in ("old_lid", "old_lid.py"):
        answer = asked(tmp_path, f"who last changed {name}")
        assert answer["answerable"]["words"] == f"None of the 2 commits that are read is known to change {name}."
        assert not answer["extract"]
    for name in ("new_lid", "lid_of_nobody"):
        assert "older than" not in asked(tmp_path, f"who last changed {name}")["answerable"]["words"]


@pytest.mark.parametrize(
    ("others", "paths", "asks_for_it"),
    [
        ("Move the shelf of jam", ["shelf.py"], "who moved the jam"),
        ("Add a page on the shelf of jam", ["shelf.md"], "who added the page of the manual"),
        ("Check the shelf of jam", ["tests/test_shelf.py"], ""),
        ("Release v2.0.0", ["version.py"], "what was done in the release"),
    ],
)
def test_a_commit_that_changed_what_the_program_does_stands_before_others(
    tmp_path: Path, others: str, paths: list[str], asks_for_it: str
) -> None:
    repository = Repository(tmp_path / "api")
    for subject, files in (("Count jam on the shelf", ["jam.py"]), (others, paths)):
        write(repository.root, dict.fromkeys(files, f'"""{subject}."""\n'))
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", subject)
    written = {"data_dir": "var", "sources": [{"id": "api", "domain": "code", "type": "git", "path": "api"}]}
    (tmp_path / "nornweave.yaml").write_text(json.dumps({**written, "domains": {"code": HASHED}}), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    with (
        Engine(load_settings(tmp_path / "nornweave.yaml", {}), [Domain.CODE], watch=False) as engine,
        engine.agents[Domain.CODE].generation.using(OPERATOR, None) as (generation, _),
    ):
        commits = of_past(generation)
        alike = Ranking(commits, np.ones(len(commits)), {}, np.ones(len(commits)))

        def weighed(text: str) -> dict[str | None, float]:
            ranking = weigh_changes(alike, text, generation)
            held = generation.chunks(ranking.numbers)
            return {
                held[number].title: score
                for number, score in zip(ranking.numbers.tolist(), ranking.scores, strict=True)
            }

        assert weighed("who counted jam") == {"Count jam on the shelf": 1, others: BESIDE}
        if asks_for_it:
            assert weighed(asks_for_it)[others] == 1


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace whose repository began and ended the same things."""
    folder = tmp_path_factory.mktemp("turns")
    repository = Repository(folder / "api")
    commits = [
        ("Add the badge printer for jars", {"badge.py": '"""Prints badges."""\n'}),
        ("Support the badge printer on jars of Windows", {"windows.py": '"""Badges of Windows."""\n'}),
        (
            "Leave the badge printer for jars alone\n\nThe badge printer of jars has many parts for jars.\n\n"
            "It goes because its ink is no longer sold.",
            {"badge.py": '"""Nothing."""\n'},
        ),
        ("Drop the badge printer for jars", {"badge.py": "", "windows.py": ""}),
        ("Print the label of the cellar door twice", {"cellar.py": "LABELS = 2\n"}),
        ("fix: do not ask the printer for the size that was provided", {"size.py": "SIZE = 1\n"}),
        ("Oil the cellar door", {"cellar.py": "LABELS = 3\nDOOR = 2\n"}),
    ]
    for day, (message, files) in enumerate(commits, 1):
        for name, text in files.items():
            (repository.root / name).write_text(text, encoding="utf-8")
        repository.git("add", "-A")
        date = f"2026-02-{day:02}T10:00:00Z"
        repository.git("commit", "-q", "-m", message, "--date", date, GIT_COMMITTER_DATE=date)
    repository.git("checkout", "-q", "-b", "quiet")
    write(repository.root, {"cellar.py": "LABELS = 3\n"})
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", 'Revert "Oil the cellar door"')
    repository.git("checkout", "-q", "-")
    repository.git("merge", "-q", "--no-ff", "quiet", "-m", "Less noise")
    settings = {"data_dir": "var", "sources": [{"id": "api", "domain": "code", "type": "git", "path": "api"}]}
    (folder / "nornweave.yaml").write_text(json.dumps({**settings, "domains": {"code": HASHED}}), encoding="utf-8")
    assert nornweave(folder, "sync").returncode == 0
    return folder


@pytest.mark.parametrize(
    ("text", "before", "behind"),
    [
        ("when was the badge printer for jars removed", "Drop the badge", "Add the badge"),
        ("why did they throw out the badge printer for jars", "Drop the badge", "Add the badge"),
        ("why don't we support the badge printer on jars any more", "Drop the badge", "Add the badge"),
        ("is the badge printer for jars still supported", "Drop the badge", "Support the badge"),
        ("who added the badge printer for jars", "Add the badge", "Drop the badge"),
        ("why was oiling the cellar door reverted", "Less noise", "Oil the cellar"),
    ],
)
def test_what_began_does_not_lead_where_its_end_is_asked_for(turns: Path, text: str, before: str, behind: str) -> None:
    found = [title or "" for title in titles(asked(turns, text))]
    places = [next(place for place, title in enumerate(found) if title.startswith(start)) for start in (before, behind)]
    assert places[0] < places[1], found


@pytest.mark.parametrize("text", ["why was the badge printer of jars left alone", "what was the reason for leaving the "
                                  "badge printer for jars alone"])  # fmt: skip
def test_why_is_answered_with_the_sentence_that_gives_the_reason(turns: Path, text: str) -> None:
    answer = asked(turns, text)  # of a word that no commit holds (left) the sentences are called the nearest
    _, why, made = [each["text"] for each in answer["extract"] + answer["nearest"]]
    assert why == "It goes because its ink is no longer sold." and made.startswith("Committed on 2026-02-03")


def test_a_first_line_counts_by_its_verb_and_by_the_words_that_it_shares(turns: Path) -> None:
    with (
        Engine(load_settings(turns / "nornweave.yaml", {}), [Domain.CODE], watch=False) as engine,
        engine.agents[Domain.CODE].generation.using(OPERATOR, None) as (generation, _),
    ):
        commits = of_past(generation)
        alike = Ranking(commits, half := np.full(len(commits), 0.2), {}, half)

        def scores(ranking: Ranking) -> dict[str, float]:
            held = generation.chunks(ranking.numbers)
            return {str(held[n].title): s for n, s in zip(ranking.numbers.tolist(), ranking.scores, strict=True)}

        printer = scores(with_titles(alike, "who dropped the badge printer for jars", generation))
        assert (
            printer["Drop the badge printer for jars"] > printer["Support the badge printer on jars of Windows"] > 0.2
        )
        assert printer["Oil the cellar door"] == 0.2
        ended = scores(weigh_changes(alike, "why is no size asked for any more", generation))
        provided = ended["fix: do not ask the printer for the size that was provided"]
        assert provided > ended["Add the badge printer for jars"], "*provided* is not its verb"


def test_a_commit_found_by_a_later_part_leads_with_its_first_line(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "still")
    body = " ".join(f"Step {step} of the boil takes {step} minutes more." for step in range(24))
    write(repository.root, {"gasket.md": "A copper gasket melts above the fire.\n", "boil.py": '"""Boil."""\n'})
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", f"Boil slowly\n\n{body}")
    code = {**HASHED, "chunking": {"max_chunk_tokens": 128}}
    written = {"data_dir": "var", "sources": [{"id": "still", "domain": "code", "type": "git", "path": "still"}]}
    (tmp_path / "nornweave.yaml").write_text(json.dumps({**written, "domains": {"code": code}}), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    settings = load_settings(tmp_path / "nornweave.yaml", {})
    with (
        Engine(settings, [Domain.CODE], watch=False) as engine,
        engine.agents[Domain.CODE].generation.using(OPERATOR, None) as (generation, _),
    ):
        first, *later = of_past(generation)
        assert "copper gasket" in generation.chunks(np.array([later[-1]]))[int(later[-1])].content
        found = Ranking(np.array(later[-1:], np.int32), np.array([0.7]), {}, np.array([0.7]))
        ranked = weigh_changes(found, "which commit documented that a copper gasket melts", generation)
        assert ranked.numbers.tolist() == [first, later[-1]] and ranked.scores.tolist() == [0.7, 0.7]


@pytest.fixture(scope="module")
def kiln(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace whose project undid, dropped and released things, with notes on its releases."""
    folder = tmp_path_factory.mktemp("kiln")
    repository = Repository(folder / "kiln")
    notes = {
        "1.0.0": "- Coal 3 is still supported.\n- The gauge of the chimney is read.",
        "1.1.0": "- The lid has a hinge.",
        "1.1.1": "- The hinge is greased.",
        "1.2.0": "- Drops support for Coal 3.",
    }
    steps = [
        ("Support coal 3\n\nThe sieve that coal 3 fell through is dropped.", "coal", ""),
        ("Read the gauge of the chimney (#4)", "gauge", "1.0.0"),
        ("Hang the lid on a hinge", "lid", "1.1.0"),
        ('Revert "Merge change #4 of a guest"\n\nThe needle melts above the fire.', "needle", ""),
        ("Grease the hinge of the lid", "grease", "1.1.1"),
        ("lid: implement its own spring\n\n`lid` drops the zinc wire, which rusts.", "spring", ""),
        ("Burn wood alone\n\nDrop support for Coal 3.", "wood", "1.2.0"),
        ("Support an iron door", "door", ""),
    ]
    text = ""
    for day, (message, name, release) in enumerate(steps, 1):
        code = "\n\ndef new() -> None:\n    ...\n" if name == "door" else ""
        (repository.root / f"{name}.py").write_text(f'"""The {name} of the kiln."""\n{code}', encoding="utf-8")
        text = f"## {release}\n\n{notes[release]}\n\n{text}" if release else text
        (repository.root / "CHANGELOG.md").write_text(f"# Changelog\n\n{text}", encoding="utf-8")
        repository.git("add", "-A")
        date = f"2026-03-0{day}T10:00:00Z"
        repository.git("commit", "-q", "-m", message, "--date", date, GIT_COMMITTER_DATE=date)
        if release:
            repository.git("tag", f"v{release}")
    git = {"type": "git", "path": "kiln"}
    sources = [{"id": "kiln", "domain": "code", **git}, {"id": "kiln-docs", "domain": "documentation", **git}]
    settings = {"data_dir": "var", "sources": sources, "domains": {"code": HASHED, "documentation": HASHED}}
    (folder / "nornweave.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert nornweave(folder, "sync").returncode == 0
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "why was reading the gauge of the chimney undone",
        "was reading the gauge of the chimney reverted",
        "who reverted that the gauge of the chimney is read",
    ],
)
def test_what_undid_a_commit_leads_it_although_it_says_nothing_of_it(kiln: Path, text: str) -> None:
    found = titles(asked(kiln, text, "--domain", "code"))
    assert found[0].startswith("Revert") and "Read the gauge of the chimney (#4)" in found


@pytest.mark.parametrize("text", ["is coal 3 still supported", "does it still support coal 3"])
def test_what_was_dropped_later_overrules_that_it_is_supported(kiln: Path, text: str) -> None:
    answer = asked(kiln, text)
    places = [f"{each['citation']['title']} {each['citation']['section']}" for each in answer["items"]]
    older = next(place for place, each in enumerate(places) if each.endswith("1.0.0"))
    assert next(place for place, each in enumerate(places) if each.endswith("1.2.0") or "Burn wood" in each) < older
    said = " ".join(each["text"] for each in [*answer["extract"], *answer["nearest"]])
    assert "still supported" not in said and ("Drop" in said or "Burn wood alone" in said), said
    commits = titles(asked(kiln, text, "--domain", "code"))
    assert commits.index("Burn wood alone") < commits.index("Support coal 3"), "its sieve alone was dropped then"


@pytest.mark.parametrize("text", ["what is new in the newest release", "what's new in the latest version"])
def test_the_newest_release_is_asked_for_and_not_the_last_change_of_something_called_new(kiln: Path, text: str) -> None:
    assert titles(asked(kiln, text, "--domain", "code"))[0] == "Release v1.2.0"
    assert "1.2.0" in asked(kiln, text)["items"][0]["citation"]["section"]


@pytest.mark.parametrize(("content", "is_named"), [
    ("Merge branch 'py-39'", True), ("Drop python 3.8 and 3.9", True), ("Drop py3.9\n\nCommitted on 2024-03-09", True),
    ("Drop python 3.7", False), ("Drop python 13.9", False), ("Drop it\n\nChanged:\n- python 3.9", False),
])  # fmt: skip
def test_a_commit_names_the_value_that_a_question_asks_about(content: str, *, is_named: bool) -> None:
    assert names_value(content, "is python 3.9 still supported since 2.7?") == is_named
    assert names_value(content, "who changed it in 1.2 or March 3")


def test_what_ended_for_another_value_is_not_asserted(kiln: Path) -> None:
    for text in ("is coal 2 still supported", "which commit dropped support for coal 4"):
        answer = asked(kiln, text, "--domain", "code", "--filter", "code.kind=commit")
        assert answer["answerable"]["probability"] < 0.5 and not answer["extract"], text


def test_what_ended_in_the_body_of_a_commit_counts_and_its_first_sentence_is_why(kiln: Path) -> None:
    answer = asked(kiln, "why did we get rid of the zinc wire", "--filter", "code.kind=commit", "--domain", "code")
    assert titles(answer)[0] == "lid: implement its own spring"
    assert "`lid` drops the zinc wire, which rusts." in [
        each["text"] for each in [*answer["extract"], *answer["nearest"]]
    ]


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        ("what changed between 1.0.0 and 1.2.0", ["v1.1.0", "v1.1.1", "v1.2.0"]),
        ("what is different between 1.0 and 1.1", ["v1.1.0", "v1.1.1"]),
        ("what changed in 1.1", ["v1.1.0", "v1.1.1"]),
        ("what changed since 1.1.0", ["v1.1.1"]),
        ("what came after version 1.1.1", ["v1.2.0"]),
    ],
)
def test_the_releases_of_a_range_lead_in_their_order_right_behind_their_notes(
    kiln: Path, text: str, releases: list[str]
) -> None:
    found = titles(asked(kiln, text, "--domain", "code"))
    assert found[: len(releases) + 1] != releases and found[: len(releases)] == [f"Release {each}" for each in releases]
    items = [item["citation"] for item in asked(kiln, text)["items"]]
    paths = [each["source_path"] for each in items]
    first = paths.index(f"releases/{releases[0]}")
    assert any((each["section"] or "").endswith(releases[0][1:]) for each in items[:first])
    assert not any(path.startswith("commits/") for path in paths[:first])


@pytest.mark.parametrize(("text", "version"), [("what came after {}", "1.1.7"), ("what is new since v{}", "1.0.9"),
                                               ("what changed in {}", "1.3.0")])  # fmt: skip
def test_a_release_that_does_not_exist_is_said_to_be_unknown(kiln: Path, text: str, version: str) -> None:
    said = asked(kiln, text.format(version))["answerable"]["words"]
    assert said.startswith(f"No release {version} is known here")
    for known in ("1.1.1", "1.1"):
        assert "is known here" not in asked(kiln, text.format(known))["answerable"]["words"]


def test_a_release_of_which_a_page_tells_is_not_said_to_be_unknown(tmp_path: Path) -> None:
    lines = "v3.5.8 2026-01-09\n\n* The lid of the kiln is green.\n\nv3.5.7 2026-01-08\n\n* It has a lid.\n"
    repository = Repository(tmp_path / "kiln")
    write(
        repository.root, {"NOTES.md": "# Notes\n\n## 2.4.6\n\n- The door of the kiln is red.\n", "HISTORY.txt": lines}
    )
    write(repository.root, {"kiln.py": "DOOR = 1\n"})
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "Begin")
    git = {"type": "git", "path": "kiln"}
    sources = [{"id": "kiln", "domain": "code", **git}, {"id": "kiln-docs", "domain": "documentation", **git}]
    settings = {"data_dir": "var", "sources": sources, "domains": {"code": HASHED, "documentation": HASHED}}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    said = {version: asked(tmp_path, f"what changed in {version}")["answerable"]["words"]
            for version in ("2.4.6", "3.5.8", "3.5.7", "2.4.7")}  # fmt: skip
    assert [version for version, words in said.items() if "is known here" in words] == ["2.4.7"]


def test_a_commit_and_a_release_are_found_by_name(folder: Path) -> None:
    sha = subprocess.run(["git", "rev-parse", "HEAD~1"], cwd=folder / "api", capture_output=True, check=True).stdout
    sha = sha.decode()
    assert titles(asked(folder, f"what did {sha[:8]} do"))[0] == "Retry failed jobs three times"
    assert titles(asked(folder, f"what happens in {sha[:9]}?"))[0] == "Retry failed jobs three times"
    assert titles(asked(folder, "what changed in 1.1.0"))[0] == "Release v1.1.0"


def test_the_name_of_a_file_in_an_error_asks_for_no_commit(folder: Path) -> None:
    items = asked(folder, "ERROR: retry of failed jobs: '0000000100000000000000a7' is gone")["items"]
    assert items and not [item for item in items if item["metadata"].get("kind") == "commit"]


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


def test_a_file_whose_newest_commit_a_merge_brought_names_the_merge(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "api")

    old = repository.commit({"kettle.py": "def boil():\n    return 100\n"}, "2025-03-01T12:00:00Z")
    repository.commit({"cup.py": "def pour():\n    return 1\n"}, "2025-03-02T12:00:00Z")
    repository.git("checkout", "-q", "-b", "hotter")
    repository.commit({"cup.py": "def pour():\n    return 2\n"}, "2025-03-03T12:00:00Z")
    repository.git("checkout", "-q", "-")
    repository.git("merge", "-q", "--no-ff", "-m", "Pour twice as much", "hotter")
    settings = {
        "data_dir": "var",
        "sources": [{"id": "api", "domain": "code", "type": "git", "path": "api", "history": 2}],
        "domains": {"code": HASHED},
    }
    (tmp_path / "nornweave.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert nornweave(tmp_path, "sync").returncode == 0
    app = create_app(load_settings(tmp_path / "nornweave.yaml", {}), environment={})
    with live(app) as url, httpx.Client(base_url=url) as client:
        found = {
            match["source_path"]: client.get(f"/chunks/{match['chunk_id']}").json()["last_change"]
            for match in client.get("/find", params={"text": "def "}).json()["matches"]
        }
        assert found["cup.py"]["subject"] == "Pour twice as much" and found["cup.py"]["chunk_id"]
        lost = found["kettle.py"]  # older than what is read
        assert (lost["subject"], lost["chunk_id"], lost["author"]) == ("x", None, "Ann")
        assert old.startswith(lost["revision"]) and lost["date"].startswith("2025-03-01")
        page = client.get(f"/passages/{client.get('/find', params={'text': 'boil'}).json()['matches'][0]['chunk_id']}")
        assert "2025-03-01 by Ann: x</bdi></dd>" in page.text


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
