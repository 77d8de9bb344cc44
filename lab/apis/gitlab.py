"""GitLab's API, as far as a project's issues, merge requests, discussions, wiki and members go.

Source: docs.gitlab.com/api (version 4): ``Link`` headers, ``updated_after``, ``iids[]``, ``members/all``, ``wikis``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, unquote

from lab.apis.server import Api, Reply, Request

BASE = datetime(2026, 1, 1, tzinfo=UTC)
PROJECT = "acme/tools/payments"
TOKEN = "glpat-secret123"
_ID = 81
_ROOT = "/api/v4/projects"
_KINDS = ("issues", "merge_requests")
_FEATURES = ("issues", "merge_requests", "wiki", "repository")
ROLES = {"guest": 10, "planner": 15, "reporter": 20, "developer": 30}


class GitlabServer(Api):
    """A project; every change moves its clock by an hour.

    Attributes:
        direct: members by name, with their role; ``inherited`` those of groups above.
        blocked: whose account is blocked.
        emails: addresses that members show.
    """

    def __init__(self, *, page_size: int = 100, needs_token: bool = True) -> None:
        super().__init__()
        self.threads: dict[str, dict[int, dict[str, Any]]] = {kind: {} for kind in _KINDS}
        self.notes: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
        self.wiki: dict[str, dict[str, Any]] = {}
        self.page_size = page_size
        self.needs_token = needs_token
        self.visibility = "private"
        self.features = dict.fromkeys(_FEATURES, "enabled")
        self.direct: dict[str, int] = {}
        self.inherited: dict[str, int] = {}
        self.blocked: set[str] = set()
        self.emails: dict[str, str] = {}
        self.refused: set[str] = set()
        self.hours = 0
        self._ids = 1000
        self._last = dict.fromkeys(_KINDS, 0)

    def open(
        self, title: str, body: str = "", *, merge: bool = False, user: str = "alice", confidential: bool = False
    ) -> int:
        kind = _KINDS[merge]
        self._last[kind] += 1
        number, moment = self._last[kind], self._moment()
        self.threads[kind][number] = {
            "id": self._id(),
            "iid": number,
            "project_id": _ID,
            "title": title,
            "description": body or None,
            "state": "opened",
            "author": _person(user),
            "assignees": [],
            "labels": ["bug"],
            "upvotes": 0,
            "web_url": f"https://gitlab.com/{PROJECT}/-/{kind}/{number}",
            "created_at": moment,
            "updated_at": moment,
            **({} if merge else {"confidential": confidential}),
        }
        self.notes[kind, number] = {}
        return number

    def comment(self, number: int, body: str, *, merge: bool = False, touches: bool = True, **keys: Any) -> int:
        """Say something; within a minute of another change it does not ``touch`` the time of the thread."""
        kind, identifier, moment = _KINDS[merge], self._id(), self._moment()
        note = {"id": identifier, "body": body, "author": _person("bob"), "system": False, "internal": False}
        self.notes[kind, number][identifier] = {**note, "created_at": moment, "updated_at": moment, **keys}
        if touches:
            self.threads[kind][number]["updated_at"] = moment
        return identifier

    def edit(self, number: int, *, merge: bool = False, **keys: Any) -> None:
        self.threads[_KINDS[merge]][number] |= {**keys, "updated_at": self._moment()}

    def edit_comment(self, identifier: int, body: str, *, touches: bool = True) -> None:
        (kind, number), notes = next((place, each) for place, each in self.notes.items() if identifier in each)
        moment = self._moment()
        notes[identifier] |= {"body": body, "updated_at": moment}
        if touches:
            self.threads[kind][number]["updated_at"] = moment

    def delete_comment(self, identifier: int) -> None:
        """Delete a comment, which leaves the time of its thread."""
        next(each for each in self.notes.values() if identifier in each).pop(identifier)
        self._moment()

    def delete(self, number: int, *, merge: bool = False) -> None:
        self.threads[_KINDS[merge]].pop(number)
        self.notes.pop((_KINDS[merge], number))
        self._moment()

    def write(self, slug: str, content: str, *, title: str = "", kind: str = "markdown") -> None:
        self.wiki[slug] = {
            "slug": slug,
            "title": title or slug,
            "content": content,
            "format": kind,
            "encoding": "UTF-8",
        }
        self._moment()

    def handle(self, request: Request) -> Reply:
        if request.headers.get("authorization") not in (f"Bearer {TOKEN}", *(() if self.needs_token else (None,))):
            return Reply({"message": "401 Unauthorized"}, 401)
        place = request.path.removeprefix(_ROOT)
        if place == f"/{quote(PROJECT, safe='')}":
            levels = {f"{feature}_access_level": level for feature, level in self.features.items()}
            known = {"id": _ID, "path_with_namespace": PROJECT, "web_url": f"https://gitlab.com/{PROJECT}"}
            return Reply({**known, "visibility": self.visibility, **levels})
        match = re.fullmatch(rf"/{_ID}/([a-z_/]+?)(?:/(\d+)/discussions)?", unquote(place))
        if match is None:
            return Reply({"message": "404 Project Not Found"}, 404)
        if match[1] in self.refused or self.features.get(match[1]) == "disabled":
            return Reply({"message": "403 Forbidden"}, 403)
        kind, number = match[1], int(match[2] or 0)
        if kind == "wikis":
            return Reply([{**each, **({} if request.query.get("with_content") else {"content": ""})}
                          for each in self.wiki.values()])  # fmt: skip
        if kind == "members/all":
            return self._page(request, [self._member(*each) for each in sorted(self.roles().items())])
        if number:
            return (
                self._page(request, self._discussions(kind, number)) if number in self.threads[kind] else Reply({}, 404)
            )
        return self._page(request, self._chosen(request, kind))

    def roles(self) -> dict[str, int]:
        """Return every member with the highest role that they have."""
        return {name: max(self.direct.get(name, 0), self.inherited.get(name, 0))
                for name in (*self.direct, *self.inherited)}  # fmt: skip

    def _member(self, name: str, role: int) -> dict[str, Any]:
        state = "blocked" if name in self.blocked else "active"
        email = {"public_email": self.emails[name]} if name in self.emails else {}
        return {**_person(name), "state": state, "access_level": role, "expires_at": None, **email}

    def _discussions(self, kind: str, number: int) -> list[Mapping[str, Any]]:
        return [{"id": f"{each['id']:040x}", "individual_note": True, "notes": [each]}
                for each in self.notes[kind, number].values()]  # fmt: skip

    def _chosen(self, request: Request, kind: str) -> list[Mapping[str, Any]]:
        query, chosen = request.query, list(self.counted(kind))
        for order in ("created", "updated"):
            if after := query.get(f"{order}_after"):
                chosen = [each for each in chosen if each[f"{order}_at"] >= _with_fraction(after)]
        if numbers := re.findall(r"iids(?:\[\]|%5B%5D)=(\d+)", request.target):
            chosen = [each for each in chosen if str(each["iid"]) in numbers]
        field, is_down = query.get("order_by", "created_at"), query.get("sort", "desc") == "desc"
        return sorted(chosen, key=lambda each: (each[field], each["id"]), reverse=is_down)

    def counted(self, kind: str) -> Iterable[Mapping[str, Any]]:
        for number, each in self.threads[kind].items():
            said = [note for note in self.notes[kind, number].values() if not note["system"]]
            yield {**each, "user_notes_count": len(said)}

    def _page(self, request: Request, listed: list[Mapping[str, Any]]) -> Reply:
        query = request.query
        size, page = min(int(query.get("per_page", 20)), self.page_size), int(query.get("page", 1))
        headers = {"date": format_datetime(BASE + timedelta(hours=self.hours, minutes=1), usegmt=True)}
        if page * size < len(listed):
            following = re.sub(r"(?<=[?&])page=\d+&?", "", request.target)
            headers["link"] = f'<{self.url}{following}&page={page + 1}>; rel="next", <{self.url}/x>; rel="first"'
        return Reply(listed[(page - 1) * size : page * size], headers=headers)

    def _moment(self) -> str:
        self.hours += 1
        return f"{BASE + timedelta(hours=self.hours):%Y-%m-%dT%H:%M:%S.000Z}"

    def _id(self) -> int:
        self._ids += 1
        return self._ids


def large(threads: int, *, page_size: int = 100) -> GitlabServer:
    """Return a project with so many threads, one of ten a merge request, two comments each."""
    server = GitlabServer(page_size=page_size)
    for number in range(threads):
        merge = number % 10 == 9
        opened = server.open(f"Issue {number}", f"What happens in case {number}?", merge=merge)
        server.comment(opened, f"It returns {number}.", merge=merge)
        server.comment(opened, f"Fixed in release {number}.", merge=merge)
    return server


def large_wiki(pages: int) -> GitlabServer:
    """Return a project whose wiki has so many pages."""
    server = GitlabServer()
    for number in range(pages):
        server.write(f"topics/{number}", f"Topic {number} is about subject {number * 7919 % 1013}.")
    return server


def _person(name: str) -> dict[str, Any]:
    return {"id": sum(name.encode()), "username": name, "name": name.title(), "state": "active"}


def _with_fraction(moment: str) -> str:
    return moment if "." in moment else moment.replace("Z", ".000Z")
