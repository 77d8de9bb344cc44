"""Jira Cloud's API, as far as issues and their comments go.

Source: developer.atlassian.com/cloud/jira/platform/rest/v3: ``search/jql`` with ``nextPageToken``, ``issue/bulkfetch``,
``issue/{id}/comment``, ``serverInfo``, ``myself``.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.apis.server import Api, Reply, Request

BASE = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN = "ATATT3xFfGF0secret"
USER = "me@example.org"
SITE = "https://team.atlassian.net"
_API = "/rest/api/3"
_JQL = re.compile(
    r'(?P<all>created >= "-20000d")?(?:project in \((?P<projects>[^()]+)\))? order by created asc, key asc'
)


class JiraServer(Api):
    """A site; every change moves its clock by an hour."""

    def __init__(self, *, page_size: int = 5_000, embedded: int = 20) -> None:
        super().__init__()
        self.projects = {"PAY", "OPS"}
        self.issues: dict[int, dict[str, Any]] = {}
        self.page_size = page_size
        self.token = TOKEN
        self.embedded = embedded
        self.deployment = "Cloud"
        self.too_large: set[str] = set()
        self.people: dict[str, bool] = {}
        self.groups: dict[str, set[str]] = {}
        self.roles: dict[str, dict[int, list[tuple[str, str]]]] = {}
        self.holders: dict[str, list[tuple[str, str]]] = {}
        self.levels: dict[int, list[tuple[str, str]]] = {}
        self.products: dict[str, list[str]] = {}
        self.refused: set[str] = set()
        self.hours = 0
        self.epoch = 0
        self._ids = 10_000
        self._numbers = dict.fromkeys(self.projects, 0)

    def open(self, project: str, summary: str, description: str = "", **fields: Any) -> int:
        identity, moment = self._id(), self._moment()
        self.issues[identity] = {
            "id": str(identity),
            "key": self._key(project),
            "comments": {},
            "fields": {
                "summary": summary,
                "description": adf(description) if description else None,
                "environment": None,
                "status": {"name": "In Progress", "statusCategory": {"key": "indeterminate"}},
                "resolution": None,
                "issuetype": {"name": "Bug", "subtask": False},
                "priority": {"name": "High"},
                "labels": ["refunds"],
                "components": [{"id": "1", "name": "api"}],
                "reporter": {"accountId": "557058:ann", "displayName": "Ann Lee", "active": True},
                "creator": {"accountId": "557058:ann", "displayName": "Ann Lee", "active": True},
                "created": moment,
                "updated": moment,
                **fields,
            },
        }
        return identity

    def comment(self, identity: int, text: str, **fields: Any) -> int:
        comment, moment = self._id(), self._moment()
        self.issues[identity]["comments"][comment] = {
            "id": str(comment),
            "author": {"accountId": "557058:bob", "displayName": "Bob Ray"},
            "body": adf(text),
            "created": moment,
            "updated": moment,
            "jsdPublic": True,
            **fields,
        }
        self._touch(identity, moment)
        return comment

    def edit_comment(self, identity: int, comment: int, text: str) -> None:
        self.issues[identity]["comments"][comment]["body"] = adf(text)
        self._touch(identity, self._moment())

    def delete_comment(self, identity: int, comment: int) -> None:
        del self.issues[identity]["comments"][comment]
        self._touch(identity, self._moment())

    def edit(self, identity: int, **fields: Any) -> None:
        self.issues[identity]["fields"].update(fields)
        self._touch(identity, self._moment())

    def move(self, identity: int, project: str) -> None:
        self.issues[identity]["key"] = self._key(project)
        self._touch(identity, self._moment())

    def delete(self, identity: int) -> None:
        self.hours += 1
        del self.issues[identity]

    def forget_tokens(self) -> None:
        self.epoch += 1

    def handle(self, request: Request) -> Reply:
        request = replace(request, path=re.sub(r"^/ex/jira/[\w-]+", "", request.path))
        if request.path == f"{_API}/serverInfo":
            return Reply({"baseUrl": SITE, "deploymentType": self.deployment, "version": "1001.0.0"})
        expected = base64.b64encode(f"{USER}:{self.token}".encode()).decode()
        if request.headers.get("authorization") not in {f"Basic {expected}", f"Bearer {self.token}"}:
            return self._anonymous(request)
        if request.path == f"{_API}/myself":
            return Reply({"accountId": "557058:ann", "displayName": "Ann Lee", "timeZone": "Asia/Kolkata"})
        if (request.method, request.path) == ("POST", f"{_API}/search/jql"):
            return self._search(request.json())
        if (request.method, request.path) == ("POST", f"{_API}/issue/bulkfetch"):
            return self._bulk(request.json())
        if match := re.fullmatch(rf"{_API}/issue/(\d+)/comment", request.path):
            return self._comments(int(match[1]), request.query)
        if request.path in self.refused:
            return Reply({"errorMessages": ["You do not have the permission to see this."]}, 403)
        if (reply := self._rights(request)) is not None:
            return reply
        return Reply(b"<html>Not found</html>", 404, {"content-type": "text/html"})

    def _rights(self, request: Request) -> Reply | None:
        """Answer what is asked about who may see what; a site has one security scheme here."""
        query = request.query
        if match := re.fullmatch(rf"{_API}/project/(\w+)/permissionscheme", request.path):
            granted = [{"permission": "BROWSE_PROJECTS", "holder": _holder(each)} for each in self.holders[match[1]]]
            others = [{"permission": "CREATE_ISSUES", "holder": _holder(("user", "557058:nobody"))}]
            return Reply({"id": 1, "name": "scheme", "permissions": [*granted, *others]})
        if match := re.fullmatch(rf"{_API}/project/(\w+)/issuesecuritylevelscheme", request.path):
            return Reply({"id": 9, "levels": [{"id": str(each), "name": "x"} for each in self.levels]})
        if match := re.fullmatch(rf"{_API}/project/(\w+)/role/(\d+)", request.path):
            return Reply({"id": int(match[2]), "actors": list(map(_actor, self.roles[match[1]][int(match[2])]))})
        if request.path == f"{_API}/issuesecurityschemes/level/member":
            members = self.levels[int(query["levelId"])]
            return self._values(
                [{"issueSecurityLevelId": query["levelId"], "holder": _holder(each)} for each in members], query
            )
        if request.path == f"{_API}/group/member":
            inside = sorted(each for each in self.groups.get(query["groupId"], ()) if self.people[each])
            return self._values(list(map(self._person, inside)), query)
        if request.path == f"{_API}/user" and query["accountId"] in self.people:
            return Reply(self._person(query["accountId"]))
        if request.path == f"{_API}/applicationrole":
            named = {key: [{"name": each, "groupId": each} for each in groups] for key, groups in self.products.items()}
            return Reply([{"key": key, "groupDetails": groups} for key, groups in named.items()])
        return None

    def _person(self, account: str) -> dict[str, Any]:
        email = f"{account.partition(':')[2]}@example.org"
        return {"accountId": account, "emailAddress": email, "active": self.people[account]}

    def _values(self, found: list[dict[str, Any]], query: Mapping[str, str]) -> Reply:
        start, size = int(query.get("startAt", 0)), min(int(query.get("maxResults", 50)), self.page_size)
        shown = found[start : start + size]
        return Reply(
            {
                "startAt": start,
                "maxResults": size,
                "total": len(found),
                "isLast": start + size >= len(found),
                "values": shown,
            }
        )

    def _anonymous(self, request: Request) -> Reply:
        """Answer a token that is refused: with what everybody may read, and 401 where somebody is needed."""
        if request.path == f"{_API}/search/jql":
            return Reply({"issues": [], "isLast": True})
        return Reply({"errorMessages": ["Client must be authenticated to access this resource."]}, 401)

    def _search(self, asked: Mapping[str, Any]) -> Reply:
        query = _JQL.fullmatch(asked["jql"])
        if query is None:
            return _bad(f"Error in the JQL Query: {asked['jql']}")
        if not any(query.groups()):
            return _bad("Unbounded JQL queries are not allowed here. Please add a search restriction to your query.")
        projects = set(re.findall(r'"(\w+)"', query["projects"])) if query["projects"] else self.projects
        for unknown in projects - self.projects:
            return _bad(f"The value '{unknown}' does not exist for the field 'project'.")
        named = (each for each in self.issues.values() if each["key"].partition("-")[0] in projects)
        ordered = sorted(named, key=_place)
        if token := asked.get("nextPageToken"):
            epoch, jql, after = json.loads(base64.b64decode(token))
            if (epoch, jql) != (self.epoch, asked["jql"]):
                return _bad("The provided next page token is invalid or expired.")
            ordered = [each for each in ordered if _place(each) > after]
        size = min(asked.get("maxResults", 50), self.page_size)
        content: dict[str, Any] = {"issues": [self._shown(each, asked["fields"]) for each in ordered[:size]]}
        content["isLast"] = size >= len(ordered)
        if not content["isLast"]:
            following = json.dumps([self.epoch, asked["jql"], _place(ordered[size - 1])])
            content["nextPageToken"] = base64.b64encode(following.encode()).decode()
        return Reply(content)

    def _bulk(self, asked: Mapping[str, Any]) -> Reply:
        if len(asked["issueIdsOrKeys"]) > 100:
            return _bad("At most 100 issues can be fetched.")
        there = [each for each in asked["issueIdsOrKeys"] if int(each) in self.issues]
        issues = [self._shown(self.issues[int(each)], asked["fields"]) for each in there if each not in self.too_large]
        errors = [{"id": each, "errorMessage": "payload too large"} for each in there if each in self.too_large]
        return Reply({"issues": issues, "issueErrors": errors})

    def _shown(self, issue: Mapping[str, Any], fields: Sequence[str]) -> Mapping[str, Any]:
        comments = list(issue["comments"].values())
        some = comments[: self.embedded]
        embedded = {"comments": some, "maxResults": len(some), "total": len(comments), "startAt": 0}
        known = {**issue["fields"], "comment": embedded}
        return {"id": issue["id"], "key": issue["key"], "fields": {key: known[key] for key in fields if key in known}}

    def _comments(self, identity: int, query: Mapping[str, str]) -> Reply:
        if identity not in self.issues:
            return Reply({"errorMessages": ["Issue does not exist or you do not have permission to see it."]}, 404)
        comments = list(self.issues[identity]["comments"].values())
        start, size = int(query.get("startAt", 0)), min(int(query.get("maxResults", 50)), self.page_size)
        shown = comments[start : start + size]
        return Reply({"startAt": start, "maxResults": size, "total": len(comments), "comments": shown})

    def _touch(self, identity: int, moment: str) -> None:
        self.issues[identity]["fields"]["updated"] = moment

    def _key(self, project: str) -> str:
        self._numbers[project] = self._numbers.get(project, 0) + 1
        return f"{project}-{self._numbers[project]}"

    def _moment(self) -> str:
        self.hours += 1
        return _iso(BASE + timedelta(hours=self.hours))

    def _id(self) -> int:
        self._ids += 1
        return self._ids


def _holder(named: tuple[str, str]) -> dict[str, Any]:
    """Return a holder of a permission: a group has its name as parameter and its id as value."""
    kind, identity = named
    if kind in ("anyone", "reporter"):
        return {"type": kind}
    return {"type": kind, "parameter": identity, "value": identity} if identity else {"type": kind}


def _actor(named: tuple[str, str]) -> dict[str, Any]:
    kind, identity = named
    if kind == "user":
        return {"id": 1, "type": "atlassian-user-role-actor", "actorUser": {"accountId": identity}}
    return {"id": 1, "type": "atlassian-group-role-actor", "actorGroup": {"name": identity, "groupId": identity}}


def adf(text: str) -> dict[str, Any]:
    """Return a document of one paragraph."""
    paragraph = {"type": "paragraph", "content": [{"type": "text", "text": text}]}
    return {"type": "doc", "version": 1, "content": [paragraph]}


def large(issues: int, *, page_size: int = 5_000) -> JiraServer:
    """Return a site with a project of so many issues, two comments each."""
    server = JiraServer(page_size=page_size)
    for number in range(issues):
        opened = server.open("PAY", f"Refund {number} fails", f"What happens in case {number}?")
        server.comment(opened, f"It returns {number}.")
        server.comment(opened, f"Fixed in release {number}.")
    server.hours += 24
    return server


def _place(issue: Mapping[str, Any]) -> list[Any]:
    return [issue["fields"]["created"], int(issue["id"])]


def _bad(message: str) -> Reply:
    return Reply({"errorMessages": [message], "errors": {}}, 400)


def _iso(moment: datetime) -> str:
    """Write a time as Jira does, in the zone of the account."""
    return (moment + timedelta(hours=5, minutes=30)).strftime("%Y-%m-%dT%H:%M:%S.000+0530")
