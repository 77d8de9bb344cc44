"""Which documents of a domain are asked for: the parameters of ``GET /agents/{domain}/documents``."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from nornweave.core.text.checked_values import Name, UrlCount
from nornweave.index.inbox_life_cycle import DocumentsQuery, DocumentStatus

MAX_DOCUMENTS, USUAL_DOCUMENTS = 1_000, 100
MAX_CURSOR_CHARACTERS = 16_384


class DocumentsParameters(BaseModel):
    """Which documents."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: Annotated[DocumentStatus | None, Field(description="Those that stand so after the last sync.")] = None
    source: Annotated[Name | None, Field(description="Those of this source; `inbox` are those handed in.")] = None
    limit: Annotated[UrlCount, Field(ge=1, le=MAX_DOCUMENTS, strict=True, description="At most so many.")] = (
        USUAL_DOCUMENTS
    )
    cursor: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=MAX_CURSOR_CHARACTERS)] | None,
        Field(description="`next` of the page before, to get what comes after it; everything else must be the same."),
    ] = None

    def asked(self) -> DocumentsQuery:
        """Return them as the inbox takes them."""
        return DocumentsQuery(limit=self.limit, cursor=self.cursor, status=self.status, source=self.source)
