"""The pages for people: ask, passages, conflicts, quality; each also as JSON, by ``.json`` or ``Accept``.

``GET /find`` and ``POST /why`` have pages too: find lines, and explain why a document is not among the results. These
are plain routes, which ``/openapi.json`` does not describe. They show the same documents as the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from api.access.origins import client_address
from api.errors import ProblemError
from api.event_streams import answer_streamed, write_whole
from api.pages.addresses import (
    ASK,
    CONFLICTS,
    DISMISS,
    FIND,
    JUDGE,
    QUALITY,
    WHY,
    ask_address,
    conflict_address,
    local,
    passage_address,
)
from api.pages.answer_view import answer_view, entry_of, ledger_view, written_view
from api.pages.catalogue import (
    DomainChoice,
    ages,
    catalogue_of,
    declared_in,
    domain_chips,
    filter_groups,
    filters_in_force,
)
from api.pages.passage_view import CONTEXT_LINES, MORE_LINES, passage_view, printed_page
from api.pages.question_form import COUNTS, MAX_PASSAGES, QuestionForm, read_form, writing_body
from api.pages.rendering import (
    PAGE_HEADERS,
    HtmlRoute,
    both,
    came_from,
    data_address,
    html_response,
    is_from_here,
    shown,
    validated,
    wants_json,
)
from api.pages.state_view import (
    FIRST_RIGHT,
    headline_evaluation,
    last_refusal,
    published_before,
    quality_view,
    stage_of,
)
from api.pages.text_runs import query_terms_of, runs_of
from api.requests.query import FindParameters, LedgerQuery
from api.routes.login import browsers_form
from api.routes.quality import ComparisonQuery, judge
from api.routes.query import NO_SUCH_PLACE, store_dismissal
from api.schemas import json_response
from api.state import Serving, arrive, serving_of
from nornweave.ask.search.question import Deadline, Question
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.answer import FusionResult, answer_document
from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationsDocument
from nornweave.ask.views.texts import ChunkDocument, DocumentDocument, FindDocument, LineMatchDocument, WhyDocument
from nornweave.ask.why import read_place
from nornweave.core.errors import GenerationNotKeptError, QueryError
from nornweave.core.types import Domain, present

MAX_EVALUATIONS = 500

_LISTS = ("domain", "source")


async def ask(request: Request) -> Response:
    """Answer the form's question as ``POST /query`` does; without a question, show the domains and examples."""
    serving = serving_of(request)
    arrived = arrive(serving.timeout_ms, serving.viewer)
    catalogue = await serving.lookups.run(lambda: catalogue_of(serving.agents))
    form = QuestionForm(text=request.query_params.get("q", "").strip())
    try:
        form = read_form(request.query_params.multi_items(), declared_in(catalogue))
        if not wants_json(request) and form.leaves_out(request.query_params.multi_items()):
            return RedirectResponse(form.address, status_code=303)
        if not form.text:
            return await _blank(request, catalogue, form)
        return await _answered(request, catalogue, form, arrived)
    except (QueryError, GenerationNotKeptError) as error:
        if wants_json(request):
            raise
        start = await serving.lookups.run(lambda: _start(serving, catalogue))
        status = 422 if isinstance(error, QueryError) else 404
        return _ask_page(request, catalogue, form, {**start, "error": str(error)}, status)


async def passage(request: Request) -> Response:
    """Show a passage in its document."""
    serving = serving_of(request)
    chunk_id = request.path_params["chunk_id"]
    if "\0" in chunk_id:
        raise ProblemError(404, "no name holds the character NUL")
    chunk, document = await serving.lookups.run(partial(_chunk_with_document, serving, chunk_id))
    if chunk is None:
        if wants_json(request):
            raise ProblemError(404, "this passage is not in what is served; it was changed or removed since")
        return html_response(request, "gone.html", {}, 404)
    if wants_json(request):
        return json_response({"passage": chunk, "document": document})
    around = MORE_LINES if request.query_params.get("context") == str(MORE_LINES) else CONTEXT_LINES
    asked, back = came_from(request)
    terms = query_terms_of(asked) if asked else ()
    texts = serving.engine.texts
    view = await serving.lookups.run(
        lambda: passage_view(
            chunk, document, around, terms=terms, back=back, headings=texts.outline(document) if document else ()
        )
    )
    address = passage_address(chunk_id)
    context = {"passage": view, "picture": f"{address}/page.png" if texts.file_of(chunk) else ""}
    return html_response(request, "passage.html", context, json_href=f"{address}.json")


