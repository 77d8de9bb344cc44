"""The Stack Exchange API, as far as questions with tags and their answers go.

Source: api.stackexchange.com/docs: the wrapper, ``min``, ``has_more``, ``backoff``, quotas; everything is compressed.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Collection, Iterable, Mapping
from email.utils import formatdate
from typing import Any

from lab.apis.server import Api, Reply, Request

BASE = 1_768_521_600  # 2026-01-16 00:00 UTC
KEY = "U4DMV*8nvpm3EOpvf69Rxw(("
SITE = "stackoverflow"


class StackExchangeServer(Api):
    """A site; every change moves its clock by a minute."""

    def __init__(self, *, page_size: int = 100, quota: int = 100_000) -> None:
        super().__init__()
        self.page_size = page_size
        self.quota = quota
        self.key = KEY
        self.backoff = 0
        self.now = BASE
        self.questions: dict[int, dict[str, Any]] = {}
        self.answers: dict[int, dict[str, Any]] = {}
        self._ready_at: dict[str, float] = {}
        self._ids = 100

    def ask(self, title: str, body: str = "<p>How?</p>", *, tags: Iterable[str] = ("python",), at: int = 60) -> int:
        self.now += at
        self._ids += 1
        self.questions[self._ids] = {
            "question_id": self._ids,
            "title": title,
            "body": body,
            "tags": list(tags),
            "owner": {"display_name": "alice", "user_id": 1, "link": "https://example.org/users/1"},
            "score": 3,
            "view_count": self._ids,
            "link": f"https://stackoverflow.com/questions/{self._ids}/title",
            "creation_date": self.now,
            "last_activity_date": self.now,
        }
        return self._ids

    def answer_to(self, question: int, body: str = "<p>So.</p>", *, score: int = 1) -> int:
        self.now += 60
        self._ids += 1
        self.answers[self._ids] = {
            "answer_id": self._ids,
            "question_id": question,
            "body": body,
            "owner": {"display_name": "bob"},
            "score": score,
            "is_accepted": False,
            "creation_date": self.now,
            "last_activity_date": self.now,
        }
        self.questions[question]["last_activity_date"] = self.now
        return self._ids

    def accept(self, answer: int) -> None:
        self.answers[answer]["is_accepted"] = True
        self.questions[self.answers[answer]["question_id"]]["accepted_answer_id"] = answer

    def edit(self, post: int, body: str) -> None:
        self.now += 60
        content = self.questions.get(post) or self.answers[post]
        content |= {"body": body, "last_activity_date": self.now, "last_edit_date": self.now}
        self.questions[content["question_id"]]["last_activity_date"] = self.now

    def delete(self, post: int) -> None:
        """Delete a question with its answers, or an answer; no date of activity tells."""
        self.now += 60
        gone = self.answers.pop(post, None)
        if gone is not None:
            question = self.questions[gone["question_id"]]
            if question.get("accepted_answer_id") == post:
                del question["accepted_answer_id"]
            return
        del self.questions[post]
        for answer in [each for each, content in self.answers.items() if content["question_id"] == post]:
            del self.answers[answer]

    def handle(self, request: Request) -> Reply:
        query = request.query
        method = "/".join(part for part in request.path.split("/")[2:] if ";" not in part and not part.isdigit())
        if query.get("site") != SITE:
            return self._error(400, "bad_parameter", f"No site found for name `{query.get('site')}`")
        if "key" in query and query["key"] != self.key:
            return self._error(400, "bad_parameter", "`key` doesn't match a known application")
        if int(query["page"]) > 25 and "key" not in query:
            return self._error(403, "access_denied", "page above 25 requires access token or app key")
        if self.quota <= 0:
            return self._error(502, "throttle_violation", "more requests available in 40000 seconds")
        if time.monotonic() < self._ready_at.get(method, 0.0):
            return self._error(502, "throttle_violation", "Violation of backoff parameter")
        assert int(query["pagesize"]) <= 100
        assert (query["filter"], query["order"]) == ("withbody", "asc")
        self.quota -= 1
        field = {"creation": "creation_date", "activity": "last_activity_date"}[query["sort"]]
        if method == "questions":
            numbers = re.findall(r"\d+", request.path.partition("/questions")[2])
            chosen = self._questions(query.get("tagged"), {int(each) for each in numbers})
        else:
            chosen = self._answers(request.path)
        listed = sorted(
            (each for each in chosen if each[field] >= int(query.get("min", 0))), key=lambda each: each[field]
        )
        return self._page(method, listed, int(query["page"]))

    def _questions(self, tagged: str | None, numbers: Collection[int]) -> list[dict[str, Any]]:
        counts: dict[int, int] = {}
        for answer in self.answers.values():
            counts[answer["question_id"]] = counts.get(answer["question_id"], 0) + 1
        return [
            {**each, "answer_count": counts.get(number, 0), "is_answered": "accepted_answer_id" in each}
            for number, each in self.questions.items()
            if (number in numbers if tagged is None else set(tagged.split(";")) <= set(each["tags"]))
        ]

    def _answers(self, path: str) -> list[dict[str, Any]]:
        numbers = {int(each) for each in path.split("/")[3].split(";")}
        assert len(numbers) <= 100
        return [each for each in self.answers.values() if each["question_id"] in numbers]

    def _page(self, method: str, listed: list[dict[str, Any]], page: int) -> Reply:
        size = min(100, self.page_size)
        content = {
            "items": listed[(page - 1) * size : page * size],
            "has_more": len(listed) > page * size,
            "quota_max": 300,
            "quota_remaining": self.quota,
        }
        if self.backoff:
            content["backoff"] = self.backoff
            self._ready_at[method] = time.monotonic() + self.backoff
        return self._reply(content)

    def _error(self, number: int, name: str, message: str) -> Reply:
        return self._reply({"error_id": number, "error_name": name, "error_message": message}, 400)

    def _reply(self, content: Mapping[str, Any], status: int = 200) -> Reply:
        headers = {"content-encoding": "gzip", "date": formatdate(self.now + 1, usegmt=True)}
        return Reply(gzip.compress(json.dumps(content).encode(), 1), status, headers)


def small() -> StackExchangeServer:
    """Return a site with two questions about DuckDB, one of them with an accepted answer."""
    server = StackExchangeServer()
    first = server.ask("How do I read Parquet with DuckDB?", "<p>A folder of files.</p>", tags=["duckdb", "parquet"])
    server.accept(server.answer_to(first, "<p>Use <code>read_parquet('*.parquet')</code>.</p>", score=7))
    server.ask("Is DuckDB safe for several writers?", "<p>Two processes write.</p>", tags=["duckdb"])
    return server


def large(questions: int, *, page_size: int = 100) -> StackExchangeServer:
    """Return a site with so many questions, two answers each."""
    server = StackExchangeServer(page_size=page_size)
    for number in range(questions):
        asked = server.ask(f"What happens in case {number}?", f"<p>In case {number}.</p>", tags=["python"])
        server.answer_to(asked, f"<p>It returns {number}.</p>")
        server.answer_to(asked, f"<p>It fails in release {number}.</p>")
    return server
