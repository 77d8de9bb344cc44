from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import HANGS_S, SOON_S

from nornweave.errors import (
    ConfigError,
    DocumentError,
    DocumentSkipped,
    SourceUnavailableError,
    TransientDocumentError,
)
from nornweave.sources.github import GithubDumpSource
from nornweave.sources.github_api import GithubApiSource
from nornweave.types import Document, Domain, Entry, SourceId

GOLDEN = Path(__file__).parents[1] / "golden" / "conversations" / "github"
TOKEN = "ghp_secret123"


def dump(root: Path = GOLDEN) -> GithubDumpSource:
    return GithubDumpSource(SourceId("issues"), root)


def document(path: str, root: Path = GOLDEN) -> Document:
    source = dump(root)
    entry = next(entry for entry in source.list().entries if entry.path == path)
    return source.parse(entry, source.fetch(entry))


def test_an_issue_is_its_body_and_its_comments_under_their_own_ids() -> None:
    found = document("payments-12.json")
    assert [(message.id, message.speaker, message.thread_id, message.reactions) for message in found.messages] == [
        ("2801001", "alice", "12", 4),
        ("99001", "bob", "12", 0),
        ("99003", "ghost", "12", 1),
    ]
    assert found.messages[0].body.startswith("handle_payment_error returns 400 instead of 422\n\nSteps:\n1. Send")
    assert (found.title, found.url) == (
        "#12 handle_payment_error returns 400 instead of 422",
        "https://github.com/acme/payments/issues/12",
    )
    assert found.metadata["tags"] == ("bug", "payments")
    assert (found.metadata["state"], found.metadata["channel"]) == ("closed", "acme/payments")
    assert found.domain is Domain.CONVERSATIONS


def test_a_file_of_several_issues_is_one_document_of_threads() -> None:
    found = document("issues.json")
    assert [(message.id, message.thread_id) for message in found.messages] == [
        ("2801013", "13"),
        ("2801247", "247"),
        ("77001", "247"),
    ]
    assert found.messages[2].body == "src/payments/handlers.py:42 This also changes refunds."


def test_comments_in_a_file_of_their_own_bring_the_issue_they_are_about() -> None:
    found = document("comments.json")
    assert [(message.id, message.thread_id, message.lead) for message in found.messages] == [
        ("99101", "13", ("dana: Refund limit should be configurable",)),
        ("99102", "13", ("dana: Refund limit should be configurable",)),
    ]


def test_comments_beside_their_issue_in_one_file_join_it(tmp_path: Path) -> None:
    issue = {"id": 1, "number": 7, "title": "T", "url": "https://api.github.com/repos/a/b/issues/7"}
    comment = {"id": 2, "body": "C", "issue_url": "https://api.github.com/repos/a/b/issues/7"}
    (tmp_path / "all.json").write_text(json.dumps({"comments": [comment], "issues": [issue]}))
    assert [(message.id, message.thread_id) for message in document("all.json", tmp_path).messages] == [
        ("1", "7"),
        ("2", "7"),
    ]
    (tmp_path / "all.json").write_text(json.dumps({"7": [comment], "8": [{"id": 3, "body": "D"}]}))
    assert [message.thread_id for message in document("all.json", tmp_path).messages] == ["7", "8"]


def test_the_shape_of_the_gh_command(tmp_path: Path) -> None:
    issue = {
        "number": 7,
        "title": "T",
        "body": "B",
        "author": {"login": "alice"},
        "url": "https://github.com/a/b/issues/7",
        "createdAt": "2026-01-16T14:22:00Z",
        "comments": [{"id": "IC_kw", "author": {"login": "bob"}, "body": "C", "createdAt": "2026-01-17T00:00:00Z"}],
        "labels": [{"name": "bug"}],
    }
    (tmp_path / "gh.jsonl").write_text(json.dumps(issue) + "\n")
    found = document("gh.jsonl", tmp_path)
    assert [(message.id, message.speaker) for message in found.messages] == [("7", "alice"), ("IC_kw", "bob")]
    assert (found.metadata["channel"], found.metadata["tags"]) == ("a/b", ("bug",))