async def page_image(request: Request) -> Response:
    """Show the page of a PDF that holds a passage, as printed. Only viewers of the passage see it."""
    serving = serving_of(request)
    chunk_id = request.path_params["chunk_id"]
    chunk = None
    if "\0" not in chunk_id:
        chunk, _ = await serving.lookups.run(partial(_chunk_with_document, serving, chunk_id))
    folder = serving.engine.texts.file_of(chunk) if chunk else None
    drawn = await serving.finding.run(partial(printed_page, chunk, folder)) if chunk and folder else None
    if drawn is None:
        raise ProblemError(
            404, "there is no picture of this passage's page: it is in no PDF file here, or that changed"
        )
    return Response(drawn, media_type="image/png", headers=PAGE_HEADERS)


async def conflicts(request: Request) -> Response:
    """Show the ledger, with the filters of ``GET /conflicts``."""
    serving = serving_of(request)
    asked = validated(LedgerQuery, request.query_params)
    whole = await serving.lookups.run(serving.engine.ledger.conflicts)
    if wants_json(request):
        return json_response(asked.chosen(whole))
    context = {
        **ledger_view(asked.model_copy(update={"dismissed": True}).chosen(whole)),
        "asked": asked,
        "domains": serving.domains,
    }
    json_href = data_address(request, CONFLICTS)
    return html_response(request, "conflicts.html", context, current=CONFLICTS, json_href=json_href)


async def conflict(request: Request) -> Response:
    """Show one entry of the ledger."""
    serving = serving_of(request)
    entry_id = request.path_params["entry_id"]
    ledger = await serving.lookups.run(serving.engine.ledger.conflicts)
    found = next(
        (each for each in (*ledger["open"], *ledger["settled"], *ledger["dismissed"]) if each["entry_id"] == entry_id),
        None,
    )
    if found is None:
        raise ProblemError(404, "no such entry in the ledger; it may have been settled long ago")
    if wants_json(request):
        return json_response(found)
    json_href = f"{conflict_address(entry_id)}.json"
    return html_response(request, "conflict.html", {"entry": entry_of(found)}, current=CONFLICTS, json_href=json_href)


async def dismiss(request: Request) -> Response:
    """Dismiss a conflict or take that back, then redirect to the page from which the form came."""
    fields = await browsers_form(request)
    await store_dismissal(serving_of(request), fields.get("id", ""), undo=fields.get("undo") == "true")
    return RedirectResponse(local(fields.get("next", CONFLICTS)), status_code=303)


async def quality(request: Request) -> Response:
    """Show measured quality: over time, the last refusal, and a comparison of two generations."""
    serving = serving_of(request)
    chosen = {name: request.query_params.get(name, "") for name in ("domain", "before", "after")}
    documents = await serving.lookups.run(lambda: _read_measurements(serving, chosen))
    if wants_json(request):
        return json_response(documents)
    context = {**quality_view(documents, serving.judged), "chosen": chosen}
    json_href = data_address(request, QUALITY)
    return html_response(request, "quality.html", context, current=QUALITY, json_href=json_href)


def _ask_page(
    request: Request,
    catalogue: Sequence[DomainChoice],
    form: QuestionForm,
    shown: Mapping[str, Any],
    status: int = 200,
) -> Response:
    context = {
        "form": form,
        "catalogue": catalogue,
        "chips": domain_chips(catalogue, form),
        "in_force": filters_in_force(form),
        "groups": filter_groups(catalogue, form),
        "ages": ages(catalogue, present()),
        "counts": COUNTS,
        "error": "",
        **shown,
    }
    json_href = ask_address(form.pairs, ".json")
    return html_response(request, "ask.html", context, status, current=ASK, json_href=json_href)


