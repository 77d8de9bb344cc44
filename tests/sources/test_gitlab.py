from pathlib import Path

from feed_cases import bodies, gitlab_said, gitlab_source, wiki_source
from feed_source import served

from lab.apis.gitlab import PROJECT, GitlabServer
from lab.apis.server import Reply

gitlab = served(GitlabServer)


def test_issues_and_merge_requests_come_with_what_people_said(gitlab: GitlabServer, tmp_path: Path) -> None:
    issue, merge = gitlab.open("400 instead of 422", "See the docs."), gitlab.open("Mend it", merge=True)
    gitlab.comment(issue, "closed", system=True)
    gitlab.comment(issue, "Not for customers.", internal=True)
    gitlab.comment(issue, "Not for them either.", confidential=True)
    gitlab.comment(issue, "Agreed.")
    position = {"new_path": "src/pay.py", "new_line": 12, "old_path": "src/pay.py", "old_line": None}
    gitlab.comment(merge, "This also changes refunds.", merge=True, position=position)
    gitlab.edit(merge, merge=True, state="merged")
    found = gitlab_source(gitlab, tmp_path).documents()
    assert {path: bodies(each) for path, each in found.items()} == {
        "issues/1": ["400 instead of 422\n\nSee the docs.", "Agreed."],
        "merge_requests/1": ["Mend it", "src/pay.py:12 This also changes refunds."],
    }
    first, second = found["issues/1"], found["merge_requests/1"]
    assert (first.title, first.url) == ("#1 400 instead of 422", f"https://gitlab.com/{PROJECT}/-/issues/1")
    assert (second.title, second.metadata["state"]) == ("!1 Mend it", "merged")
    assert (first.format, first.metadata["state"], first.metadata["tags"]) == ("gitlab", "open", ("bug",))
    assert first.metadata["thread_permalink"] == f"https://gitlab.com/{PROJECT}/-/issues/1#note_{{id}}"
    assert [(message.speaker, message.channel) for message in first.messages] == [("alice", PROJECT), ("bob", PROJECT)]


def test_comments_that_leave_the_time_of_their_thread_are_seen(gitlab: GitlabServer, tmp_path: Path) -> None:
    issue = gitlab.open("T")
    source = gitlab_source(gitlab, tmp_path)
    assert source.said() == {"issues/1": ["T"]}
    first = gitlab.comment(issue, "A minute after.", touches=False)
    assert source.said() == {"issues/1": ["T", "A minute after."]}
    gitlab.edit(issue, title="U")
    assert source.said() == {"issues/1": ["U", "A minute after."]}
    gitlab.edit_comment(first, "Edited in that minute.", touches=False)
    assert source.said() == {"issues/1": ["U", "Edited in that minute."]}
    gitlab.hours += 24
    source.said()
    gitlab.delete_comment(first)
    assert source.said() == {"issues/1": ["U"]}


def test_confidential_issues_are_not_read_and_go_when_they_become_so(gitlab: GitlabServer, tmp_path: Path) -> None:
    open_one = gitlab.open("Open")
    gitlab.open("Closed", confidential=True)
    source = gitlab_source(gitlab, tmp_path)
    assert source.paths() == ["issues/1"]
    gitlab.edit(open_one, confidential=True)
    assert source.paths() == []
    gitlab.edit(open_one, confidential=False)
    assert source.paths() == ["issues/1"]


def test_what_is_turned_off_goes_and_the_rest_is_read(gitlab: GitlabServer, tmp_path: Path) -> None:
    gitlab.open("Issue")
    gitlab.open("Merge", merge=True)
    source = gitlab_source(gitlab, tmp_path)
    gitlab.features["merge_requests"] = "disabled"
    assert source.paths() == ["issues/1"]
    gitlab.features["merge_requests"] = "enabled"
    assert source.paths() == ["issues/1", "merge_requests/1"]
    gitlab.features["merge_requests"] = "disabled"
    assert source.paths() == ["issues/1"]
    gitlab.refused.add("issues")
    listing = source.list()
    assert "403" in (listing.problem or "") and [entry.path for entry in listing.entries] == ["issues/1"]


def test_more_of_one_moment_than_a_page_holds_is_read_on(gitlab: GitlabServer, tmp_path: Path) -> None:
    gitlab.page_size = 2
    for number in range(7):
        gitlab.open(f"T{number}")
    for issue in list(gitlab.threads["issues"].values())[1:6]:
        issue["created_at"] = issue["updated_at"] = gitlab.threads["issues"][4]["created_at"]
    source = gitlab_source(gitlab, tmp_path)
    assert source.said() == gitlab_said(gitlab)
    for issue in gitlab.threads["issues"].values():
        issue |= {"title": "New", "updated_at": gitlab.threads["issues"][7]["updated_at"]}
    assert source.said() == gitlab_said(gitlab)


def test_what_goes_while_it_is_read_shifts_no_page(gitlab: GitlabServer, tmp_path: Path) -> None:
    gitlab.page_size = 2
    for number in range(6):
        gitlab.open(f"T{number}")
    gitlab.before = lambda request: (
        gitlab.delete(1) if "created_after" in request.target and 1 in gitlab.threads["issues"] else None
    )
    assert {f"issues/{number}" for number in range(2, 7)} <= set(gitlab_source(gitlab, tmp_path).paths())


def test_a_public_project_is_read_without_a_token_and_a_moved_one_by_its_number(
    gitlab: GitlabServer, tmp_path: Path
) -> None:
    gitlab.needs_token = False
    gitlab.open("T")
    source = gitlab_source(gitlab, tmp_path, token=None)
    assert source.paths() == ["issues/1"]
    assert not any("authorization" in request.headers for request in gitlab.requests)
    moved = Reply(status=301, headers={"location": f"{gitlab.url}/api/v4/projects/acme%2Ftools%2Fpayments?moved=1"})
    gitlab.faults.append(moved)
    gitlab.open("U")
    assert source.paths() == ["issues/1", "issues/2"]


def test_pages_of_the_wiki_are_read_as_their_format_says(gitlab: GitlabServer, tmp_path: Path) -> None:
    gitlab.write("home", "# Welcome\n\nTo the wiki.", title="Home")
    gitlab.write("ops/On call", "== Pager\n\nWho is called.", title="On call", kind="asciidoc")
    gitlab.write("empty", " ")
    source = wiki_source(gitlab, tmp_path)
    entries = {entry.path: entry for entry in source.list().entries}
    home, pager = source.document(entries["home.md"]), source.document(entries["ops/On call.adoc"])
    assert (home.title, home.format, home.url) == ("Home", "markdown", f"https://gitlab.com/{PROJECT}/-/wikis/home")
    assert (pager.format, pager.url) == ("asciidoc", f"https://gitlab.com/{PROJECT}/-/wikis/ops/On%20call")
    assert home.metadata["source_type"] == "gitlab"
    before = source.gates()
    gitlab.wiki["home"]["title"] = "Start"
    gitlab.wiki.pop("empty")
    assert source.gates().keys() == {"home.md", "ops/On call.adoc"}
    assert source.gates()["home.md"] != before["home.md"]
    gitlab.features["wiki"] = "disabled"
    assert source.paths() == []
