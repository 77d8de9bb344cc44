"""Stage 3: merge items that say the same into one that cites all of them.

Pairs of texts that may say the same are found without comparing every pair. Texts that say the same share runs of three
words. All runs of all texts are sorted once, so that texts with a common run become neighbours; ``equivalence``
decides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from nornweave.ask.fuse.deduplication.equivalence import SAME_MEANING_COSINE, Likeness, compare
from nornweave.ask.fuse.deduplication.normalized_text import TextReading, read
from nornweave.ask.fuse.records import DedupedItems, FusedItem, Merge, MergeReason
from nornweave.ask.search.records import Citation
from nornweave.core.text.words import CONTENT, NAME, UNSPACED
from nornweave.core.types import Fact

# Vectors of more items than this are not compared: 2,000 take 20 ms, 10,000 half a second and 400 MB.
ALL_VECTORS = 2000
VECTORS_AT_ONCE = 256
# What means the same in other words, and shares fewer of its words as they stand, is not read: ``equivalence`` asks for
# .75 of the stems that say something, and of pairs that had those none shared fewer than .7.
MEANING_WORDS_SHARED = 0.6
# Longer texts, which are nobody's chunks, are merged only if they are equal: reading two hundred texts of 100,000
# characters against each other would take minutes.
LONGEST_READ = 20_000
# Relevance by which code stays beside longer code that says all of it.
CLEARLY_BETTER = 0.2

_CODE, _CONVERSATIONS = "code", "conversations"

Keys = NDArray[np.uint64]
Places = NDArray[np.int64]

# A pair is proposed if the text with fewer runs shares so many of them.
SHARED = 0.5
# In a text of fewer words a few words in other places leave fewer runs as they were ...
SHORT_WORDS, SHORT_SHARED = 40, 0.25
# ... or none: there single words count.
FEW_WORDS = 12
# In a run that more texts have than this, each is only compared with so many that follow it there: of a crowd of copies
# all merge, of a template's rows none has to be compared with every other.
CROWD, NEIGHBOURS = 32, 4
# Texts of which the words are kept, of some 2 kB each.
REMEMBERED = 4_096
_SIGNS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
_WORD = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


def deduplicate(items: Sequence[FusedItem], threshold: float = 0.85, question: str = "") -> DedupedItems:
    """Merge items that say the same.

    An item is dropped only if another item says all of it. The two are compared directly and not through a third one.
    Of two equal items, the one with the higher score stays. If one text contains the other, the longer one stays. The
    item that stays has the higher of both scores, its own citation and facts, and in ``corroborated_by`` the citations
    of all items merged into it, highest score first. Items folded behind merged items are folded behind it.

    Args:
        question: an item that says a word of it is not merged into one that does not.

    Returns:
        The items that stay, in the order of their first versions. The same items merge in whatever order
        they come in, and merging again merges nothing.
    """
    merged: dict[int, _Into] = {}
    alive = [place for place in _without_equal(items, merged) if len(items[place].item.content) <= LONGEST_READ]
    pairs = _Pairs(items, alive, threshold, frozenset(read(question).said))
    count = len(items) + 1
    # Which pairs are proposed in a crowd depends on how many there are of a kind: again, until nothing merges.
    while len(alive) < count:
        count = len(alive) if len(alive) > CROWD else 0
        alive = _without_alike(items, alive, pairs, merged)
    members: dict[int, list[int]] = defaultdict(list)
    merges = []
    for place in range(len(items)):
        last = place
        while merged.get(last) is not None and merged[last].winner in merged:
            last = merged[last].winner
        into = merged.get(last)
        members[place if into is None else into.winner].append(place)
        if into is not None:
            kept, dropped = items[into.winner].chunk_id, items[place].chunk_id
            merges.append(Merge(kept, dropped, into.reason, into.similarity))
    return DedupedItems(tuple(_join_items(items, root, places) for root, places in members.items()), tuple(merges))


@dataclass(frozen=True, slots=True)
class _Into:
    """The item into which another one was merged, the reason, and their similarity."""

    winner: int
    reason: MergeReason
    similarity: float


class _Pairs:
    """Pairs worth a comparison and their results. Each text is read once, each pair compared once."""

    def __init__(
        self, items: Sequence[FusedItem], alive: Sequence[int], threshold: float, asked: frozenset[str]
    ) -> None:
        self._items = items
        self._threshold = threshold
        self._asked = asked
        self._cosines = dict(_cosines(items, alive))
        self._readings: dict[int, TextReading] = {}
        self._outcomes: dict[tuple[int, int], Likeness | None] = {}
        self._alike = [pair for pair in self._cosines if self._share_words(*pair)]

    def partners(self, alive: Sequence[int]) -> dict[int, list[int]]:
        """Return the possible duplicates of each item, in the order of ``alive``."""
        still = {place: order for order, place in enumerate(alive)}
        close = {pair for pair in self._alike if still.keys() >= {*pair}}
        found = candidate_pairs([self._items[place].item.content for place in alive])
        close |= {_order_pair(alive[one], alive[other]) for one, other in found}
        partners: dict[int, list[int]] = defaultdict(list)
        for one, other in close:
            partners[one].append(other)
            partners[other].append(one)
        return {place: sorted(others, key=still.__getitem__) for place, others in partners.items()}

    def compare(self, one: int, other: int) -> Likeness | None:
        """Return the likeness of two items, ``first`` being ``one``; ``None`` if they do not say the same."""
        pair = _order_pair(one, other)
        if pair not in self._outcomes:
            self._outcomes[pair] = self._compare_items(*pair)
        found = self._outcomes[pair]
        if found is None or pair[0] == one:
            return found
        return replace(found, first_may_go=found.second_may_go, second_may_go=found.first_may_go)

    def _share_words(self, one: int, other: int) -> bool:
        """Tell whether two items of similar meaning share enough words to say the same."""
        mine, theirs = ({*words_of(self._items[place].item.content)} for place in (one, other))
        return len(mine & theirs) >= MEANING_WORDS_SHARED * min(len(mine), len(theirs))

    def _compare_items(self, first: int, second: int) -> Likeness | None:
        if _facts_differ(self._items[first].facts, self._items[second].facts):
            return None
        cosine = self._cosines.get((first, second))
        return compare(self._reading(first), self._reading(second), threshold=self._threshold, cosine=cosine)

    def _reading(self, place: int) -> TextReading:
        if place not in self._readings:
            fused = self._items[place]
            domain = fused.domain
            text = read(fused.item.content, code=domain == _CODE, conversation=domain == _CONVERSATIONS)
            asked = {form: NAME for form in self._asked & text.sorts.keys() if text.sorts[form] == CONTENT}
            self._readings[place] = replace(text, sorts={**text.sorts, **asked}) if asked else text
        return self._readings[place]


def _order_pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _without_equal(items: Sequence[FusedItem], merged: dict[int, _Into]) -> list[int]:
    """Merge items with equal text; return the indexes of the items that stay, longest text first."""
    first_of: dict[str, int] = {}
    alive = []
    for place in sorted(range(len(items)), key=lambda place: _precedence(items[place])):
        winner = first_of.setdefault(items[place].item.content, place)
        if winner == place or _facts_differ(items[winner].facts, items[place].facts):
            alive.append(place)
        else:
            same = _place_of(items[winner]) == _place_of(items[place])
            merged[place] = _Into(winner, "same_chunk" if same else "same_text", 1.0)
    return sorted(alive, key=lambda place: -len(items[place].item.content))


def _place_of(fused: FusedItem) -> tuple[str, ...]:
    citation = fused.citation
    return fused.domain, fused.chunk_id, citation.source_id, citation.source_path


def _precedence(fused: FusedItem) -> tuple[bool, float, tuple[str, ...], str]:
    """Return the sort key of the item to keep: local items first, then higher scores, then names."""
    return fused.citation.agent_id is not None, -fused.relevance, _place_of(fused), fused.item.content


def _without_alike(
    items: Sequence[FusedItem], alive: Sequence[int], pairs: _Pairs, merged: dict[int, _Into]
) -> list[int]:
    """Let each item, longest first, absorb the items that add nothing to it; return the indexes of those that stay."""
    partners = pairs.partners(alive)
    for winner in alive:
        for place in partners.get(winner, ()):
            if winner in merged:
                break
            likeness = pairs.compare(winner, place) if place not in merged else None
            if likeness is not None and _wins(items[winner], items[place], likeness):
                merged[place] = _Into(winner, likeness.reason, likeness.similarity)
    return [place for place in alive if place not in merged]


def _wins(one: FusedItem, other: FusedItem, likeness: Likeness) -> bool:
    """Tell whether the first item absorbs the other. A remote item never absorbs a local one.

    Code that answers clearly better stays beside longer code that contains it, because a person who names a function
    does not want a longer copy.
    """
    if one.citation.agent_id is not None and other.citation.agent_id is None:
        return False
    if likeness.first_may_go and likeness.second_may_go:
        return _precedence(one) <= _precedence(other)
    is_wanted = one.domain == other.domain == _CODE and other.relevance - one.relevance > CLEARLY_BETTER
    return likeness.second_may_go and not is_wanted


def _cosines(items: Sequence[FusedItem], alive: Iterable[int]) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the pairs of items whose vectors are close enough for the same meaning, each pair with its cosine.

    Only vectors of the same encoder are compared. Code has no pairs, because functions that do nearly the same have
    nearly the same vector.
    """
    groups: dict[tuple[str, int], list[tuple[int, NDArray[np.float32]]]] = defaultdict(list)
    for place in alive:
        fused = items[place]
        if fused.encoder is not None and fused.item.vector is not None and fused.domain != _CODE:
            groups[fused.encoder, len(fused.item.vector)].append((place, fused.item.vector))
    for group in groups.values():
        if len(group) > ALL_VECTORS:
            continue
        vectors = np.stack([vector for _, vector in group])
        for start in range(0, len(group), VECTORS_AT_ONCE):
            close = vectors[start : start + VECTORS_AT_ONCE] @ vectors[start:].T
            for code in np.flatnonzero(close > SAME_MEANING_COSINE).tolist():
                row, column = divmod(code, close.shape[1])
                if row < column:
                    pair = _order_pair(group[start + row][0], group[start + column][0])
                    yield pair, min(float(close[row, column]), 1.0)