async def _blank(request: Request, catalogue: Sequence[DomainChoice], form: QuestionForm) -> Response:
    if wants_json(request):
        return json_response({"domains": [asdict(choice) for choice in catalogue]})
    serving = serving_of(request)
    start = await serving.lookups.run(lambda: _start(serving, catalogue))
    return _ask_page(request, catalogue, form, start)


def _start(serving: Serving, catalogue: Sequence[DomainChoice]) -> dict[str, Any]:
    operates, judged = serving.viewer.operates, serving.judged
    examples: Sequence[str] = judged.examples if judged and operates else ()
    if judged and not examples and sum(choice.passages for choice in catalogue) <= MAX_PASSAGES:
        generations = tuple(choice.generation for choice in catalogue)
        examples = judged.asking_headings(serving.engine.texts, serving.viewer, generations)
    return {
        "answer": None,
        "examples": examples,
        "is_published": any(choice.generation for choice in catalogue),
        "may_add": operates and serving.sources_file is not None,
    }


async def _answered(
    request: Request, catalogue: Sequence[DomainChoice], form: QuestionForm, arrived: Question
) -> Response:
    serving = serving_of(request)
    body = form.body()
    question = body.question(serving.askable, arrived)
    may_write = serving.engine.answers.writes_answers

    def shown(document: FusionResult, written: tuple[Any, ...] | None = None) -> Response:
        if wants_json(request):
            return json_response(document)
        context = {
            "answer": answer_view(document, catalogue, form),
            "more": form.with_more(len(document["items"])),
            "written": written,
            "writing": writing_body(body) if may_write and document["items"] else "",
            "write_address": replace(form, writes=True).address,
        }
        return _ask_page(request, catalogue, form, context)

    def answer(answers: SeenAnswers) -> Response:
        answered = answers.answer(question)
        document = answer_document(answered)
        answers.remember(question, document)
        return shown(document)

    if form.writes and may_write and is_from_here(request):
        return await _with_a_text(request, replace(question, synthesize=True), shown)
    return await serving.ask(question, answer)


async def _with_a_text(request: Request, question: Question, shown: Callable[..., Response]) -> Response:
    """Wait until a model has written the text of an answer, and return the response that ``shown`` makes of both."""
    serving = serving_of(request)
    give_back = serving.streams.take(client_address(request.scope))
    try:
        streamed = await serving.ask(question, lambda answers: answer_streamed(answers, question))
        written = written_view(await write_whole(streamed.write), streamed.document)
    finally:
        give_back()
    return await serving.lookups.run(lambda: shown(streamed.document, written))


def _chunk_with_document(serving: Serving, chunk_id: str) -> tuple[ChunkDocument | None, DocumentDocument | None]:
    """Return a chunk with its document; ``None`` for both if there is no such chunk."""
    chunk = serving.engine.texts.chunk(chunk_id)
    served = {domain.value: domain for domain in serving.domains}
    if chunk is None or chunk["domain_id"] not in served:
        return None, None
    citation = chunk["citation"]
    document = serving.engine.texts.document(served[chunk["domain_id"]], citation["source_id"], citation["source_path"])
    # Published anew between the two look-ups: the offsets would be those of another text.
    is_same = document is not None and document["generation"] == chunk["generation"]
    return chunk, document if is_same else None


