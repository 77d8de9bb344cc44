from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corruption import corrupted
from hypothesis import given, settings
from hypothesis import strategies as st
from interruptions import list_interrupted

from lab.apis.jira import SITE, TOKEN, USER, JiraServer, adf, large
from lab.apis.server import Reply, serving
from nornweave.ask.search.passage_url import passage_url
from nornweave.connect.jira.document import jira_document
from nornweave.connect.jira.feed import JiraFeed
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.core.errors import ConfigError, DocumentError, SourceUnavailableError
from nornweave.core.types import Document, Domain, SourceId

QUICK = Limits(backoff_s=0.0, max_wait_s=2.0)


@pytest.fixture
def jira() -> Iterator[JiraServer]:
    server = JiraServer()
    with serving(server):
        yield server


class Source:
    """A site as a source, whose clock a test moves."""

    def __init__(self, server: JiraServer, folder: Path, **options: Any) -> None:
        self.clock = 1_000_000.0
        chosen = {"url": server.url, "user": USER, "token": TOKEN, "limits": QUICK, "now": server.now, **options}
        feed = JiraFeed(**chosen)
        self.source = MirroredSource(SourceId("tickets"), feed, folder, relist_s=86_400, now=lambda: self.clock)

    def gates(self) -> dict[str, str]:
        listing = self.source.list()
        assert listing.problem is None
        return {entry.path: entry.gate for entry in listing.entries}

    def documents(self) -> dict[str, Document]:
        listing = self.source.list()
        assert listing.problem is None
        return {
            entry.path: jira_document(SourceId("tickets"), entry, self.source.fetch(entry)) for entry in listing.entries
        }

    def said(self) -> dict[str, list[str]]:
        return {path: [message.body for message in each.messages] for path, each in self.documents().items()}

    def a_day_later(self) -> None:
        self.clock += 90_000


def expected(server: JiraServer, *projects: str) -> dict[str, list[str]]:
    """What the documents of a site have to say, by its own state."""
    said = {}
    for issue in server.issues.values():
        project = issue["key"].partition("-")[0]
        if not projects or project in projects:
            opening = [issue["fields"]["summary"], _text(issue["fields"]["description"])]
            comments = [_text(each["body"]) for each in issue["comments"].values()]
            said[f"{project}/{issue['key']}"] = ["\n\n".join(each for each in opening if each), *comments]
    return said


def _text(document: Any) -> str:
    return str(document["content"][0]["content"][0]["text"]) if document else ""


def test_an_issue_is_its_description_and_its_comments_under_their_own_ids(jira: JiraServer, tmp_path: Path) -> None:
    issue = jira.open("PAY", "Refund fails", "It returns 400.", environment=adf("staging"))
    comment = jira.comment(issue, "It has to be 422.")
    found = Source(jira, tmp_path).documents()["PAY/PAY-1"]
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
    assert Source(jira, tmp_path).said() == expected(jira)


def test_only_the_projects_that_are_named_are_read(jira: JiraServer, tmp_path: Path) -> None:
    jira.open("PAY", "One")
    jira.open("OPS", "Two")
    assert Source(jira, tmp_path / "all").said() == expected(jira)
    assert Source(jira, tmp_path / "one", projects=("OPS",)).said() == expected(jira, "OPS")
    with pytest.raises(SourceUnavailableError, match="The value 'HR' does not exist for the field 'project'"):
        Source(jira, tmp_path / "none", projects=("HR",)).source.list()


def test_a_second_pass_asks_once_and_reads_what_changed(jira: JiraServer, tmp_path: Path) -> None:
    issues = [jira.open("PAY", f"T{number}") for number in range(9)]
    comment = jira.comment(issues[2], "first")
    jira.page_size = 2
    source = Source(jira, tmp_path)
    before = source.gates()
    jira.hours += 3
    source.gates()
    jira.requests.clear()
    assert source.gates() == before
    assert [request.json()["jql"] for request in jira.requests] == ['updated >= "-40m" order by created asc, key asc']
    jira.edit(issues[5], summary="Other")
    jira.edit_comment(issues[2], comment, "second")
    jira.comment(issues[7], "new")
    after = source.gates()
    assert {path for path in after if before[path] != after[path]} == {"PAY/PAY-3", "PAY/PAY-6", "PAY/PAY-8"}
    jira.delete_comment(issues[2], comment)
    assert source.said() == expected(jira)


