from pathlib import Path

import pytest
from feed_cases import github_said, github_source
from feed_source import served

from lab.apis.github import REPOSITORY, GithubServer
from lab.apis.server import Reply
from nornweave.core.errors import SourceUnavailableError

github = served(GithubServer)


def test_issues_come_with_comments_reviews_and_review_comments(github: GithubServer, tmp_path: Path) -> None:
    issue, pull = github.open("400 instead of 422", "See the docs."), github.open("Mend it", pull=True)
    github.comment(issue, "Agreed.")
    github.comment(pull, "This also changes refunds.", review=True)
    github.review(pull, "Looks good")
    github.discuss("Limits", "What should they be?", comments=["Ten."])
    found = github_source(github, tmp_path).documents()
    assert {path: [message.body for message in each.messages] for path, each in found.items()} == github_said(github)
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


def test_lost_comments_and_issues_are_seen_at_once_and_lost_discussions_within_a_day(
    github: GithubServer, tmp_path: Path
) -> None:
    kept, lost = github.open("kept"), github.open("lost")
    github.comment(kept, "stays")
    comment = github.comment(kept, "goes")
    gone = github.discuss("gone", "too")
    source = github_source(github, tmp_path)
    source.said()
    github.delete_comment(comment)
    assert source.said()[f"issues/{kept}"] == ["kept", "stays"]
    github.delete(lost)
    del github.discussions[gone]
    assert source.paths() == [f"discussions/{gone}", "issues/1"]
    source.a_day_later()
    assert source.said() == {"issues/1": ["kept", "stays"]}


def test_without_a_token_none_is_sent_and_discussions_are_left_out(github: GithubServer, tmp_path: Path) -> None:
    github.open("T")
    github.discuss("D", "E")
    assert github_source(github, tmp_path, token=None).paths() == ["issues/1"]
    assert not any("authorization" in request.headers for request in github.requests)
    with_token = github_source(github, tmp_path)
    with_token.a_day_later()
    assert with_token.paths() == ["discussions/2", "issues/1"]
    without = github_source(github, tmp_path, token=None)
    without.clock += 200_000
    assert without.paths() == ["discussions/2", "issues/1"], "nothing is known about them, so they stay"


def test_a_token_without_the_right_to_read_discussions_reads_the_issues(github: GithubServer, tmp_path: Path) -> None:
    github.open("T")
    number = github.discuss("D", "E")
    source = github_source(github, tmp_path)
    assert source.paths() == [f"discussions/{number}", "issues/1"]
    source.a_day_later()
    refused = Reply({"data": {"repository": None}, "errors": [{"type": "FORBIDDEN", "message": "no"}]})
    github.before = lambda request: github.faults.append(refused) if request.path == "/graphql" else None
    assert source.paths() == [f"discussions/{number}", "issues/1"]


def test_an_api_that_fails_on_the_way_removes_nothing_and_goes_on_later(github: GithubServer, tmp_path: Path) -> None:
    for number in range(6):
        github.open(f"T{number}")
    github.page_size = 2
    source = github_source(github, tmp_path)
    second_page = 2
    github.before = lambda _: github.faults.extend([Reply({}, 401)] if len(github.requests) == second_page else [])
    listing = source.source.list()
    assert [entry.path for entry in listing.entries] == ["issues/1", "issues/2"]
    assert "the token is refused; renew GITHUB_TOKEN" in (listing.problem or "")
    asked = len(github.requests)
    assert source.said() == github_said(github)
    assert "page=2" in "&".join(f"{key}={value}" for key, value in github.requests[asked].query.items())


def test_a_full_first_page_that_stays_the_same_hides_nothing(github: GithubServer, tmp_path: Path) -> None:
    for number in range(100):
        github.open(f"T{number}")
    for issue in github.issues.values():
        issue["updated_at"] = github.issues[100]["updated_at"]
    source = github_source(github, tmp_path)
    for _ in range(3):
        source.paths()
    github.open("New")
    assert source.said() == github_said(github)


def test_another_repository_begins_anew(github: GithubServer, tmp_path: Path) -> None:
    github.open("T")
    assert github_source(github, tmp_path).paths() == ["issues/1"]
    with pytest.raises(SourceUnavailableError, match="check that 'acme/other' exists"):
        github_source(github, tmp_path, repository="acme/other", token=None).list()
