"""The conflict ledger as its page shows it: filters, entries with their sides, since when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from api.pages.addresses import conflict_address, passage_address
from api.pages.citations import CitedPlace, day_of, detail_of
from api.pages.conflict_view import ConflictSideView, certainty, sentence, subject_of, value_of
from api.pages.markup import sentence_runs
from api.pages.text_runs import TextRun, runs_of
from nornweave.ask.views.ledger import LedgerEntryDocument, LedgerSideDocument

MAX_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntryView:
    """Two facts that disagree."""

    entry_id: str
    href: str
    subject: tuple[TextRun, ...]
    confidence: str
    since: str
    settled: str
    sides: tuple[ConflictSideView, ...]
    also: tuple[CitedPlace, ...]
    suggested: str
    reason: str


def entries_of(documents: Iterable[LedgerEntryDocument]) -> tuple[LedgerEntryView, ...]:
    """Return entries as the page shows them, in their order."""
    return tuple(_entry(document) for document in documents)


def find_entry(documents: Sequence[LedgerEntryDocument], entry_id: str) -> LedgerEntryDocument | None:
    """Return the entry of a permalink; ``None`` where there is no such entry."""
    return next((document for document in documents if document["entry_id"] == entry_id), None)


def _entry(document: LedgerEntryDocument) -> LedgerEntryView:
    subject = subject_of(document["entity"], document["attribute"])
    return LedgerEntryView(
        entry_id=document["entry_id"],
        href=conflict_address(document["entry_id"]),
        subject=runs_of(subject or "(no name)"),
        confidence=certainty(document["confidence"]),
        since=day_of(document["first_seen"]),
        settled=day_of(document["settled"]),
        sides=tuple(
            # The first holds, also before a comment of its own domain.
            _side(side, holds=bool(document["suggested"]) and place == 0)
            for place, side in enumerate(document["sides"])
        ),
        also=tuple(_place(side) for side in document["also"]),
        suggested=document["suggested"] or "",
        reason=sentence(document["reason"]),
    )


def _side(side: LedgerSideDocument, *, holds: bool) -> ConflictSideView:
    return ConflictSideView(
        role="probably holds" if holds else "says",
        holds=holds,
        place=_place(side),
        value=value_of(side["value"], side["unit"]),
        statement=runs_of(side["statement"]) if side["domain_id"] == "code" else sentence_runs(side["statement"], ()),
        day=day_of(side["updated_at"]),
        author=side["author"] or "",
        revision=side["revision"] or "",
        caveats=(),
    )


def _place(side: LedgerSideDocument) -> CitedPlace:
    return CitedPlace(
        domain=side["domain_id"],
        crumbs=(runs_of(side["source_id"]), runs_of(side["source_path"])),
        detail=detail_of({"line_range": side["line_range"]}),
        day=day_of(side["updated_at"]),
        href=passage_address(side["chunk_id"]),
        revision=side["revision"] or "",
    )
