"""Random memberships at stand-ins of services, and whether every route shows somebody what a brute-force oracle allows.

The oracle asks the stand-in's own state who may read a document, by the definition of each service. What is compared is
the whole way: the service's API, the sync or the refresh, the index, the token, the route.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx

from lab.access.serving import SERVICE, Outcome, as_somebody, served
from lab.apis import confluence, github, gitlab, jira, slack
from lab.apis.confluence import ConfluenceServer
from lab.apis.github import GithubServer
from lab.apis.gitlab import ROLES, GitlabServer
from lab.apis.jira import JiraServer
from lab.apis.server import Api, serving
from lab.apis.slack import SlackServer
from nornweave.carry.ledger_file import load_ledger
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings, open_source
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.core.access import line_of
from nornweave.core.types import Domain
from nornweave.ingest.ledger import refresh_ledger
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

GROUPS = ("staff", "ops")
_HASHED = {"embedding": {"model": "hash:64", "dimensions": 64}, "reranking": {"model": None}}
_HTML = {"accept": "text/html,*/*;q=0.8"}
_BUSY_S = 0.5


@dataclass(frozen=True, slots=True)
class Somebody:
    """A person with a token: the groups and the address that it proves; ``name`` is the token too."""

    name: str
    groups: frozenset[str]

    @property
    def email(self) -> str:
        """Their address at the services."""
        return f"{self.name}@example.org"


@dataclass(slots=True)
class Written:
    """A document with two words of its own: one that is asked for, one that tells whether it is shown."""

    domain: str
    source: str
    path: str
    asked: str
    tell: str
    chunk: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """What the oracle knows it by."""
        return self.source, self.path


def text_of(number: int) -> str:
    """Return a document's text: all have a name in common, words of their own, and a limit that others contradict."""
    limit = f"The parcel{number % 5} limit is {number + 10}."
    return f"The zebra report calls open_ledger for asked{number:04}x and tells{number:04}x. {limit}"


class Service:
    """A service with documents, of which it says who may read them."""

    source: ClassVar[str]
    api: Api
    groups: tuple[str, ...] = ()
    """Of ``access`` of its source: rights and groups have both to be met."""

    def configured(self) -> Mapping[str, Any]:
        """Return the entry of ``sources``."""
        raise NotImplementedError

    def may_read(self, path: str, email: str) -> bool:
        """Tell by the service's own state whether somebody may read a document."""
        raise NotImplementedError

    def change_members(self, rng: random.Random) -> None:
        """Let people in or out, in a way that a refresh of members tells of."""
        raise NotImplementedError

    def change_rights(self, rng: random.Random) -> None:
        """Change who may read in a way that the next sync tells of."""


class SlackRights(Service):
    """Channels, private and public; members, guests, people who left, and some of another workspace."""

    source = "chat"

    def __init__(self, people: Sequence[Somebody], numbers: Iterator[int], rng: random.Random, count: int) -> None:
        self.api: SlackServer = SlackServer()
        self.api.users.clear()
        self._ids = {}
        for number, person in enumerate(people):
            self._ids[person.email] = f"U{number:02}"
            self.api.add_user(f"U{number:02}", person.name)
        for number in range(count):
            channel = self.api.add_channel(f"C{number:02}", f"room-{number}")
            self.api.say(channel, text_of(next(numbers)), user="U00")
        for _ in range(4 * count):
            self.change_members(rng)

    def configured(self) -> Mapping[str, Any]:  # noqa: D102
        return {"type": "slack", "domain": "conversations", "api_url": f"{self.api.url}/api", "token_env": "LAB_SLACK"}

    def may_read(self, path: str, email: str) -> bool:  # noqa: D102
        user = self.api.users[self._ids[email]]
        channel = next(each for each in self.api.channels.values() if each["name"] == path.partition("/")[0])
        if user["deleted"] or user["team_id"] != self.api.team:
            return False
        is_guest = user["is_restricted"] or user["is_ultra_restricted"]
        is_inside = user["id"] in self.api.inside[channel["id"]]
        return is_inside or not (channel.get("is_private") or is_guest)

    def change_members(self, rng: random.Random) -> None:  # noqa: D102
        channel, user = rng.choice(list(self.api.channels)), self.api.users[rng.choice(list(self.api.users))]
        kind = rng.randrange(12)
        if kind < 7:
            self.api.inside[channel] ^= {user["id"]}
        elif kind < 9:
            self.api.channels[channel]["is_private"] = not self.api.channels[channel].get("is_private")
        elif kind == 9:
            user["is_restricted"] = not user["is_restricted"]
        elif kind == 10:
            user["deleted"] = not user["deleted"]
        else:
            user["team_id"] = "T99" if user["team_id"] == self.api.team else self.api.team