def _facts_differ(mine: Iterable[Fact], theirs: Iterable[Fact]) -> bool:
    """Tell whether two items state values of one subject, and each item has a value that the other lacks."""
    if not mine or not theirs:
        return False
    said, said_there = _by_subject(mine), _by_subject(theirs)
    return any(
        said[subject] - said_there[subject] and said_there[subject] - said[subject]
        for subject in said.keys() & said_there.keys()
    )


def _by_subject(facts: Iterable[Fact]) -> Mapping[tuple[str | None, ...], set[str]]:
    """Return (name, attribute, unit) → the stated values. Facts that hold only under a condition are left out."""
    values: dict[tuple[str | None, ...], set[str]] = defaultdict(set)
    for fact in facts:
        if not fact.qualifiers:
            values[fact.name, fact.attribute, fact.unit].add(fact.value)
    return values


def _join_items(items: Sequence[FusedItem], root: int, places: Sequence[int]) -> FusedItem:
    winner = items[root]
    losers = sorted((items[place] for place in places if place != root), key=_precedence)
    if not losers:
        return winner
    citations: dict[Citation, None] = dict.fromkeys(winner.corroborated_by)
    for loser in losers:
        citations |= dict.fromkeys((loser.citation, *loser.corroborated_by))
    citations.pop(winner.citation, None)
    relevance = max(winner.relevance, *(loser.relevance for loser in losers))
    if behind := tuple(chain(*(loser.item.folded for loser in losers))):
        winner = replace(winner, item=replace(winner.item, folded=tuple(dict.fromkeys((*winner.item.folded, *behind)))))
    return replace(winner, relevance=relevance, corroborated_by=tuple(citations))