def test_an_issue_that_moves_to_another_project_moves_with_its_comments(jira: JiraServer, tmp_path: Path) -> None:
    issue = jira.open("PAY", "T")
    jira.comment(issue, "C")
    source = Source(jira, tmp_path)
    assert list(source.gates()) == ["PAY/PAY-1"]
    jira.move(issue, "OPS")
    assert source.said() == {"OPS/OPS-1": ["T", "C"]}


def test_a_full_pass_finds_what_is_gone_and_asks_for_changed_issues_only(jira: JiraServer, tmp_path: Path) -> None:
    kept, lost, changed = (jira.open("PAY", summary) for summary in ("kept", "lost", "changed"))
    jira.comment(kept, "C")
    source = Source(jira, tmp_path)
    source.said()
    jira.delete(lost)
    jira.edit(changed, summary="anew")
    source.a_day_later()
    jira.requests.clear()
    assert source.said() == expected(jira)
    fetched = [request.json()["issueIdsOrKeys"] for request in jira.requests if request.path.endswith("bulkfetch")]
    assert fetched == [[str(changed)]]


def test_a_changed_issue_that_the_site_does_not_give_stays_as_it_was(jira: JiraServer, tmp_path: Path) -> None:
    issue = jira.open("PAY", "old")
    source = Source(jira, tmp_path)
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
    found = Source(jira, tmp_path, url=f"{jira.url}/ex/jira/11f5-ab/").documents()
    assert found["PAY/PAY-1"].url == f"{SITE}/browse/PAY-1"


def test_what_only_some_may_see_is_left_out(jira: JiraServer, tmp_path: Path) -> None:
    issue = jira.open("PAY", "Open")
    jira.comment(issue, "for all")
    jira.comment(issue, "for few", visibility={"type": "role", "value": "Administrators"})
    secret = jira.open("PAY", "Secret", security={"id": "1", "name": "Staff"})
    source = Source(jira, tmp_path)
    assert source.said() == {"PAY/PAY-1": ["Open", "for all"]}
    jira.edit(issue, security={"id": "1", "name": "Staff"})
    jira.edit(secret, security=None)
    assert source.said() == {"PAY/PAY-2": ["Secret"]}


def test_a_token_that_the_site_forgot_begins_the_pass_again(jira: JiraServer, tmp_path: Path) -> None:
    for number in range(6):
        jira.open("PAY", f"T{number}")
    jira.page_size = 2
    source = Source(jira, tmp_path)
    jira.before = lambda request: jira.faults.extend([Reply({}, 401)] if b"nextPageToken" in request.body else [])
    listing = source.source.list()
    assert len(listing.entries) == 2
    assert "renew ATLASSIAN_TOKEN" in (listing.problem or "")
    jira.before = lambda _: None
    jira.faults.clear()
    jira.forget_tokens()
    assert source.said() == expected(jira)


def test_a_pass_for_changes_that_was_interrupted_long_ago_begins_again(jira: JiraServer, tmp_path: Path) -> None:
    issues = [jira.open("PAY", f"T{number}") for number in range(6)]
    source = Source(jira, tmp_path)
    source.said()
    for issue in issues:
        jira.comment(issue, "new")
    jira.page_size = 2
    jira.before = lambda request: jira.faults.extend([Reply({}, 401)] if b"nextPageToken" in request.body else [])
    assert source.source.list().problem
    jira.before = lambda _: None
    jira.faults.clear()
    jira.hours += 48
    assert source.said() == expected(jira)