class GithubRights(Service):
    """A repository, private, internal or public: its own collaborators, teams, an organisation's base permission."""

    source = "issues"
    groups = GROUPS

    def __init__(self, people: Sequence[Somebody], numbers: Iterator[int], rng: random.Random, count: int) -> None:
        self.api: GithubServer = GithubServer(page_size=2)
        self._people = [each.name for each in people]
        self.api.teams = {"core": set(), "payments": set()}
        for _ in range(count):
            self.api.open("Report", text_of(next(numbers)))
        for _ in range(2 * len(people)):
            self.change_members(rng)

    def configured(self) -> Mapping[str, Any]:  # noqa: D102
        return {"type": "github", "domain": "conversations", "repository": github.REPOSITORY, "api_url": self.api.url,
                "token_env": "LAB_GITHUB"}  # fmt: skip

    def may_read(self, path: str, email: str) -> bool:  # noqa: ARG002, D102
        name = email.partition("@")[0]
        if self.api.visibility == "public" or name in self.api.direct:
            return True
        is_member = name in self.api.organisation
        by_base = is_member and (self.api.visibility == "internal" or self.api.base_permission == "read")
        return by_base or any(name in team for team in self.api.teams.values())

    def change_members(self, rng: random.Random) -> None:  # noqa: D102
        sets = (self.api.direct, self.api.organisation, *self.api.teams.values())
        kind, name = rng.randrange(10), rng.choice(self._people)
        if kind < 8:
            rng.choice(sets).symmetric_difference_update({name})
        elif kind == 8:
            self.api.base_permission = rng.choice(("none", "read"))
        else:
            self.api.visibility = rng.choice(("private", "private", "internal", "public"))


class GitlabRights(Service):
    """A project, private or public: members in several roles, of its own and of a group above; confidential issues."""

    source = "project"

    def __init__(self, people: Sequence[Somebody], numbers: Iterator[int], rng: random.Random, count: int) -> None:
        self.api: GitlabServer = GitlabServer(page_size=2)
        self._people = [each.name for each in people]
        self.api.emails = {each.name: each.email for each in people}
        for number in range(count):
            user = rng.choice(self._people)
            self.api.open("Report", text_of(next(numbers)), merge=number % 3 == 2, user=user, confidential=number == 0)
        for _ in range(3 * len(people)):
            self.change_members(rng)
            self.change_rights(rng)

    def configured(self) -> Mapping[str, Any]:  # noqa: D102
        return {"type": "gitlab", "domain": "conversations", "project": gitlab.PROJECT, "url": self.api.url,
                "token_env": "LAB_GITLAB"}  # fmt: skip

    def may_read(self, path: str, email: str) -> bool:  # noqa: D102
        name, (kind, number) = email.partition("@")[0], path.split("/")
        role = 0 if name in self.api.blocked else self.api.roles().get(name, 0)
        thread = self.api.threads[kind][int(number)]
        features = (kind, *(["repository"] if kind == "merge_requests" else []))
        is_open = self.api.visibility == "public" and all(self.api.features[each] == "enabled" for each in features)
        least = "guest" if kind == "issues" else "reporter"
        if not (is_open or role >= ROLES[least]):
            return False
        named = {each["username"] for each in (thread["author"], *thread["assignees"])}
        # The account of an author who is no member is not told, and so not whose it is.
        is_named = name in named and name in self.api.roles() and name not in self.api.blocked
        return not thread.get("confidential") or role >= ROLES["planner"] or is_named

    def change_members(self, rng: random.Random) -> None:  # noqa: D102
        kind, name = rng.randrange(10), rng.choice(self._people)
        if kind < 7:
            table = rng.choice((self.api.direct, self.api.inherited))
            if table.pop(name, None) is None:
                table[name] = rng.choice(list(ROLES.values()))
        elif kind == 7:
            self.api.blocked ^= {name}
        elif kind == 8:
            self.api.visibility = rng.choice(("private", "private", "public"))
        else:
            self.api.features[rng.choice(list(self.api.features))] = rng.choice(("private", "enabled"))

    def change_rights(self, rng: random.Random) -> None:  # noqa: D102
        if self.api.threads["issues"]:
            issue = rng.choice(list(self.api.threads["issues"]))
            assigned = [{"username": each} for each in rng.sample(self._people, rng.randrange(2))]
            self.api.edit(issue, confidential=rng.random() < 0.5, assignees=assigned)


