"""``create_app``: the routes, their middleware, and the engine for as long as the app runs."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from fastapi import FastAPI
from starlette.exceptions import HTTPException

from api.access.door import (
    BearerAuth,
    Door,
    client_secret,
    registration_token,
    service_token,
    shared_session_key,
)
from api.access.origins import HostGuard, OriginGuard, Prefix
from api.errors import Unexpected, add_handlers
from api.mcp.endpoint import own_filters, tool_endpoint
from api.metrics import Measured, Metrics
from api.openapi import DESCRIPTION, TAGS, App
from api.pages import rendering
from api.pages.addresses import configured_url, original
from api.pages.question_form import JudgedQuestions
from api.routes import agents, chat, health, hooks, inbox, login, pages, quality, query, receipts, sources, tokens
from api.server.limits import BodyLimit
from api.state import Service, Tracing
from api.syncs import Syncs
from nornweave import __version__
from nornweave.config import Settings
from nornweave.connect.hooks import HookKeys
from nornweave.core.types import Domain

if TYPE_CHECKING:
    from nornweave.ask.engine import Engine

logger = logging.getLogger(__name__)

CLOSE_WITHIN_S = 2.0
ROUTERS = (
    *(
        query.router,
        chat.router,
        quality.feedback_router,
        quality.evaluations_router,
        agents.router,
        agents.registrations,
    ),
    *(
        inbox.router,
        hooks.router,
        sources.router,
        receipts.router,
        query.texts_router,
        tokens.router,
        quality.generations_router,
    ),
    *(health.router, health.documentation_router),
)


def create_app(
    settings: Settings,
    engine: Engine | None = None,
    *,
    agent: Domain | None = None,
    environment: Mapping[str, str] | None = None,
    names: Collection[str] | None = None,
) -> FastAPI:
    """Build the app; its lifespan starts the engine in the background and closes it.

    Args:
        engine: the engine; by default one is made from ``settings``.
        agent: serve this domain alone, its agent also at the root.
        environment: ``os.environ`` unless given; holds the token.
        names: hosts by which the API may be called (``access/origins.py``); ``None`` answers to every name.
    """
    environment = os.environ if environment is None else environment
    if engine is None:
        from nornweave.ask.engine import Engine

        engine = Engine(settings, [agent] if agent else None)
    service = _service(settings, engine, agent, environment)
    app = _documented_app()
    app.state.is_closed = True
    app.state.serving = service
    app.state.metrics = Metrics(service.engine)
    app.state.hook_keys = HookKeys(settings, environment)
    app.state.tools = tool_endpoint(service, own_filters(settings, service.domains))
    service.engine.path.on_answer = app.state.metrics.observe_answer
    add_handlers(app)
    app.exception_handlers[HTTPException] = rendering.missing_as_page(app.exception_handlers[HTTPException])
    _surround(app, names)
    _route(app)
    return app


def _documented_app() -> FastAPI:
    """Return the app with its title, description and tags."""
    return App(
        title="NornWeave",
        summary="Knowledge retrieval over code, documentation, conversations and research.",
        version=__version__,
        description=DESCRIPTION,
        openapi_tags=TAGS,
        # The page of FastAPI loads its scripts from elsewhere; there is no elsewhere where NornWeave runs.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        # Pages stand before the operations: `/conflicts` is a page for whoever prefers HTML.
        routes=[*pages.routes, *sources.routes, *tokens.routes, *login.routes],
    )


def _service(settings: Settings, engine: Engine, agent: Domain | None, environment: Mapping[str, str]) -> Service:
    """Return the service: the engine, the settings, and the door that finds viewers. ``agent`` is served alone."""
    return Service(
        engine=engine,
        door=Door(
            service_token(environment),
            settings.access,
            settings.data_dir,
            registration_token(settings, environment),
            client_secret(settings, environment),
            shared_session_key(environment),
            settings.memberships,
        ),
        alone=agent,
        timeout_ms=settings.fusion.timeout_ms,
        settings=settings,
        public_url=configured_url(environment),
        syncs=None if settings.replica_of else Syncs(settings),
        dagster_url=original(environment.get("NORNWEAVE_DAGSTER_URL")),
        judged=JudgedQuestions(settings),
        sources_file=None if settings.replica_of else settings.file,
    )


def _surround(app: FastAPI, names: Collection[str] | None) -> None:
    """Add the middleware of every request, innermost first. ``names`` are the accepted hosts; ``None`` accepts all."""
    service: Service = app.state.serving
    app.add_middleware(BodyLimit)
    app.add_middleware(
        BearerAuth,
        door=service.door,
        open_paths={"/health", "/ready", *health.OPEN_PATHS, *login.OPEN_PATHS, *hooks.OPEN_PATHS},
        forms=login.FORMS,
        login=login.redirect_to_login,
    )
    app.add_middleware(OriginGuard, public_url=service.public_url)
    app.add_middleware(HostGuard, names=names)
    app.add_middleware(Unexpected)
    app.add_middleware(Tracing)
    app.add_middleware(Measured, metrics=app.state.metrics)
    app.add_middleware(Prefix, public_url=service.public_url)


def _route(app: FastAPI) -> None:
    """Add the operations. Those of an agent that is served alone are also added at the root.

    ``include_router`` would build every operation a second time, at the first request, for 70 ms of processor time.
    """
    routes = app.router.routes
    for router in (inbox.files, *ROUTERS):
        routes.extend(router.routes)
    routes.append(app.state.tools.route())
    if app.state.serving.alone:
        for router in (agents.alone, inbox.files_alone, inbox.alone):
            routes.extend(router.routes)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    engine: Engine = app.state.serving.engine
    app.state.is_closed = False
    await anyio.to_thread.run_sync(partial(engine.start, wait=False))
    try:
        async with app.state.tools.run():
            yield
    finally:
        if app.state.serving.syncs:
            await anyio.to_thread.run_sync(app.state.serving.syncs.close)
        with anyio.move_on_after(CLOSE_WITHIN_S, shield=True) as closing:
            await anyio.to_thread.run_sync(engine.close, abandon_on_cancel=True)
        app.state.is_closed = not closing.cancelled_caught
        if closing.cancelled_caught:
            logger.error("the engine did not close within %g s; what it was doing is abandoned", CLOSE_WITHIN_S)
