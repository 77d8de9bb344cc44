"""``/sources`` and the page of the status: the configured sources and their state; operators change them.

A source added over HTTP may name places below the folder of ``nornweave.yaml`` and public addresses (``edit.OFFERED``).
A token of this server does not allow its owner to read the files, the secrets and the network of its machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, Body
from fastapi import Path as InPath
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from api.errors import ProblemError
from api.openapi import problem_responses
from api.pages.addresses import SOURCES_FORM, STATUS, SYNC
from api.pages.catalogue import DomainChoice, catalogue_of
from api.pages.rendering import both, html_response, shown, wants_json
from api.pages.state_view import domain_status, preview_words, source_keys, source_rows
from api.routes.agents import listed_document
from api.routes.login import browsers_form
from api.schemas import json_response
from api.state import Served, Serving, serving_of
from api.syncs import Running
from nornweave.ask.views.status import (
    ConfiguredSource,
    RemovedSource,
    SourcesDocument,
    StatusDocument,
    source_document,
    sources_document,
)
from nornweave.connect.connectors import load_settings
from nornweave.connect.edit import OFFERED, add_source, preview_source, remove_source
from nornweave.core.errors import ConfigError, NornWeaveError
from nornweave.core.text.checked_values import PlainJson
from nornweave.core.types import JsonValue, Listing

router = APIRouter(prefix="/sources", tags=["sources"], responses=problem_responses(401, 403, 404, 421, 422, 500, 503))

SourceBody = Annotated[
    PlainJson,
    Body(
        description="The keys of a source, as in `nornweave.yaml`.",
        examples=[{"id": "handbook", "domain": "documentation", "type": "files", "path": "handbook"}],
    ),
]


@router.get("", response_model=SourcesDocument)
async def sources(serving: Served) -> Response:
    """List the sources of `nornweave.yaml` as the file is now, each with its state."""
    return json_response(await serving.lookups.run(lambda: configured_sources(serving)))


@router.post("", response_model=ConfiguredSource, status_code=201, responses=problem_responses(400, 409, 413, 415))
async def add(body: SourceBody, serving: Served) -> Response:
    """Add a source to `nornweave.yaml`; the next sync of its domain reads it.

    Local paths lie below the folder of the file, addresses are public; the source is read before it is written.
    """
    return json_response(await add_to_file(serving, body), 201)


@router.delete("/{source_id}", response_model=RemovedSource)
async def remove(source_id: Annotated[str, InPath(description="As the file has it.")], serving: Served) -> Response:
    """Remove a source from `nornweave.yaml`; the next sync of its domain removes its documents."""
    await remove_from_file(serving, source_id)
    return json_response({"id": source_id, "status": "REMOVED"})


def configured_sources(serving: Serving) -> SourcesDocument:
    """Return the sources of the file as it is now.

    Raises:
        ProblemError: 503, the file cannot be read or is wrong.
    """
    try:
        return sources_document(load_settings(_file(serving)))
    except ConfigError as error:
        raise ProblemError(503, f"nornweave.yaml is wrong since this server was started: {error}") from error


async def add_to_file(serving: Serving, body: Mapping[str, JsonValue]) -> ConfiguredSource:
    """Add a source to the configuration file, and return it with its state.

    Raises:
        ProblemError: 409, the source exists already; 422, a key of it is wrong.
        NotPermittedError: the viewer is not an operator.
    """
    file = _file(serving)

    def added() -> ConfiguredSource:
        _check_is_new(file, body)
        try:
            settings = add_source(file, body, over_http=True)
        except NornWeaveError as error:
            raise ProblemError(422, str(error)) from error
        return source_document(settings, next(each for each in settings.sources if each.id == body["id"]))

    return await serving.writing.run(added)


async def preview_new_source(serving: Serving, body: Mapping[str, JsonValue]) -> Listing | None:
    """Return the documents of a source that is not configured yet, without changing anything.

    ``None`` for a remote source that answers: its documents are not listed.

    Raises:
        ProblemError: 409 or 422, as for adding it; or it cannot be read.
        NotPermittedError: the viewer is not an operator.
    """
    file = _file(serving)

    def previewed() -> Listing | None:
        _check_is_new(file, body)
        try:
            return preview_source(file, body)
        except NornWeaveError as error:
            raise ProblemError(422, str(error)) from error

    return await serving.writing.run(previewed)


async def remove_from_file(serving: Serving, source_id: str) -> None:
    """Remove a source from the workspace's configuration file.

    Raises:
        ProblemError: 404, no source has this id.
        NotPermittedError: the viewer is not an operator.
    """
    file = _file(serving)

    def removed() -> None:
        try:
            remove_source(file, source_id)
        except ConfigError as error:
            raise ProblemError(404, str(error)) from error

    await serving.writing.run(removed)


def _file(serving: Serving) -> Path:
    serving.viewer.check_operates()
    if serving.sources_file is None:
        raise ProblemError(404, "a replica has no sources; they are configured where it is published")
    return serving.sources_file


def _check_is_new(file: Path, body: Mapping[str, JsonValue]) -> None:
    if any(source.id == body.get("id") for source in load_settings(file).sources):
        raise ProblemError(409, f"a source {body['id']!r} is there already")


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
