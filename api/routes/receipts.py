"""``/receipts``: signed statements that nothing here holds a deleted document; for operators."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from api.errors import RETRY_SOON_S, ProblemError, unavailable
from api.openapi import PROBLEMS, problem_responses
from api.requests import Body
from api.schemas import json_response
from api.state import Served, Serving
from nornweave.config import Settings
from nornweave.core.deletion import stored_receipt
from nornweave.core.types import Domain

WITHIN_S = 1_800.0

Name = Annotated[str, StringConstraints(min_length=1, max_length=4_096, pattern=r"^[^\x00]+$")]


class ReceiptBody(Body):
    """The deleted document."""

    domain: Annotated[Domain, Field(strict=False, description="Its domain.")]
    source_id: Annotated[Name, Field(description="As citations carry it.")]
    source_path: Annotated[Name, Field(description="As citations carry it.")]
    purge: Annotated[bool, Field(description="Remove what is left of it, kept generations that have it included.")] = (
        False
    )


class SearchedPlaceDocument(TypedDict, total=False):
    """A place that was searched; ``left`` and ``remedy`` only if something was found."""

    place: str
    looked_at: str
    through: str
    found: int
    left: list[str]
    remedy: str


class ReceiptDocument(TypedDict):
    """A signed statement. ``signature`` covers all other fields (docs/security.md)."""

    id: str
    domain: str
    source_id: str
    source_path: str
    document_id: str
    passages: Annotated[int, Field(description="parts of its text that every file was searched for")]
    purged: bool
    gone: bool
    places: list[SearchedPlaceDocument]
    signed_at: str
    signed_by: str
    signature: str


def request_receipt(settings: Settings, body: ReceiptBody) -> Mapping[str, Any]:
    """Return a new signed receipt. This takes seconds, or minutes with a large store.

    A separate process makes the receipt, because making it reads files of the ingestion.

    Raises:
        ProblemError: 503, the receipt cannot be made now.
    """
    config = ["--config", str(settings.file), "receipt", f"--domain={body.domain.value}"]
    options = [f"--source={body.source_id}", *(["--purge"] if body.purge else []), "--json", "--", body.source_path]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nornweave.cli", *config, *options],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN_S, check=False,
        )  # fmt: skip
        receipt = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise unavailable("receipt", f"no receipt: {error}", RETRY_SOON_S) from error
    except ValueError as error:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        problem = said[-1] if said else f"ended with {done.returncode}"
        raise unavailable("receipt", f"no receipt: {problem}", RETRY_SOON_S) from error
    return dict(receipt)


router = APIRouter(tags=["receipts"], responses={**PROBLEMS, **problem_responses(403)})


@router.post("/receipts", response_model=ReceiptDocument)
async def make_receipt(body: ReceiptBody, serving: Served) -> Response:
    """Search every place for a deleted document and sign the result; `gone` is false if anything is left.

    This searches generations, working rows, vectors, mirrors, feedback, the ledger, runs, object storage and all files.
    With `purge` the remains are removed first, unless the document is still indexed: sync before.
    """
    settings = _settings(serving)
    return json_response(await serving.receipting.run(lambda: request_receipt(settings, body)))


@router.get("/receipts/{receipt_id}", response_model=ReceiptDocument, responses=problem_responses(404))
async def receipt(receipt_id: Annotated[str, Path(description="`id` of a receipt.")], serving: Served) -> Response:
    """Return a signed receipt that was made before."""
    settings = _settings(serving)
    found = await serving.lookups.run(lambda: stored_receipt(settings.data_dir, receipt_id))
    if found is None:
        raise ProblemError(404, "there is no receipt of this id here")
    return json_response(found)


def _settings(serving: Serving) -> Settings:
    serving.viewer.check_operates()
    assert serving.settings, "an app has them"
    return serving.settings
