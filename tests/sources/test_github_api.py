from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interruptions import list_interrupted

from lab.apis.github import REPOSITORY, TOKEN, GithubServer, large
from lab.apis.server import Reply, serving
from nornweave.connect.github.export import github_document
from nornweave.connect.github.feed import GithubFeed
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.core.errors import ConfigError, SourceUnavailableError
from nornweave.core.types import Document, SourceId

QUICK = Limits(backoff_s=0.0, max_wait_s=2.0)


@pytest.fixture
def github() -> Iterator[GithubServer]:
    server = GithubServer()
    with serving(server):
        yield server


class Source:
    """A repository as a source, whose clock a test moves."""

    def __init__(
        self, server: GithubServer, folder: Path, *, token: str | None = TOKEN, limits: Limits = QUICK
    ) -> None:
        self.clock = 1_000_000.0
        feed = GithubFeed(REPOSITORY, api_url=server.url, token=token, limits=limits)
        self.source = MirroredSource(SourceId("gh"), feed, folder, relist_s=86_400, now=lambda: self.clock)

    def paths(self) -> list[str]:
        return [entry.path for entry in self.source.list().entries]

    def documents(self) -> dict[str, Document]:
        listing = self.source.list()
        assert listing.problem is None
        return {
            entry.path: github_document(SourceId("gh"), entry, self.source.fetch(entry)) for entry in listing.entries
        }

    def said(self) -> dict[str, list[str]]:
        return {path: [message.body for message in found.messages] for path, found in self.documents().items()}

    def a_day_later(self) -> None:
        self.clock += 90_000


def expected(server: GithubServer) -> dict[str, list[str]]:
    """What the documents of a repository have to say, by its own state."""
    said: dict[str, list[str]] = {}
    for number, issue in server.issues.items():
        about = [
            (each.get("created_at") or each.get("submitted_at"), each)
            for kept in (server.comments, server.review_comments, server.reviews[number])
            for each in kept.values()
            if "submitted_at" in each or (each.get("issue_url") or each["pull_request_url"]).endswith(f"/{number}")
        ]
        opening = f"{issue['title']}\n\n{issue['body']}" if issue["body"] else issue["title"]
        comments = [
            f"a.py:3 {each['body']}" if "path" in each else each["body"] for _, each in sorted(about, key=_time)
        ]
        said[f"issues/{number}"] = [opening, *comments]
    for number, each in server.discussions.items():
        comments = [body for one in each["said"] for body in (f"Re: {one['body']}", one["body"])]
        said[f"discussions/{number}"] = [f"{each['title']}\n\n{each['body']}", *comments]
    return said


def _time(pair: tuple[str, Any]) -> str:
    return pair[0]


def test_issues_come_with_comments_reviews_and_review_comments(github: GithubServer, tmp_path: Path) -> None:
    issue, pull = github.open("400 instead of 422", "See the docs."), github.open("Mend it", pull=True)
    github.comment(issue, "Agreed.")
    github.comment(pull, "This also changes refunds.", review=True)
    github.review(pull, "Looks good")
    github.discuss("Limits", "What should they be?", comments=["Ten."])
    found = Source(github, tmp_path).documents()
    assert {path: [message.body for message in each.messages] for path, each in found.items()} == expected(github)
    first = found["issues/1"]
    assert (first.title, first.url) == ("#1 400 instead of 422", "https://github.com/acme/payments/issues/1")
    assert (first.metadata["channel"], first.metadata["state"], first.metadata["tags"]) == (
        REPOSITORY,
        "open",
        ("bug",),
    )
    assert [(message.id, message.speaker) for message in first.messages] == [("1001", "alice"), ("1003", "bob")]
    assert found["discussions/3"].url == "https://github.com/acme/payments/discussions/3"
    assert found["discussions/3"].metadata["state"] == "open"


