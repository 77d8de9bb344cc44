"""``/receipts``: signed statements that nothing here holds a deleted document; for operators."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from api.deletion import ReceiptBody, ReceiptDocument, Receipts
from api.openapi import PROBLEMS, problem_responses
from api.schemas import json_response
from api.state import Served, Serving

router = APIRouter(tags=["receipts"], responses={**PROBLEMS, **problem_responses(403)})


@router.post("/receipts", response_model=ReceiptDocument)
async def make_receipt(body: ReceiptBody, serving: Served) -> Response:
    """Look for a deleted document everywhere and sign what was found; `gone` is false where anything is left.

    Kept generations, working rows, vectors, mirrors, feedback, the ledger, runs, object storage and every file are
    looked through. With `purge` what is left is removed first, unless the document is still indexed: sync before.
    """
    receipts = _receipts(serving)
    return json_response(await serving.receipting.run(lambda: receipts.make(body)))


@router.get("/receipts/{receipt_id}", response_model=ReceiptDocument, responses=problem_responses(404))
async def receipt(receipt_id: Annotated[str, Path(description="`id` of a receipt.")], serving: Served) -> Response:
    """Return a receipt as it was signed."""
    receipts = _receipts(serving)
    return json_response(await serving.lookups.run(lambda: receipts.read(receipt_id)))


def _receipts(serving: Serving) -> Receipts:
    serving.viewer.check_operates()
    assert serving.receipts, "an app has them"
    return serving.receipts