class ConfluenceRights(Service):
    """Two spaces with readers and groups; pages below pages and folders, of which some are restricted."""

    source = "wiki"
    groups = ("staff",)

    def __init__(self, people: Sequence[Somebody], numbers: Iterator[int], rng: random.Random, count: int) -> None:
        self.api: ConfluenceServer = ConfluenceServer(page_size=2)
        self._accounts = [f"557058:{each.name}" for each in people]
        self.api.people = {each: each for each in self._accounts}
        self.api.groups = {"g-eng": set(), "g-pay": set()}
        self._spaces = [self.api.space("ENG"), self.api.space("OPS")]
        self.api.folders[77] = None
        self._pages: list[int] = []
        for number in range(count):
            parent = rng.choice([None, 77, *self._pages])
            text = f"<p>{text_of(next(numbers))}</p>"
            self._pages.append(self.api.write(self._spaces[number % 2], f"Page {number}", text, parent=parent))
        for space in self._spaces:
            self.api.readers[space] = [("group", "g-eng")]
        for _ in range(4 * len(people)):
            self.change_members(rng)
            self.change_rights(rng)

    def configured(self) -> Mapping[str, Any]:  # noqa: D102
        return {"type": "confluence", "domain": "documentation", "url": self.api.url, "user": confluence.USER,
                "token_env": "LAB_ATLASSIAN"}  # fmt: skip

    def may_read(self, path: str, email: str) -> bool:  # noqa: D102
        page, account = int(path.rpartition("/")[2]), f"557058:{email.partition('@')[0]}"
        space = int(self.api.contents[page]["spaceId"])
        lists = [self.api.readers[space], *(self.api.restricted.get(each) for each in (*self.api.above(page), page))]
        return all(self._is_in(account, readers) for readers in lists if readers is not None)

    def _is_in(self, account: str, readers: Sequence[tuple[str, str]]) -> bool:
        return any(account in (self.api.groups[name] if kind == "group" else {name}) for kind, name in readers)

    def _some(self, rng: random.Random) -> list[tuple[str, str]]:
        users = [("user", each) for each in rng.sample(self._accounts, 2)]
        return rng.sample([*users, *(("group", each) for each in self.api.groups)], rng.randrange(1, 4))

    def change_members(self, rng: random.Random) -> None:  # noqa: D102
        if rng.random() < 0.7:
            self.api.groups[rng.choice(list(self.api.groups))] ^= {rng.choice(self._accounts)}
        else:
            self.api.readers[rng.choice(self._spaces)] = self._some(rng)

    def change_rights(self, rng: random.Random) -> None:  # noqa: D102
        page = rng.choice([77, *self._pages])
        if rng.random() < 0.6:
            self.api.restricted.pop(page, None)
        else:
            self.api.restricted[page] = self._some(rng)
        movable = [each for each in self._pages if page not in (each, *self.api.above(each))]
        if page != 77 and rng.random() < 0.3:
            self.api.move(page, rng.choice([None, 77, *movable]))


