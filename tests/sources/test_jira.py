from pathlib import Path
from typing import Any

import pytest
from feed_cases import jira_said, jira_source
from feed_source import served

from lab.apis.jira import SITE, JiraServer, adf
from lab.apis.server import Reply
from nornweave.ask.search.items import passage_url
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.types import Domain

jira = served(JiraServer)


def test_an_issue_is_its_description_and_its_comments_under_their_own_ids(jira: JiraServer, tmp_path: Path) -> None:
    issue = jira.open("PAY", "Refund fails", "It returns 400.", environment=adf("staging"))
    comment = jira.comment(issue, "It has to be 422.")
    found = jira_source(jira, tmp_path).documents()["PAY/PAY-1"]
    assert [(each.id, each.speaker, each.thread_id, each.body) for each in found.messages] == [
        ("PAY-1", "Ann Lee", "PAY-1", "Refund fails\n\nIt returns 400.\n\nEnvironment: staging"),
        (str(comment), "Bob Ray", "PAY-1", "It has to be 422."),
    ]
    assert [str(each.timestamp) for each in found.messages] == [
        "2026-01-01 01:00:00+00:00",
        "2026-01-01 02:00:00+00:00",
    ]
    assert (found.title, found.url, found.domain) == (
        "PAY-1 Refund fails",
        f"{SITE}/browse/PAY-1",
        Domain.CONVERSATIONS,
    )
    assert dict(found.metadata) == {
        "source_type": "jira",
        "channel": "PAY",
        "state": "in progress",
        "tags": ("refunds", "api", "Bug", "High"),
        "issue_type": "Bug",
        "priority": "High",
        "participants": ("Ann Lee", "Bob Ray"),
        "permalink": f"{SITE}/browse/PAY-1",
        "thread_permalink": f"{SITE}/browse/PAY-1?focusedCommentId={{id}}",
    }
    assert [
        passage_url(found.url, {**found.metadata, "thread_id": each.thread_id}, message_ids=(each.id,))
        for each in found.messages
    ] == [f"{SITE}/browse/PAY-1", f"{SITE}/browse/PAY-1?focusedCommentId={comment}"]


def test_comments_beyond_those_that_the_search_embeds_are_asked_for(jira: JiraServer, tmp_path: Path) -> None:
    jira.embedded, jira.page_size = 2, 3
    issue = jira.open("PAY", "Long")
    for number in range(8):
        jira.comment(issue, f"C{number}")
    assert jira_source(jira, tmp_path).said() == jira_said(jira)


def test_only_the_projects_that_are_named_are_read(jira: JiraServer, tmp_path: Path) -> None:
    jira.open("PAY", "One")
    jira.open("OPS", "Two")
    assert jira_source(jira, tmp_path / "all").said() == jira_said(jira)
    assert jira_source(jira, tmp_path / "one", projects=("OPS",)).said() == jira_said(jira, "OPS")
    with pytest.raises(SourceUnavailableError, match="The value 'HR' does not exist for the field 'project'"):
        jira_source(jira, tmp_path / "none", projects=("HR",)).source.list()


def test_an_issue_that_moves_to_another_project_moves_with_its_comments(jira: JiraServer, tmp_path: Path) -> None:
    issue = jira.open("PAY", "T")
    jira.comment(issue, "C")
    source = jira_source(jira, tmp_path)
    assert list(source.gates()) == ["PAY/PAY-1"]
    jira.move(issue, "OPS")
    assert source.said() == {"OPS/OPS-1": ["T", "C"]}


def test_a_changed_issue_that_the_site_does_not_give_stays_as_it_was(jira: JiraServer, tmp_path: Path) -> None:
    issue = jira.open("PAY", "old")
    source = jira_source(jira, tmp_path)
    source.said()
    jira.edit(issue, summary="new")
    jira.too_large = {str(issue)}
    source.a_day_later()
    assert source.said() == {"PAY/PAY-1": ["old"]}
    jira.too_large = set()
    source.a_day_later()
    assert source.said() == {"PAY/PAY-1": ["new"]}


def test_a_site_behind_the_address_for_scoped_tokens_is_cited_by_its_own(jira: JiraServer, tmp_path: Path) -> None:
    jira.open("PAY", "T")
    found = jira_source(jira, tmp_path, url=f"{jira.url}/ex/jira/11f5-ab/").documents()
    assert found["PAY/PAY-1"].url == f"{SITE}/browse/PAY-1"


def test_what_only_some_may_see_is_left_out(jira: JiraServer, tmp_path: Path) -> None:
    issue = jira.open("PAY", "Open")
    jira.comment(issue, "for all")
    jira.comment(issue, "for few", visibility={"type": "role", "value": "Administrators"})
    secret = jira.open("PAY", "Secret", security={"id": "1", "name": "Staff"})
    source = jira_source(jira, tmp_path)
    assert source.said() == {"PAY/PAY-1": ["Open", "for all"]}
    jira.edit(issue, security={"id": "1", "name": "Staff"})
    jira.edit(secret, security=None)
    assert source.said() == {"PAY/PAY-2": ["Secret"]}


def test_a_token_that_the_site_forgot_begins_the_pass_again(jira: JiraServer, tmp_path: Path) -> None:
    for number in range(6):
        jira.open("PAY", f"T{number}")
    jira.page_size = 2
    source = jira_source(jira, tmp_path)
    jira.before = lambda request: jira.faults.extend([Reply({}, 401)] if b"nextPageToken" in request.body else [])
    listing = source.source.list()
    assert len(listing.entries) == 2
    assert "renew ATLASSIAN_TOKEN" in (listing.problem or "")
    jira.before = lambda _: None
    jira.faults.clear()
    jira.forget_tokens()
    assert source.said() == jira_said(jira)


def test_a_refused_token_that_jira_takes_for_nobody_deletes_nothing(jira: JiraServer, tmp_path: Path) -> None:
    jira.open("PAY", "T")
    before = jira_source(jira, tmp_path).gates()
    source = jira_source(jira, tmp_path, token="revoked")
    source.a_day_later()
    listing = source.source.list()
    assert "the token is refused; renew ATLASSIAN_TOKEN" in (listing.problem or "")
    assert [entry.path for entry in listing.entries] == list(before)


def test_a_search_that_repeats_its_page_ends(jira: JiraServer, tmp_path: Path) -> None:
    tokens = iter(range(100))
    issue = {"id": str(jira.open("PAY", "T")), "key": "PAY-1", "fields": {"updated": "2026"}}

    def repeat(request: Any) -> None:
        if request.path.endswith("jql"):
            jira.faults.append(Reply({"issues": [issue], "isLast": False, "nextPageToken": str(next(tokens))}))

    jira.before = repeat
    listing = jira_source(jira, tmp_path).source.list()
    assert "the same page twice" in (listing.problem or "")


def test_what_is_nested_too_deep_is_left_out_and_the_rest_is_read(jira: JiraServer, tmp_path: Path) -> None:
    deep: dict[str, Any] = adf("x")
    for _ in range(150):
        deep = {"type": "doc", "content": [deep]}
    issue = jira.open("PAY", "T")
    jira.comment(issue, "sound")
    jira.edit(issue, description=deep)
    assert jira_source(jira, tmp_path).said() == {"PAY/PAY-1": ["T", "sound"]}
