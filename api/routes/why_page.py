"""The page that says why a document is not among the results of a question, by ``POST /why``."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from api.pages.addresses import WHY, ask_address
from api.pages.catalogue import catalogue_of, declared_in
from api.pages.question_form import read_form
from api.pages.rendering import html_response
from api.routes.page_routes import both, shown, wants_json
from api.routes.query import NO_SUCH_PLACE
from api.schemas import json_response
from api.state import arrive, serving_of
from nornweave.ask.views.why import WhyDocument
from nornweave.ask.why import read_place
from nornweave.core.errors import QueryError


async def why(request: Request) -> Response:
    """Show why a place is not in the answer to the question of the form; without a place ask for one."""
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


routes = both(WHY, shown(why, None))
