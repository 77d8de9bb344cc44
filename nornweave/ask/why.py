"""Why a passage is not in an answer: the stage at which it lost, the margin, and the smallest change that helps.

The ranking is the same as for the answer. A named change was tried: the changed question was asked,
and its answer shows the passage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from nornweave.ask.fuse.records import Answer
from nornweave.ask.search.query import words_of
from nornweave.ask.search.question import ConflictStrategy, Question
from nornweave.ask.search.records import DomainRank, Filters
from nornweave.core.types import NO_METADATA, Domain
from nornweave.index.index import Index
from nornweave.index.port import Numbers
from nornweave.index.records import StoredChunk
from nornweave.index.searching.conditions import SOURCE, AnyOf, AtPath
from nornweave.models.encoders.port import Encoder

Stage: TypeAlias = Literal["filtered", "not_a_candidate", "combined", "merged", "demoted", "budget"]

# As deep as a question can be asked.
DEEPEST = 100
READ_CHUNKS, READ_CHARACTERS = 5, 4_000
WORDS_ADDED, WORDS_READ = 3, 64
RARE = 0.05
"""Share of a domain's chunks that may hold a word which is rare."""
NEAR = 0.1
"""Similarity to the question up to which a word has nothing to do with it."""
NAMED = 1.5
"""What a word counts for that stands in the heading or the name of a passage: people look for it by that."""


@dataclass(frozen=True, slots=True)
class SoughtPlace:
    """A place as a person names it: a path, with a line, source or domain if given."""

    path: str
    line: int | None = None
    source_id: str | None = None
    domain: Domain | None = None


