"""What sources disagree about, as the pages show it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from api.pages.addresses import passage_address
from api.pages.citations import CitedPlace, day_of
from api.pages.markup import sentence_runs
from api.pages.text_runs import TextRun, highlighted, runs_of
from nornweave.ask.answer.extract import as_read
from nornweave.ask.views.answer import ConflictDocument, SideDocument
from nornweave.disagree.conflicts import DEMOTE_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictSideView:
    """What one side of a conflict says, where, when and by whom."""

    role: str
    holds: bool
    place: CitedPlace
    value: str
    statement: tuple[TextRun, ...]
    day: str
    author: str
    revision: str
    caveats: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two or more sides that disagree."""

    number: int
    subject: str
    sides: tuple[ConflictSideView, ...]
    verdict: str
    reason: str
    confidence: str


def conflict_of(
    number: int, conflict: ConflictDocument, places: Mapping[str, CitedPlace], terms: Collection[str]
) -> Conflict:
    """Return a conflict of an answer: ``number`` from 1, ``places`` of its items by chunk."""
    settled = conflict["resolved_to"] is not None
    return Conflict(
        number=number,
        subject=subject_of(conflict["entity"], conflict["attribute"]),
        sides=tuple(_side(side, places, terms) for side in conflict["claims"]),
        verdict=f"{_holder(conflict)} probably holds." if settled else "",
        reason=conflict["reason"] if settled else sentence(conflict["reason"]),
        confidence=certainty(conflict["confidence"]),
    )


def _holder(conflict: ConflictDocument) -> str:
    """Name the domain whose side holds."""
    sides = (side["domain_id"] for side in conflict["claims"] if side["chunk_id"] == conflict["resolved_to"])
    return next(sides, "one side").capitalize()


def _side(side: SideDocument, places: Mapping[str, CitedPlace], terms: Collection[str]) -> ConflictSideView:
    place = places.get(side["chunk_id"]) or CitedPlace(
        domain=side["domain_id"],
        crumbs=tuple(runs_of(crumb) for crumb in (side["agent_id"], side["source_path"]) if crumb),
        detail="",
        day=day_of(side["timestamp"]),
        href=passage_address(side["chunk_id"]),
    )
    return ConflictSideView(
        role={"holds": "probably holds", "agrees": "agrees with it"}.get(side["role"], side["role"]),
        holds=side["role"] in {"holds", "agrees"},
        place=place,
        value=value_of(side["value"], side["unit"]),
        statement=stated(side["statement"] or "", terms, is_code=side["domain_id"] == "code"),
        day=day_of(side["updated_at"]),
        author=side["author"] or "",
        revision=side["revision"] or "",
        caveats=tuple(side["qualifiers"]),
    )


def stated(text: str, terms: Collection[str], *, is_code: bool) -> tuple[TextRun, ...]:
    """Return a quotation with the words of a question marked."""
    return highlighted(as_read(text), terms) if is_code else sentence_runs(text, terms)


def value_of(value: str | None, unit: str | None) -> str:
    """Write a value as people do: seconds that make whole days, hours or minutes as those."""
    if value is None:
        return ""
    if unit == "s" and value.isdecimal():
        for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
            count, rest = divmod(int(value), size)
            if count and not rest:
                return f"{count} {name}{'s' if count != 1 else ''}"
    return f"{value} {unit}" if unit else value or "(empty)"


def sentence(text: str) -> str:
    """Begin a reason as a sentence does."""
    return text[:1].upper() + text[1:]


def subject_of(entity: str, attribute: str) -> str:
    """Say what sources disagree about: the thing, and what of it."""
    return " · ".join(filter(None, (entity, attribute.replace("_", " "))))


def certainty(confidence: float) -> str:
    """Say how sure a conflict is: ``probably`` where one side of it may be demoted."""
    return f"{'probably' if confidence >= DEMOTE_FROM else 'may'} disagree · confidence {confidence:.2f}"
