"""The page of the status: domains, sources, and the forms that sync, add and remove; the forms are for operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from api.errors import ProblemError
from api.pages.addresses import SOURCES_FORM, STATUS, SYNC
from api.pages.catalogue import DomainChoice, catalogue_of
from api.pages.rendering import html_response
from api.pages.status_view import domain_status, preview_words, source_keys, source_rows
from api.routes.agents import listed_document
from api.routes.login import browsers_form
from api.routes.page_routes import both, shown, wants_json
from api.routes.sources import add_to_file, configured_sources, preview_new_source, remove_from_file
from api.schemas import json_response
from api.state import Serving, serving_of
from api.syncs import Running
from nornweave.ask.views.status import StatusDocument
from nornweave.connect.edit import OFFERED

NO_DRAFT: Mapping[str, str] = MappingProxyType({})


async def status(
    request: Request,
    draft: Mapping[str, str] = NO_DRAFT,
    preview: tuple[str, Sequence[str]] = ("", ()),
    refused: ProblemError | None = None,
) -> Response:
    """Show sources, generations, freshness, failed documents and held deletions, each with what to do.

    Args:
        draft: the form of a source that is only previewed or was refused.
        preview: a sentence about the previewed source, and its first paths; both empty without a preview.
        refused: why the source was refused; ``None`` if it was not.
    """
    serving = serving_of(request)
    documents, catalogue = await serving.lookups.run(
        lambda: (serving.engine.documents.status(), catalogue_of(serving.agents)),
    )
    served = {domain: document for domain, document in documents.items() if domain in serving.domains}
    if wants_json(request):
        return json_response(served)
    health = await serving.lookups.run(lambda: {agent.domain.value: agent.health() for agent in serving.agents})
    running = await serving.lookups.run(lambda: _running(serving))
    try:
        sources, wrong = await serving.lookups.run(lambda: _sources(serving, served, catalogue)), ""
    except ProblemError as error:
        sources, wrong = [], str(error.detail)
    joined = serving.engine.agents.joined() if serving.alone is None else ()
    context = {
        "domains": [domain_status(name, served[name], health[name], running[name]) for name in served],
        "sources": sources,
        "wrong": wrong,
        "kinds": tuple(OFFERED),
        "all_domains": [domain.value for domain in serving.domains],
        "may_edit": serving.sources_file is not None,
        "dagster": serving.dagster_url or "",
        "draft": draft,
        "preview": preview,
        "refused": refused.detail if refused else "",
        "joined": [listed_document(each, serving.viewer) for each in joined],
    }
    code = refused.status_code if refused else 200
    return html_response(request, "status.html", context, code, current=STATUS, json_href=f"{STATUS}.json")


async def sync(request: Request) -> Response:
    """Start a sync from the status page, and redirect back to the page."""
    serving = serving_of(request)
    serving.viewer.check_operates()
    fields = await browsers_form(request)
    named = {domain.value: domain for domain in serving.domains}
    if serving.syncs is None or fields.get("domain") not in named:
        raise ProblemError(422, f"domain: one of {', '.join(named)} is needed")
    syncs, domain, seen = serving.syncs, named[fields["domain"]], fields.get("confirm_deletes", "")

    def start() -> bool:
        held = sum(len(each["paths"]) for each in serving.engine.documents.status()[domain.value]["held"])
        if seen and seen != str(held):
            raise ProblemError(409, f"{held} removals are held by now; look at them again before you confirm")
        return syncs.start(domain, confirm_deletes=bool(seen))

    if not await serving.writing.run(start):
        raise ProblemError(409, f"a sync of {domain.value} is under way already")
    return RedirectResponse(STATUS, status_code=303)


async def change_sources(request: Request) -> Response:
    """Add the form's source, show what it would read, or remove the source that it names."""
    serving = serving_of(request)
    serving.viewer.check_operates()
    fields = await browsers_form(request)
    if removed := fields.get("remove"):
        await remove_from_file(serving, removed)
        return RedirectResponse(f"{STATUS}#sources", status_code=303)
    try:
        if fields.get("preview"):
            found = await preview_new_source(serving, source_keys(fields))
            return await status(request, fields, preview_words(found))
        await add_to_file(serving, source_keys(fields))
    except ProblemError as error:
        return await status(request, fields, refused=error)
    return RedirectResponse(f"{STATUS}#sources", status_code=303)


def _sources(
    serving: Serving, served: Mapping[str, StatusDocument], catalogue: Sequence[DomainChoice]
) -> list[dict[str, Any]]:
    if serving.sources_file is None:
        return []
    configured = configured_sources(serving)["sources"]
    return source_rows(configured, served, catalogue)


def _running(serving: Serving) -> dict[str, Running | None]:
    """Return the running sync of each domain; ``None`` if no sync runs."""
    return {domain.value: serving.syncs.running(domain) if serving.syncs else None for domain in serving.domains}


routes = [
    *both(STATUS, shown(status)),
    Route(SYNC, shown(sync), methods=["POST"]),
    Route(SOURCES_FORM, shown(change_sources), methods=["POST"]),
]
