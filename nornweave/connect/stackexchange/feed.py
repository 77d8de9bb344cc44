"""Read questions with certain tags, and their answers, from the Stack Exchange API: one document per question.

A full pass lists the questions of each tag by creation, a pass of changes by activity since the last one. Pages follow
each other by these moments, not by number: nothing shifts when something changes meanwhile, and pages beyond the 25th
need a key. Answers are asked for a hundred questions at a time, and only where a question's marks changed.

A pass of changes asks again for the hundred questions that were confirmed longest ago: no list tells what was deleted.

Several tags are several lists: ``/questions?tagged=a;b`` has the questions with all of them.

Source: api.stackexchange.com/docs/questions, …/answers-on-questions, …/min-max.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from nornweave.connect.connectors import StackExchangeSettings
from nornweave.connect.conversation import as_is
from nornweave.connect.mirror.api_client import ApiAnswer, ApiClient, Limits, Parameters, Trouble, listed
from nornweave.connect.mirror.feed import (
    Body,
    Feed,
    FeedRecord,
    Known,
    Pass,
    RecordPage,
    least_confirmed,
    pages_of,
    staged,
)
from nornweave.connect.stackexchange.document import stackexchange_document
from nornweave.core.errors import ConfigError, SourceUnavailableError
from nornweave.core.types import Domain

PER_PAGE = 100
_THROTTLE_VIOLATION = 502
_PASSING = frozenset({500, _THROTTLE_VIOLATION, 503})
# Clients report that the announced pause is sometimes too short by a moment.
_GRACE_S = 1.0
_UNNAMED_WAIT_S = 60.0
_WAIT = re.compile(r"available in (\d{1,9}) seconds")


class StackExchangeApi(ApiClient):
    """The API methods of one Stack Exchange site."""

    def __init__(self, settings: StackExchangeSettings, limits: Limits | None) -> None:
        self._site = settings.site or ""
        self._key_name, key = settings.token_name, settings.token
        self._ready_at = 0.0
        secrets = {"key": key} if key else {}
        super().__init__(settings.api_url, secrets=secrets, token_name=self._key_name, limits=limits)

    def ask(self, address: str, parameters: Parameters) -> tuple[ApiAnswer, Mapping[str, Any]]:
        """Call an API method.

        Args:
            address: the address, relative to the API's.
            parameters: query parameters in addition to the site and the key.

        Returns:
            The answer and its content.

        Raises:
            SourceUnavailableError: the API refuses, does not answer, or demands a pause that is too long. The message
                says what to do.
        """
        self.wait(max(self._ready_at - time.monotonic(), 0.0), address)
        answer = self.get(address, {**parameters, "site": self._site})
        return answer, answer.mapping()

    def trouble(self, answer: ApiAnswer) -> Trouble | None:
        """Return the problem that an answer reports; ``None`` if there is no problem.

        Record the pause that the API demands.
        """
        try:
            content = answer.mapping()
        except SourceUnavailableError:
            return super().trouble(answer)  # a proxy may have sent it in place of the API
        backoff = as_is(content.get("backoff"), int) or 0
        if backoff > 0:
            self._ready_at = time.monotonic() + min(backoff, 10**9) + _GRACE_S
        error, name = content.get("error_id"), self._said(content.get("error_name"))
        if error is None:
            return super().trouble(answer)
        refusal = SourceUnavailableError(f"{answer.url}: {self._advice_on(name)}")
        pause = max(self._ready_at - time.monotonic(), 0.0)
        if error == _THROTTLE_VIOLATION:
            named = _WAIT.search(str(content.get("error_message")))
            pause = max(float(named[1]) if named else _UNNAMED_WAIT_S, pause)
        return Trouble(refusal, is_passing=error in _PASSING, wait_s=pause or None)

    def _said(self, name: object) -> str:
        return re.sub(r"\W+", " ", self.origin.hide(str(name)))[:100]

    def _advice_on(self, name: str) -> str:
        if name == "bad_parameter":
            return f"bad_parameter; check that the site {self._site!r} exists, and the names of its tags"
        if name in ("access_denied", "key_required"):
            return f"{name}; check the app key in {self._key_name}"
        return f"{name}; try again later"


# Answers of the API may be as old as some minutes.
_OVERLAP_S = 600
_MAX_PAGES_OF_A_MOMENT = 100
_FIELDS = (
    *("question_id", "answer_id", "title", "body", "tags", "score", "link", "creation_date", "last_activity_date"),
    *("is_accepted", "accepted_answer_id", "answer_count"),
)
_MARKS = ("last_activity_date", "answer_count", "accepted_answer_id")


class StackExchangeFeed(Feed):
    """The questions of one site that have certain tags."""

    domain = Domain.RESEARCH
    version = "stackexchange-api-1"
    parser = staticmethod(stackexchange_document)
    options = MappingProxyType({"domain": Domain.RESEARCH})

    def __init__(self, settings: StackExchangeSettings, *, limits: Limits | None = None) -> None:
        if not settings.tags:
            raise ConfigError(
                f"tags: none; name those whose questions to read, as {settings.site!r} has too many in all"
            )
        self._tags = sorted(set(settings.tags))
        self.client = self._api = StackExchangeApi(settings, limits)
        # A change of tags takes effect in the next passes.
        self.scope = f"1,{settings.api_url.rstrip('/')},{settings.site}"

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        notes: dict[str, Any] = {"tags": {}}
        lists = {f"tag {tag}": partial(self._tag, tag, state, known, notes) for tag in self._tags}
        yield from staged(state, {**lists, "again": lambda _: self._asked_again(state, known)}, notes)

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:  # noqa: ARG002
        """Return a question with its answers in the API's form."""
        bodies = dict(records)
        question = bodies.pop(f"{path}/0", {})
        content = {"items": [{**question, "answers": list(bodies.values())}]}
        return json.dumps(content, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")

    def _tag(
        self, tag: str, state: Pass, known: Known, notes: dict[str, Any], at: Mapping[str, Any] | None
    ) -> Iterator[RecordPage]:
        """List the questions of a tag from the position ``at`` on, oldest first. ``None`` means the start."""
        since = None if state.is_full else ((state.since or {}).get("tags") or {}).get(tag)
        sort, moment = ("creation", "creation_date") if since is None else ("activity", "last_activity_date")
        place = _Place(**at) if at else _Place(start=since)
        ask = partial(self._page, "questions", {"tagged": tag, "sort": sort}, moment)
        for (questions, begun), following in pages_of(ask, place, tag):
            if following is None:
                notes["tags"][tag] = begun
            page = self._with_answers(questions, known)
            yield replace(page, position=asdict(following) if following else None)

    def _page(
        self, address: str, parameters: Mapping[str, str], moment: str, place: _Place | None
    ) -> tuple[tuple[list[dict[str, Any]], int], _Place | None]:
        """Return a page of a list with the time when the list was begun, and the next position.

        The position is ``None`` after the last page. ``moment`` is the field by whose time the list is sorted. The next
        page begins with the time of the last item, because several items may have the same time.
        """
        place = place or _Place()
        start: dict[str, str | int] = {} if place.start is None else {"min": place.start}
        asked = {**parameters, **start, "order": "asc", "page": place.page, "pagesize": PER_PAGE, "filter": "withbody"}
        answer, content = self._api.ask(address, asked)
        items = listed(content, "items", address)
        place = replace(place, at=place.at if place.at is not None else int(answer.moment) - _OVERLAP_S)
        if content.get("has_more") is not True:
            return (items, place.at or 0), None
        if not items or place.page > _MAX_PAGES_OF_A_MOMENT:
            raise SourceUnavailableError("a list that goes on without saying anything new; try again later")
        last = as_is(items[-1].get(moment), int)
        is_same = last is None or (place.start is not None and last <= place.start)
        following = replace(place, page=place.page + 1) if is_same else replace(place, start=last, page=1)
        return (items, place.at or 0), following

    def _every(self, address: str) -> Iterator[Mapping[str, Any]]:
        """Yield the objects of a list over all pages. The address names at most a hundred ids."""
        ask = partial(self._page, address, {"sort": "creation"}, "creation_date")
        return (each for (items, _), _ in pages_of(ask, None, address) for each in items)

    def _asked_again(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        """Ask whether some stored questions still exist and still have one of the tags."""
        numbers = [] if state.is_full else least_confirmed(known, "questions/", state.began_at, PER_PAGE)
        if not numbers:
            return
        listed = self._every(f"questions/{';'.join(numbers)}")
        there = [each for each in listed if not {*self._tags}.isdisjoint(as_is(each.get("tags"), list) or ())]
        page = self._with_answers(there, known)
        left = {*numbers} - {str(each["question_id"]) for each in there}
        yield replace(page, gone=(*page.gone, *(f"questions/{each}/" for each in sorted(left))))

    def _with_answers(self, questions: Sequence[Mapping[str, Any]], known: Known) -> RecordPage:
        """Return questions with their answers. The answers are read again only if the question changed."""
        unique = {_number(each, "question_id"): each for each in questions}
        changed = {number for number, each in unique.items() if _has_changed(each, known.body(_key(number)))}
        answers = self._answers([number for number in changed if unique[number].get("answer_count") != 0])
        records = []
        for number, question in unique.items():
            body = _kept(question)
            if number in changed:
                # Answers may be older or newer than the question. If some are missing, ask for it again.
                body["answer_count"] = len(answers.get(number, ()))
                records += [_answer(number, each) for each in answers.get(number, ())]
            records.append(FeedRecord(key=_key(number), document=_path(number), body=body))
        return RecordPage(
            records=tuple(records),
            gone=tuple(f"{_path(number)}/answer/" for number in sorted(changed)),
            confirmed=tuple(f"{_path(number)}/answer/" for number in unique if number not in changed),
        )

    def _answers(self, numbers: Sequence[int]) -> Mapping[int, list[Mapping[str, Any]]]:
        """Return the answers to at most a hundred questions."""
        found: dict[int, dict[int, Mapping[str, Any]]] = {}
        address = f"questions/{';'.join(map(str, sorted(numbers)))}/answers"
        for each in self._every(address) if numbers else ():
            found.setdefault(_number(each, "question_id"), {})[_number(each, "answer_id")] = each
        return {number: list(answers.values()) for number, answers in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A position in a list.

    Attributes:
        start: the earliest creation or activity time of the listed items, in seconds since 1970; ``None`` for no limit.
        page: the page of the list with this ``start``, from 1.
        at: the time when the list was begun, minus some overlap; ``None`` before the first page.
    """

    start: int | None = None
    page: int = 1
    at: int | None = None


def _has_changed(question: Mapping[str, Any], before: Body | None) -> bool:
    return before is None or any(question.get(mark) != before.get(mark) for mark in _MARKS)


def _answer(question: int, content: Mapping[str, Any]) -> FeedRecord:
    # Padded, so that the order of the keys is that of the answers.
    key = f"{_path(question)}/answer/{_number(content, 'answer_id'):015}"
    return FeedRecord(key=key, document=_path(question), body=_kept(content))


def _kept(content: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: content[key] for key in _FIELDS if content.get(key) is not None}
    name = (as_is(content.get("owner"), dict) or {}).get("display_name")
    return {**kept, "owner": {"display_name": name}}


def _number(content: Mapping[str, Any], key: str) -> int:
    number = content[key]
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 10**15:
        raise ValueError(f"{key}: {str(number)[:40]!r}")
    return number


def _path(number: int) -> str:
    return f"questions/{number}"


def _key(number: int) -> str:
    return f"{_path(number)}/0"
