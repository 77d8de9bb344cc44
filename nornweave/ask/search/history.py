"""Questions about the past, which commits and releases answer; all others are answered without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from nornweave.ask.search.combine import Ranking, reorder
from nornweave.ask.search.lanes import P
from nornweave.ask.search.records import RecallResponse
from nornweave.core.text.index_fields import COMMIT_DIGITS, PAST, THREAD_NUMBER, is_changelog, release_keys
from nornweave.core.types import COMMIT, RELEASE, Domain
from nornweave.index.index import Index
from nornweave.index.port import Numbers
from nornweave.index.records import StoredChunk
from nornweave.index.searching.conditions import AnyOf, Condition, PathGlob
from nornweave.index.searching.ranked_chunks import NO_HITS

MAX_ASKED = 2_000
"""A longer text is pasted, and asks for no history."""
PRESENT = 0.5
"""What passages of today count where the past is asked for."""
_PAST_TENSE = r"(?:[a-z]{2,30}ed|made|wrote|rewrote|broke|built|began|brought|chose|put|took|did)"
BEHIND_RELEASE = 0.9
"""The most that others count beside a release that a question of what changed names."""
_ASKS = re.compile(
    rf"""
    \b(?:which|what|whose|by|the(?:\ \w+)?|last|latest|first)\ commits?\b
    | \bcommit\ message | \bgit\ (?:log|blame|history)\b
    | \bwho\ (?:first\ |last\ |originally\ )?(?:has\ |have\ |had\ )?{_PAST_TENSE}\b
    | \bwho\ (?:is\ the\ )?author
    | \bsince\ (?:when|which)\b | \bhow\ long\ (?:has|have)\b
    | \b(?:when|why|(?:in\ which|what)\ (?:version|release))\ (?:was|were|did|has|have|had)\b (?!\ (?:my|i)\b)
    | \bwhat(?:'s|\ (?:has|have|was|were))?\ (?:been\ )?(?:changed?|added|removed|fixed|done)
      \ (?:in|since|between|after|before|with|about|to|from|by)\b
    | \bwhat(?:'s|\ is)?\ new\ (?:in|since)\b
    | \bwhat\ (?:breaks|changes)\b.{{0,40}}\b(?:version|release)\ \d | \b(?:upgrad|updat)\w+\ .{{0,30}}\bto\ v?\d
    | \b(?:what\ (?:did|does)|changes\ in)\ (?:\S{{1,40}}\ )?v?\d+\.\d
    | \b(?:changes|changed|commits|happened|added|removed)\ (?:since|between|after|before)\b
    | \b(?:changes|commits|happened|added|removed)\ by\b
    | \blast\ (?:changed|modified|touched|updated|edited)\b | \bhistory\ of\b
    | \b(?:is|are|do|does)\ .{{0,80}}\bstill\ (?:used|there|needed|supported|in\ use|exist|have|read|support|use|depend)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_COMMIT = re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}\b", re.IGNORECASE)
_ONE_CHANGE = re.compile(r"\b(?:who|whose|why|when|commit)\b", re.IGNORECASE)
"""What asks for one change, not for all of a release."""
_IN_REPOSITORY = re.compile(r"(https?://[^?#]+?)/(-/)?(commit|issues|work_items|pull|merge_requests)/(\w+)")
LONG_AGO = datetime.min.replace(tzinfo=UTC)
_WHY = re.compile(r"\bwhy\b", re.IGNORECASE)
_FIELDS = frozenset({"kind", "touches"})


def asks_for_past(text: str) -> bool:
    """Tell whether a question is about what happened: why, when, since when, who, what changed, which commit."""
    return len(text) <= MAX_ASKED and (bool(_ASKS.search(text)) or bool(commits_in(text)))


def asks_for_release(text: str) -> bool:
    """Tell whether a question is about all that changed, in a release or since it, not about one change."""
    return asks_for_past(text) and not _ONE_CHANGE.search(text)


def commits_in(text: str) -> set[str]:
    """Return the keys of the commits that a question names by their digits."""
    return {f"commit:{found[: COMMIT_DIGITS[1] - 1].lower()}" for found in _COMMIT.findall(text)}


def without_past(text: str) -> str:
    """Return a question without what asks for the past in it: the words of that stand in no commit."""
    return _ASKS.sub(" ", text) if len(text) <= MAX_ASKED else text


def of_present(text: str, conditions: Sequence[Condition], generation: Index) -> Index:
    """Return a generation as if it had no commits and no releases, unless the question or a filter asks for these."""
    is_wanted = asks_for_past(text) or any(
        (isinstance(each, AnyOf) and each.field in _FIELDS) or (isinstance(each, PathGlob) and each.or_changed)
        for each in conditions
    )
    return generation if is_wanted else generation.without(PAST)


def past_first(ranking: Ranking, text: str, generation: Index) -> Ranking:
    """Return a ranking in which commits and releases lead if the past is asked for, first a release that is named."""
    if not asks_for_past(text) or not len(past := _past(generation)):
        return ranking
    factors = np.where(np.isin(ranking.numbers, past), 1.0, PRESENT)
    named = [*generation.named(release_keys(text)).values()] if asks_for_release(text) else []
    is_named = np.isin(ranking.numbers, np.concatenate([NO_HITS.numbers, *named]))
    scores = ranking.scores * factors
    if is_named.any():
        factors[~is_named] *= min(BEHIND_RELEASE, share_behind(scores[is_named].min(), scores[~is_named]))
    return reorder(ranking, factors)


def share_behind(leading: float, others: NDArray[np.float64]) -> float:
    """Return what others count at most so that the best of them stays behind a score."""
    best = float(others.max(initial=0))
    return BEHIND_RELEASE * leading / best if best > 0 else 1.0


def before_pages(question: str, responses: Mapping[P, RecallResponse]) -> dict[P, RecallResponse]:
    """Return responses in which pages count half, if a commit answers who did something, when, or what changed.

    Pages say how things are. Sections of changelogs do not, nor does what asks *why* need to stand in a commit.
    """
    found = [item.metadata.get("kind") for response in responses.values() for item in response.items]
    if not asks_for_past(question) or _WHY.search(question) or not {COMMIT, RELEASE}.intersection(found):
        return dict(responses)
    return {key: _halved(each) if each.domain_id == Domain.DOCUMENTATION else each for key, each in responses.items()}


def _halved(response: RecallResponse) -> RecallResponse:
    items = [
        item if is_changelog(item.citation.source_path) else replace(item, score=PRESENT * item.score)
        for item in response.items
    ]
    return replace(response, items=tuple(sorted(items, key=lambda item: -item.score)))


def commit_of(generation: Index, chunk: StoredChunk) -> StoredChunk | None:
    """Return the commit that changed the file of a chunk last; ``None`` where it is not known, and of commits."""
    key = f"commit:{(chunk.revision or '')[: COMMIT_DIGITS[1] - 1]}"
    for found in generation.chunks(generation.named([key]).get(key, NO_HITS.numbers)).values():
        if found.source_id == chunk.source_id and found.path != chunk.path and found.char_range[0] == 0:
            return found
    return None


def numbers_of(chunk: StoredChunk) -> tuple[str, frozenset[str]]:
    """Return where a repository is read in a browser, and the issues and pull requests there that a chunk is about.

    Those are the numbers that a commit names, or the number of the thread that it is from; none of anything else.
    GitLab counts merge requests (``!12``) apart from issues (``12``).
    """
    if not (place := _IN_REPOSITORY.match(chunk.url or "")):
        return "", frozenset()
    repository, is_gitlab, kind, number = place.groups()
    if kind != COMMIT:
        return repository, frozenset({f"!{number}" if kind == "merge_requests" else number})
    named = THREAD_NUMBER.finditer(chunk.content) if chunk.metadata.get("kind") == COMMIT else ()
    return repository, frozenset(f"!{each[1]}" if is_gitlab and each[0][0] == "!" else each[1] for each in named)


def about_numbers(generation: Index, repository: str, numbers: Iterable[str]) -> list[StoredChunk]:
    """Return the first chunks of the commits and threads of a repository that are about these numbers, newest first."""
    wanted = frozenset(numbers)
    found = generation.named([f"name:{number.lstrip('!')}" for number in wanted]).values()
    documents: dict[str, StoredChunk] = {}
    for chunk in generation.chunks(np.concatenate([NO_HITS.numbers, *found])).values():
        place, told = numbers_of(chunk)
        first = documents.get(chunk.document_id, chunk)
        if place == repository and wanted & told and chunk.char_range <= first.char_range:
            documents[chunk.document_id] = chunk
    return sorted(documents.values(), key=lambda chunk: (chunk.updated_at or LONG_AGO, chunk.path), reverse=True)


def _past(generation: Index) -> Numbers:
    return generation.named([PAST]).get(PAST, NO_HITS.numbers)
