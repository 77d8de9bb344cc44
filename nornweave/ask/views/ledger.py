"""The conflict ledger as JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.views.shaping import in_shape
from nornweave.core.text.dates import utc_text
from nornweave.core.types import GenerationId
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.facts.expressions import as_written
from nornweave.disagree.facts.values import stated
from nornweave.disagree.ledger import Ledger, LedgerEntry


class LedgerSideDocument(TypedDict):
    """The statement of one side."""

    domain_id: str
    source_id: str
    source_path: str
    chunk_id: str
    side: Annotated[str, Field(description="`code`, `configuration`, `documentation`, `conversation` or `research`")]
    name: str
    owner: str
    value: str
    unit: str | None
    written: Annotated[str, Field(description="the value as the statement writes it")]
    statement: str
    char_range: list[int]
    line_range: list[int] | None
    timestamp: str | None
    updated_at: Annotated[str | None, Field(description="of the line where git knows it, else of the document")]
    revision: Annotated[str | None, Field(description="of the line where git knows it, else of the document")]
    author: Annotated[str | None, Field(description="of the line; null where it is not known")]


class LedgerEntryDocument(TypedDict):
    """Two facts that disagree."""

    entry_id: str
    entity: str
    attribute: str
    detector: str
    sides: list[LedgerSideDocument]
    also: Annotated[list[LedgerSideDocument], Field(description="other places that say what the second side says")]
    suggested: Annotated[str | None, Field(description="the domain that probably holds")]
    reason: str
    explanation: str
    confidence: float
    first_seen: str
    settled: Annotated[str | None, Field(description="when it was gone; null while it stands")]
    dismissed: Annotated[bool, Field(description="somebody said that the two statements are no conflict")]


class DismissedDocument(TypedDict):
    """The stored decision about two statements."""

    id: Annotated[str, Field(description="of the two statements, as answers carry it")]
    dismissed: bool


class LedgerDocument(TypedDict):
    """The conflict ledger: conflicts of the whole corpus, newest first, grouped by entity.

    Dismissed conflicts are only in ``dismissed``.
    """

    made_at: str | None
    generations: dict[str, str]
    open: list[LedgerEntryDocument]
    settled: list[LedgerEntryDocument]
    dismissed: list[LedgerEntryDocument]
    notices: list[str]


def ledger_document(ledger: Ledger | None, published: Mapping[str, GenerationId]) -> LedgerDocument:
    """Return the ledger as JSON, with a notice if it is older than the published generations."""
    if ledger is None:
        notices = ["there is no ledger yet; `nornweave sync` writes it"]
        return {"made_at": None, "generations": {}, "open": [], "settled": [], "dismissed": [], "notices": notices}
    behind = [
        f"{domain}: read from {ledger.generations.get(domain, 'nothing')}, published is {generation}; "
        "`nornweave conflicts` brings the ledger up to date"
        for domain, generation in published.items()
        if ledger.generations.get(domain) != generation
    ]
    entries = [ledger_entry_document(entry, ledger.dismissed) for entry in (*ledger.open, *ledger.settled)]
    return {
        "made_at": utc_text(ledger.made_at),
        "generations": dict(ledger.generations),
        "open": [entry for entry in entries if not entry["settled"] and not entry["dismissed"]],
        "settled": [entry for entry in entries if entry["settled"] and not entry["dismissed"]],
        "dismissed": [entry for entry in entries if entry["dismissed"]],
        "notices": behind,
    }


def ledger_entry_document(entry: LedgerEntry, dismissed: Collection[str] = ()) -> LedgerEntryDocument:
    """Return one entry as JSON. ``dismissed`` has the ids of pairs that somebody has dismissed."""
    return in_shape(
        LedgerEntryDocument,
        entry,
        sides=[_side_document(side) for side in entry.sides],
        also=[_side_document(side) for side in entry.also],
        first_seen=utc_text(entry.first_seen),
        settled=utc_text(entry.settled) if entry.settled else None,
        dismissed=entry.pair_id in dismissed,
    )


def _side_document(side: LocatedFact) -> LedgerSideDocument:
    updated_at = utc_text(side.updated_at) if side.updated_at else None
    return in_shape(
        LedgerSideDocument,
        side,
        side.fact,
        domain_id=side.domain,
        source_path=side.path,
        value=stated(side.fact),
        written=as_written(side.fact),
        char_range=[side.fact.span.start, side.fact.span.end],
        timestamp=updated_at,
        updated_at=updated_at,
    )