def test_a_refused_token_that_jira_takes_for_nobody_deletes_nothing(jira: JiraServer, tmp_path: Path) -> None:
    jira.open("PAY", "T")
    before = Source(jira, tmp_path).gates()
    source = Source(jira, tmp_path, token="revoked")
    source.a_day_later()
    listing = source.source.list()
    assert "the token is refused; renew ATLASSIAN_TOKEN" in (listing.problem or "")
    assert [entry.path for entry in listing.entries] == list(before)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply({"errorMessages": [f"no, {TOKEN}"]}, 401), "the token is refused; renew ATLASSIAN_TOKEN"),
        (Reply({}, 200, {"x-seraph-loginreason": "AUTHENTICATED_FAILED"}), "the token is refused"),
        (Reply({}, 403), "log in once with a browser"),
        (Reply(b"Not found", 404), "Data Center and Server have another API"),
        (Reply({"deploymentType": "Server"}), "not a site of Jira Cloud"),
        (Reply({"errorMessages": [f"Bad {TOKEN}"]}, 400), "status 400: Bad …"),
        (Reply(b"<html>log in</html>", headers={"content-type": "text/html"}), "no JSON in the answer"),
        (Reply([1]), "a JSON list; expected an object"),
        (Reply({}, 410), "NornWeave needs an update"),
        (Reply({}, 429, {"retry-after": "3600"}), "rate limit until"),
        (Reply(status=302, headers={"location": "https://id.atlassian.com/login"}), "on another host"),
    ],
)
def test_refusals_and_nonsense_are_said_with_what_to_do(
    jira: JiraServer, tmp_path: Path, reply: Reply, said: str
) -> None:
    jira.faults.append(reply)
    with pytest.raises(SourceUnavailableError, match=re.escape(said)) as caught:
        Source(jira, tmp_path).source.list()
    error: BaseException | None = caught.value
    while error is not None:
        assert TOKEN not in f"{error}{error!r}"
        error = error.__cause__


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ({"issues": None}, "no list 'issues'"),
        ({"issues": [{"id": "x"}]}, "another shape than expected"),
        ({"issues": [{"id": "1", "key": "../x", "fields": {}}]}, "another shape than expected"),
    ],
)
def test_a_search_that_answers_nonsense_is_unavailable(
    jira: JiraServer, tmp_path: Path, page: dict[str, Any], said: str
) -> None:
    jira.before = lambda request: jira.faults.extend([Reply(page)] if request.path.endswith("jql") else [])
    with pytest.raises(SourceUnavailableError, match=re.escape(said)):
        Source(jira, tmp_path).source.list()


def test_a_search_that_repeats_its_page_ends(jira: JiraServer, tmp_path: Path) -> None:
    tokens = iter(range(100))
    issue = {"id": "1", "key": "PAY-1", "fields": {"summary": "T"}}

    def repeat(request: Any) -> None:
        if request.path.endswith("jql"):
            jira.faults.append(Reply({"issues": [issue], "isLast": False, "nextPageToken": str(next(tokens))}))

    jira.before = repeat
    listing = Source(jira, tmp_path).source.list()
    assert "the same page twice" in (listing.problem or "")


def test_what_is_nested_too_deep_is_left_out_and_the_rest_is_read(jira: JiraServer, tmp_path: Path) -> None:
    deep: dict[str, Any] = adf("x")
    for _ in range(150):
        deep = {"type": "doc", "content": [deep]}
    issue = jira.open("PAY", "T")
    jira.comment(issue, "sound")
    jira.edit(issue, description=deep)
    assert Source(jira, tmp_path).said() == {"PAY/PAY-1": ["T", "sound"]}