def test_several_repositories_in_one_file_stay_apart(tmp_path: Path) -> None:
    issues = [
        {"id": n, "number": 1, "title": f"T{n}", "repository_url": f"https://api.github.com/repos/a/{name}"}
        for n, name in ((1, "x"), (2, "y"))
    ]
    (tmp_path / "all.json").write_text(json.dumps([issues]))
    found = document("all.json", tmp_path)
    assert [message.thread_id for message in found.messages] == ["a/x#1", "a/y#1"]
    assert found.metadata["channels"] == ("a/x", "a/y")


def test_a_comments_gate_follows_the_issues_beside_it(tmp_path: Path) -> None:
    root = Path(shutil.copytree(GOLDEN, tmp_path / "dump"))
    before = {entry.path: entry.gate for entry in dump(root).list().entries}
    issues = json.loads((root / "issues.json").read_text())
    (root / "issues.json").write_text(json.dumps([{**issues[0], "title": "Renamed"}]))
    after = {entry.path: entry.gate for entry in dump(root).list().entries}
    assert {path for path in after if after[path] != before[path]} == {"comments.json", "issues.json"}
    assert document("comments.json", root).messages[0].lead == ("dana: Renamed",)


@pytest.mark.parametrize("content", ["[]", '[{"name": "bug", "color": "red"}]', "7", "null", '{"comments": 3}'])
def test_json_without_issues_is_skipped(tmp_path: Path, content: str) -> None:
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(DocumentSkipped):
        document("labels.json", tmp_path)


def test_broken_json_names_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[\n{"id": 1,}]')
    with pytest.raises(DocumentError, match="line 2 column 10"):
        document("a.json", tmp_path)
    (tmp_path / "b.json").write_bytes(b'["\xff"]')
    with pytest.raises(DocumentError, match="not UTF-8"):
        document("b.json", tmp_path)
    with pytest.raises(SourceUnavailableError):
        dump(tmp_path / "missing").list()


