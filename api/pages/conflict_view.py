"""Conflicts for the pages: those of an answer, and entries of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from api.pages.addresses import CitedPlace, conflict_address, place_of
from api.pages.markup import sentence_runs
from api.pages.text_runs import TextRun, highlighted
from nornweave.ask.answer.extract import as_read
from nornweave.ask.views.answer import ConflictDocument, SideDocument
from nornweave.ask.views.ledger import LedgerDocument, LedgerEntryDocument, LedgerSideDocument
from nornweave.disagree.conflicts import DEMOTE_FROM

MAX_ENTRIES = 200
_ROLES = {"holds": "probably holds", "agrees": "agrees with it"}


def conflict_of(
    number: int, conflict: ConflictDocument, places: Mapping[str, CitedPlace], terms: Collection[str]
) -> dict[str, Any]:
    """Return a conflict of an answer for the page. ``number`` counts from 1; ``places`` are by chunk."""
    settled = conflict["resolved_to"] is not None
    return {
        **conflict,
        "number": number,
        "subject": _subject(conflict["entity"], conflict["attribute"]),
        "sides": [_side(side, side["role"], places.get(side["chunk_id"]), terms) for side in conflict["claims"]],
        "verdict": f"{_holder(conflict)} probably holds." if settled else "",
        "reason": conflict["reason"] if settled else sentence(conflict["reason"]),
        "certainty": _certainty(conflict["confidence"]),
    }


def ledger_view(ledger: LedgerDocument) -> dict[str, Any]:
    """Return the ledger for the page: ``MAX_ENTRIES`` of each list, and the number of the others."""
    lists = {"open": ledger["open"], "settled": ledger["settled"], "dismissed": ledger["dismissed"]}
    return {
        "ledger": ledger,
        **{name: [entry_of(entry) for entry in each[:MAX_ENTRIES]] for name, each in lists.items()},
        "hidden": sum(max(0, len(each) - MAX_ENTRIES) for each in lists.values()),
    }


def entry_of(entry: LedgerEntryDocument) -> dict[str, Any]:
    """Return an entry of the ledger for the page. If the ledger suggests a side, the first side is said to hold."""
    roles = ("holds" if entry["suggested"] else "says", *["says"] * len(entry["sides"]))
    return {
        **entry,
        "href": conflict_address(entry["entry_id"]),
        "subject": _subject(entry["entity"], entry["attribute"]) or "(no name)",
        "sides": [_side(side, role) for side, role in zip(entry["sides"], roles, strict=False)],
        "also": [place_of(side, side["chunk_id"]) for side in entry["also"]],
        "reason": sentence(entry["reason"]),
        "certainty": _certainty(entry["confidence"]),
    }


def _holder(conflict: ConflictDocument) -> str:
    """Return the domain whose side of a conflict holds."""
    sides = (side["domain_id"] for side in conflict["claims"] if side["chunk_id"] == conflict["resolved_to"])
    return next(sides, "one side").capitalize()


def _side(
    side: SideDocument | LedgerSideDocument, role: str, place: CitedPlace | None = None, terms: Collection[str] = ()
) -> dict[str, Any]:
    """Return one side for the page: its statement, value, place and date. ``role`` is ``holds`` or ``says``."""
    return {
        **side,
        "role": _ROLES.get(role, role),
        "holds": role in _ROLES,
        "place": place or place_of(side, side["chunk_id"]),
        "value": side["written"] or "",
        "statement": stated(side["statement"] or "", terms, is_code=side["domain_id"] == "code"),
    }


def stated(text: str, terms: Collection[str], *, is_code: bool) -> tuple[TextRun, ...]:
    """Return a quotation with the words of a question marked. The markup of a quotation that is not code is removed."""
    return highlighted(as_read(text, is_code=True), terms) if is_code else sentence_runs(text, terms)


def sentence(text: str) -> str:
    """Return a reason with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def _subject(entity: str, attribute: str) -> str:
    """Return the subject of a conflict: entity and attribute."""
    return " · ".join(filter(None, (entity, attribute.replace("_", " "))))


def _certainty(confidence: float) -> str:
    """Return how sure a conflict is, in words: ``probably`` if its confidence is enough to demote a side."""
    return f"{'probably' if confidence >= DEMOTE_FROM else 'may'} disagree · confidence {confidence:.2f}"
