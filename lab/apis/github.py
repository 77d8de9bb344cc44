"""GitHub's API, as far as a repository's issues, comments, reviews and discussions go.

Source: docs.github.com/rest, version 2022-11-28: ``Link`` headers, ``since``, ``ETag``; docs.github.com/graphql.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from lab.apis.server import Api, Reply, Request
from nornweave.core.types import digest

BASE = datetime(2026, 1, 1, tzinfo=UTC)
REPOSITORY = "acme/payments"
TOKEN = "ghp_secret123"
_ROOT = f"/repos/{REPOSITORY}"
_OWNER = REPOSITORY.partition("/")[0]


class GithubServer(Api):
    """A repository; every change moves its clock by an hour."""

    def __init__(self, *, page_size: int = 100, needs_token: bool = False) -> None:
        super().__init__()
        self.issues: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, dict[str, Any]] = {}
        self.review_comments: dict[int, dict[str, Any]] = {}
        self.reviews: dict[int, dict[int, dict[str, Any]]] = {}
        self.discussions: dict[int, dict[str, Any]] = {}
        self.page_size = page_size
        self.needs_token = needs_token
        self.visibility = "private"
        self.direct: set[str] = set()
        self.teams: dict[str, set[str]] = {}
        self.organisation: set[str] = set()
        self.base_permission = "none"
        self.may_list_people = True
        self.hours = 0
        self._ids = 1000
        self._numbers = 0

    def moment(self) -> str:
        self.hours += 1
        return _iso(BASE + timedelta(hours=self.hours))

    def open(self, title: str, body: str = "", *, pull: bool = False, user: str = "alice") -> int:
        number, moment = self._number(), self.moment()
        self.issues[number] = {
            "id": self._id(),
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "user": {"login": user},
            "html_url": f"https://github.com/{REPOSITORY}/{'pull' if pull else 'issues'}/{number}",
            "labels": [{"name": "bug"}],
            "comments": 0,
            "created_at": moment,
            "updated_at": moment,
            "reactions": {"total_count": 0},
            **({"pull_request": {"url": "x"}} if pull else {}),
        }
        self.reviews[number] = {}
        return number

    def comment(self, number: int, body: str, *, review: bool = False) -> int:
        identifier, moment = self._id(), self.moment()
        place = f"{self.url}{_ROOT}"
        about = (
            {"pull_request_url": f"{place}/pulls/{number}", "path": "a.py", "line": 3}
            if review
            else {"issue_url": f"{place}/issues/{number}"}
        )
        content = {
            **about,
            "id": identifier,
            "body": body,
            "user": {"login": "bob"},
            "created_at": moment,
            "updated_at": moment,
        }
        (self.review_comments if review else self.comments)[identifier] = content
        self._touch(number, moment)
        return identifier

    def review(self, number: int, body: str) -> int:
        identifier, moment = self._id(), self.moment()
        self.reviews[number][identifier] = {"id": identifier, "body": body, "user": None, "submitted_at": moment}
        self._touch(number, moment)
        return identifier

    def edit(self, number: int, body: str) -> None:
        self.issues[number]["body"] = body
        self._touch(number, self.moment())

    def edit_comment(self, identifier: int, body: str) -> None:
        content, moment = self.comments[identifier], self.moment()
        self.comments[identifier] = {**content, "body": body, "updated_at": moment}
        self._touch(_number(content), moment)

    def delete_comment(self, identifier: int) -> None:
        content = self.comments.pop(identifier)
        self._touch(_number(content), self.moment())

    def delete(self, number: int) -> None:
        self.moment()
        self.issues.pop(number)
        self.reviews.pop(number)
        for kept in (self.comments, self.review_comments):
            for identifier in [key for key, each in kept.items() if _number(each) == number]:
                del kept[identifier]

    def discuss(self, title: str, body: str, *, comments: Iterable[str] = ()) -> int:
        number, moment = self._number(), self.moment()
        self.discussions[number] = {
            "id": f"D_{number}",
            "number": number,
            "title": title,
            "body": body,
            "url": f"https://github.com/{REPOSITORY}/discussions/{number}",
            "createdAt": moment,
            "updatedAt": moment,
            "author": {"login": "carol"},
            "isAnswered": False,
            "labels": {"nodes": [{"name": "idea"}]},
            "said": [self._said(each) for each in comments],
        }
        return number

    def handle(self, request: Request) -> Reply:
        if self.needs_token and request.headers.get("authorization") != f"Bearer {TOKEN}":
            return Reply({"message": "Bad credentials"}, 401)
        if request.path == "/graphql":
            return self._graphql(request.json())
        lists: Mapping[str, Iterable[Mapping[str, Any]]] = {
            f"{_ROOT}/issues": self.counted(),
            f"{_ROOT}/issues/comments": self.comments.values(),
            f"{_ROOT}/pulls/comments": self.review_comments.values(),
        }
        if request.path == _ROOT:
            private = self.visibility != "public"
            return Reply({"full_name": REPOSITORY, "private": private, "visibility": self.visibility})
        people = {f"{_ROOT}/collaborators": self.collaborators(), f"/orgs/{_OWNER}/members": self.organisation}
        if request.path in people:
            if not self.may_list_people:
                return Reply({"message": "Must have push access to view repository collaborators."}, 403)
            listed: list[Mapping[str, Any]] = [
                {"id": number, "login": login, "type": "User", "permissions": {"pull": True, "push": False}}
                for number, login in enumerate(sorted(people[request.path]))
            ]
            return self._page(request, listed)
        if request.path in lists:
            return self._page(request, list(lists[request.path]))
        match = re.fullmatch(rf"{_ROOT}/(issues|pulls)/(\d+)/(comments|reviews)", request.path)
        if match is None or int(match[2]) not in self.issues:
            return Reply({"message": "Not Found"}, 404)
        number = int(match[2])
        if match[3] == "reviews":
            return self._page(request, list(self.reviews[number].values()))
        return self._page(request, [each for each in self.comments.values() if _number(each) == number])

    def collaborators(self) -> set[str]:
        """Return whom GitHub lists: outsiders and members with access of their own, by a team, or by the base."""
        by_base = self.organisation if self.base_permission != "none" else set()
        return self.direct.union(by_base, *self.teams.values())

    def counted(self) -> Iterable[Mapping[str, Any]]:
        counts = dict.fromkeys(self.issues, 0)
        for each in self.comments.values():
            counts[_number(each)] += 1
        return [{**issue, "comments": counts[number]} for number, issue in self.issues.items()]

    def _page(self, request: Request, listed: list[Mapping[str, Any]]) -> Reply:
        query = request.query
        if since := query.get("since"):
            listed = [each for each in listed if each["updated_at"] >= since]
        field = f"{query.get('sort', 'created')}_at"
        listed.sort(key=lambda each: (each.get(field, ""), each["id"]), reverse=query.get("direction") == "desc")
        size = min(int(query.get("per_page", 30)), self.page_size)
        page = int(query.get("page", 1))
        shown = listed[(page - 1) * size : page * size]
        headers = {"date": self._date()}
        if len(shown) < size or size == int(query.get("per_page", 30)):  # a feed can tell that no other page was full
            headers["etag"] = f'W/"{digest(repr(shown))}"'
        if "etag" in headers and request.headers.get("if-none-match") == headers["etag"]:
            return Reply(status=304, headers=headers)
        if page * size < len(listed):
            pairs = "&".join(f"{key}={value}" for key, value in {**query, "page": page + 1}.items())
            headers["link"] = f'<{self.url}{request.path}?{pairs}>; rel="next", <{self.url}/x>; rel="last"'
        return Reply(shown, headers=headers)

    def _graphql(self, asked: Mapping[str, Any]) -> Reply:
        variables, size = asked["variables"], min(25, self.page_size)
        if numbers := re.findall(r"issueOrPullRequest\(number: (\d+)\)", asked["query"]):
            there = {f"n{each}": {"number": int(each)} if int(each) in self.issues else None for each in numbers}
            errors = [{"type": "NOT_FOUND", "path": ["repository", name]} for name, it in there.items() if it is None]
            return Reply({"data": {"repository": there}, **({"errors": errors} if errors else {})})
        if "number" in variables:
            comments = self._comments(self.discussions[variables["number"]], int(variables.get("after") or 0))
            return Reply({"data": {"repository": {"discussion": {"comments": comments}}}})
        field = "updatedAt" if variables["field"] == "UPDATED_AT" else "createdAt"
        listed = sorted(
            self.discussions.values(), key=lambda each: each[field], reverse=variables["direction"] == "DESC"
        )
        start = int(variables.get("after") or 0)
        nodes = [
            {**{key: value for key, value in each.items() if key != "said"}, "comments": self._comments(each, 0)}
            for each in listed[start : start + size]
        ]
        following = {"hasNextPage": start + size < len(listed), "endCursor": str(start + size)}
        connection = {"totalCount": len(listed), "pageInfo": following, "nodes": nodes}
        return Reply({"data": {"repository": {"discussions": connection}}}, headers={"date": self._date()})

    def _comments(self, discussion: Mapping[str, Any], start: int) -> Mapping[str, Any]:
        size, said = min(50, self.page_size), discussion["said"]
        following = {"hasNextPage": start + size < len(said), "endCursor": str(start + size)}
        return {"pageInfo": following, "nodes": said[start : start + size]}

    def _said(self, body: str) -> dict[str, Any]:
        reply = {"id": f"DC_{self._id()}", "body": f"Re: {body}", "createdAt": self.moment(), "author": None}
        said = {"id": f"DC_{self._id()}", "body": body, "createdAt": self.moment(), "author": {"login": "dana"}}
        return {**said, "replies": {"nodes": [reply]}}

    def _touch(self, number: int, moment: str) -> None:
        self.issues[number]["updated_at"] = moment

    def _number(self) -> int:
        """Return the next number; that of what was deleted is never given again."""
        self._numbers += 1
        return self._numbers

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _date(self) -> str:
        return format_datetime(BASE + timedelta(hours=self.hours, minutes=1), usegmt=True)


def large(issues: int, *, page_size: int = 100) -> GithubServer:
    """Return a repository with so many issues, one of ten a pull request, two comments each."""
    server = GithubServer(page_size=page_size)
    for number in range(issues):
        opened = server.open(f"Issue {number}", f"What happens in case {number}?", pull=number % 10 == 9)
        server.comment(opened, f"It returns {number}.")
        server.comment(opened, f"Fixed in release {number}.")
    return server


def _number(content: Mapping[str, Any]) -> int:
    return int((content.get("issue_url") or content["pull_request_url"]).rpartition("/")[2])


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