@pytest.mark.parametrize(
    "options",
    [
        {"token": None},
        {"token": "two words"},
        {"projects": ('PAY" or project = "HR',)},
        {"projects": ("1",)},
        {"url": "http://jira.example.org"},
        {"url": "jira.example.org"},
    ],
)
def test_wrong_settings_are_refused_before_anything_is_sent(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        JiraFeed(**{"url": "https://team.atlassian.net", "user": USER, "token": TOKEN, **options})
    assert TOKEN not in str(caught.value)


def test_a_large_site_is_read_in_pages_and_its_second_pass_is_small(tmp_path: Path) -> None:
    server = large(400, page_size=4)
    with serving(server):
        source = Source(server, tmp_path)
        assert len(source.gates()) == 400
        first = len(server.requests)
        server.requests.clear()
        server.hours += 24
        source.gates()
        assert len(server.requests) <= 0.02 * first


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_between_and_within_passes_nothing_is_lost_or_doubled(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    choose = random.Random(seed)
    jira = JiraServer(page_size=choose.choice([1, 2, 3, 100]), embedded=choose.choice([0, 1, 20]))
    with serving(jira):
        source = Source(jira, tmp_path_factory.mktemp("mirror"))
        for _ in range(choose.randint(1, 4)):
            for _ in range(choose.randint(1, 6)):
                _change(jira, choose, kinds=9)
            _interrupt(source, jira, choose)
        source.a_day_later()
        source.source.list()  # ends a pass that was interrupted
        source.a_day_later()
        assert source.said() == expected(jira)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_not_deleted_is_seen_by_the_next_pass(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    choose = random.Random(seed)
    jira = JiraServer(page_size=choose.choice([1, 2, 3, 100]), embedded=choose.choice([0, 1, 20]))
    with serving(jira):
        source = Source(jira, tmp_path_factory.mktemp("mirror"))
        for _ in range(3):
            for _ in range(choose.randint(0, 6)):
                _change(jira, choose, kinds=7)
            assert source.said() == expected(jira)


def _change(jira: JiraServer, choose: random.Random, *, kinds: int) -> None:
    issues = list(jira.issues)
    kind = choose.randrange(kinds)
    if kind <= 1 or not issues:
        jira.open(choose.choice(["PAY", "OPS"]), f"T{jira.hours}", choose.choice(["", "body"]))
        return
    issue = choose.choice(issues)
    comments = list(jira.issues[issue]["comments"])
    if kind == 2:
        jira.comment(issue, f"C{jira.hours}")
    elif kind == 3 and comments:
        jira.edit_comment(issue, choose.choice(comments), f"E{jira.hours}")
    elif kind == 4 and comments:
        jira.delete_comment(issue, choose.choice(comments))
    elif kind == 5:
        jira.edit(issue, summary=f"S{jira.hours}")
    elif kind == 6:
        jira.move(issue, choose.choice(["PAY", "OPS"]))
    elif kind == 7:
        jira.delete(issue)
    elif kind == 8:
        jira.forget_tokens()


def _interrupt(source: Source, jira: JiraServer, choose: random.Random) -> None:
    """List with a server that fails for good after some requests, while the site changes."""
    list_interrupted(
        source.source,
        jira,
        choose,
        within=10,
        meanwhile=lambda: choose.random() < 0.3 and _change(jira, choose, kinds=9),
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_comes_back_the_source_is_unavailable_or_its_documents_are(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    choose = random.Random(seed)
    jira = JiraServer(page_size=1, embedded=1)
    for issue in (jira.open("PAY", "T", "body"), jira.open("OPS", "U")):
        jira.comment(issue, "C")
        jira.comment(issue, "D")
    sound = jira.handle
    jira.handle = lambda request: corrupted(sound(request), choose) if choose.random() < 0.4 else sound(request)  # type: ignore[method-assign]
    with serving(jira):
        source = Source(jira, tmp_path_factory.mktemp("mirror"), limits=Limits(attempts=1, backoff_s=0, max_wait_s=0))
        for _ in range(2):
            try:
                listing = source.source.list()
            except SourceUnavailableError:
                continue
            for entry in listing.entries:
                try:
                    jira_document(SourceId("tickets"), entry, source.source.fetch(entry))
                except DocumentError:
                    continue
