"""``search`` and ``answer``: one ``Question`` each, asked as ``POST /query`` asks it; only the result is smaller."""

from __future__ import annotations

from collections.abc import Callable

from api.mcp.arguments import USUAL_RESULT_TOKENS, AnswerArguments, SearchArguments
from api.mcp.handles import HandlePlace, handle, place_of
from api.mcp.results import ToolCall, is_within
from nornweave.ask.answer.pages import AnswerPage, answer_page, largest, snippet
from nornweave.ask.fuse.records import Answer
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.answer import answerable_document
from nornweave.ask.views.tool_results import AnswerPageDocument, SearchDocument
from nornweave.ask.views.tools import Link, search_document, source_document

SNIPPET_CHARACTERS = 300


async def search(arguments: SearchArguments, call: ToolCall) -> SearchDocument:
    """Search passages."""
    question = arguments.question(call.serving.askable, call.arrival)
    return await call.ask(question, lambda answers: _search(answers.answer(question), call.link))


async def answer(arguments: AnswerArguments, call: ToolCall) -> AnswerPageDocument:
    """Answer a question as text."""
    question = arguments.asked.question(call.serving.askable, call.arrival)
    asked = arguments.model_dump(exclude={"after", "max_tokens"})
    place_of(arguments.after, asked, None)  # a wrong handle is said before anything is searched
    size = arguments.max_tokens or USUAL_RESULT_TOKENS

    def page(answers: SeenAnswers) -> AnswerPageDocument:
        found = answers.answer(question)
        published = {response.domain_id: response.generation for response in found.recalled.responses}
        place = place_of(arguments.after, asked, published)
        return _page(found, place, call.link, size, lambda start: handle(start, asked, published))

    return await call.ask(question, page)


def _search(found: Answer, link: Link) -> SearchDocument:
    snippets = [snippet(item, found.question.text, SNIPPET_CHARACTERS) for item in found.items]
    count = largest(len(snippets), lambda number: is_within(search_document(found, snippets[:number], link)))
    return search_document(found, snippets[:count], link)


def _page(
    found: Answer, place: HandlePlace, link: Link, max_tokens: int, next_handle: Callable[[int], str]
) -> AnswerPageDocument:
    def document(page: AnswerPage) -> AnswerPageDocument:
        made: AnswerPageDocument = {
            "text": page.text,
            "sources": [source_document(item, link) for item in page.items],
            "conflicts": page.conflicts,
            "not_searched": [gap.name for gap in found.recalled.coverage_gaps],
            "more": page.left,
            "answerable": answerable_document(found.answerable),
            "next": next_handle(place.start + len(page.items)) if page.left else None,
        }
        hidden = page.conflicts - page.conflicts_shown
        also = [f"{hidden} of the conflicts are left out; `conflicts` lists them"] if hidden else []
        return {**made, "notes": [*place.notes, *also]} if place.notes or also else made

    return document(answer_page(found, place.start, lambda page: is_within(document(page), max_tokens)))
