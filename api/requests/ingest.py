"""Documents that are handed in: the body of ``POST /agents/{domain}/ingest``."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict

from nornweave.ask.views.texts import Deposit, DepositDocument
from nornweave.core.text.checked_values import MAX_LINE_CHARACTERS, Moment, PlainJson, textual
from nornweave.core.types import freeze

MAX_DOCUMENTS = 1_000
MAX_DOCUMENT_BYTES = 10 * 1024 * 1024


def _fitting(content: str) -> str:
    size = len(textual(content).encode())
    if size > MAX_DOCUMENT_BYTES:
        raise ValueError(f"{size:,} bytes; allowed are {MAX_DOCUMENT_BYTES:,}")
    return content


class HandedInBody(BaseModel):
    """A document."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    source_path: Annotated[
        str,
        StringConstraints(max_length=MAX_LINE_CHARACTERS),
        AfterValidator(textual),
        Field(
            description="Its place and identity in the inbox, such as `runbooks/refunds.md`; the suffix is its format."
        ),
    ]
    content: Annotated[
        str,
        StringConstraints(max_length=MAX_DOCUMENT_BYTES),
        AfterValidator(_fitting),
        Field(description="Text, at most 10 MiB of UTF-8."),
    ]
    metadata: Annotated[PlainJson, Field(description="Any JSON; `author`, `title`, `url`, `tags` are known.")] = {}
    source_updated_at: Annotated[
        Moment | None, Field(description="When it changed last; UTC unless it says otherwise.")
    ] = None

    def deposit(self) -> Deposit:
        """Return it as the inbox takes it."""
        return Deposit(
            source_path=self.source_path,
            content=self.content,
            metadata=freeze(self.metadata),
            source_updated_at=self.source_updated_at,
        )


class IngestBody(BaseModel):
    """Documents for the inbox of one domain."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    documents: Annotated[list[HandedInBody], Field(min_length=1, max_length=MAX_DOCUMENTS)]


class IngestDocument(TypedDict):
    """What became of each document, in the order in which they came."""

    documents: list[DepositDocument]