class JiraRights(Service):
    """Two projects with roles, groups and logged-in people; issues of which some have a security level."""

    source = "tickets"

    def __init__(self, people: Sequence[Somebody], numbers: Iterator[int], rng: random.Random, count: int) -> None:
        self.api: JiraServer = JiraServer(page_size=2)
        self._accounts = [f"557058:{each.name}" for each in people]
        self.api.people = dict.fromkeys(self._accounts, True)
        self.api.groups = {"j-eng": set(), "j-users": set(self._accounts[::2])}
        self.api.products = {"jira-software": ["j-users"]}
        self.api.roles = {project: {7: [("group", "j-eng")]} for project in self.api.projects}
        self.api.holders = {project: [("projectRole", "7")] for project in self.api.projects}
        self.api.levels = {21: [("projectRole", "7")], 22: [("user", self._accounts[0])]}
        for number in range(count):
            self.api.open(("OPS", "PAY")[number % 2], "Report", text_of(next(numbers)))
        for _ in range(4 * len(people)):
            self.change_members(rng)
            self.change_rights(rng)

    def configured(self) -> Mapping[str, Any]:  # noqa: D102
        return {"type": "jira", "domain": "conversations", "url": self.api.url, "user": jira.USER,
                "token_env": "LAB_ATLASSIAN"}  # fmt: skip

    def may_read(self, path: str, email: str) -> bool:  # noqa: D102
        project, _, key = path.partition("/")
        issue = next(each for each in self.api.issues.values() if each["key"] == key)
        account, security = f"557058:{email.partition('@')[0]}", issue["fields"].get("security")
        lists = [self.api.holders[project], *([self.api.levels[int(security["id"])]] if security else [])]
        return all(any(self._holds(account, each, project) for each in holders) for holders in lists)

    def _holds(self, account: str, holder: tuple[str, str], project: str) -> bool:
        kind, name = holder
        if kind == "anyone":
            return True
        if not self.api.people[account]:
            return False
        if kind == "projectRole":
            return any(self._holds(account, each, project) for each in self.api.roles[project][int(name)])
        if kind == "applicationRole":
            return account in self.api.groups["j-users"]
        return account == name if kind == "user" else account in self.api.groups[name]

    def _some(self, rng: random.Random) -> list[tuple[str, str]]:
        users = [("user", each) for each in rng.sample(self._accounts, 2)]
        return rng.sample([*users, ("group", "j-eng"), ("group", "j-users")], rng.randrange(1, 4))

    def change_members(self, rng: random.Random) -> None:  # noqa: D102
        kind, project = rng.randrange(10), rng.choice(["PAY", "OPS"])
        if kind < 4:
            self.api.groups[rng.choice(list(self.api.groups))] ^= {rng.choice(self._accounts)}
        elif kind == 4:
            account = rng.choice(self._accounts)
            self.api.people[account] = not self.api.people[account]
        elif kind < 7:
            self.api.roles[project][7] = self._some(rng)
        elif kind == 7:
            others = ("projectRole", "7"), ("applicationRole", ""), ("applicationRole", "jira-software")
            self.api.holders[project] = [*self._some(rng), rng.choice(others)]
        elif kind == 8:
            self.api.holders[project] = [rng.choice((("anyone", ""), ("projectRole", "7")))]
        else:
            self.api.levels[rng.choice((21, 22))] = [("projectRole", "7")] if rng.random() < 0.3 else self._some(rng)

    def change_rights(self, rng: random.Random) -> None:  # noqa: D102
        levels: list[Any] = [None, {"id": "21", "name": "x"}, {"id": "22", "name": "y"}]
        if self.api.issues:
            self.api.edit(rng.choice(list(self.api.issues)), security=rng.choice(levels))


SERVICES: tuple[type[Any], ...] = (SlackRights, GithubRights, GitlabRights, ConfluenceRights, JiraRights)
CODE = "code"
"""A source of files for the first channel: a principal may stand where a group may."""
_TOKENS = {
    "LAB_SLACK": slack.TOKEN,
    "LAB_GITHUB": github.TOKEN,
    "LAB_GITLAB": gitlab.TOKEN,
    "LAB_ATLASSIAN": confluence.TOKEN,
}


@dataclass(slots=True)
class World:
    """A workspace over all services, served, and people who ask."""

    folder: Path
    rng: random.Random
    people: Sequence[Somebody]
    services: Mapping[str, Service]
    settings: Settings
    channel: str = "room-0/"
    documents: list[Written] = field(default_factory=list)

    def allows(self, person: Somebody, document: Written) -> bool:
        """Tell by brute force whether somebody may see a document."""
        if document.source == CODE:
            return self.services["chat"].may_read(self.channel, person.email)
        service = self.services[document.source]
        in_groups = not service.groups or not person.groups.isdisjoint(service.groups)
        return in_groups and service.may_read(document.path, person.email)

    def sync(self) -> None:
        """Sync everything."""
        for domain in self.settings.served_domains:
            report = run(domain_parts(self.settings, domain), SyncOptions(run_id="rights", wait_s=0))
            if report.unavailable or report.failed or any(each.notices for each in report.sources.values()):
                raise RuntimeError(f"{report.unavailable} {report.failed} {report.sources}")

        refresh_ledger(self.settings)

    def refresh(self) -> None:
        """Ask every service who is in what, and for no document."""
        for source in self.settings.sources:
            if source.id == CODE:
                continue
            opened = open_source(source, self.settings.own_files)
            table = opened.refresh_members() if isinstance(opened, MirroredSource) else None
            if table is None or table.problems:
                raise RuntimeError(f"{source.id}: {table}")


