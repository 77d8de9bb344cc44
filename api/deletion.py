"""Receipts of deletions: ``nornweave receipt`` as a process of its own, for it reads what ingestion writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict

from api.errors import RETRY_SOON_S, ProblemError, unavailable
from nornweave.config import Settings
from nornweave.core.deletion import stored_receipt
from nornweave.core.types import Domain

WITHIN_S = 1_800.0

Name = Annotated[str, StringConstraints(min_length=1, max_length=4_096, pattern=r"^[^\x00]+$")]


class ReceiptBody(BaseModel):
    """The document that is to be gone."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    domain: Annotated[Domain, Field(strict=False, description="Its domain.")]
    source_id: Annotated[Name, Field(description="As citations carry it.")]
    source_path: Annotated[Name, Field(description="As citations carry it.")]
    purge: Annotated[bool, Field(description="Remove what is left of it, kept generations that have it included.")] = (
        False
    )


class PlaceDocument(TypedDict, total=False):
    """A place that was looked through; ``left`` and ``remedy`` only where something was found."""

    place: str
    looked_at: str
    through: str
    found: int
    left: list[str]
    remedy: str


class ReceiptDocument(TypedDict):
    """A signed statement; ``signature`` is over everything else (docs/security.md)."""

    id: str
    domain: str
    source_id: str
    source_path: str
    document_id: str
    passages: Annotated[int, Field(description="parts of its text that every file was searched for")]
    purged: bool
    gone: bool
    places: list[PlaceDocument]
    signed_at: str
    signed_by: str
    signature: str


class Receipts:
    """Makes receipts, and finds them again."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def make(self, body: ReceiptBody) -> Mapping[str, Any]:
        """Return a signed receipt; it takes seconds, with a large store minutes.

        Raises:
            ProblemError: 503, it cannot be made now.
        """
        config = ["--config", str(self._settings.file), "receipt", f"--domain={body.domain.value}"]
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

    def read(self, receipt_id: str) -> Mapping[str, Any]:
        """Return a receipt as it was signed.

        Raises:
            ProblemError: 404, there is none of this id.
        """
        receipt = stored_receipt(self._settings.data_dir, receipt_id)
        if receipt is None:
            raise ProblemError(404, "there is no receipt of this id here")
        return receipt