NAMES = """id number title body user author login comments labels url html_url reactions issues created_at repository
nodes issue_url 12 path line"""
KEYS = NAMES.split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(content=JSON)
def test_whatever_a_dump_holds_only_document_errors_come_out(
    content: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("dump")
    (root / "a.json").write_text(json.dumps(content))
    with contextlib.suppress(DocumentError):
        document("a.json", root).text.encode("utf-8")


# --- the API, against a real server that speaks like GitHub ---------------------------------------------------------

Answer = tuple[int, dict[str, str], Any]


class Github:
    """A server whose answers are queued per path, the last one for good; ``asked`` is what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.answers: dict[str, list[Answer | Callable[[], Answer]]] = {}
        github = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                github.asked.append((self.path, self.headers.get("Authorization")))
                queue = github.answers.get(self.path, [(404, {}, {"message": "Not Found"})])
                answer = queue.pop(0) if len(queue) > 1 else queue[0]
                status, headers, content = answer() if callable(answer) else answer
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(raw)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def github() -> Iterator[Github]:
    server = Github()
    yield server
    server.close()


@pytest.fixture
def api(github: Github) -> Iterator[GithubApiSource]:
    source = GithubApiSource(
        SourceId("gh"), "acme/payments", api_url=github.url, token=TOKEN, max_wait_s=5, timeout_s=60, backoff_s=0.01
    )
    yield source
    source.close()


LISTING = "/repos/acme/payments/issues?state=all&sort=created&direction=asc&per_page=100"
ISSUE: dict[str, Any] = {
    "id": 501,
    "number": 12,
    "title": "400 instead of 422",
    "body": "See the docs.",
    "state": "open",
    "user": {"login": "alice"},
    "html_url": "https://github.com/acme/payments/issues/12",
    "labels": [{"name": "bug"}],
    "comments": 2,
    "created_at": "2026-01-15T10:00:00Z",
    "updated_at": "2026-01-16T10:00:00Z",
}


def comment(identifier: int) -> dict[str, Any]:
    moment = f"2026-01-16T10:{identifier % 60:02}:00Z"
    return {"id": identifier, "body": f"comment {identifier}", "user": {"login": "bob"}, "created_at": moment}


def test_listing_follows_the_pages_and_gates_change_with_updates(github: Github, api: GithubApiSource) -> None:
    second = f"{LISTING}&page=2"
    github.answers[LISTING] = [(200, {"Link": f'<{github.url}{second}>; rel="next"'}, [ISSUE])]
    github.answers[second] = [(200, {}, [{**ISSUE, "number": 13, "pull_request": {}}])]
    listing = api.list()
    assert [entry.path for entry in listing.entries] == ["issues/12", "issues/13"]
    assert str(listing.entries[0].updated_at) == "2026-01-16 10:00:00+00:00"
    assert {authorization for _, authorization in github.asked} == {f"Bearer {TOKEN}"}
    github.answers[LISTING] = [(200, {}, [{**ISSUE, "comments": 3}])]
    assert api.list().entries[0].gate != listing.entries[0].gate


def test_an_issue_comes_with_all_pages_of_its_comments(github: Github, api: GithubApiSource) -> None:
    first = "/repos/acme/payments/issues/12/comments?per_page=100"
    github.answers["/repos/acme/payments/issues/12"] = [(200, {}, ISSUE)]
    github.answers[first] = [(200, {"Link": f'<{github.url}{first}&page=2>; rel="next"'}, [comment(1), comment(2)])]
    github.answers[f"{first}&page=2"] = [(200, {}, [comment(3)])]
    entry = Entry(path="issues/12", gate="")
    raw = api.fetch(entry)
    found = api.parse(entry, raw)
    assert [message.id for message in found.messages] == ["501", "1", "2", "3"]
    assert found.messages[0].body == "400 instead of 422\n\nSee the docs."
    assert (found.title, found.path, found.metadata["channel"]) == (
        "#12 400 instead of 422",
        "issues/12",
        "acme/payments",
    )
    github.answers["/repos/acme/payments/issues/12"] = [(200, {}, {**ISSUE, "locked": True})]
    assert api.fetch(entry) == raw


def test_a_pull_request_comes_with_reviews_and_review_comments(github: Github, api: GithubApiSource) -> None:
    github.answers = {
        "/repos/acme/payments/issues/12": [(200, {}, {**ISSUE, "pull_request": {"url": "x"}})],
        "/repos/acme/payments/issues/12/comments?per_page=100": [(200, {}, [comment(9)])],
        "/repos/acme/payments/pulls/12/comments?per_page=100": [(200, {}, [{**comment(5), "path": "a.py", "line": 3}])],
        "/repos/acme/payments/pulls/12/reviews?per_page=100": [
            (200, {}, [{"id": 7, "body": "Looks good", "user": None, "submitted_at": "2026-01-16T10:07:00Z"}])
        ],
    }
    entry = Entry(path="issues/12", gate="")
    found = api.parse(entry, api.fetch(entry))
    assert [(message.id, message.body) for message in found.messages[1:]] == [
        ("5", "a.py:3 comment 5"),
        ("7", "Looks good"),
        ("9", "comment 9"),
    ]


@pytest.mark.parametrize(
    "limit",
    [
        (429, {"Retry-After": "1"}, {}),
        (403, {"Retry-After": "1"}, {"message": "You have exceeded a secondary rate limit"}),
        lambda: (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()))}, {}),
    ],
)
def test_a_rate_limit_that_ends_soon_is_waited_for(github: Github, api: GithubApiSource, limit: Any) -> None:
    github.answers[LISTING] = [limit, (200, {}, [ISSUE])]
    assert len(api.list().entries) == 1
    assert len(github.asked) == 2


def test_a_rate_limit_that_ends_late_is_told_with_its_end(github: Github, api: GithubApiSource) -> None:
    # 1893456000 is 2030-01-01; a second is added because the server's clock decides.
    github.answers[LISTING] = [(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1893456000"}, {})]
    with pytest.raises(SourceUnavailableError, match=r"rate limit until 20(29-12-31|30-01-01)T"):
        api.list()
    assert len(github.asked) == 1
    github.answers["/repos/acme/payments/issues/12"] = [(429, {}, {})]
    with pytest.raises(TransientDocumentError, match="rate limit until"):
        api.fetch(Entry(path="issues/12", gate=""))


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "the token is refused"), (403, "not allowed"), (404, "not found"), (410, "turned off")]
)
def test_refusals_say_what_to_do_and_never_the_token(
    github: Github, api: GithubApiSource, status: int, advice: str
) -> None:
    github.answers[LISTING] = [(status, {}, {"message": f"no, {TOKEN}"})]
    with pytest.raises(SourceUnavailableError, match=advice) as caught:
        api.list()
    assert len(github.asked) == 1
    error: BaseException | None = caught.value
    while error is not None:
        assert TOKEN not in f"{error}{error!r}"
        error = error.__cause__


def test_server_errors_are_tried_again_and_then_told(github: Github, api: GithubApiSource) -> None:
    github.answers[LISTING] = [(502, {}, b"<html>"), (503, {}, {}), (500, {}, {}), (200, {}, [ISSUE])]
    assert len(api.list().entries) == 1
    github.asked.clear()
    github.answers[LISTING] = [(503, {}, {})]
    with pytest.raises(SourceUnavailableError, match="status 503, 4 times"):
        api.list()
    assert len(github.asked) == 4


def test_a_server_that_hangs_or_is_gone_ends_in_time(github: Github) -> None:
    release = threading.Event()

    def hang() -> Answer:
        release.wait(HANGS_S)
        return 200, {}, []

    github.answers[LISTING] = [hang]
    hanging = GithubApiSource(
        SourceId("gh"), "acme/payments", api_url=github.url, token=TOKEN, timeout_s=0.3, backoff_s=0.01
    )
    began = time.monotonic()
    try:
        with pytest.raises(SourceUnavailableError, match="no answer"):
            hanging.list()
    finally:
        release.set()
        hanging.close()
    assert time.monotonic() - began < SOON_S
    gone = GithubApiSource(SourceId("gh"), "a/b", api_url="http://127.0.0.1:9", backoff_s=0.01, timeout_s=0.5)
    with pytest.raises(SourceUnavailableError, match="no answer"):
        gone.list()
    gone.close()


@pytest.mark.parametrize(
    "answer",
    [
        (200, {}, b"<html>"),
        (200, {}, {"message": "no list"}),
        (200, {}, b"[" * 100_000),
        (200, {"Link": '<http://example.invalid/next>; rel="next"'}, []),
        (200, {"Link": '<http://[bad/next>; rel="next"'}, []),
        (302, {"Location": LISTING}, []),
    ],
)
def test_answers_that_are_not_githubs(github: Github, api: GithubApiSource, answer: Answer) -> None:
    github.answers[LISTING] = [answer]
    with pytest.raises(SourceUnavailableError, match="api_url"):
        api.list()


def test_without_a_token_none_is_sent(github: Github) -> None:
    github.answers[LISTING] = [(200, {}, [])]
    source = GithubApiSource(SourceId("gh"), "acme/payments", api_url=github.url)
    assert source.list().entries == ()
    source.close()
    assert github.asked == [(LISTING, None)]


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
        GithubApiSource(SourceId("gh"), **{"repository": "acme/payments", **options})
    assert options.get("token", "?") not in str(caught.value) or len(options.get("token", "")) < 2


def test_paths_that_are_not_of_this_source_are_refused(api: GithubApiSource, github: Github) -> None:
    for path in ("issues/../12", "12", "issues/", "issues/1?x", "issues/²"):
        with pytest.raises(DocumentError):
            api.fetch(Entry(path=path, gate=""))
    assert github.asked == []