def read_place(text: str) -> SoughtPlace:
    """Return the place that a text of the form ``PATH`` or ``PATH:LINE`` names."""
    path, colon, line = text.strip().rpartition(":")
    return SoughtPlace(path, int(line)) if colon and path and re.fullmatch("[0-9]{1,9}", line) else SoughtPlace(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtChunks:
    """The chunks in question: those of a document, or of the part that holds a line.

    Attributes:
        words: words of these chunks that a person might add to the question, best first.
    """

    domain: Domain
    source_id: str
    path: str
    line: int | None
    chunk_ids: frozenset[str]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """Why a place is not in an answer.

    Attributes:
        stage: the stage at which the place lost; ``None`` if it is shown.
        rank: its rank among all domains or, if it has none, in its own domain; from 1.
        margin: how far its score is below that of the last shown item, in the same ranking; ``None`` without a rank.
        change: the smallest change that helps, in words; empty if none was found.
        changed: the question with this change; ``None`` if no change was found.
        retrievers: retriever → the place's rank in its result; retrievers that did not find the place are left out.
    """

    stage: Stage | None
    rank: int | None = None
    margin: float | None = None
    change: str = ""
    changed: Question | None = None
    retrievers: Mapping[str, int] = field(default_factory=dict)


Change: TypeAlias = tuple[str, Question]


def why(
    question: Question,
    place: SoughtChunks,
    ask: Callable[[Question], Answer],
    rank_of: Callable[[Question], DomainRank | None],
) -> Why:
    """Explain why a place is not in the answer to a question.

    Raises:
        QueryError: a field of the question is wrong.
    """
    answer = ask(question)
    if rank := _rank(answer, place):
        return Why(None, rank)
    found = _lost_at(question, place, answer, ask, rank_of)
    for words, changed in _changes(question, place, found.stage):
        if _rank(ask(changed), place):
            return replace(found, change=words, changed=changed)
    return found


def _lost_at(
    question: Question,
    place: SoughtChunks,
    answer: Answer,
    ask: Callable[[Question], Answer],
    rank_of: Callable[[Question], DomainRank | None],
) -> Why:
    if place.domain not in answer.recalled.asked:
        return Why("filtered")
    candidate = rank_of(question)
    if candidate is None:
        unfiltered = replace(question, filters=_without_filters(question, place.domain))
        is_filtered = unfiltered.filters != question.filters and rank_of(unfiltered) is not None
        return Why("filtered" if is_filtered else "not_a_candidate")
    retrievers = candidate.retrievers
    if merge := next((merge for merge in answer.fused.merges if merge.dropped in place.chunk_ids), None):
        shown = next((rank for rank, item in enumerate(answer.items, 1) if item.chunk_id == merge.kept), None)
        return Why("merged", shown, 0.0, retrievers=retrievers)
    ranked = answer.fused.items
    if not any(item.chunk_id in place.chunk_ids for item in ranked):
        ranked = ask(replace(question, top_k=DEEPEST, max_tokens=None, min_score=None)).fused.items
    for rank, item in enumerate(ranked, 1):
        if item.chunk_id in place.chunk_ids:
            last = answer.items[-1].score if answer.items else question.min_score or 0.0
            below = question.min_score is not None and item.score < question.min_score
            stage: Stage = "budget" if rank <= question.top_k or below else "demoted" if item.demoted else "combined"
            return Why(stage, rank, round(max(0.0, last - item.score), 6), retrievers=retrievers)
    return Why("combined", candidate.rank, round(candidate.margin, 6), retrievers=retrievers)


def _rank(answer: Answer, place: SoughtChunks) -> int | None:
    return next((rank for rank, item in enumerate(answer.items, 1) if item.chunk_id in place.chunk_ids), None)


def _changes(question: Question, place: SoughtChunks, stage: Stage | None) -> Iterator[Change]:
    """Yield changes that may bring a place into the answer, smallest first."""
    domain = place.domain.value
    if stage == "budget":
        yield (
            "without max_tokens, min_score and diversity",
            replace(question, max_tokens=None, min_score=None, diversity=None),
        )
    if stage == "demoted":
        yield "with the conflict strategy FLAG", replace(question, strategy=ConflictStrategy.FLAG)
    if question.filters.get(place.domain):
        yield f"without the filters of {domain}", replace(question, filters=_without_filters(question, place.domain))
    if question.domains is not None and place.domain not in question.domains:
        yield f"ask {domain} as well", replace(question, domains=(*question.domains, place.domain))
    alone = replace(
        question, domains=(place.domain,), filters={place.domain: question.filters.get(place.domain, NO_METADATA)}
    )
    if question.domains != (place.domain,):
        yield f"ask {domain} alone", alone
    for words in (*place.words, *(" ".join(place.words[:count]) for count in range(2, len(place.words) + 1))):
        yield f"add words of the passage: {words}", replace(question, text=f"{question.text} {words}")
        yield f"ask {domain} alone, with words of the passage: {words}", replace(alone, text=f"{question.text} {words}")
    folder, slash, _ = place.path.rpartition("/")
    for path in (*([f"{folder}/**"] if slash else ()), place.path):
        inside = {**alone.filters[place.domain], "source": [place.source_id], "path_glob": path}
        yield f"only in {path}", replace(alone, filters={place.domain: inside})


def _without_filters(question: Question, domain: Domain) -> dict[Domain, Filters]:
    return {name: filters for name, filters in question.filters.items() if name != domain}


def place_in(
    generation: Index, domain: Domain, sought: SoughtPlace, text: str, encoder: Encoder | None = None
) -> SoughtChunks | None:
    """Return the chunks of a place, from the first source that has it; ``None`` if no source has it."""
    sources = [sought.source_id] if sought.source_id else generation.sources_of(sought.path)
    for source_id in sources:
        chunks = chunks_at(generation, source_id, sought.path, sought.line)
        if chunks:
            return SoughtChunks(
                domain=domain,
                source_id=source_id,
                path=sought.path,
                line=sought.line,
                chunk_ids=frozenset(chunk.chunk_id for chunk in chunks.values()),
                words=telling_words(generation, [*chunks.values()][:READ_CHUNKS], text, encoder),
            )
    return None


def numbers_of(generation: Index, place: SoughtChunks) -> Numbers:
    """Return the numbers of the chunks of a place."""
    return np.array([*chunks_at(generation, place.source_id, place.path, place.line)], np.int32)


def chunks_at(generation: Index, source_id: str, path: str, line: int | None = None) -> dict[int, StoredChunk]:
    """Return number → chunk, for all chunks of a document or, with ``line``, for the chunks that hold this line."""
    within = generation.within([AtPath(path), AnyOf(SOURCE, (source_id,))])
    chunks = generation.chunks(np.flatnonzero(within).astype(np.int32))
    return {
        number: chunk
        for number, chunk in chunks.items()
        if line is None or chunk.line_range[0] <= line <= chunk.line_range[1]
    }


def telling_words(
    generation: Index, chunks: Sequence[StoredChunk], text: str, encoder: Encoder | None
) -> tuple[str, ...]:
    """Return words of chunks that a person might add to a question, best first.

    They are rare in the domain and near to the question in meaning. Numbers, parts of words and misspellings are left
    out. Words of headings and names come first.
    """
    asked = {term for terms in words_of(text).values() for term in terms}
    heading = "\n".join(filter(None, (part for chunk in chunks for part in (chunk.title, chunk.section))))
    words = {
        terms[0]: word
        for part in (*(chunk.content[:READ_CHARACTERS] for chunk in chunks), heading)
        for word, terms in words_of(part).items()
        if word.isalpha() and 4 <= len(word) <= 24 and terms[0] not in asked
    }
    named = {terms[0] for terms in words_of(heading).values()}
    held, count = generation.document_frequencies(set(words)), generation.chunk_count
    worth = {
        word: math.log(1 + count / held[term]) * (NAMED if term in named else 1)
        for term, word in words.items()
        if (1 < held[term] <= max(3, RARE * count)) or (held[term] == 1 and term in named)
    }
    rarest = sorted(worth, key=lambda word: (-worth[word], word))[:WORDS_READ]
    if encoder and rarest:
        own, *others = encoder.encode([text, *rarest])
        near = {word: float(own @ other) for word, other in zip(rarest, others, strict=True)}
        worth = {word: worth[word] * near[word] for word in rarest if near[word] > NEAR}
    return tuple(sorted(worth, key=lambda word: (-worth[word], word))[:WORDS_ADDED])