def _read_measurements(serving: Serving, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return the history, the last refusal and its comparison, the requested comparison, and the query map."""
    measured = serving.engine.quality
    history: EvaluationsDocument = measured.evaluations(limit=MAX_EVALUATIONS)
    refused = last_refusal(history["evaluations"])
    before = published_before(history["evaluations"], refused) if refused else None
    domains = {domain.value: domain for domain in Domain}
    refusal: ComparisonDocument | None = None
    if refused and before and refused["domain"] in domains:
        refusal = measured.compare(domains[refused["domain"]], before, refused["generation"], refused["set"])
    comparison: ComparisonDocument | None = None
    if all(chosen.values()):
        asked = validated(ComparisonQuery, chosen)
        comparison = measured.compare(asked.domain, asked.before, asked.after)
    first = headline_evaluation(history["evaluations"])
    ranks = measured.values(first["evaluation_id"], stage_of(first), FIRST_RIGHT) if first else {}
    return {
        **history,
        "refused": refused,
        "refusal": refusal,
        "comparison": comparison,
        "first_right": ranks,
        "query_map": measured.query_map(),
    }


_ledger = shown(conflicts, None)


async def find(request: Request) -> Response:
    """Show lines that match, or only the form if nothing is searched yet."""
    serving, given = serving_of(request), request.query_params
    lists = {name: [value for value in given.getlist(name) if value.strip()] for name in _LISTS if name in given}
    fields: dict[str, Any] = {**given, **lists}
    found: FindDocument | None = None
    error = ""
    try:
        if fields.keys() & {"text", "regex"} or wants_json(request):
            asked = validated(FindParameters, fields)
            found = await serving.find(asked.query(serving.domains), Deadline(serving.timeout_ms))
    except QueryError as refused:
        if wants_json(request):
            raise
        error = f"{refused.field}: {refused.problem}"
    if wants_json(request):
        return json_response(found)
    context = {
        "asked": {name: fields.get(name, "") for name in ("text", "regex", "path_glob", "document", "case")},
        "chosen": {name: fields.get(name, []) for name in _LISTS},
        "domains": serving.domains,
        "documents": _documents(found["matches"]) if found else [],
        "found": found,
        "error": error,
    }
    json_href = data_address(request, FIND) if found else ""
    return html_response(request, "find.html", context, 422 if error else 200, json_href=json_href)


def _documents(matches: list[LineMatchDocument]) -> list[dict[str, Any]]:
    """Return the lines grouped by their document, in order."""
    grouped = groupby(matches, key=lambda match: (match["domain_id"], match["source_id"], match["source_path"]))
    return [
        {
            "domain": place[0],
            "crumbs": [runs_of(place[1]), runs_of(place[2])],
            "lines": [
                {
                    "number": match["line"],
                    "runs": runs_of(match["text"]),
                    "href": f"{passage_address(match['chunk_id'])}#L{match['line']}" if match["chunk_id"] else "",
                }
                for match in lines
            ],
        }
        for place, lines in grouped
    ]


async def why(request: Request) -> Response:
    """Show why a place is not in the answer to the form's question. If the place is missing, show a form for it."""
    serving = serving_of(request)
    arrived = arrive(serving.timeout_ms, serving.viewer)
    pairs = [pair for pair in request.query_params.multi_items() if pair[0] != "path"]
    path = request.query_params.get("path", "").strip()
    catalogue = await serving.lookups.run(lambda: catalogue_of(serving.agents))
    form = read_form(pairs, declared_in(catalogue))
    found: WhyDocument | None = None
    if form.text and path:
        question = form.body().question(serving.askable, arrived)
        found = await serving.ask(question, lambda answers: answers.why(question, read_place(path)))
        if found is None and wants_json(request):
            raise QueryError("path", NO_SUCH_PLACE)
    if wants_json(request):
        return json_response(found)
    context = {
        "form": form,
        "path": path,
        "found": found,
        "missing": NO_SUCH_PLACE if form.text and path and found is None else "",
        "back": ask_address(form.pairs),
    }
    return html_response(request, "why.html", context)


_find = shown(find, None)


routes = [
    *both(ASK, shown(ask, None)),
    Route("/passages/{chunk_id}/page.png", shown(page_image), methods=["GET"]),
    *both("/passages/{chunk_id}", shown(passage, {"context"})),
    Route(f"{CONFLICTS}.json", _ledger, methods=["GET"]),
    HtmlRoute(CONFLICTS, _ledger, methods=["GET"]),
    Route(DISMISS, shown(dismiss), methods=["POST"]),
    *both(f"{CONFLICTS}/{{entry_id}}", shown(conflict)),
    *both(QUALITY, shown(quality, {"domain", "before", "after"})),
    Route(JUDGE, shown(judge), methods=["POST"]),
    Route(f"{FIND}.json", _find, methods=["GET"]),
    HtmlRoute(FIND, _find, methods=["GET"]),
    *both(WHY, shown(why, None)),
]
