"""The feeds of the contract suite: a stand-in of each, what happens to it, and what its documents have to say then."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from feed_source import DAY, FeedSource, TolerantSource
from interruptions import FAULTS

from lab.apis import STAND_INS, confluence, feed, github, gitlab, jira, site, slack, stackexchange
from lab.apis.confluence import ConfluenceServer
from lab.apis.feed import FeedServer
from lab.apis.github import GithubServer
from lab.apis.gitlab import GitlabServer
from lab.apis.jira import JiraServer
from lab.apis.server import HANG_UP, Api, Reply
from lab.apis.site import SiteServer
from lab.apis.slack import SlackServer
from lab.apis.stackexchange import StackExchangeServer
from nornweave.connect.confluence import confluence_document
from nornweave.connect.conversation import conversation_document
from nornweave.connect.feed import feed_document
from nornweave.connect.gitlab import wiki_document
from nornweave.connect.mirror.api_client import Limits
from nornweave.connect.stackexchange.document import stackexchange_document
from nornweave.core.types import Document, Domain, digest
from nornweave.read.web_page import web_document

QUICK = Limits(backoff_s=0.0, max_wait_s=3.0)
PAGE_SIZES = (1, 2, 3, 100)
WRONG_PROJECTS = (
    {"project": "acme"},
    {"project": "acme/../x"},
    {"project": "acme/x?y"},
    {"url": "ftp://x"},
    {"url": "https://user:pw@x"},
    {"token": "two\nlines"},
)
OTHERS = ({"url": "http://api.example.org"}, {"url": "api.example.org"})


@dataclass(frozen=True, kw_only=True)
class FeedCase:
    """One feed.

    Attributes:
        start: returns a server; the choice decides how large its pages are.
        fill: gives it a document or two.
        source: reads it; further arguments are those of the feed.
        expected: what its documents have to say, by its own state.
        change: anything that can happen to it.
        change_seen_at_once: anything that the next pass sees, the full one or not.
        later: time passes between two passes.
        examples: sequences of changes, with passes interrupted and without.
        busy: changes between two passes, at most.
        faults: how it fails for good.
        within: requests until then, at most.
        changes_meanwhile: it changes while it is read.
        passing: failures that pass, those of one request in a row.
        wrong: keys of settings that are refused.
        large: returns a server with many documents.
        share: requests of a pass that finds nothing new, of those of the first one.
        settles: the second pass is not small yet.
        refuses_at: the end of the paths at which refusals are tried.
        edit: changes one of the documents of ``fill``.
        delete: deletes one of them; ``None`` where the source cannot say so.
        age: makes what is there so old that no list of what is new tells of it.
        late: deletions of what is old are seen by the next full pass.
    """

    start: Callable[[random.Random], Any]
    fill: Callable[[Any], object]
    source: Callable[..., FeedSource]
    expected: Callable[[Any], Mapping[str, Any]]
    change: Callable[[Any, random.Random], object]
    change_seen_at_once: Callable[[Any, random.Random], object]
    later: Callable[[Any, random.Random], object] = lambda *_: None
    examples: tuple[int, int]
    busy: int = 6
    faults: Sequence[Reply] = FAULTS
    within: int = 8
    changes_meanwhile: bool = False
    passing: Sequence[Sequence[Reply]] = ((HANG_UP, Reply({}, 503)), (Reply({}, 429, {"retry-after": "0"}),) * 2)
    wrong: Sequence[Mapping[str, Any]]
    large: Callable[[], tuple[Api, int]]
    share: float
    settles: bool = False
    refuses_at: str = ""
    edit: Callable[[Any], object]
    delete: Callable[[Any], object] | None
    age: Callable[[Any], object] = lambda _: None
    late: bool = False


def bodies(document: Document) -> list[str]:
    return [message.body for message in document.messages]


def opened(
    name: str,
    address: str,
    folder: Path,
    parse: Callable[..., Document],
    say: Callable[[Document], Any],
    *,
    of: type[FeedSource] = FeedSource,
    limits: Limits = QUICK,
    **keys: Any,
) -> FeedSource:
    """Open the stand-in of this name; ``keys`` are those of its settings."""
    settings = STAND_INS[name].settings(address, **keys)
    feed = STAND_INS[name].feed(settings, limits=limits)
    return of(feed, settings, folder, parse, say)


# GitHub


def github_source(server: GithubServer, folder: Path, **keys: Any) -> FeedSource:
    return opened("github", server.url, folder, conversation_document, bodies, **keys)


def github_said(server: GithubServer) -> dict[str, list[str]]:
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


def change_github(server: GithubServer, choose: random.Random, kinds: Sequence[int] = range(8)) -> None:
    numbers, comments = list(server.issues), list(server.comments)
    kind = choose.choice(kinds)
    if kind <= 1 or not numbers:
        server.open(f"T{server.hours}", choose.choice(["", "body"]), pull=choose.random() < 0.3)
    elif kind == 2:
        server.comment(choose.choice(numbers), f"C{server.hours}")
    elif kind == 3:
        pulls = [number for number in numbers if "pull_request" in server.issues[number]]
        if pulls:
            server.review(choose.choice(pulls), f"R{server.hours}")
            server.comment(choose.choice(pulls), f"L{server.hours}", review=True)
    elif kind == 4 and comments:
        server.edit_comment(choose.choice(comments), f"E{server.hours}")
    elif kind == 5 and comments:
        server.delete_comment(choose.choice(comments))
    elif kind == 6:
        server.edit(choose.choice(numbers), f"B{server.hours}")
    elif kind == 7:
        server.delete(choose.choice(numbers))


# GitLab


def gitlab_source(server: GitlabServer, folder: Path, **keys: Any) -> FeedSource:
    return opened("gitlab", server.url, folder, conversation_document, bodies, **keys)


def gitlab_said(server: GitlabServer) -> dict[str, list[str]]:
    """What the documents of a project have to say, by its own state."""
    said: dict[str, list[str]] = {}
    for (kind, number), notes in server.notes.items():
        thread = server.threads[kind][number]
        shown = [each for each in notes.values() if not (each["system"] or each["internal"])]
        opening = f"{thread['title']}\n\n{thread['description']}" if thread["description"] else thread["title"]
        if not thread.get("confidential"):
            said[f"{kind}/{number}"] = [opening, *(each["body"] for each in shown)]
    return said


def change_gitlab(server: GitlabServer, choose: random.Random) -> None:
    kind = choose.choice(["issues", "merge_requests"])
    merge, numbers = kind == "merge_requests", list(server.threads[kind])
    own = [each for (of, _), notes in server.notes.items() if of == kind for each in notes]
    step = choose.randrange(9)
    if step <= 1 or not numbers:
        server.open(f"T{server.hours}", choose.choice(["", "body"]), merge=merge, confidential=choose.random() < 0.2)
    elif step <= 3:
        keys = choose.choice([{}, {}, {"system": True}, {"internal": True}])
        server.comment(choose.choice(numbers), f"C{server.hours}", merge=merge, touches=choose.random() < 0.9, **keys)
    elif step == 4 and own:
        server.edit_comment(choose.choice(own), f"E{server.hours}")
    elif step == 5 and own:
        server.delete_comment(choose.choice(own))
    elif step == 6:
        server.edit(choose.choice(numbers), merge=merge, description=f"B{server.hours}")
    elif step == 7:
        server.delete(choose.choice(numbers), merge=merge)
    elif step == 8 and not merge:
        server.edit(choose.choice(numbers), confidential=choose.random() < 0.5)


def wiki_source(server: GitlabServer, folder: Path, **keys: Any) -> FeedSource:
    parse = partial(wiki_document, domain=Domain.DOCUMENTATION)
    return opened("gitlab-wiki", server.url, folder, parse, lambda document: document.text, **keys)


def wiki_said(server: GitlabServer) -> dict[str, str]:
    return {f"{slug}.md": page["content"] for slug, page in server.wiki.items()}


def change_wiki(server: GitlabServer, choose: random.Random) -> None:
    if server.wiki and choose.random() < 0.2:
        server.wiki.pop(choose.choice(list(server.wiki)))
    else:
        slug = choose.choice([*server.wiki, f"page-{server.hours}", f"folder/page-{server.hours}"])
        server.write(slug, f"Page of {server.hours}")


# Slack


def slack_source(server: SlackServer, folder: Path, **keys: Any) -> FeedSource:
    say = lambda document: [(each.id, each.speaker, each.body) for each in document.messages]  # noqa: E731
    return opened("slack", server.url, folder, conversation_document, say, of=TolerantSource, **keys)


def slack_said(server: SlackServer) -> dict[str, list[tuple[str, str, str]]]:
    """What the documents of a workspace have to say, by its own state."""
    said: dict[str, list[tuple[str, str, str]]] = {}
    for identifier, channel in server.channels.items():
        events = [each for each in server.messages[identifier].values() if channel["is_member"]]
        for event in sorted(events, key=lambda each: (each.get("thread_ts", each["ts"]), each["ts"])):
            root = event.get("thread_ts", event["ts"])
            if event.get("subtype") != "tombstone":
                name = server.users[event["user"]]["profile"]["display_name"]
                path = f"{channel['name']}/{datetime.fromtimestamp(int(root[:10]), UTC).date()}"
                said.setdefault(path, []).append((event["ts"], name, event["text"]))
    return said


def edit_slack(server: SlackServer) -> None:
    channel, messages = next(iter(server.messages.items()))
    server.edit(channel, next(iter(messages)), "Edited.")


def slack_server(choose: random.Random) -> SlackServer:
    server = SlackServer(page_size=choose.choice(PAGE_SIZES))
    server.add_channel("C01", "general")
    return server


def change_slack(server: SlackServer, choose: random.Random, *, edits_replies: bool = True) -> None:
    channel = choose.choice(list(server.channels))
    said = server.messages[channel]
    roots = [ts for ts, each in said.items() if each.get("thread_ts", ts) == ts and each.get("subtype") is None]
    own = roots if not edits_replies else [ts for ts, each in said.items() if each.get("subtype") is None]
    everything = [ts for ts, each in said.items() if each.get("subtype") != "tombstone"]
    server.now += choose.choice([0, 0, 3600, 40_000])
    user = choose.choice(["U01ALICE", "U02BOB"])
    match choose.randint(0, 9):
        case 0 | 1 | 2:
            server.say(channel, f"M{server.now}", user=user)
        case 3 | 4 if roots:
            server.say(channel, f"R{server.now}", user=user, thread=choose.choice(roots))
        case 5 if roots:
            server.say(channel, f"B{server.now}", thread=choose.choice(roots), subtype="thread_broadcast")
        case 6 if own:
            server.edit(channel, choose.choice(own), f"E{server.now}")
        case 7 if everything:
            server.delete(channel, choose.choice(everything))
        case 8 if len(server.channels) < 4:
            number = len(server.channels) + 1
            server.add_channel(f"C0{number}", f"channel-{number}")
        case 9:
            key, value = choose.choice([("name", f"name-{server.now}-{channel.lower()}"), ("is_member", True)])
            server.channels[channel][key] = value


def say_for_weeks(server: SlackServer) -> None:
    for number in range(200):  # two pages of the history, ten days apart
        server.now += 10 * DAY if number % 100 == 0 else 60
        server.say("C01", f"Later {number}")


# Stack Exchange


def stackexchange_source(server: StackExchangeServer, folder: Path, **keys: Any) -> FeedSource:
    parse = partial(stackexchange_document, domain=Domain.RESEARCH)
    keys = {"tags": ("python", "duckdb"), **keys}
    return opened("stackexchange", server.url, folder, parse, lambda document: document.text, **keys)


def stackexchange_said(server: StackExchangeServer, tags: Sequence[str] = ("python", "duckdb")) -> dict[str, str]:
    """What the documents of a site have to say, by its own state: accepted answers first, then by score."""
    texts = {}
    for number, question in server.questions.items():
        if set(tags) & set(question["tags"]):
            own = [each for _, each in sorted(server.answers.items()) if each["question_id"] == number]
            own.sort(key=lambda each: (not each["is_accepted"], -each["score"]))
            bodies = [each["body"][3:-4] for each in (question, *own)]
            texts[f"questions/{number}"] = "\n\n".join([question["title"], *bodies])
    return texts


def change_stackexchange(server: StackExchangeServer, choose: random.Random, *, deletes: bool = True) -> None:
    questions, answers = list(server.questions), list(server.answers)
    tags = choose.choice([["python"], ["duckdb"], ["python", "duckdb"], ["java"]])
    match choose.randint(0, 7):
        case 2 | 3 if questions:
            server.answer_to(choose.choice(questions), f"<p>A{server.now}</p>", score=choose.randint(0, 3))
        case 4 if questions:
            server.edit(choose.choice([*questions, *answers]), f"<p>E{server.now}</p>")
        case 5 if questions and deletes:
            server.delete(choose.choice([*questions, *answers]))
        case 6 if answers and deletes:
            accepted = choose.choice(answers)
            if "accepted_answer_id" not in server.questions[server.answers[accepted]["question_id"]]:
                server.accept(accepted)
        case _:
            server.ask(f"Q{server.now}", f"<p>B{server.now}</p>", tags=tags, at=choose.choice([0, 60]))


def stackexchange_large() -> tuple[Api, int]:
    server = stackexchange.large(300, page_size=10)
    server.now += DAY
    return server, 300


# Confluence


def confluence_source(server: ConfluenceServer, folder: Path, **keys: Any) -> FeedSource:
    return opened("confluence", f"{server.url}/wiki", folder, confluence_document, lambda each: each.text, **keys)


def confluence_said(server: ConfluenceServer, *keys: str) -> dict[str, str]:
    """What the documents of a site have to say, by its own state."""
    said: dict[str, str] = {}
    for identity, content in server.contents.items():
        space = server.spaces[int(content["spaceId"])]
        if not keys or space["key"] in keys:
            said[f"{space['key']}/{identity}"] = f"<h1>{content['title']}</h1>\n{content['storage']}"
    return said


def fill_confluence(server: ConfluenceServer) -> None:
    space = next(iter(server.spaces))
    server.write(space, "Below", parent=server.write(space, "T"))


def confluence_server(choose: random.Random) -> ConfluenceServer:
    server = ConfluenceServer(page_size=choose.choice(PAGE_SIZES))
    server.space("ENG")
    server.space("OPS")
    return server


def change_confluence(server: ConfluenceServer, choose: random.Random) -> None:
    pages, spaces = list(server.contents), list(server.spaces)
    kind = choose.randrange(9)
    if kind <= 2 or not pages:
        is_blog = choose.random() < 0.2
        space = choose.choice(spaces)
        above = [key for key, each in server.contents.items() if each["spaceId"] == str(space) and not is_blog]
        parent = choose.choice(above) if above and choose.random() < 0.6 else None
        server.write(space, f"T{server.hours}", f"<p>{server.hours}</p>", parent=parent, blog=is_blog)
    elif kind <= 4:
        server.edit(choose.choice(pages), f"<p>E{server.hours}</p>")
    elif kind == 5:
        server.rename(choose.choice(pages), f"R{server.hours}")
    elif kind == 6:
        server.trash(choose.choice(pages))
    elif kind == 7:
        server.move(choose.choice(pages), None, space=choose.choice(spaces))
    else:
        server.forget_cursors()


# Jira


def jira_source(server: JiraServer, folder: Path, **keys: Any) -> FeedSource:
    return opened("jira", server.url, folder, conversation_document, bodies, **keys)


def jira_said(server: JiraServer, *projects: str) -> dict[str, list[str]]:
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


def change_jira(server: JiraServer, choose: random.Random) -> None:
    issues = list(server.issues)
    kind = choose.randrange(9)
    if kind <= 1 or not issues:
        server.open(choose.choice(["PAY", "OPS"]), f"T{server.hours}", choose.choice(["", "body"]))
        return
    issue = choose.choice(issues)
    comments = list(server.issues[issue]["comments"])
    if kind == 2:
        server.comment(issue, f"C{server.hours}")
    elif kind == 3 and comments:
        server.edit_comment(issue, choose.choice(comments), f"E{server.hours}")
    elif kind == 4 and comments:
        server.delete_comment(issue, choose.choice(comments))
    elif kind == 5:
        server.edit(issue, summary=f"S{server.hours}")
    elif kind == 6:
        server.move(issue, choose.choice(["PAY", "OPS"]))
    elif kind == 7:
        server.delete(issue)
    elif kind == 8:
        server.forget_tokens()


# RSS and Atom


def feed_source(server: FeedServer, folder: Path, **keys: Any) -> FeedSource:
    parse = partial(feed_document, domain=Domain.RESEARCH)
    return opened("feed", server.url, folder, parse, lambda document: document.text, domain=Domain.RESEARCH, **keys)


def feed_said(server: FeedServer) -> dict[str, str]:
    return {
        f"entries/{digest(str(number))[:16]}": f"<h1>{entry.title}</h1>\n{entry.html}"
        for number, entry in server.entries.items()
    }


def change_feed(server: FeedServer, choose: random.Random) -> None:
    if server.entries and choose.random() < 0.5:
        server.edit(choose.choice(list(server.entries)), f"<p>E{server.hours}</p>")
    else:
        server.write(f"T{server.hours}", f"<p>{server.hours}</p>")


# Websites


class SiteSource(FeedSource):
    """Pages as they are stored, without their dates: that of a page stays where its content did."""

    def said(self) -> dict[str, Any]:
        raw = {entry.path: self.source.fetch(entry).decode() for entry in self._sound()}
        return {path: (text.partition('"updated_at"')[0], text.partition("\n")[2]) for path, text in raw.items()}


def site_source(server: SiteServer, folder: Path, **keys: Any) -> FeedSource:
    return opened("web", server.url, folder, partial(web_document, domain=Domain.RESEARCH), str, of=SiteSource, **keys)


def site_said(server: SiteServer) -> dict[str, Any]:
    """What a source that reads the site for the first time says."""
    with TemporaryDirectory() as folder:
        return site_source(server, Path(folder)).said()


def site_server(choose: random.Random) -> SiteServer:
    server = SiteServer(has_sitemap=choose.random() < 0.5, per_sitemap=choose.choice([2, 1_000]))
    server.put("/guide/")
    return server


def add_page(server: SiteServer, at: str = "/guide/", links: Sequence[str] = ()) -> None:
    path = server.put(f"/guide/p{server.hours}.html", links=links)
    server.change(at, links=(*server.pages[at].links, path))


def change_site(server: SiteServer, choose: random.Random) -> None:
    others = [path for path in server.pages if path != "/guide/"]
    kind = choose.randint(0, 5)
    if kind <= 1 or not others:
        add_page(server, choose.choice(["/guide/", *others]), choose.sample(others, min(len(others), 2)))
        return
    page, other = choose.choice(others), choose.choice(others)
    if kind == 2:
        server.change(page, text=f"Text {server.hours}")
    elif kind == 3:
        server.delete(page)
    elif kind == 4:
        server.change(page, head=f'<link rel="canonical" href="{other}">')
    else:
        server.change(page, status=choose.choice([200, 301]), headers={"location": other})


def change_site_as_told(server: SiteServer, choose: random.Random) -> None:
    others = [path for path in server.pages if path != "/guide/"]
    kind = choose.randint(0, 3) if others else 0
    if kind <= 1:
        add_page(server)
    elif kind == 2:
        server.change(choose.choice(others), text=f"Text {server.hours}")
    else:
        server.delete(choose.choice(others))


CASES: Mapping[str, FeedCase] = {
    "web": FeedCase(
        start=site_server,
        fill=add_page,
        source=site_source,
        expected=site_said,
        change=change_site,
        change_seen_at_once=change_site_as_told,
        examples=(10, 5),
        faults=(HANG_UP, Reply(b"", 500), Reply(b"", 429), Reply(b"", 403)),
        wrong=(),  # ``test_web`` names the key of each
        large=lambda: (site.large(300), 300),
        share=0.05,
        edit=lambda server: server.change(list(server.pages)[-1], text="Edited."),
        delete=lambda server: server.delete(list(server.pages)[-1]),
    ),
    "github": FeedCase(
        start=lambda choose: GithubServer(page_size=choose.choice(PAGE_SIZES)),
        fill=lambda server: server.comment(server.open("T", "B", pull=True), "C"),
        source=github_source,
        expected=github_said,
        change=change_github,
        change_seen_at_once=partial(change_github, kinds=(0, 1, 2, 3, 4, 6)),
        examples=(40, 40),
        wrong=(
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
        ),
        large=lambda: (github.large(300, page_size=10), 300),
        share=0.05,
        settles=True,
        edit=lambda server: server.edit(1, "Edited."),
        delete=lambda server: server.delete(1),
    ),
    "gitlab": FeedCase(
        start=lambda choose: GitlabServer(page_size=choose.choice(PAGE_SIZES)),
        fill=lambda server: server.comment(server.open("T", "B"), "C"),
        source=gitlab_source,
        expected=gitlab_said,
        change=change_gitlab,
        change_seen_at_once=change_gitlab,
        examples=(40, 40),
        changes_meanwhile=True,
        wrong=(*WRONG_PROJECTS, *OTHERS),
        large=lambda: (gitlab.large(300, page_size=10), 300),
        share=0.1,
        edit=lambda server: server.edit(1, description="Edited."),
        delete=lambda server: server.delete(1),
    ),
    "gitlab-wiki": FeedCase(
        start=lambda _: GitlabServer(),
        fill=lambda server: server.write(f"page-{server.hours}", "B"),
        source=wiki_source,
        expected=wiki_said,
        change=change_wiki,
        change_seen_at_once=change_wiki,
        examples=(20, 10),
        changes_meanwhile=True,
        wrong=(*WRONG_PROJECTS, *OTHERS),
        large=lambda: (gitlab.large_wiki(300), 300),
        share=1.0,
        edit=lambda server: server.write("topics/1", "Edited."),
        delete=lambda server: server.wiki.popitem(),
    ),
    "feed": FeedCase(
        start=lambda choose: FeedServer(is_atom=choose.random() < 0.5),
        fill=lambda server: server.write("T", "<p>B</p>"),
        source=feed_source,
        expected=feed_said,
        change=change_feed,
        change_seen_at_once=change_feed,
        examples=(10, 10),
        changes_meanwhile=True,
        wrong=(*OTHERS[1:], {"url": "ftp://x"}, {"url": "https://user:pw@x"}),
        large=lambda: (feed.large(300), 300),
        share=1.0,
        edit=lambda server: server.edit(1, "<p>Edited.</p>"),
        delete=None,
    ),
    "slack": FeedCase(
        start=slack_server,
        fill=lambda server: server.say("C01", "R", thread=server.say("C01", "Hello")),
        source=slack_source,
        expected=slack_said,
        change=change_slack,
        change_seen_at_once=partial(change_slack, edits_replies=False),
        examples=(20, 20),
        busy=8,
        faults=(
            HANG_UP,
            Reply({}, 500),
            Reply(b"<html>"),
            Reply({"ok": False, "error": "invalid_auth"}),
            Reply({"ok": True}),
        ),
        within=12,
        refuses_at="users.list",
        passing=(
            (
                Reply({"ok": False, "error": "ratelimited"}, 429, {"retry-after": "0"}),
                Reply({"ok": False, "error": "ratelimited"}, 200, {"retry-after": "0"}),
                Reply({"ok": False, "error": "internal_error"}),
            ),
            (HANG_UP, Reply({"ok": False, "error": "internal_error"})),
        ),
        wrong=({"api_url": "ftp://x"}, {"api_url": "http://slack.example.com"}, {"token": "a b"}),
        large=lambda: (slack.large(300), 300),
        share=0.05,
        edit=edit_slack,
        delete=lambda server: server.delete("C01", next(iter(server.messages["C01"]))),
        age=say_for_weeks,
        late=True,
    ),
    "stackexchange": FeedCase(
        start=lambda choose: StackExchangeServer(page_size=choose.choice(PAGE_SIZES)),
        fill=lambda server: server.answer_to(server.ask("Q", "<p>B</p>"), "<p>A</p>"),
        source=stackexchange_source,
        expected=stackexchange_said,
        change=change_stackexchange,
        change_seen_at_once=partial(change_stackexchange, deletes=False),
        later=lambda server, choose: setattr(server, "now", server.now + choose.choice([0, 5_000])),
        examples=(15, 15),
        faults=(HANG_UP, Reply({}, 500), Reply(b"<html>"), Reply({"items": None}), Reply({}, 404)),
        passing=(
            (
                Reply({"error_id": 503, "error_name": "temporarily_unavailable"}, 400),
                Reply(b"<html>bad gateway", 502),
                HANG_UP,
            ),
        ),
        wrong=({"tags": []}, {"tags": ["a;b"]}, {"tags": ["a b"]}, {"api_url": "ftp://x"}),
        large=stackexchange_large,
        share=0.06,
        edit=lambda server: server.edit(next(iter(server.questions)), "<p>Edited.</p>"),
        delete=lambda server: server.delete(next(iter(server.questions))),
        age=lambda server: setattr(server, "now", server.now + 10 * DAY),
    ),
    "confluence": FeedCase(
        start=confluence_server,
        fill=fill_confluence,
        source=confluence_source,
        expected=confluence_said,
        change=change_confluence,
        change_seen_at_once=change_confluence,
        examples=(25, 15),
        within=10,
        changes_meanwhile=True,
        passing=tuple((fault, fault) for fault in (HANG_UP, Reply({}, 429, {"retry-after": "0"}), Reply({}, 503))),
        wrong=(
            {"token": None},
            {"token": "two words"},
            {"spaces": ("a b",)},
            {"spaces": ("../x",)},
            {"spaces": tuple(f"S{number}" for number in range(101))},
            *OTHERS,
        ),
        large=lambda: (confluence.large(600), 600),
        share=0.4,
        edit=lambda server: server.edit(next(iter(server.contents)), "<p>Edited.</p>"),
        delete=lambda server: server.trash(next(iter(server.contents))),
    ),
    "jira": FeedCase(
        start=lambda choose: JiraServer(page_size=choose.choice(PAGE_SIZES), embedded=choose.choice([0, 1, 20])),
        fill=lambda server: [server.comment(server.open(key, "T", "body"), "C") for key in ("PAY", "OPS")],
        source=jira_source,
        expected=jira_said,
        change=change_jira,
        change_seen_at_once=change_jira,
        examples=(25, 20),
        within=10,
        changes_meanwhile=True,
        wrong=(
            {"token": None},
            {"token": "two words"},
            {"projects": ('PAY" or project = "HR',)},
            {"projects": ("1",)},
            *OTHERS,
        ),
        large=lambda: (jira.large(400), 400),
        share=0.3,
        edit=lambda server: server.edit(next(iter(server.issues)), summary="Edited."),
        delete=lambda server: server.delete(next(iter(server.issues))),
    ),
}
