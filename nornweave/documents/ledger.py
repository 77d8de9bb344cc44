"""The conflict ledger as JSON has it (contract §4)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12


class LedgerSideDocument(TypedDict):
    """What one domain says."""

    domain_id: str
    source_id: str
    source_path: str
    chunk_id: str
    value: str
    unit: str | None
    statement: str
    char_range: list[int]
    line_range: list[int] | None
    timestamp: str | None


class LedgerEntryDocument(TypedDict):
    """Claims of two domains that disagree."""

    entry_id: str
    entity: str
    attribute: str
    detector: str
    sides: list[LedgerSideDocument]
    suggested: Annotated[str | None, Field(description="the domain that probably holds")]
    reason: str
    explanation: str
    confidence: float
    first_seen: str
    settled: Annotated[str | None, Field(description="when it was gone; null while it stands")]


class LedgerDocument(TypedDict):
    """The conflict ledger: what disagrees in the whole corpus, newest first, grouped by entity."""

    made_at: str | None
    generations: dict[str, str]
    open: list[LedgerEntryDocument]
    settled: list[LedgerEntryDocument]
    notices: list[str]
