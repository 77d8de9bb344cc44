"""Which entries of the conflict ledger are asked for: the parameters of ``GET /conflicts``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from nornweave.ask.views.ledger import LedgerDocument, LedgerEntryDocument
from nornweave.core.text.checked_values import Name, UrlCount, UrlSwitch
from nornweave.core.types import Domain

MAX_ENTRIES = 10_000


class LedgerQuery(BaseModel):
    """Which entries."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    entity: Annotated[Name | None, Field(description="Entries whose entity has this in it, whatever the case.")] = None
    domain: Annotated[Domain | None, Field(description="Entries in which this domain takes part.")] = None
    limit: Annotated[
        UrlCount | None, Field(ge=1, le=MAX_ENTRIES, strict=True, description="At most so many of each list.")
    ] = None
    settled: Annotated[
        UrlSwitch | None,
        Field(strict=True, description="Only what is settled (`true`) or only what is open (`false`)."),
    ] = None

    def chosen(self, ledger: LedgerDocument) -> LedgerDocument:
        """Return the ledger with the entries that are asked for, in its order."""
        return {
            **ledger,
            "open": [] if self.settled is True else self._matching(ledger["open"]),
            "settled": [] if self.settled is False else self._matching(ledger["settled"]),
        }

    def _matching(self, entries: Sequence[LedgerEntryDocument]) -> list[LedgerEntryDocument]:
        return [entry for entry in entries if self._matches(entry)][: self.limit]

    def _matches(self, entry: LedgerEntryDocument) -> bool:
        named = self.entity is None or self.entity.casefold() in entry["entity"].casefold()
        sides = {side["domain_id"] for side in entry["sides"]}
        return named and (self.domain is None or self.domain.value in sides)