def world(folder: Path, stack: ExitStack, seed: int, people: int = 6, count: int = 4) -> World:
    """Return a world whose services are served until the stack is closed; nothing is synced yet."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, nothing secret
    os.environ.update(_TOKENS)
    persons = [Somebody(f"person{number}", frozenset(rng.sample(GROUPS, rng.randrange(3)))) for number in range(people)]
    numbers = iter(range(10_000))
    services: dict[str, Service] = {kind.source: kind(persons, numbers, rng, count) for kind in SERVICES}
    for service in services.values():
        stack.enter_context(serving(service.api))
    lines = [
        line_of(each.name, sorted(each.groups), each.name).replace("}", f', "email": "{each.email}"}}')
        for each in persons
    ]
    (folder / "tokens.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    place = urlsplit(services["issues"].api.url).netloc if "issues" in services else ""
    members = {each.email: [f"github:user:{each.name}@{place}"] for each in persons}
    (folder / "members.yaml").write_text(json.dumps({"members": members}), encoding="utf-8")
    sources = [
        {"id": name, "rights": "source", "access": list(each.groups), **each.configured()}
        for name, each in services.items()
    ]
    (folder / "code").mkdir()
    for number in range(count):
        (folder / "code" / f"part{number}.py").write_text(
            f"def part{number}():\n    # {text_of(next(numbers))}\n    open_ledger({number})\n\n\n"
            f"PARCEL{number}_LIMIT = {number}\n"
        )
    sources.append({"id": CODE, "domain": "code", "type": "files", "path": "code", "access": ["slack:channel:C00"]})
    configured = {
        "data_dir": "var",
        "sources": sources,
        "domains": {domain.value: _HASHED for domain in Domain},
        "access": {"tokens": "tokens.yaml", "membership": {"file": "members.yaml"}},
    }
    (folder / "nornweave.yaml").write_text(json.dumps(configured), encoding="utf-8")
    settings = load_settings(folder / "nornweave.yaml", {})
    return World(folder, rng, persons, services, settings)


async def find_documents(world: World, app: Any) -> None:
    """Note all documents with their words and a passage of each, as the operator sees them."""
    async with as_somebody(app, SERVICE) as operator:
        found = await _matches(operator, r"asked\d{4}x and tells\d{4}x")
        for match in found:
            number = match["text"].partition("asked")[2][:4]
            document = Written(
                match["domain_id"], match["source_id"], match["source_path"], f"asked{number}x", f"tells{number}x"
            )
            answer = await operator.get(f"/documents/{document.domain}/{document.source}/{document.path}")
            document.chunk = answer.json()["chunks"][0]
            world.documents.append(document)


async def _matches(client: httpx.AsyncClient, regex: str) -> list[dict[str, Any]]:
    while True:
        answer = await client.get("/find", params={"regex": regex, "limit": "100"})
        if answer.is_success and not answer.json()["truncated"]:
            return list(answer.json()["matches"])
        await asyncio.sleep(_BUSY_S)  # other work on the machine


def _tool(name: str, arguments: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    return "POST", "/mcp", {"json": body, "headers": headers}


_WAIT = {"timeout_ms": 60_000}


def routes(one: Written) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Return, by name, requests whose answers hold the telling word of a document exactly if it is shown."""
    chat = [{"role": "user", "content": one.asked}]
    place = f"{one.domain}/{one.source}/{one.path}"
    return {
        "query": ("POST", "/query", {"json": {"query": one.asked, "top_k": 50, **_WAIT}}),
        "text": ("POST", "/query", {"json": {"query": one.asked, "format": "text", **_WAIT}}),
        "events": (
            "POST", "/query",
            {"json": {"query": one.asked, **_WAIT}, "headers": {"accept": "text/event-stream"}},
        ),
        "recall": ("POST", f"/agents/{one.domain}/recall", {"json": {"query_text": one.asked, **_WAIT}}),
        "chat": ("POST", "/v1/chat/completions", {"json": {"model": "nornweave", "messages": chat}}),
        "response": ("POST", "/v1/responses", {"json": {"model": "nornweave", "input": one.asked}}),
        "page": ("GET", "/", {"params": {"q": one.asked}, "headers": _HTML}),
        "page data": ("GET", "/.json", {"params": {"q": one.asked}}),
        "find": ("GET", "/find", {"params": {"text": one.asked}}),
        "find page": ("GET", "/find", {"params": {"text": one.asked}, "headers": _HTML}),
        "chunk": ("GET", f"/chunks/{one.chunk}", {}),
        "passage": ("GET", f"/passages/{one.chunk}", {"headers": _HTML}),
        "passage data": ("GET", f"/passages/{one.chunk}.json", {}),
        "document": ("GET", f"/documents/{place}", {}),
        "search tool": _tool("search", {"query": one.asked}),
        "find tool": _tool("find", {"text": one.asked}),
        "fetch tool": _tool("fetch", {"id": one.chunk}),
    }  # fmt: skip


