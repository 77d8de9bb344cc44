"""Pages for ``GET /find`` and ``POST /why``: find lines, and explain why a document is not among the results."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.pages.addresses import FIND, WHY, ask_address, passage_address
from api.pages.catalogue import catalogue_of, declared_in
from api.pages.question_form import read_form
from api.pages.rendering import html_response
from api.pages.text_runs import runs_of
from api.requests.find import FindParameters
from api.routes.page_routes import HtmlRoute, both, data_address, shown, validated, wants_json
from api.routes.query import NO_SUCH_PLACE
from api.schemas import json_response
from api.state import arrive, serving_of
from nornweave.ask.search.question import Deadline
from nornweave.ask.views.texts import FindDocument, LineMatchDocument
from nornweave.ask.views.why import WhyDocument
from nornweave.ask.why import read_place
from nornweave.core.errors import QueryError

_LISTS = ("domain", "source")


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
    Route(f"{FIND}.json", _find, methods=["GET"]),
    HtmlRoute(FIND, _find, methods=["GET"]),
    *both(WHY, shown(why, None)),
]
