"""Changes between two moments, as JSON and as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.ask.views.ledger import LedgerEntryDocument
from nornweave.ask.views.texts import ChangeDocument

MOST_LINES = 50


class PlaceDocument(TypedDict):
    """A document."""

    source_id: str
    source_path: str


class MomentDocument(TypedDict):
    """The generation of a domain at one of the two moments."""

    generation: str
    published_at: str | None
    indexed_at: str
    notice: Annotated[str, Field(description="if not exactly this was current then")]


class FactChangeDocument(PlaceDocument):
    """A changed fact of a document; null on the side that does not state it."""

    name: str
    owner: str
    attribute: str
    before: str | None
    after: str | None


class DomainChangesDocument(TypedDict):
    """Changes of one domain. Lists hold at most 2,000 documents each; commits have their own list."""

    a: MomentDocument
    b: MomentDocument
    added: list[PlaceDocument]
    changed: list[PlaceDocument]
    removed: list[PlaceDocument]
    commits: Annotated[list[ChangeDocument], Field(description="that came, newest first")]
    counts: dict[str, int]
    facts: list[FactChangeDocument]


class ConflictChangesDocument(TypedDict):
    """Conflicts at the second moment only, and at the first only."""

    opened: list[LedgerEntryDocument]
    closed: list[LedgerEntryDocument]


class ShownDocument(PlaceDocument):
    """An item of an answer."""

    chunk_id: str
    domain_id: str


class AnswerChangeDocument(TypedDict):
    """A judged question whose answer has other items or another order."""

    set: str
    query_id: str
    query: str
    before: Annotated[list[ShownDocument], Field(description="the first ten")]
    after: list[ShownDocument]
    reciprocal_rank: Annotated[list[float], Field(description="of the first judged place, before and after")]


class ChangesDocument(TypedDict):
    """Changes between two moments, as far as the asker may see both sides today."""

    a: str
    b: str
    domains: dict[str, DomainChangesDocument]
    not_compared: Annotated[dict[str, str], Field(description="domains that do not keep both, and why")]
    conflicts: ConflictChangesDocument
    questions: Annotated[int, Field(description="judged questions that were asked as of both; operators only")]
    answers: list[AnswerChangeDocument]


def changes_text(changes: ChangesDocument) -> str:
    """Return the changes as lines of text."""
    return "\n".join(_lines(changes)) + "\n"


def _lines(changes: ChangesDocument) -> Iterator[str]:
    for name, domain in changes["domains"].items():
        yield f"{name}: {_at(domain['a'])} to {_at(domain['b'])}"
        yield from (f"  note: {side['notice']}" for side in (domain["a"], domain["b"]) if side["notice"])
        if not any(domain["counts"].values()):
            yield "  no document changed"
        for mark, places in (("+", domain["added"]), ("~", domain["changed"]), ("-", domain["removed"])):
            yield from _some([f"  {mark} {_path(place)}" for place in places])
        yield from _some([f"  {_commit(commit)}" for commit in domain["commits"]])
        yield from _some([f"  fact in {_path(fact)}: {_fact(fact)}" for fact in domain["facts"]])
    yield from (f"{name}: not compared: {reason}" for name, reason in changes["not_compared"].items())
    for word, entries in (("opened", changes["conflicts"]["opened"]), ("closed", changes["conflicts"]["closed"])):
        yield from _some([f"conflict {word}: {_conflict(entry)}" for entry in entries])
    if changes["questions"]:
        yield f"answers that changed: {len(changes['answers'])} of {changes['questions']} judged questions"
    yield from _some([f"  {_answer(answer)}" for answer in changes["answers"]])


def _some(lines: list[str]) -> Iterator[str]:
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"  … {len(lines) - MOST_LINES} more: --json has all"


def _at(moment: MomentDocument) -> str:
    return f"{moment['generation']} ({moment['published_at'] or moment['indexed_at']})"


def _path(place: PlaceDocument) -> str:
    return f"{place['source_id']}/{place['source_path']}"


def _commit(commit: ChangeDocument) -> str:
    return f"commit {commit['revision']} of {(commit['date'] or '')[:10]} by {commit['author']}: {commit['subject']}"


def _fact(fact: FactChangeDocument) -> str:
    owner = f"{fact['owner']} › " if fact["owner"] else ""
    return f"{owner}{fact['name']}, {fact['attribute']}: {fact['before'] or 'nothing'} → {fact['after'] or 'nothing'}"


def _conflict(entry: LedgerEntryDocument) -> str:
    sides = (f"{side['value']} {side['unit'] or ''}".strip() + f" in {_path(side)}" for side in entry["sides"])
    return f"{entry['entity']}, {entry['attribute']}: {', '.join(sides)}"


def _answer(answer: AnswerChangeDocument) -> str:
    first = [_path(items[0]) if items else "nothing" for items in (answer["before"], answer["after"])]
    before, after = answer["reciprocal_rank"]
    return f"{answer['query']!r} ({answer['set']}): {first[0]} → {first[1]}; reciprocal rank {before:.2f} → {after:.2f}"
