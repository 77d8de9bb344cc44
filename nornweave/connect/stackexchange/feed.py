"""Read the questions with certain tags, and their answers, from the Stack Exchange API: a document for each question.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from nornweave.connect.conversation import as_is, mappings
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.feed import Body, FeedRecord, Known, Pass, RecordPage, least_confirmed
from nornweave.connect.stackexchange.api import PER_PAGE, StackExchangeApi
from nornweave.connect.stackexchange.connector import StackExchangeSettings
from nornweave.connect.stackexchange.document import stackexchange_document
from nornweave.core.errors import ConfigError, SourceUnavailableError
from nornweave.core.types import Document, Domain, Entry, JsonValue, SourceId
from nornweave.read.isolated import parse_apart

# Answers of the API may be as old as some minutes.
_OVERLAP_S = 600
# 2,000,000 questions; a server that sends more pages than this sends the same ones for ever.
_MAX_PAGES = 20_000
_MAX_PAGES_OF_A_MOMENT = 100
_TAG = re.compile(r"[^\s;,/?&]{1,100}")
_FIELDS = (
    *("question_id", "answer_id", "title", "body", "tags", "score", "link", "creation_date", "last_activity_date"),
    *("is_accepted", "accepted_answer_id", "answer_count"),
)
_MARKS = ("last_activity_date", "answer_count", "accepted_answer_id")


class StackExchangeFeed:
    """The questions with certain tags of one site."""

    domain = Domain.RESEARCH
    version = "stackexchange-api-1"

    def __init__(self, settings: StackExchangeSettings, *, limits: Limits | None = None) -> None:
        """Store the parameters; no request is made yet.

        Raises:
            ConfigError: no tags, or a tag, URL or key of a wrong form.
        """
        if not settings.tags:
            raise ConfigError(
                f"tags: none; name those whose questions to read, as {settings.site!r} has too many in all"
            )
        for tag in settings.tags:
            if not _TAG.fullmatch(tag):
                raise ConfigError(f"tags: {tag!r}; expected one tag, such as 'python'")
        self._place = f"{settings.api_url.rstrip('/')},{settings.site}"
        self._tags = sorted(set(settings.tags))
        self._api = StackExchangeApi(settings, limits)

    @property
    def scope(self) -> str:
        """What is read; another choice of tags is settled by the next passes."""
        return f"1,{self._place}"

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        self._api.begin()
        before = (state.since or {}).get("tags") or {}
        position: dict[str, Any] = state.position or {}
        done: dict[str, int] = dict(position.get("done") or {})
        for tag in self._tags:
            if tag in done:
                continue
            since = None if state.is_full else before.get(tag)
            place = _Place(**position["place"]) if position.get("tag") == tag else _Place(start=since)
            for step in self._tag(tag, place, known, is_whole=since is None):
                if step.following is None:
                    done[tag] = step.at
                position = {"done": dict(done)}
                if step.following is not None:
                    position |= {"tag": tag, "place": asdict(step.following)}
                since_tags = {each: at for each, at in done.items() if each in self._tags}
                yield replace(step, position=position, since={"tags": since_tags})
        if not state.is_full:
            yield replace(self._asked_again(state, known), position=position)

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:  # noqa: ARG002
        """Return a question with its answers, in the shape of the API."""
        question: dict[str, Any] = {}
        answers = []
        for key, body in records:
            if key == f"{path}/0":
                question = dict(body)
            else:
                answers.append(body)
        content = {"items": [{**question, "answers": answers}]}
        return json.dumps(content, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")

    def parse(self, source_id: SourceId, entry: Entry, raw: bytes) -> Document:
        return parse_apart(stackexchange_document, source_id, entry, raw, domain=self.domain)

    def _tag(self, tag: str, place: _Place, known: Known, *, is_whole: bool) -> Iterator[_Step]:
        """List the questions with a tag from a place on, oldest first."""
        sort, moment = ("creation", "creation_date") if is_whole else ("activity", "last_activity_date")
        for _ in range(_MAX_PAGES):
            listed = self._listed("questions", place, tagged=tag, sort=sort)
            place = listed.place
            step = self._with_answers(listed.items, known)
            following = listed.following(moment)
            yield replace(step, at=place.at or 0, following=following)
            if following is None:
                return
            place = following
        raise _too_many(tag)

    def _listed(self, method: str, place: _Place, *, address: str | None = None, **parameters: str) -> _Listed:
        start: dict[str, str | int] = {} if place.start is None else {"min": place.start}
        asked = {**parameters, **start, "order": "asc", "page": place.page, "pagesize": PER_PAGE, "filter": "withbody"}
        answer, content = self._api.ask(method, address or method, asked)
        at = place.at if place.at is not None else int(answer.moment) - _OVERLAP_S
        return _Listed(mappings(content["items"]), replace(place, at=at), content.get("has_more") is True)

    def _asked_again(self, state: Pass, known: Known) -> _Step:
        """Ask whether some questions are still there, with one of the tags."""
        numbers = least_confirmed(known, "questions/", state.began_at, PER_PAGE)
        if not numbers:
            return _Step()
        listed = self._every("questions", f"questions/{';'.join(numbers)}")
        there = [each for each in listed if {*self._tags} & {*(as_is(each.get("tags"), list) or ())}]
        step = self._with_answers(there, known)
        left = {*numbers} - {str(each["question_id"]) for each in there}
        return replace(step, gone=(*step.gone, *(f"questions/{each}/" for each in sorted(left))))

    def _with_answers(self, questions: Sequence[Mapping[str, Any]], known: Known) -> _Step:
        """Return questions, with the answers of those whose marks changed; the others' are as they were."""
        unique = {_number(each, "question_id"): each for each in questions}
        changed = {number for number, each in unique.items() if _has_changed(each, known.body(_key(number)))}
        answers = self._answers([number for number in changed if unique[number].get("answer_count") != 0])
        records = []
        for number, question in unique.items():
            body = _kept(question)
            if number in changed:
                # The answers may be older or newer than the question: it is asked for again where they are not all.
                body["answer_count"] = len(answers.get(number, ()))
                records += [_answer(number, each) for each in answers.get(number, ())]
            records.append(FeedRecord(key=_key(number), document=_path(number), body=body))
        return _Step(
            records=tuple(records),
            gone=tuple(f"{_path(number)}/answer/" for number in sorted(changed)),
            confirmed=tuple(f"{_path(number)}/answer/" for number in unique if number not in changed),
        )

    def _answers(self, numbers: Sequence[int]) -> Mapping[int, list[Mapping[str, Any]]]:
        """Return the answers to questions, of which there are at most a hundred."""
        found: dict[int, dict[int, Mapping[str, Any]]] = {}
        address = f"questions/{';'.join(map(str, sorted(numbers)))}/answers"
        for each in self._every("questions/answers", address) if numbers else ():
            found.setdefault(_number(each, "question_id"), {})[_number(each, "answer_id")] = each
        return {number: list(answers.values()) for number, answers in found.items()}

    def _every(self, method: str, address: str) -> Iterator[Mapping[str, Any]]:
        """Yield what a list of a hundred ids holds, over all its pages."""
        place = _Place()
        for _ in range(_MAX_PAGES):
            listed = self._listed(method, place, address=address, sort="creation")
            yield from listed.items
            following = listed.following("creation_date")
            if following is None:
                return
            place = following
        raise _too_many(address)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a list goes on.

    Attributes:
        start: only what was created, or active, from this moment on, in seconds since 1970.
        page: of that list, from 1.
        at: when the list was begun, less some overlap.
    """

    start: int | None = None
    page: int = 1
    at: int | None = None


@dataclass(frozen=True, slots=True)
class _Listed:
    """A page of a list, and its place."""

    items: Sequence[Mapping[str, Any]]
    place: _Place
    has_more: bool

    def following(self, moment: str) -> _Place | None:
        """Return the place of the next page: from the last item's ``moment`` on, which may be several items'."""
        if not self.has_more:
            return None
        if not self.items or self.place.page > _MAX_PAGES_OF_A_MOMENT:
            raise SourceUnavailableError("a list that goes on without saying anything new; try again later")
        last = as_is(self.items[-1].get(moment), int)
        if last is None or (self.place.start is not None and last <= self.place.start):
            return replace(self.place, page=self.place.page + 1)
        return replace(self.place, start=last, page=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step(RecordPage):
    """A page of questions with their answers; ``following`` is ``None`` at the end of a tag."""

    position: JsonValue = None
    following: _Place | None = None
    at: int = 0


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


def _too_many(place: str) -> SourceUnavailableError:
    return SourceUnavailableError(f"{place}: more than {_MAX_PAGES:,} pages; expected an end")