async def compare(world: World, app: Any, outcome: Outcome, share: float = 1.0) -> None:
    """Ask every route as everybody for every document; note where an answer is not what the oracle says.

    Args:
        share: of the requests about one document that are sent; lists are all asked for.
    """
    async with AsyncExitStack() as stack:
        for person in world.people:
            client = await stack.enter_async_context(as_somebody(app, person.name))
            allowed = {one.place for one in world.documents if world.allows(person, one)}
            await _compare_lists(world, client, person, allowed, outcome)
            for one in world.documents:
                for name, (method, path, options) in routes(one).items():
                    if world.rng.random() >= share:
                        continue
                    said = await _said(client, method, path, options)
                    outcome.count(name)
                    sent = json.dumps([path, options])
                    if (one.tell in said) is not (one.place in allowed):
                        outcome.shown.append(f"{name}: {one.place} to {person}: allowed is {one.place in allowed}")
                    for other in world.documents:
                        if other.place not in allowed and other.tell in said and other.tell not in sent:
                            outcome.shown.append(f"{name}: {other.place} to {person}, who asked for {one.place}")
                if world.rng.random() < share:
                    outcome.count("why")
                    place = {"source_path": one.path, "source_id": one.source, "domain": one.domain}
                    answer = await _answer(client, "POST", "/why", {"json": {"query": one.asked, **place, **_WAIT}})
                    if answer.is_success is not (one.place in allowed):
                        outcome.shown.append(f"why: {one.place} to {person}: allowed is {one.place in allowed}")


async def _answer(client: httpx.AsyncClient, method: str, path: str, options: Mapping[str, Any]) -> httpx.Response:
    while (answer := await client.request(method, path, **options)).status_code == httpx.codes.SERVICE_UNAVAILABLE:
        await asyncio.sleep(_BUSY_S)  # other work on the machine
    if answer.is_server_error:
        raise RuntimeError(f"{method} {path} {options}: {answer.status_code} {answer.text[:300]}")
    return answer


async def _said(client: httpx.AsyncClient, method: str, path: str, options: Mapping[str, Any]) -> str:
    answer = await _answer(client, method, path, options)
    # Pages mark what was asked for.
    return re.sub(r"<[^>]+>", "", answer.text) if options.get("headers") == _HTML else answer.text


