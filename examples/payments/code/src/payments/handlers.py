"""HTTP handlers of the payments service: translate, delegate, answer.

Nothing here decides anything about money. A handler reads the request, calls the validator and the
authorizer, and turns what comes back (or what is raised) into an answer.
"""

from __future__ import annotations

import logging

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse

from payments import API_VERSION
from payments.errors import DownstreamError, PaymentError
from payments.idempotency import IdempotencyStore
from payments.models import PaymentRequest
from payments.retry import authorize_with_retry
from payments.validator import PaymentValidator

log = logging.getLogger(__name__)
router = APIRouter(prefix="/payments")
validator = PaymentValidator()

ERROR_DOCS = "https://docs.heronpay.example/errors"
NOT_CACHED = {"Cache-Control": "no-store"}


@router.post("")
async def create_payment(request: Request, idempotency_key: str = Header()) -> Response:
    """Create a payment; the same key and body answer the same payment again."""
    store: IdempotencyStore = request.app.state.idempotency
    body = PaymentRequest.from_json(await request.json())
    if (earlier := store.lookup(idempotency_key, body)) is not None:
        return JSONResponse(status_code=200, content=earlier, headers={"Idempotent-Replay": "true"})
    validator.validate(body)
    payment = await authorize_with_retry(request.app.state.network, body)
    store.remember(idempotency_key, body, payment.as_json())
    return JSONResponse(status_code=201, content=payment.as_json(), headers={"Heron-Version": API_VERSION})


def handle_payment_error(e: PaymentError) -> Response:
    """Turn a payment error into the answer that the merchant sees.

    Everything that a merchant or a card holder can act on is a 422: the request was understood,
    but this payment is not possible. Shops show ``message`` to the buyer, so it must never carry
    a card number, a stack trace or the name of an internal system.

    ``field`` is ``null`` when no single field is to blame. Before PR #247 it was read from
    ``e.request.card``, which is ``None`` for bank transfers, and the handler itself crashed.

    Failures of the card network or the ledger do not come here: see ``handle_downstream_error``.
    """
    log.info("payment refused: code=%s field=%s", e.code, e.field)
    return JSONResponse(
        status_code=422,
        content={
            "error": {
                "code": e.code,
                "message": e.message,
                "field": e.field,
                "docs": f"{ERROR_DOCS}/{e.code}",
            },
            "version": API_VERSION,
        },
        headers=NOT_CACHED,
    )


def handle_downstream_error(e: DownstreamError) -> Response:
    """Answer for a card network or ledger that failed us: 503 while a retry is safe, else 502."""
    status = 503 if e.retryable else 502
    log.error("downstream failure in %s: %s", e.system, e)
    headers = {"Retry-After": "5"} if e.retryable else {}
    return JSONResponse(status_code=status, content={"error": {"code": "downstream"}}, headers=headers)
