"""``search`` and ``answer``: one ``Question`` each, asked as ``POST /query`` asks it; only the result is smaller.

A short handle says where the rest of a result begins. Any serving process understands it; nothing is
remembered. ``30-1f9c02ab-77e0c4d1`` holds the place (from the 31st on) and digests of the question and of the
generations. An
agent that repeats the question wrongly gets an error. If something was published meanwhile, a note says that the order
may differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from api.mcp.arguments import AnswerArguments, SearchArguments
from api.mcp.results import ToolCall, is_within
from nornweave.ask.answer.pages import USUAL_TOKENS, AnswerPage, answer_page, largest, snippet
from nornweave.ask.fuse.records import Answer
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.answer import answerable_document
from nornweave.ask.views.tool_results import AnswerPageDocument, SearchDocument
from nornweave.ask.views.tools import Link, lag_documents, page_template, search_document, source_document
from nornweave.core.errors import QueryError
from nornweave.core.types import digest

DIGITS = 8
_HANDLE = re.compile(rf"([0-9]{{1,6}})-([0-9a-f]{{{DIGITS}}})-([0-9a-f]{{{DIGITS}}})")
CHANGED = "the index has changed since the part before: something may be shown twice or not at all"


@dataclass(frozen=True, slots=True)
class HandlePlace:
    """The place where a part of a result begins, with a note if a generation was published after the part before it."""

    start: int
    notes: tuple[str, ...] = ()


def handle(start: int, asked: Mapping[str, Any], published: object) -> str:
    """Return the handle of a place in a result.

    Args:
        start: the number of the part's first item, from 0.
        asked: the arguments of the call.
        published: the generations from which the result was made.
    """
    return f"{start}-{_digest(asked)}-{_digest(published)}"


def place_of(after: str | None, asked: Mapping[str, Any], published: object) -> HandlePlace:
    """Return the place that the handle ``after`` names; the beginning for ``None``. The rest is as in ``handle``.

    Raises:
        QueryError: the text is not a handle, or it belongs to a call with other arguments.
    """
    if after is None:
        return HandlePlace(0)
    match = _HANDLE.fullmatch(after)
    if match is None:
        raise QueryError("after", "not a handle; pass `next` of the result before as it is, or leave it out")
    if match[2] != _digest(asked):
        raise QueryError(
            "after",
            "belongs to another call; repeat its arguments exactly and change nothing but `after`, or leave it out",
        )
    return HandlePlace(int(match[1]), () if match[3] == _digest(published) else (CHANGED,))


def _digest(value: object) -> str:
    return digest(json.dumps(value, sort_keys=True, ensure_ascii=False))[:DIGITS]


SNIPPET_CHARACTERS = 300


async def search(arguments: SearchArguments, call: ToolCall) -> SearchDocument:
    """Return the passages that a search finds."""
    question = arguments.question(call.serving.askable, call.arrived)
    return await call.serving.ask(question, lambda answers: _search(answers.answer(question), call.link))


async def answer(arguments: AnswerArguments, call: ToolCall) -> AnswerPageDocument:
    """Return the answer to a question as text."""
    question = arguments.asked.question(call.serving.askable, call.arrived)
    asked = arguments.model_dump(exclude={"after", "max_tokens"})
    place_of(arguments.after, asked, None)  # refuse a wrong handle before anything is searched
    size = arguments.max_tokens or USUAL_TOKENS

    def page(answers: SeenAnswers) -> AnswerPageDocument:
        found = answers.answer(question)
        published = {response.domain_id: response.generation for response in found.recalled.responses}
        place = place_of(arguments.after, asked, published)
        return _page(found, place, call.link, size, lambda start: handle(start, asked, published))

    return await call.serving.ask(question, page)


def _search(found: Answer, link: Link) -> SearchDocument:
    snippets = [snippet(item, found.question.text, SNIPPET_CHARACTERS) for item in found.items]
    count = largest(len(snippets), lambda number: is_within(search_document(found, snippets[:number], link)))
    return search_document(found, snippets[:count], link)


def _page(
    found: Answer, place: HandlePlace, link: Link, max_tokens: int, next_handle: Callable[[int], str]
) -> AnswerPageDocument:
    def document(page: AnswerPage) -> AnswerPageDocument:
        named = {item.chunk_id for item in page.items} if max_tokens < USUAL_TOKENS else ()
        made: AnswerPageDocument = {
            "text": page.text,
            "sources": [
                source_document(number, item, link, titled=item.chunk_id not in named)
                for number, item in page.cited.items()
            ],
            "page": page_template(link),
            "conflicts": page.conflicts,
            "not_searched": [gap.name for gap in found.recalled.coverage_gaps],
            "more": page.left,
            "answerable": answerable_document(found.answerable),
            "next": next_handle(place.start + len(page.items)) if page.left else None,
        }
        if lags := lag_documents(found.recalled):
            made["behind"] = lags
        hidden = page.conflicts - page.conflicts_shown
        also = [f"{hidden} of the conflicts are left out; `conflicts` lists them"] if hidden else []
        return {**made, "notes": [*place.notes, *also]} if place.notes or also else made

    return document(answer_page(found, place.start, lambda page: is_within(document(page), max_tokens)))