def test_a_second_pass_asks_once_for_each_list_and_reads_what_changed(github: GithubServer, tmp_path: Path) -> None:
    for number in range(7):
        github.comment(github.open(f"T{number}", pull=number % 2 == 0), "first")
    github.page_size = 2
    source = Source(github, tmp_path)
    gates = {entry.path: entry.gate for entry in source.source.list().entries}
    assert len(github.requests) > 12
    github.requests.clear()
    assert {entry.path: entry.gate for entry in source.source.list().entries} == gates
    assert len(github.requests) <= 8
    github.comment(2, "second")
    github.edit(4, "other")
    source.said()
    github.requests.clear()
    after = {entry.path: entry.gate for entry in source.source.list().entries}
    assert [request.path for request in github.requests] == [
        f"/repos/{REPOSITORY}/issues",
        f"/repos/{REPOSITORY}/issues/comments",
        f"/repos/{REPOSITORY}/pulls/comments",
        "/graphql",
    ], "nothing changed since"
    assert {path for path in gates if gates[path] != after[path]} == {"issues/2", "issues/4"}
    assert source.said() == expected(github)


def test_lost_comments_are_seen_at_once_and_lost_issues_within_a_day(github: GithubServer, tmp_path: Path) -> None:
    kept, lost = github.open("kept"), github.open("lost")
    github.comment(kept, "stays")
    comment = github.comment(kept, "goes")
    gone = github.discuss("gone", "too")
    source = Source(github, tmp_path)
    source.said()
    github.delete_comment(comment)
    assert source.said()[f"issues/{kept}"] == ["kept", "stays"]
    github.delete(lost)
    del github.discussions[gone]
    assert source.paths() == [f"discussions/{gone}", "issues/1", "issues/2"]
    source.a_day_later()
    assert source.said() == {"issues/1": ["kept", "stays"]}


def test_without_a_token_none_is_sent_and_discussions_are_left_out(github: GithubServer, tmp_path: Path) -> None:
    github.open("T")
    github.discuss("D", "E")
    assert Source(github, tmp_path, token=None).paths() == ["issues/1"]
    assert not any("authorization" in request.headers for request in github.requests)
    with_token = Source(github, tmp_path)
    with_token.a_day_later()
    assert with_token.paths() == ["discussions/2", "issues/1"]
    without = Source(github, tmp_path, token=None)
    without.clock += 200_000
    assert without.paths() == ["discussions/2", "issues/1"], "nothing is known about them, so they stay"


def test_a_token_without_the_right_to_read_discussions_reads_the_issues(github: GithubServer, tmp_path: Path) -> None:
    github.open("T")
    number = github.discuss("D", "E")
    source = Source(github, tmp_path)
    assert source.paths() == [f"discussions/{number}", "issues/1"]
    source.a_day_later()
    refused = Reply({"data": {"repository": None}, "errors": [{"type": "FORBIDDEN", "message": "no"}]})
    github.before = lambda request: github.faults.append(refused) if request.path == "/graphql" else None
    assert source.paths() == [f"discussions/{number}", "issues/1"]


def test_an_api_that_fails_on_the_way_removes_nothing_and_goes_on_later(github: GithubServer, tmp_path: Path) -> None:
    for number in range(6):
        github.open(f"T{number}")
    github.page_size = 2
    source = Source(github, tmp_path)
    second_page = 2
    github.before = lambda _: github.faults.extend([Reply({}, 401)] if len(github.requests) == second_page else [])
    listing = source.source.list()
    assert [entry.path for entry in listing.entries] == ["issues/1", "issues/2"]
    assert "the token is refused; renew GITHUB_TOKEN" in (listing.problem or "")
    asked = len(github.requests)
    assert source.said() == expected(github)
    assert "page=2" in "&".join(f"{key}={value}" for key, value in github.requests[asked].query.items())


def test_another_repository_begins_anew(github: GithubServer, tmp_path: Path) -> None:
    github.open("T")
    assert Source(github, tmp_path).paths() == ["issues/1"]
    feed = GithubFeed("acme/other", api_url=github.url, limits=QUICK)
    with pytest.raises(SourceUnavailableError, match="check that 'acme/other' exists"):
        MirroredSource(SourceId("gh"), feed, tmp_path).list()


