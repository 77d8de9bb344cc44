"""The ASGI application: wiring, and which exception becomes which answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response

from payments import API_VERSION, settings
from payments.acquirer import AcquirerClient
from payments.errors import DownstreamError, PaymentError
from payments.handlers import handle_downstream_error, handle_payment_error, router
from payments.idempotency import IdempotencyStore
from payments.kv import RedisKeyValue


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the connections, and close them after the last request was answered."""
    loaded = settings.load()
    async with AcquirerClient(loaded) as network:
        app.state.network = network
        app.state.idempotency = IdempotencyStore(RedisKeyValue(loaded.redis_url))
        yield


app = FastAPI(title="Heron Pay", version=API_VERSION, lifespan=lifespan)
app.include_router(router)


@app.exception_handler(PaymentError)
async def on_payment_error(_: Request, error: PaymentError) -> Response:
    """The merchant or the buyer can act on it."""
    return handle_payment_error(error)


@app.exception_handler(DownstreamError)
async def on_downstream_error(_: Request, error: DownstreamError) -> Response:
    """Somebody behind us failed."""
    return handle_downstream_error(error)


@app.get("/health")
async def health() -> dict[str, str]:
    """Alive; says nothing about the card network on purpose, or one outage there would restart us everywhere."""
    return {"status": "ok", "version": API_VERSION}
