"""``/sources``: the configured sources and their state; operators add and remove them.

A source added over HTTP may name places below the folder of ``nornweave.yaml`` and public addresses (``edit.OFFERED``).
A token of this server does not allow its owner to read the files, the secrets and the network of its machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Body, Response
from fastapi import Path as InPath

from api.errors import ProblemError
from api.openapi import problem_responses
from api.schemas import json_response
from api.state import Served, Serving
from nornweave.ask.views.status import (
    ConfiguredSource,
    RemovedSource,
    SourcesDocument,
    source_document,
    sources_document,
)
from nornweave.connect.connectors import load_settings
from nornweave.connect.edit import add_source, preview_source, remove_source
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