@pytest.mark.parametrize(
    "options",
    [
        {"repository": "acme"},
        {"repository": "acme/../x"},
        {"repository": "a/.."},
        {"repository": "acme/x?y"},
        {"api_url": "ftp://x"},
        {"api_url": "https://user:pw@x"},
        {"api_url": "http://["},
        {"token": "two\nlines"},
        {"token": "schlüssel"},
        {"token": "t", "api_url": "http://github.example.com"},
    ],
)
def test_wrong_settings_are_refused_before_anything_is_sent(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        GithubFeed(**{"repository": REPOSITORY, **options})
    assert options.get("token", "?") not in str(caught.value) or len(options.get("token", "")) < 2


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_between_and_within_passes_nothing_is_lost_or_doubled(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    choose = random.Random(seed)
    github = GithubServer(page_size=choose.choice([1, 2, 3, 100]))
    with serving(github):
        source = Source(github, tmp_path_factory.mktemp("mirror"))
        for _ in range(choose.randint(1, 4)):
            for _ in range(choose.randint(1, 6)):
                _change(github, choose)
            _interrupt(source, github, choose)
        source.a_day_later()
        source.source.list()  # ends a pass that was interrupted
        source.a_day_later()
        assert source.said() == expected(github)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_not_deleted_is_seen_by_the_next_pass(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    choose = random.Random(seed)
    github = GithubServer(page_size=choose.choice([1, 2, 3, 100]))
    with serving(github):
        source = Source(github, tmp_path_factory.mktemp("mirror"))
        for _ in range(3):
            for _ in range(choose.randint(0, 6)):
                _change(github, choose, kinds=_WITHOUT_DELETING)
            assert source.said() == expected(github)


_KINDS = range(8)
_WITHOUT_DELETING = (0, 1, 2, 3, 4, 6)


def _change(github: GithubServer, choose: random.Random, kinds: Sequence[int] = _KINDS) -> None:
    numbers, comments = list(github.issues), list(github.comments)
    kind = choose.choice(kinds)
    if kind <= 1 or not numbers:
        github.open(f"T{github.hours}", choose.choice(["", "body"]), pull=choose.random() < 0.3)
    elif kind == 2:
        github.comment(choose.choice(numbers), f"C{github.hours}")
    elif kind == 3:
        pulls = [number for number in numbers if "pull_request" in github.issues[number]]
        if pulls:
            github.review(choose.choice(pulls), f"R{github.hours}")
            github.comment(choose.choice(pulls), f"L{github.hours}", review=True)
    elif kind == 4 and comments:
        github.edit_comment(choose.choice(comments), f"E{github.hours}")
    elif kind == 5 and comments:
        github.delete_comment(choose.choice(comments))
    elif kind == 6:
        github.edit(choose.choice(numbers), f"B{github.hours}")
    elif kind == 7:
        github.delete(choose.choice(numbers))


def _interrupt(source: Source, github: GithubServer, choose: random.Random) -> None:
    """List with a server that fails for good after some requests, while the repository changes."""
    list_interrupted(source.source, github, choose)


def test_a_large_repository_is_read_in_pages_and_its_second_pass_is_small(tmp_path: Path) -> None:
    server = large(300, page_size=10)
    with serving(server):
        source = Source(server, tmp_path)
        assert len(source.paths()) == 300
        source.source.list()
        first = len(server.requests)
        server.requests.clear()
        source.source.list()
        assert len(server.requests) <= 0.05 * first


def test_errors_never_name_the_token(github: GithubServer, tmp_path: Path) -> None:
    github.faults.append(Reply({"message": f"no, {TOKEN}"}, 403))
    with pytest.raises(SourceUnavailableError, match="read access to issues") as caught:
        Source(github, tmp_path).source.list()
    error: BaseException | None = caught.value
    while error is not None:
        assert not re.search(TOKEN, f"{error}{error!r}")
        error = error.__cause__
