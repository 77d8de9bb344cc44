"""Similar chunks share one place of the ranking: the best one leads, the others are folded behind it.

These are tests or examples of one file and sections of one changelog, if they crowd out others; and variants of one
page: its translations, versions and kept copies. Parts of one commit stand behind its first part.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from nornweave.ask.search.combine import Ranking, reorder
from nornweave.ask.search.exact import asks_for_newest, own_names
from nornweave.ask.search.history import (
    LAST,
    UNRELEASED,
    Releases,
    asks_for_release,
    of_past,
    releases_in,
    share_behind,
    topics_in,
)
from nornweave.ask.search.query import read_query
from nornweave.core.text.analyzer import sequence
from nornweave.core.text.index_fields import (
    ASIDE,
    CURRENT,
    RELEASE,
    VARIANT,
    Variant,
    asked_versions,
    has_entries,
    is_version,
    language_of,
    release_of,
    variant_of,
)
from nornweave.core.text.negation import is_question
from nornweave.index.index import Index
from nornweave.index.port import NO_HITS, Numbers
from nornweave.index.records import StoredChunk

LOOKED_AT, TOP, MOST_ASIDE = 50, 10, 2
"""Places that are looked at; tests, or sections of changelogs, fold if more than so many stand among the first ten."""
READ_CHARACTERS = 1_000
"""Of a passage, which tell its language."""
COPY = 0.85
"""Cosine from which sections of one heading in two versions of a page are the same section."""
OTHER_VERSION = 0.5
"""What pages of other versions count where a question names one."""
_NUMBERS = re.compile(r"\bv?\d[\d.]*")
"""A heading may say of which version it is."""


def fold(
    ranking: Ranking, text: str, places: Mapping[str, Numbers], generation: Index
) -> tuple[Ranking, dict[int, Numbers]]:
    """Fold similar chunks, which share one place of the ranking.

    Args:
        text: the question.
        places: name of a group → its chunks. They share one place unless the question names the group.
        generation: the index that has the chunks.

    Returns:
        The ranking without the folded chunks, each leader at the best place of its group; and chunk → the
        chunks folded behind it, best first.
    """
    variants = np.isin(ranking.numbers[:LOOKED_AT], places.get(VARIANT, NO_HITS.numbers)).any()
    asked = asked_versions(text)
    if variants and len(asked) == 1:
        ranking = _selecting(ranking, next(iter(asked)), generation)
    if asks_for_release(text) and (releases := releases_in(text) or _whole(asked)):
        ranking = _of_release(ranking, releases, generation)
    numbers = ranking.numbers[:LOOKED_AT]
    of_release = asks_for_release(text) or asks_for_newest(read_query(text))
    notes = generation.named([RELEASE]).get(RELEASE, NO_HITS.numbers) if of_release else NO_HITS.numbers
    parts = np.flatnonzero(np.isin(numbers, notes)).tolist()
    kinds = (ASIDE, RELEASE) if is_question(text) and not asked and not of_release else (ASIDE,)
    groups = [np.flatnonzero(np.isin(numbers, places.get(kind, NO_HITS.numbers))) for kind in kinds]
    crowd = sorted({place for each in groups if np.count_nonzero(each < TOP) > MOST_ASIDE for place in each.tolist()})
    commits = np.flatnonzero(np.isin(numbers, of_past(generation)))
    if not variants and not crowd and not parts and not len(commits):
        return ranking, {}
    held = generation.chunks(numbers if variants else numbers[[*{*crowd, *parts, *commits.tolist()}]])
    chunks = {place: held[number] for place, number in enumerate(numbers.tolist()) if number in held}
    leaders = (
        _of_one_file(chunks, crowd)
        | _of_one_commit(chunks, commits.tolist())
        | _of_one_release(chunks, parts, topics_in(text))
    )
    if variants:
        leaders |= _of_one_page(chunks, text, is_compared=len(asked) > 1, generation=generation)
    return _fold_behind(ranking, leaders)


def _selecting(ranking: Ranking, version: tuple[int, ...], generation: Index) -> Ranking:
    """Return a ranking that prefers pages of the asked version, if there are any."""
    factors = np.ones(len(ranking))
    chunks = generation.chunks(ranking.numbers[:LOOKED_AT])
    told = [variant_of(chunks[number].path) for number in ranking.numbers[:LOOKED_AT].tolist()]
    if not any(is_version(each.version, version) for each in told):
        return ranking
    others = [(each.version or each.standing != CURRENT) and not is_version(each.version, version) for each in told]
    factors[np.flatnonzero(others)] = OTHER_VERSION
    return reorder(ranking, factors)


def _whole(asked: Collection[tuple[int, ...]]) -> Releases | None:
    """Return the releases that the asked version stands for: 2.1 stands for 2.1 to the last 2.1.x.

    The result is ``None`` if several versions or none are asked for.
    """
    return (min(asked), (*min(asked), LAST)) if len(asked) == 1 else None


def _of_release(ranking: Ranking, releases: Releases, generation: Index) -> Ranking:
    """Return a ranking in which changelog sections on the asked releases come before all other chunks."""
    sections = generation.named([RELEASE]).get(RELEASE, NO_HITS.numbers)
    held = generation.chunks(ranking.numbers[np.isin(ranking.numbers, sections)])
    factors, wanted = np.ones(len(ranking)), np.zeros(len(ranking), bool)
    for place, number in enumerate(ranking.numbers.tolist()):
        if chunk := held.get(number):
            wanted[place] = (
                releases[0] <= release_of(chunk.path, chunk.title, chunk.section, chunk.metadata) <= releases[1]
            )
            factors[place] = 1.0 if wanted[place] else OTHER_VERSION
    if wanted.any():
        scores = ranking.scores * factors
        factors[~wanted] *= min(1.0, share_behind(scores[wanted].max(), scores[~wanted]))
    elif releases != UNRELEASED:
        return ranking
    return reorder(ranking, factors)


def _of_one_file(chunks: Mapping[int, StoredChunk], crowd: Sequence[int]) -> dict[int, int]:
    first: dict[tuple[str, str], int] = {}
    leaders = {place: first.setdefault((chunks[place].source_id, chunks[place].path), place) for place in crowd}
    return {place: leader for place, leader in leaders.items() if place != leader}


def _of_one_release(chunks: Mapping[int, StoredChunk], parts: Sequence[int], topics: set[str]) -> dict[int, int]:
    """Return folded place → leading place, for passages of the notes on one release that crowd out other passages.

    The best passage that lists a change leads. If the question asks for the whole release and for nothing particular in
    it, the first passage that lists a change leads.
    """
    groups: dict[tuple[str, str, tuple[int, ...]], list[int]] = defaultdict(list)
    for place in parts:
        chunk = chunks[place]
        release = release_of(chunk.path, chunk.title, chunk.section, chunk.metadata)
        groups[chunk.source_id, chunk.path, release].append(place)

    def order(place: int) -> tuple[bool, int]:
        chunk = chunks[place]
        own = own_names(chunk.source_id, chunk.url, chunk.path, chunk.section or chunk.title)
        is_whole = topics <= {*sequence(" ".join(own))}
        return not has_entries(chunk.content), chunk.char_range[0] if is_whole else place

    leaders: dict[int, int] = {}
    for group in groups.values():
        if sum(place < TOP for place in group) > MOST_ASIDE:
            leader = min(group, key=order)
            leaders |= {place: leader for place in group if place != leader}
    return leaders


def _of_one_commit(chunks: Mapping[int, StoredChunk], commits: Sequence[int]) -> dict[int, int]:
    """Return folded place → leading place, for the parts of each commit or release.

    The first part leads, because it names the author and the date.
    """
    first = {chunks[place].document_id: place for place in commits if chunks[place].char_range[0] == 0}
    leaders = {place: first.get(chunks[place].document_id, place) for place in commits}
    return {place: leader for place, leader in leaders.items() if place != leader}


def _of_one_page(
    chunks: Mapping[int, StoredChunk], text: str, *, is_compared: bool, generation: Index
) -> dict[int, int]:
    """Return folded place → leading place, for variants of one page: its translations and versions.

    The leader is in the asker's language, and has the version that the question names or else the newest version.

    A folder is a translation only if its text is in another language too, because ``hr/`` may be a department. A
    section folds only behind the same section of another version. A section of one version alone keeps its place.
    """
    families: dict[tuple[str, str], list[tuple[Variant, int]]] = defaultdict(list)
    for place, chunk in chunks.items():
        variant = variant_of(chunk.path)
        families[chunk.source_id, variant.family].append((variant, place))
    preferred = _preference(text)
    leaders: dict[int, int] = {}
    for members in families.values():
        if len({variant for variant, _ in members}) < 2:
            continue
        leading: list[tuple[Variant, int]] = []
        for variant, place in sorted(members, key=lambda member: (preferred(member[0]), member[1])):
            for other, leader in leading:
                one, leading_one = chunks[place], chunks[leader]
                if variant.language != other.language:
                    is_behind = _language(one) != _language(leading_one)
                else:
                    is_behind = variant != other and not is_compared and _is_copy(one, leading_one, generation)
                if is_behind:
                    leaders[place] = leader
                    break
            else:
                leading.append((variant, place))
    return leaders


def _preference(text: str) -> Callable[[Variant], tuple[int, ...]]:
    language, asked = language_of(text), asked_versions(text)

    def preference(variant: Variant) -> tuple[int, ...]:
        spoken = [language, "", "en", variant.language].index(variant.language)
        is_named = any(is_version(variant.version, each) for each in asked)
        return spoken, not is_named, -variant.standing, *(-part for part in variant.version)

    return preference


def _language(chunk: StoredChunk) -> str:
    return language_of(chunk.content[:READ_CHARACTERS])


def _is_copy(one: StoredChunk, other: StoredChunk, generation: Index) -> bool:
    if _heading(one) != _heading(other):
        return False
    first, second = generation.vectors(np.array([one.chunk_no, other.chunk_no], np.int32))
    return float(first @ second) >= COPY


def _heading(chunk: StoredChunk) -> str:
    return _NUMBERS.sub("", f"{chunk.title} > {chunk.section}")


def _fold_behind(ranking: Ranking, leaders: Mapping[int, int]) -> tuple[Ranking, dict[int, Numbers]]:
    behind: dict[int, list[int]] = defaultdict(list)
    for place in sorted(leaders):
        leader = leaders[place]
        while leader in leaders:
            leader = leaders[leader]
        behind[leader].append(place)
    best = np.arange(len(ranking))
    for leader, places in behind.items():
        best[leader] = min(leader, *places)
    order = np.array(sorted(set(range(len(ranking))).difference(leaders), key=best.__getitem__), np.intp)
    taken = best[order]
    shares = ranking.scores[taken] / np.where(ranking.scores[order] > 0, ranking.scores[order], 1)
    left = Ranking(
        ranking.numbers[order],
        ranking.scores[taken],
        {name: part[order] * shares for name, part in ranking.contributions.items()},
        ranking.places[taken],
    )
    return left, {int(ranking.numbers[leader]): ranking.numbers[places] for leader, places in behind.items()}
