"""Who may read, as each feed says it: what documents state, who is in it, and what cannot be read."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from configurations import configured
from feed_cases import bodies, opened
from feed_source import FeedSource

from lab.apis.confluence import ConfluenceServer
from lab.apis.github import GithubServer
from lab.apis.gitlab import ROLES, GitlabServer
from lab.apis.jira import JiraServer
from lab.apis.server import Api, Request, serving
from nornweave.connect.confluence import confluence_document
from nornweave.connect.conversation import conversation_document
from nornweave.connect.gitlab import wiki_document
from nornweave.core.access import KEY, account, read_rule
from nornweave.core.errors import ConfigError, SourceUnavailableError
from nornweave.core.membership import ATLASSIAN_USER, MembershipTable, membership_file, write_table
from nornweave.core.types import Document

ANN, BOB = account("email", "ann@example.org"), account("email", "bob@example.org")


@pytest.fixture
def served() -> Iterator[Any]:
    running = []

    def start(api: Api) -> Any:
        running.append(serving(api))
        return running[-1].__enter__()

    yield start
    for each in running:
        each.__exit__(None, None, None)


def source(name: str, api: Any, folder: Path, **keys: Any) -> FeedSource:
    parse: Any = {"confluence": confluence_document, "gitlab-wiki": partial(wiki_document, domain="documentation")}
    parse = parse.get(name, conversation_document)
    return opened(name, api.url, folder, parse, _said, **{"rights": "source", **keys})


def _said(document: Document) -> Any:
    return bodies(document) or document.text


def stated(made: FeedSource) -> dict[str, list[list[str]]]:
    """Return the statements of each document."""
    entries = made.list().entries
    return {each.path: [sorted(one) for one in read_rule(each.metadata.get(KEY))] for each in entries}


def told(made: FeedSource) -> MembershipTable:
    table = made.source.refresh_members()
    assert table is not None
    return table


def members(made: FeedSource) -> dict[str, tuple[str, ...]]:
    return {name: grant.members for name, grant in told(made).grants.items()}


@pytest.mark.parametrize("type_, keys", [
    ("slack", {"path": "."}), ("github", {"path": "."}), ("files", {"path": "."}), ("git", {"path": "."}),
])  # fmt: skip
def test_what_is_read_from_files_says_nothing_of_who_may_read(tmp_path: Path, type_: str, keys: dict[str, str]) -> None:
    domain = "conversations" if type_ in ("slack", "github") else "documentation"
    with pytest.raises(ConfigError, match="rights"):
        configured(tmp_path, {"id": "x", "domain": domain, "type": type_, "rights": "source", **keys})


@pytest.fixture
def wiki(served: Any) -> ConfluenceServer:
    api: ConfluenceServer = served(ConfluenceServer(page_size=2))
    space = api.space("ENG")
    api.readers[space] = [("group", "g-eng"), ("user", "557058:bob"), ("role", "admins")]
    api.groups["g-eng"] = {"557058:ann"}
    return api


def test_a_page_is_for_the_readers_of_its_space_and_of_all_that_is_restricted_above_it(
    wiki: ConfluenceServer, tmp_path: Path
) -> None:
    (space,) = wiki.spaces
    top = wiki.write(space, "Top")
    middle = wiki.write(space, "Middle", parent=top)
    leaf, other = wiki.write(space, "Leaf", parent=middle), wiki.write(space, "Other")
    post = wiki.write(space, "News", blog=True)
    wiki.restricted[top] = [("user", "557058:ann")]
    wiki.restricted[leaf] = [("group", "g-eng")]
    made = source("confluence", wiki, tmp_path)
    eng = ["confluence:space:ENG"]
    assert stated(made) == {
        f"ENG/{top}": [eng, [f"confluence:page:{top}"]],
        f"ENG/{middle}": [eng, [f"confluence:page:{top}"]],
        f"ENG/{leaf}": [eng, [f"confluence:page:{leaf}"], [f"confluence:page:{top}"]],
        f"ENG/{other}": [eng],
        f"ENG/{post}": [eng],
    }
    assert members(made) == {
        "atlassian:group:g-eng": ("atlassian:user:557058:ann",),
        "atlassian:user:557058:ann": (ANN,),
        "atlassian:user:557058:bob": (BOB,),
        "confluence:space:ENG": ("atlassian:group:g-eng", "atlassian:user:557058:bob"),
        f"confluence:page:{top}": ("atlassian:user:557058:ann",),
        f"confluence:page:{leaf}": ("atlassian:group:g-eng",),
    }
    before = made.gates()
    del wiki.restricted[top]
    wiki.move(leaf, other)
    after = made.gates()
    changed = {path for path in after if after[path] != before[path]}
    assert changed == {f"ENG/{top}", f"ENG/{middle}", f"ENG/{leaf}"}, "who may read is part of what changes"


def test_what_cannot_be_told_of_a_page_or_above_it_hides_it(wiki: ConfluenceServer, tmp_path: Path) -> None:
    (space,) = wiki.spaces
    wiki.folders |= {77: None, 78: None}
    inside, closed = wiki.write(space, "Inside", parent=77), wiki.write(space, "Closed", parent=78)
    wiki.restricted[78] = [("user", "557058:bob")]
    made = source("confluence", wiki, tmp_path)
    eng = ["confluence:space:ENG"]
    for _ in range(3):
        assert stated(made) == {f"ENG/{inside}": [eng], f"ENG/{closed}": [eng, ["confluence:page:78"]]}
    wiki.refused.add("/wiki/rest/api/content/77/restriction/byOperation/read")
    assert stated(made)[f"ENG/{inside}"] == [eng, ["confluence:page:77"]]
    assert "confluence:page:77" not in members(made), "nobody is in it"
    wiki.refused.add("/wiki/rest/api/content/search")
    wiki.write(space, "Later")
    listing = made.list()
    assert listing.problem and "403" in listing.problem
    later = next(each for each in listing.entries if each.path not in (f"ENG/{inside}", f"ENG/{closed}"))
    assert read_rule(later.metadata[KEY]) == (frozenset(),), "nobody, for nothing was said of it"


def test_a_refresh_makes_what_is_said_of_pages_no_newer_and_names_what_it_may_not_read(
    wiki: ConfluenceServer, tmp_path: Path
) -> None:
    (space,) = wiki.spaces
    wiki.write(space, "Top")
    made = source("confluence", wiki, tmp_path)
    made.list()
    read_at = told(made).grants["confluence:space:ENG"].verified_at
    made.a_day_later()
    grants = told(made).grants
    assert grants["confluence:space:ENG"].verified_at == read_at < grants["atlassian:group:g-eng"].verified_at
    made.list()
    assert told(made).grants["confluence:space:ENG"].verified_at > read_at
    wiki.refused |= {f"/wiki/api/v2/spaces/{space}/permissions", "/wiki/rest/api/group/g-eng/membersByGroupId"}
    table = told(made)
    assert table.problems == ("confluence:space:ENG: status 403: its permissions cannot be read",)
    assert "confluence:space:ENG" in table.grants, "until the bound"
    wiki.refused = {"/wiki/rest/api/group/g-eng/membersByGroupId"}
    assert "atlassian:group:g-eng: status 403" in told(made).problems[0]
    wiki.refused = set()
    ann, bob = f"{ATLASSIAN_USER}557058:ann", f"{ATLASSIAN_USER}557058:bob"
    assert {ann, bob} <= told(made).grants.keys()
    wiki.shows_addresses = False
    wiki.groups["g-eng"].clear()
    table = told(made)
    assert "no address of anybody" in table.problems[0]
    assert (ann in table.grants, table.grants[bob].members) == (False, (BOB,)), "until the bound, where they are named"


@pytest.fixture
def tickets(served: Any) -> JiraServer:
    api: JiraServer = served(JiraServer(page_size=2))
    api.people = {"557058:ann": True, "557058:bob": True, "557058:eve": False}
    api.groups = {"j-eng": {"557058:ann", "557058:eve"}}
    api.holders = {"PAY": [("projectRole", "7"), ("user", "557058:eve")], "OPS": [("anyone", "")]}
    api.roles = {"PAY": {7: [("user", "557058:bob"), ("group", "j-eng")]}, "OPS": {}}
    api.levels = {21: [("user", "557058:bob"), ("reporter", "")]}
    return api


def test_an_issue_is_for_who_may_browse_its_project_and_is_in_its_level(tickets: JiraServer, tmp_path: Path) -> None:
    tickets.open("PAY", "Open")
    secret = tickets.open("PAY", "Secret", security={"id": "21", "name": "Board"})
    tickets.open("OPS", "Public")
    plain = source("jira", tickets, tmp_path, rights=None)
    assert plain.paths() == ["OPS/OPS-1", "PAY/PAY-1"], "without rights nothing that only some may see"
    made = source("jira", tickets, tmp_path)
    assert stated(made) == {
        "OPS/OPS-1": [["jira:project:OPS"]],
        "PAY/PAY-1": [["jira:project:PAY"]],
        "PAY/PAY-2": [["jira:project:PAY"], ["jira:level:PAY:21"]],
    }
    table = told(made)
    assert {name: grant.members for name, grant in table.grants.items()} == {
        "jira:project:OPS": ("*",),
        "jira:project:PAY": ("atlassian:group:j-eng", "atlassian:user:557058:bob"),
        "jira:level:OPS:21": ("atlassian:user:557058:bob",),
        "jira:level:PAY:21": ("atlassian:user:557058:bob",),
        "atlassian:group:j-eng": ("atlassian:user:557058:ann",),
        "atlassian:user:557058:ann": (ANN,),
        "atlassian:user:557058:bob": (BOB,),
    }, "whose account is closed is in nothing, also where they are named"
    assert [each.partition(":reporter")[0] for each in table.problems] == ["jira:level:OPS:21", "jira:level:PAY:21"]
    made.a_day_later()
    later = told(made).grants
    assert later["jira:project:PAY"].verified_at < later["jira:level:PAY:21"].verified_at, "issues were not read since"
    tickets.edit(secret, security=None)
    assert stated(made)["PAY/PAY-2"] == [["jira:project:PAY"]]
    tickets.edit(secret, security={"id": "21", "name": "Board"})
    assert plain.paths() == ["OPS/OPS-1", "PAY/PAY-1"], "what was read with rights is not shown without"


def test_what_jira_does_not_tell_is_named(tickets: JiraServer, tmp_path: Path) -> None:
    tickets.open("PAY", "Open")
    tickets.levels[21] = []
    made = source("jira", tickets, tmp_path)
    made.list()
    assert told(made).problems == ()
    tickets.products = {"jira-software": ["j-eng"], "jira-other": ["j-none"]}
    tickets.holders["PAY"] = [("applicationRole", "jira-software")]
    assert members(made)["jira:project:PAY"] == ("atlassian:group:j-eng",)
    tickets.holders["PAY"] = [("applicationRole", "")]
    assert members(made)["jira:project:PAY"] == ("atlassian:group:j-eng", "atlassian:group:j-none")
    for refused, problem in (
        ("/rest/api/3/project/PAY/permissionscheme", "jira:project:PAY: its permission scheme cannot be read"),
        ("/rest/api/3/issuesecurityschemes/level/member", "jira:level:PAY:21: status 403"),
        ("/rest/api/3/group/member", "atlassian:group:"),
        ("/rest/api/3/applicationrole", "jira:project:PAY:applicationRole"),
    ):
        tickets.refused = {refused}
        assert told(made).problems[0].startswith(problem), refused


def test_a_repository_is_for_its_collaborators_and_a_public_one_for_everybody(served: Any, tmp_path: Path) -> None:
    forge: GithubServer = served(GithubServer(page_size=1))
    forge.open("Issue")
    made = source("github", forge, tmp_path)
    at = forge.url.removeprefix("http://")
    principal = f"github:repo:acme/payments@{at}"
    assert stated(made) == {"issues/1": [[principal]]}
    forge.direct, forge.teams, forge.organisation = {"Ann"}, {"core": {"bob"}}, {"cid"}
    assert members(made) == {principal: (f"github:user:ann@{at}", f"github:user:bob@{at}")}
    forge.base_permission = "read"
    assert len(members(made)[principal]) == 3
    forge.base_permission, forge.visibility = "none", "internal"
    assert len(members(made)[principal]) == 3
    forge.may_list_people = False
    (problem,) = told(made).problems
    assert problem.startswith(f"{principal}: status 403: who may read is told to those who may write")
    assert len(members(made)[principal]) == 3, "until the bound"
    forge.visibility = "public"
    assert members(made) == {principal: ("*",)}


@pytest.fixture
def forge(served: Any) -> GitlabServer:
    api: GitlabServer = served(GitlabServer(page_size=2))
    api.direct = {"Ann": ROLES["developer"], "gus": ROLES["guest"], "eve": ROLES["developer"], "min": 5}
    api.inherited = {"gus": ROLES["guest"], "pat": ROLES["planner"], "rob": ROLES["reporter"]}
    api.blocked = {"eve"}
    api.emails = {"Ann": "Ann@example.org"}
    return api


def test_who_reads_a_private_project_depends_on_the_role_also_of_a_group_above(
    forge: GitlabServer, tmp_path: Path
) -> None:
    forge.open("Open")
    forge.open("Closed", user="gus", confidential=True)
    forge.edit(2, assignees=[{"username": "Una"}])
    forge.open("Merge", merge=True)
    forge.write("home", "Welcome.")
    made, wiki = source("gitlab", forge, tmp_path / "a"), source("gitlab-wiki", forge, tmp_path / "b")
    at = forge.url.removeprefix("http://")

    def of(kind: str, name: str = "acme/tools/payments") -> str:
        return f"gitlab:{kind}:{name}@{at}"

    assert stated(made) == {
        "issues/1": [[of("issues")]],
        "issues/2": [[of("issues")], sorted([of("confidential"), of("user", "gus"), of("user", "una")])],
        "merge_requests/1": [[of("merges")]],
    }
    assert stated(wiki) == {"home.md": [[of("wiki")]]}
    everybody = tuple(of("user", name) for name in ("ann", "gus", "pat", "rob"))
    inside = members(made)
    assert inside == {
        of("issues"): everybody,
        of("confidential"): tuple(of("user", name) for name in ("ann", "pat", "rob")),
        of("merges"): tuple(of("user", name) for name in ("ann", "rob")),
        of("code"): tuple(of("user", name) for name in ("ann", "rob")),
        of("user", "ann"): (ANN,),
    }
    assert members(wiki)[of("wiki")] == everybody
    assert of("issues") not in members(wiki), "what is said of issues is as old as what was read of them"
    forge.edit(1, confidential=True)
    assert stated(made)["issues/1"] == [[of("issues")], sorted([of("confidential"), of("user", "alice")])]
    plain = source("gitlab", forge, tmp_path / "c", rights=None)
    assert plain.paths() == ["merge_requests/1"], "without rights nothing that only some may see"


def test_a_public_project_is_for_everybody_as_far_as_its_features_are(forge: GitlabServer, tmp_path: Path) -> None:
    forge.open("Open")
    made, at = source("gitlab", forge, tmp_path), forge.url.removeprefix("http://")
    made.list()
    forge.visibility = "public"

    def everybody_reads() -> set[str]:
        return {name.split(":")[1] for name, inside in members(made).items() if inside == ("*",)}

    assert everybody_reads() == {"issues", "merges", "code"}
    forge.features["repository"] = "private"
    assert everybody_reads() == {"issues"}
    forge.features = dict.fromkeys(forge.features, "private")
    assert everybody_reads() == set()
    forge.features.clear()
    assert everybody_reads() == set(), "what is not told is not for everybody"
    forge.visibility = "internal"
    (problem,) = told(made).problems
    assert problem.startswith(f"gitlab:internal:acme/tools/payments@{at}: whoever has an account")
    assert len(members(made)[f"gitlab:issues:acme/tools/payments@{at}"]) == 4


def test_members_that_gitlab_does_not_tell_of_count_until_the_bound_and_issues_as_they_were_read(
    forge: GitlabServer, tmp_path: Path
) -> None:
    forge.open("Open")
    made, at = source("gitlab", forge, tmp_path), forge.url.removeprefix("http://")
    made.list()
    before = told(made).grants
    made.a_day_later()
    issues, code = f"gitlab:issues:acme/tools/payments@{at}", f"gitlab:code:acme/tools/payments@{at}"
    after = told(made).grants
    assert after[issues].verified_at == before[issues].verified_at < after[code].verified_at
    forge.refused.add("members/all")
    table = told(made)
    assert {each.partition(": ")[2] for each in table.problems} == {"status 403: its members are not told"}
    assert table.grants[issues] == after[issues]
    forge.open("Later")
    forge.hours += 1
    made.list()
    forge.refused.clear()
    assert told(made).grants[issues].verified_at > after[issues].verified_at


def test_who_was_asked_later_has_the_last_word(served: Any, tmp_path: Path) -> None:
    forge: GithubServer = served(GithubServer())
    forge.open("Issue")
    slow, quick = source("github", forge, tmp_path), source("github", forge, tmp_path)
    slow.list()
    quick.clock = slow.clock
    principal = f"github:repo:acme/payments@{forge.url.removeprefix('http://')}"
    answered = []

    def overtaken(request: Request) -> None:
        if request.path.endswith("/collaborators") and not answered:
            answered.append(sorted(forge.direct))
            later, forge.direct = forge.direct, set()
            quick.clock += 1
            slow.clock += 2
            stored = MembershipTable(origin=table.origin, tried_at=quick.clock, grants={}).read_again([], quick.clock)
            write_table(membership_file(tmp_path, "source"), stored)
            forge.direct = later

    table, forge.direct = told(slow), {"ann"}
    forge.before = overtaken
    assert principal not in members(slow), "what was read before is not written over it"
    assert answered == [["ann"]]
    assert members(slow)[principal], "the next one is"


def test_before_the_first_sync_it_is_said_that_nothing_is_known(served: Any, tmp_path: Path) -> None:
    made = source("github", served(GithubServer()), tmp_path)
    with pytest.raises(SourceUnavailableError, match="sync"):
        made.source.refresh_members()
    assert made.list().problem is None
    assert told(made).problems == ()


def test_a_role_in_a_level_is_that_of_the_issues_project(tickets: JiraServer, tmp_path: Path) -> None:
    tickets.levels = {21: [("projectRole", "7")]}
    tickets.roles = {"PAY": {7: [("user", "557058:bob")]}, "OPS": {7: [("user", "557058:ann")]}}
    for project in ("PAY", "OPS"):
        tickets.open(project, "Secret", security={"id": "21", "name": "Board"})
    made = source("jira", tickets, tmp_path)
    assert [statements[1] for _, statements in sorted(stated(made).items())] == [
        ["jira:level:OPS:21"], ["jira:level:PAY:21"]
    ]  # fmt: skip
    inside = members(made)
    assert inside["jira:level:OPS:21"] == ("atlassian:user:557058:ann",)
    assert inside["jira:level:PAY:21"] == ("atlassian:user:557058:bob",)