def words_of(text: str) -> list[str]:
    """Return the words by which texts are compared here, in lower case."""
    lowered = text.lower()
    return lowered.translate(_SIGNS).split() if lowered.isascii() else _WORD.findall(lowered)


def candidate_pairs(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Return sorted pairs ``(i, j)``, ``i < j``, of texts that share enough runs of words.

    Up to ``CROWD`` texts every such pair is returned. With more, some pairs depend on the order of the texts.
    """
    hashed = [_hashed_words(text) for text in texts]
    counts = np.array([len(each) for each in hashed], np.int64)
    flat = np.concatenate(hashed) if hashed else np.empty(0, np.uint64)
    owners = np.repeat(np.arange(len(texts)), counts)
    ends = np.cumsum(counts)[owners]
    places = np.arange(len(flat))
    runs = flat * _FACTORS[0]
    for step in (1, 2):
        following = np.zeros_like(flat)
        following[:-step] = flat[step:]
        runs = (runs ^ (runs >> np.uint64(29))) * _FACTORS[step] + following
    whole = places + 2 < ends
    few = counts < FEW_WORDS
    least = np.where(counts < SHORT_WORDS, SHORT_SHARED, SHARED)
    pairs = _sharing(runs[whole], owners[whole], least)
    pairs |= _sharing((flat * _FACTORS[0])[few[owners]], owners[few[owners]], np.full(len(texts), SHARED))
    return sorted(pairs)


@lru_cache(maxsize=REMEMBERED)
def _hashed_words(text: str) -> Keys:
    """Return a number for each word of a text, in order. The numbers differ from process to process."""
    words = words_of(text)
    return np.fromiter(map(hash, words), np.int64, len(words)).view(np.uint64)


def _sharing(keys: Keys, owners: Places, least: NDArray[np.float64]) -> set[tuple[int, int]]:
    """Return the pairs of texts that share enough of their keys, or that are neighbours among many with the same key.

    Args:
        keys: the hashed words or runs of words of all texts.
        owners: for each key, the number of its text.
        least: for each text, the share of its keys that the other text must have. For a pair, the smaller share counts,
            and the text with fewer keys.
    """
    count = len(least)
    bits = np.uint64(max(count, 1).bit_length())
    # One number to sort: as much of the key as fits above the text.
    ordered = np.sort(keys >> bits << bits | owners.astype(np.uint64))
    ordered = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    keys, owners = ordered >> bits, (ordered & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    sizes = np.diff(np.append(starts, len(keys)))
    reach = np.repeat(np.where(sizes > CROWD, NEIGHBOURS, CROWD), sizes)
    found = [np.empty(0, np.int64)]
    for step in range(1, min(int(sizes.max(initial=1)), CROWD)):
        places = np.flatnonzero((keys[step:] == keys[:-step]) & (reach[step:] >= step))
        found.append(owners[places] * count + owners[places + step])
    codes = np.sort(np.concatenate(found))
    firsts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
    codes, times = codes[firsts], np.diff(np.append(firsts, len(codes)))
    first, second = np.divmod(codes, max(count, 1))
    own = np.bincount(owners, minlength=count)
    enough = times >= np.minimum(least[first], least[second]) * np.minimum(own[first], own[second])
    return {(code // count, code % count) for code in codes[enough].tolist()}
