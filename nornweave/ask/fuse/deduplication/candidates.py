"""Find pairs of texts that may say the same, without comparing every pair.

Texts that say the same share runs of three words. All runs of all texts are sorted once, so that texts with a common
run become neighbours. This module only proposes pairs; ``equivalence`` decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nornweave.core.text.words import UNSPACED

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
