"""Confluence Cloud's API, as far as spaces, pages, blog posts and names of people go.

Source: developer.atlassian.com/cloud/confluence/rest/v2: cursors in ``_links.next``, which is relative to the site.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from lab.apis.server import Api, Reply, Request

BASE = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN = "ATATT3xFfGF0secret"
USER = "me@example.org"
SITE = "https://team.atlassian.net/wiki"
_API = "/wiki/api/v2"
_V1 = "/wiki/rest/api"


class ConfluenceServer(Api):
    """A site; every change moves its clock by an hour."""

    def __init__(self, *, page_size: int = 250) -> None:
        super().__init__()
        self.spaces: dict[int, dict[str, Any]] = {}
        self.contents: dict[int, dict[str, Any]] = {}
        self.removed: dict[int, dict[str, Any]] = {}
        self.people = {"557058:ann": "Ann Lee", "557058:bob": "Bob Ray"}
        self.page_size = page_size
        self.token = TOKEN
        self.hours = 0
        self.epoch = 0
        self.may_name_people = True
        self.shows_addresses = True
        self.readers: dict[int, list[tuple[str, str]]] = {}
        self.restricted: dict[int, list[tuple[str, str]]] = {}
        self.groups: dict[str, set[str]] = {}
        self.folders: dict[int, int | None] = {}
        self.refused: set[str] = set()
        self._ids = 1000

    def space(self, key: str, name: str = "", *, status: str = "current") -> int:
        identity = self._id()
        self.spaces[identity] = {"id": str(identity), "key": key, "name": name or f"Space {key}", "status": status}
        return identity

    def write(
        self, space: int, title: str, storage: str = "<p>text</p>", *, parent: int | None = None, blog: bool = False
    ) -> int:
        identity, moment = self._id(), self._moment()
        self.contents[identity] = {
            "id": str(identity),
            "type": "blogposts" if blog else "pages",
            "status": "current",
            "title": title,
            "spaceId": str(space),
            "parentId": str(parent) if parent else None,
            "parentType": "page" if parent else None,
            "position": 57,
            "authorId": "557058:ann",
            "ownerId": "557058:ann",
            "createdAt": moment,
            "version": {
                "createdAt": moment,
                "message": "",
                "number": 1,
                "minorEdit": False,
                "authorId": "557058:ann",
            },
            "storage": storage,
        }
        return identity

    def edit(self, identity: int, storage: str) -> None:
        self.contents[identity]["storage"] = storage
        self._next_version(identity)

    def rename(self, identity: int, title: str) -> None:
        self.contents[identity]["title"] = title
        self._next_version(identity)

    def move(self, identity: int, parent: int | None, space: int | None = None) -> None:
        """Move a page, which makes no version of it."""
        content = self.contents[identity]
        content["parentId"] = str(parent) if parent else None
        if space is not None:
            content["spaceId"] = str(space)

    def trash(self, identity: int, status: str = "trashed") -> None:
        """Put a page into the trash, or the archive; those below it move up."""
        content = self.contents.pop(identity)
        self.removed[identity] = {**content, "status": status}
        for each in self.contents.values():
            if each["parentId"] == str(identity):
                each["parentId"] = content["parentId"]

    def forget_cursors(self) -> None:
        self.epoch += 1

    def handle(self, request: Request) -> Reply:
        expected = base64.b64encode(f"{USER}:{self.token}".encode()).decode()
        if request.headers.get("authorization") not in {f"Basic {expected}", f"Bearer {self.token}"}:
            return Reply({"code": 401, "message": "Unauthorized; scope does not match"}, 401)
        request = replace(request, path=re.sub(r"^/ex/confluence/[\w-]+", "", request.path))
        if request.path == f"{_API}/spaces":
            return self._page(request, self._asked_spaces(request))
        if request.path in (f"{_API}/pages", f"{_API}/blogposts"):
            return self._page(request, self._asked_contents(request))
        if request.path in self.refused:
            return Reply({"statusCode": 403, "message": "not permitted"}, 403)
        if match := re.fullmatch(rf"{_API}/spaces/(\d+)/permissions", request.path):
            return self._page(request, self._permissions(int(match[1])))
        if request.path == f"{_V1}/content/search":
            return self._page(request, map(self._with_restrictions, self._searched(request.query["cql"])))
        if match := re.fullmatch(rf"{_V1}/content/(\d+)/restriction/byOperation/read", request.path):
            return Reply(self._restriction(int(match[1])))
        if match := re.fullmatch(rf"{_V1}/group/([\w-]+)/membersByGroupId", request.path):
            start, limit = int(request.query.get("start", 0)), min(int(request.query.get("limit", 200)), self.page_size)
            inside = [self._person(each) for each in sorted(self.groups.get(match[1], ()))]
            return Reply({"results": inside[start : start + limit], "start": start, "limit": limit})
        if request.path == f"{_API}/users-bulk" and request.method == "POST":
            return self._people(request.json()["accountIds"])
        return Reply({"errors": [{"status": 404, "code": "NOT_FOUND", "title": "Not Found", "detail": None}]}, 404)

    def _asked_spaces(self, request: Request) -> Iterable[Mapping[str, Any]]:
        keys = request.query.get("keys")
        status = request.query.get("status")
        for each in self.spaces.values():
            if (not keys or each["key"] in keys.split(",")) and (not status or each["status"] == status):
                yield each

    def _asked_contents(self, request: Request) -> Iterable[Mapping[str, Any]]:
        query = request.query
        spaces, ids = query.get("space-id"), query.get("id")
        statuses = query.get("status", "current").split(",")
        for each in (*self.contents.values(), *self.removed.values()):
            if each["status"] not in statuses:
                continue
            if each["type"] != request.path.rpartition("/")[2]:
                continue
            if spaces and each["spaceId"] not in spaces.split(","):
                continue
            if ids and each["id"] not in ids.split(","):
                continue
            yield each

    def _shown(self, content: Mapping[str, Any], *, with_body: bool) -> Mapping[str, Any]:
        if "storage" not in content:
            return content
        key = self.spaces[int(content["spaceId"])]["key"]
        kept = {name: value for name, value in content.items() if name not in {"storage", "type"}}
        body = {"storage": {"representation": "storage", "value": content["storage"]}} if with_body else {}
        place = f"/spaces/{key}/pages/{content['id']}/{content['title'].replace(' ', '+')}"
        return {**kept, "body": body, "_links": {"webui": place, "editui": f"{place}?edit", "tinyui": "/x/abc"}}

    def _page(self, request: Request, listed: Iterable[Mapping[str, Any]]) -> Reply:
        query = request.query
        sort = query.get("sort", "id")
        ordered = sorted(listed, key=lambda each: _place(each, sort), reverse=sort.startswith("-"))
        if cursor := query.get("cursor"):
            epoch, after = json.loads(base64.b64decode(cursor))
            if epoch != self.epoch:
                return Reply({"errors": [{"status": 400, "code": "INVALID", "title": "Invalid cursor"}]}, 400)
            down = sort.startswith("-")
            ordered = [each for each in ordered if (_place(each, sort) < after if down else _place(each, sort) > after)]
        size = min(int(query.get("limit", 25)), self.page_size)
        links: dict[str, str] = {"base": SITE}
        if size < len(ordered):
            following = json.dumps([self.epoch, _place(ordered[size - 1], sort)]).encode()
            parameters = {**query, "cursor": base64.b64encode(following).decode()}
            links["next"] = f"{request.path}?{urlencode(parameters)}"
        with_body = query.get("body-format") == "storage"
        return Reply({"results": [self._shown(each, with_body=with_body) for each in ordered[:size]], "_links": links})

    def _people(self, accounts: Iterable[str]) -> Reply:
        if not self.may_name_people:
            return Reply({"errors": [{"status": 403, "code": "FORBIDDEN", "title": "no"}]}, 403)
        return Reply({"results": [self._person(account) for account in accounts if account in self.people]})

    def _person(self, account: str) -> dict[str, Any]:
        email = f"{account.partition(':')[2]}@example.org" if self.shows_addresses else None
        return {
            "accountId": account,
            "displayName": self.people.get(account),
            "email": email,
            "accountStatus": "active",
        }

    def _permissions(self, space: int) -> list[dict[str, Any]]:
        """Return who may do what in a space; only some of it is about reading it."""
        edit = {"key": "create", "targetType": "page"}
        return [
            {"id": str(number), "principal": {"type": kind, "id": identity}, "operation": operation}
            for number, ((kind, identity), operation) in enumerate(
                (
                    *((reader, {"key": "read", "targetType": "space"}) for reader in self.readers.get(space, ())),
                    (("user", "557058:nobody"), edit),
                )
            )
        ]

    def _searched(self, cql: str) -> Iterable[dict[str, Any]]:
        keys = set(re.findall(r'"([^"]+)"', cql))
        return [each for each in self.contents.values() if self.spaces[int(each["spaceId"])]["key"] in keys]

    def above(self, identity: int) -> list[int]:
        """Return what stands above a page, the topmost first."""
        parent = self.folders[identity] if identity in self.folders else self.contents[identity]["parentId"]
        return [*self.above(int(parent)), int(parent)] if parent else []

    def _with_restrictions(self, content: Mapping[str, Any]) -> dict[str, Any]:
        identity = int(content["id"])
        above = [
            {"id": str(each), "type": "folder" if each in self.folders else "page"} for each in self.above(identity)
        ]
        return {"id": content["id"], "ancestors": above, "restrictions": {"read": self._restriction(identity)}}

    def _restriction(self, identity: int) -> dict[str, Any]:
        named = self.restricted.get(identity, ())
        users = [{"type": "known", "accountId": each} for kind, each in named if kind == "user"]
        groups = [{"type": "group", "id": each, "name": each} for kind, each in named if kind == "group"]
        lists = {"user": {"results": users, "size": len(users)}, "group": {"results": groups, "size": len(groups)}}
        return {"operation": "read", "restrictions": lists}

    def _next_version(self, identity: int) -> None:
        content = self.contents[identity]
        number = content["version"]["number"] + 1
        content["version"] = {"createdAt": self._moment(), "number": number, "authorId": "557058:bob"}

    def _moment(self) -> str:
        self.hours += 1
        return (BASE + timedelta(hours=self.hours)).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def _id(self) -> int:
        self._ids += 1
        return self._ids


def large(pages: int, *, page_size: int = 250) -> ConfluenceServer:
    """Return a site with a space of so many pages, ten below each of its first level."""
    server = ConfluenceServer(page_size=page_size)
    space = server.space("ENG", "Engineering")
    parent = None
    for number in range(pages):
        steps = f"<h2>When case {number} occurs</h2><p>Restart service {number} within {number} seconds.</p>"
        written = server.write(space, f"Runbook {number}", steps, parent=None if number % 11 == 0 else parent)
        parent = written if number % 11 == 0 else parent
    return server


def _place(content: Mapping[str, Any], sort: str) -> list[Any]:
    if sort == "-modified-date":
        return [content["version"]["createdAt"], int(content["id"])]
    return [int(content["id"])]