async def _compare_lists(
    world: World, client: httpx.AsyncClient, person: Somebody, allowed: set[tuple[str, str]], outcome: Outcome
) -> None:
    """Compare what lists and counts say of all documents at once."""
    places = [(each["source_id"], each["source_path"]) for each in await _matches(client, r"tells\d{4}x")]
    shown = {"find regex": set(places)}
    uses = (await client.get("/uses", params={"name": "open_ledger"})).text
    code = [one for one in world.documents if one.domain == "code"]
    for one in code:
        outcome.count("uses")
        if (one.path in uses) is not (one.place in allowed):
            outcome.shown.append(f"uses: {one.place} to {person}: allowed is {one.place in allowed}")
    domains = sorted({one.domain for one in world.documents})
    recalled = set()
    for domain in domains:
        body = {"query_text": "zebra report", "top_k": 100, "timeout_ms": 60_000}
        items = (await client.post(f"/agents/{domain}/recall", json=body)).json()["items"]
        recalled |= {(item["citation"]["source_id"], item["citation"]["source_path"]) for item in items}
        described = (await client.get(f"/agents/{domain}/describe")).json()["documents"]
        expected = sum(one.place in allowed for one in world.documents if one.domain == domain)
        outcome.count("describe")
        if described != expected:
            outcome.shown.append(f"describe: {domain} has {described} documents for {person}, not {expected}")
    shown["recall of all"] = recalled
    await _compare_completions(world, client, person, allowed, outcome)
    await _compare_conflicts(world, client, person, allowed, outcome)
    for name, found in shown.items():
        for one in world.documents:
            outcome.count(name)
            if (one.place in found) is not (one.place in allowed):
                outcome.shown.append(f"{name}: {one.place} to {person}: allowed is {one.place in allowed}")


async def _compare_completions(
    world: World, client: httpx.AsyncClient, person: Somebody, allowed: set[tuple[str, str]], outcome: Outcome
) -> None:
    """Compare which paths are completed: those of a domain in which a document of this path is shown."""
    for path in sorted({one.path for one in world.documents}):
        answer = await _answer(client, "GET", "/complete", {"params": {"prefix": path, "limit": "50"}})
        found = [each for each in answer.json()["completions"] if (each["kind"], each["text"]) == ("path", path)]
        same = [one for one in world.documents if one.path == path]
        for domain in {one.domain for one in same}:
            outcome.count("complete")
            expected = any(one.place in allowed for one in same if one.domain == domain)
            if (domain in {each["domain_id"] for each in found}) is not expected:
                outcome.shown.append(f"complete: {path} of {domain} to {person}: allowed is {expected}")


async def _compare_conflicts(
    world: World, client: httpx.AsyncClient, person: Somebody, allowed: set[tuple[str, str]], outcome: Outcome
) -> None:
    """Compare the conflicts that are listed and opened: of those of the ledger the ones whose sides are shown."""
    ledger = load_ledger(world.settings)
    entries = ledger.open if ledger else ()
    said = await _said(client, "GET", "/conflicts", {})
    listed = {each["entry_id"] for each in json.loads(said)["open"]}
    for entry in entries:
        expected = all((side.source_id, side.path) in allowed for side in entry.sides)
        answer = await _answer(client, "GET", f"/conflicts/{entry.entry_id}.json", {})
        for name, is_shown in (("conflicts", entry.entry_id in listed), ("conflict", answer.is_success)):
            outcome.count(name)
            if is_shown is not expected:
                outcome.shown.append(f"{name}: {entry.entry_id} to {person}: allowed is {expected}")
    for one in world.documents:
        if one.tell in said and one.place not in allowed:
            outcome.shown.append(f"conflicts: {one.place} to {person}")


def campaign(folder: Path, count: int, seed: int, *, people: int = 12, size: int = 6, share: float = 0.3) -> Outcome:
    """Change memberships, refresh or sync, and compare everything, until so many decisions were compared."""
    outcome = Outcome()
    with ExitStack() as stack:
        made = world(folder, stack, seed, people, size)
        made.sync()

        async def ask() -> None:
            async with served(made.settings) as app:
                await find_documents(made, app)
                number = 0
                while sum(outcome.tried.values()) < count:
                    await compare(made, app, outcome, share)
                    number += 1
                    for service in made.services.values():
                        for _ in range(made.rng.randrange(1, 6)):
                            service.change_members(made.rng)
                    if number % 3:
                        await asyncio.to_thread(made.refresh)
                        continue
                    for service in made.services.values():
                        service.change_rights(made.rng)
                    await asyncio.to_thread(made.sync)
                    await _published(made, app)

        asyncio.run(ask())
    return outcome


async def _published(world: World, app: Any) -> None:
    """Wait until what was synced answers."""
    current = {domain.value: _current(world.settings, domain) for domain in world.settings.served_domains}
    async with as_somebody(app, SERVICE) as operator:
        for domain, generation in current.items():
            while (await operator.get(f"/agents/{domain}/describe")).json()["generation"] != generation:
                await asyncio.sleep(0.05)


def _current(settings: Settings, domain: Domain) -> str | None:
    from nornweave.carry.wiring import store_of

    return store_of(settings, domain).current()
