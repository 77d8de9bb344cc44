"""Changes between two moments that a viewer may see: documents, facts, conflicts, answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import TypeAlias

import numpy as np

from nornweave.ask.fuse.records import FusedItem
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.history import LONG_AGO
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Citation, Filters
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.changes import (
    AnswerChangeDocument,
    ChangesDocument,
    DomainChangesDocument,
    FactChangeDocument,
    MomentDocument,
    PlaceDocument,
    ShownDocument,
)
from nornweave.ask.views.ledger import ledger_entry_document
from nornweave.ask.views.shaping import in_shape
from nornweave.ask.views.texts import change_document
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.core.access import Viewer
from nornweave.core.errors import GenerationNotKeptError, NoGenerationError, StoreError
from nornweave.core.text.dates import utc_text
from nornweave.core.types import COMMIT, Domain, is_of_history, present
from nornweave.disagree.facts.values import stated
from nornweave.disagree.ledger import LedgerEntry, Place, entries_of, likely_conflicts
from nornweave.index.fact_pairs import read_fact_pairs
from nornweave.index.generations.moves import AsOf, Then
from nornweave.index.index import Index
from nornweave.index.port import NO_HITS
from nornweave.index.records import StoredChunk
from nornweave.index.searching.conditions import AtPath
from nornweave.index.searching.counting import ServedDocument

MAX_DOCUMENTS = 2_000
"""Of each kind that are listed; facts are compared of so many changed documents."""
SHOWN = 10
_ALL = 10**9

FactName: TypeAlias = tuple[str, str, str]
Documents: TypeAlias = dict[Place, ServedDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """A question of a judged set.

    Attributes:
        domains: the domains to ask; ``None`` for all.
        filters: domain → its filters.
        is_hit: tells whether a citation is judged to answer it.
    """

    set_name: str
    query_id: str
    text: str
    domains: tuple[Domain, ...] | None
    filters: Mapping[Domain, Filters]
    is_hit: Callable[[Citation], bool]


JudgedQuestions: TypeAlias = Callable[[Settings], Sequence[JudgedQuestion]]


@dataclass(frozen=True, slots=True)
class Side:
    """A domain at one of the two moments."""

    then: Then
    index: Index
    documents: Documents


@dataclass(frozen=True, slots=True)
class SeenChanges:
    """Changes between two moments, limited to documents that the viewer may see today."""

    _settings: Settings
    _agents: Mapping[Domain, Agent]
    _answers: SeenAnswers
    _viewer: Viewer

    def between(
        self, a: AsOf, b: AsOf, domain: Domain | None = None, judged: JudgedQuestions = lambda _: ()
    ) -> ChangesDocument:
        """Compare the generations of two moments.

        Args:
            a, b: the moments, or generations.
            domain: the only domain to compare; ``None`` for all domains that keep both generations.
            judged: takes the settings and returns the judged questions to ask as of both moments, if an operator asks.

        Raises:
            GenerationNotKeptError: no domain keeps both generations.
            StoreError: a generation or a judged set cannot be read.
        """
        with ExitStack() as stack:
            sides: dict[Domain, tuple[Side, Side]] = {}
            missing: dict[str, str] = {}
            for name in (domain,) if domain else self._agents:
                try:
                    sides[name] = (self._side(stack, name, a), self._side(stack, name, b))
                except (GenerationNotKeptError, NoGenerationError) as error:
                    missing[name.value] = str(error)
            if not sides:
                raise GenerationNotKeptError("; ".join(f"{name}: {reason}" for name, reason in missing.items()))
            before, after = (self._conflicts(sides, number) for number in (0, 1))
            wanted = {(name,) for name in sides} | ({None} if domain is None else set())
            questions = [each for each in self._questions(judged) if each.domains in wanted]
            changed = [change for each in questions if (change := self._answer_change(each, a, b))]
            return {
                "a": _moment_text(a),
                "b": _moment_text(b),
                "domains": {name.value: _domain_changes(*pair) for name, pair in sides.items()},
                "not_compared": missing,
                "conflicts": {
                    "opened": [ledger_entry_document(after[one]) for one in after if one not in before],
                    "closed": [ledger_entry_document(before[one]) for one in before if one not in after],
                },
                "questions": len(questions),
                "answers": sorted(changed, key=_rank_change, reverse=True),
            }

    def _questions(self, judged: JudgedQuestions) -> Sequence[JudgedQuestion]:
        try:
            return judged(self._settings) if self._viewer.operates else ()
        except ValueError as error:
            raise StoreError(f"the judged sets cannot be read: {error}") from error

    def _side(self, stack: ExitStack, domain: Domain, as_of: AsOf) -> Side:
        generation = self._agents[domain].generation
        then = generation.past.at(as_of)
        index = stack.enter_context(generation.use(self._viewer, then.generation))
        return Side(then, index, {(one.source_id, one.path): one for one in index.served_documents(("", ""), _ALL)})

    def _conflicts(self, sides: Mapping[Domain, tuple[Side, Side]], number: int) -> dict[str, LedgerEntry]:
        """Return id → conflict for the first (0) or second (1) moment, if the viewer may see both sides."""
        files = {
            domain.value: store_of(self._settings, domain).data_files(pair[number].then.generation)
            for domain, pair in sides.items()
        }
        facts, pairs = read_fact_pairs(files)
        seen = {domain.value: pair[number].documents for domain, pair in sides.items()}
        visible = {place for place, one in enumerate(facts) if (one.source_id, one.path) in seen[one.domain]}
        joined = [pair for pair in pairs if visible.issuperset(pair)]
        return {entry.entry_id: entry for entry in entries_of(likely_conflicts(facts, joined), present())}

    def _answer_change(self, judged: JudgedQuestion, a: AsOf, b: AsOf) -> AnswerChangeDocument | None:
        """Return the change of an answer to a judged question; ``None`` if its items and their order are the same."""
        before, after = (
            self._answers.answer(
                Question(
                    text=judged.text,
                    now=present(),
                    viewer=self._viewer,
                    as_of=as_of,
                    top_k=SHOWN,
                    domains=judged.domains,
                    filters=judged.filters,
                )
            ).items
            for as_of in (a, b)
        )
        if [item.item.chunk_id for item in before] == [item.item.chunk_id for item in after]:
            return None
        return {
            "set": judged.set_name,
            "query_id": judged.query_id,
            "query": judged.text,
            "before": [_shown_document(item) for item in before],
            "after": [_shown_document(item) for item in after],
            "reciprocal_rank": [_reciprocal_rank(items, judged) for items in (before, after)],
        }


def _domain_changes(before: Side, after: Side) -> DomainChangesDocument:
    files, files_before, commits, commits_before = (
        {place: one for place, one in side.documents.items() if is_of_history(one.gate) is is_past}
        for is_past in (False, True)
        for side in (after, before)
    )
    added = [place for place in files if place not in files_before]
    removed = [place for place in files_before if place not in files]
    changed = [
        place
        for place, document in files.items()
        if place in files_before and files_before[place].content_hash != document.content_hash
    ]
    new = _commits([place for place in commits if place not in commits_before], after.index)
    looked_at = [*added, *changed, *removed]
    facts = [change for place in looked_at[:MAX_DOCUMENTS] for change in _fact_changes(place, before, after)]
    return {
        "a": _moment(before),
        "b": _moment(after),
        "added": [_place(place) for place in added[:MAX_DOCUMENTS]],
        "changed": [_place(place) for place in changed[:MAX_DOCUMENTS]],
        "removed": [_place(place) for place in removed[:MAX_DOCUMENTS]],
        "commits": [change_document(commit) for commit in new[:MAX_DOCUMENTS]],
        "counts": {"added": len(added), "changed": len(changed), "removed": len(removed), "commits": len(new)},
        "facts": facts,
    }


def _commits(places: Sequence[Place], index: Index) -> list[StoredChunk]:
    """Return the first chunks of the commits at some places, newest first."""
    found = index.named([f"path:{path}" for _, path in places]).values()
    chunks = index.chunks(np.concatenate([NO_HITS.numbers, *found])).values()
    firsts = [chunk for chunk in chunks if chunk.char_range[0] == 0 and chunk.metadata.get("kind") == COMMIT]
    wanted = set(places)
    held = [chunk for chunk in firsts if (chunk.source_id, chunk.path) in wanted]
    return sorted(held, key=lambda chunk: chunk.updated_at or LONG_AGO, reverse=True)


def _fact_changes(place: Place, before: Side, after: Side) -> Iterator[FactChangeDocument]:
    """Yield the changed facts of a document, which are the values of a name that only one of the sides states."""
    old, new = _facts_at(place, before), _facts_at(place, after)
    for name in dict.fromkeys((*old, *new)):
        gone = [value for value in old.get(name, ()) if value not in new.get(name, ())]
        come = [value for value in new.get(name, ()) if value not in old.get(name, ())]
        for was, states in zip_longest(gone, come):
            yield {
                "source_id": place[0],
                "source_path": place[1],
                "name": name[0],
                "owner": name[1],
                "attribute": name[2],
                "before": was,
                "after": states,
            }


def _facts_at(place: Place, side: Side) -> dict[FactName, list[str]]:
    if place not in side.documents:
        return {}
    numbers = np.flatnonzero(side.index.within((AtPath(place[1]),))).astype(np.int32)
    facts: dict[FactName, list[str]] = {}
    for chunk in side.index.chunks(numbers).values():
        if chunk.source_id == place[0]:
            for fact in chunk.facts:
                facts.setdefault((fact.name, fact.owner, fact.attribute), []).append(
                    f"{stated(fact)} {fact.unit}" if fact.unit else stated(fact)
                )
    return facts


def _moment_text(as_of: AsOf) -> str:
    return utc_text(as_of) if isinstance(as_of, datetime) else as_of


def _moment(side: Side) -> MomentDocument:
    at = side.then.published_at
    return in_shape(
        MomentDocument, side.then, published_at=utc_text(at) if at else None, indexed_at=side.index.built_at
    )


def _place(place: Place) -> PlaceDocument:
    return {"source_id": place[0], "source_path": place[1]}


def _shown_document(item: FusedItem) -> ShownDocument:
    return in_shape(ShownDocument, item, item.citation)


def _rank_change(change: AnswerChangeDocument) -> float:
    before, after = change["reciprocal_rank"]
    return abs(after - before)


def _reciprocal_rank(items: Sequence[FusedItem], judged: JudgedQuestion) -> float:
    ranks = (rank for rank, item in enumerate(items, 1) if judged.is_hit(item.item.citation))
    return round(1 / next(ranks, float("inf")), 3)
