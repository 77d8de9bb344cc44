"""Find pairs of texts that may say the same, without comparing every pair.

Texts become sets of *shingles*, three words in a row as one 64-bit number, in NumPy and for all texts at once. Among
many texts pairs come from MinHash with banding (Broder 1997; Leskovec, Rajaraman & Ullman, *Mining of Massive
Datasets*, 3.4): texts whose shingle sets have Jaccard similarity ``s`` meet with probability ``1 - (1 - s^r)^b``. With
``r = 2`` rows and ``b = 32`` bands::

    s    .02  .10  .20  .30  .40  .50  .60
    P    .01  .28  .73  .95  .996 1.0  1.0

A short text inside a long one has a small ``s`` whatever it holds, so texts that share shingles which are rare among
these texts are paired as well. This module only proposes pairs; ``equivalence`` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]

BANDS = 32
ROWS = 2
SHINGLE_WORDS = 3
# Texts that met in a band by chance are alike in few of the other places of their signatures.
LEAST_ALIKE = 0.1
# A shingle in more texts than this is a phrase of the trade (a licence's or a template's), no trace of a copy.
RARE_TEXTS = 12
# A pair that shares fewer rare shingles, as a share of the smaller text's, is not proposed for them.
RARE_SHARE = 0.06
# In a bucket of very many texts each is paired with so many that follow it, and with the first.
NEIGHBOURS = 4
# Of texts with more shingles than this a fixed quarter stands for all of them when rare ones are looked for.
SAMPLED_ABOVE = 64

_SEED = 0x5EED
_TABLE_SIZE = 1024
# Shingles that are looked for at a time, some 40 bytes each: of two hundred long texts that share their words there are
# sixty million to look for.
_LOOKED_FOR = 1 << 20
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], dtype=np.uint64)
_BLANK = 32
_LETTERS = bytes(code if code >= 128 or chr(code).isalnum() or chr(code) == "_" else _BLANK for code in range(256))
_FOLDED = _LETTERS.lower()
# First bytes of the UTF-8 of Chinese, Japanese and Korean characters, which stand without blanks between words.
_FIRST_UNSPACED, _LAST_UNSPACED = 0xE3, 0xED
_BLOCK = 8
_WORD_BITS = np.uint64(64)
_LOW_BYTES = np.array([(1 << (8 * count)) - 1 for count in range(_BLOCK + 1)], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Shingled:
    """The words and shingles of texts, as numbers that are the same in every process.

    Attributes:
        words: of all texts, one after the other; text ``i`` has ``words[word_starts[i]:word_starts[i + 1]]``.
        shingles: distinct within each text, sorted; text ``i`` has ``shingles[starts[i]:starts[i + 1]]``. A text of one
            or two words has one; a text without words none.
    """

    words: Hashes
    word_starts: Places
    shingles: Hashes
    starts: Places

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sizes(self) -> Places:
        """Return the number of distinct shingles of each text."""
        return np.diff(self.starts)

    def take(self, places: Sequence[int]) -> Shingled:
        """Return the words and shingles of some of the texts, in this order."""
        chosen = np.asarray(places, np.int64)
        words, word_starts = _take_ranges(self.words, self.word_starts, chosen)
        return Shingled(words, word_starts, *_take_ranges(self.shingles, self.starts, chosen))

    def shared(self, pairs: Places) -> NDArray[np.float64]:
        """Return how many shingles texts share, as a share of those of the text with fewer; 0 where that has none."""
        # All shingles of all texts are one sorted sequence when the text stands in the upper bits.
        bits = _text_bits(len(self))
        known = np.repeat(np.arange(len(self), dtype=np.uint64), self.sizes()) << (_WORD_BITS - bits)
        known |= self.shingles >> bits
        looked_for = np.cumsum(self.sizes()[pairs].min(axis=1))
        cuts = np.searchsorted(looked_for, np.arange(_LOOKED_FOR, looked_for[-1:].sum(), _LOOKED_FOR))
        return np.concatenate([self._shared(some, known, bits) for some in np.split(pairs, cuts)])

    def _shared(self, pairs: Places, known: Hashes, bits: np.uint64) -> NDArray[np.float64]:
        sizes = self.sizes()[pairs]
        first_is_smaller = sizes[:, 0] <= sizes[:, 1]
        smaller = np.where(first_is_smaller, pairs[:, 0], pairs[:, 1])
        larger = np.where(first_is_smaller, pairs[:, 1], pairs[:, 0])
        looked_for, starts = _take_ranges(self.shingles, self.starts, smaller)
        fewer = np.diff(starts)
        asked = np.repeat(larger.astype(np.uint64), fewer) << (_WORD_BITS - bits) | looked_for >> bits
        places = np.minimum(np.searchsorted(known, asked), max(len(known) - 1, 0))
        found = np.cumsum(np.append(0, known[places] == asked))
        counts: NDArray[np.int64] = found[starts[1:]] - found[starts[:-1]]
        return counts / np.maximum(fewer, 1)

    def same_words(self, one: int, other: int) -> bool:
        """Tell whether two texts have the same words in the same order, and some."""
        starts = self.word_starts
        return bool(starts[one] < starts[one + 1]) and np.array_equal(
            self.words[starts[one] : starts[one + 1]], self.words[starts[other] : starts[other + 1]]
        )

    def distinct_words(self, text: int) -> frozenset[int]:
        """Return the hashes of a text's words."""
        return frozenset(self.words[self.word_starts[text] : self.word_starts[text + 1]].tolist())

    def word_counts(self) -> Places:
        """Return the number of words of each text."""
        return np.diff(self.word_starts)


def _take_ranges(values: Hashes, starts: Places, places: Places) -> tuple[Hashes, Places]:
    sizes = (starts[1:] - starts[:-1])[places]
    ends = np.cumsum(sizes)
    inside = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    return values[np.repeat(starts[places], sizes) + inside], np.concatenate(([0], ends)).astype(np.int64)


def shingle(texts: Sequence[str]) -> Shingled:
    """Split texts into words (letters, digits, ``_``; case of ASCII aside) and shingles of three."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    folded = b" ".join([b"", *encoded, b" " * (4 * _BLOCK)]).translate(_FOLDED)
    ends = np.cumsum(np.fromiter((len(one) + 1 for one in encoded), np.int64, len(encoded)))
    starts, lengths = _words(np.frombuffer(folded, np.uint8))
    words = _word_hashes(folded, starts, lengths)
    word_starts = np.concatenate(([0], np.searchsorted(starts, ends))).astype(np.int64)
    owners = np.repeat(np.arange(len(texts), dtype=np.int64), np.diff(word_starts))
    return Shingled(words, word_starts, *_shingles(words, word_starts, owners))


def pairs_among_few(shingled: Shingled, share: float) -> Places:
    """Return pairs ``(i, j)``, ``i < j``, of texts that share words: every pair is looked at, roughly.

    Args:
        share: shared distinct words, as a share of the text with fewer, from which a pair is returned. Words are
            counted in a table of 1,024: others sometimes count as shared, and a pair that shares enough is returned.

    Returns:
        Shape ``(pairs, 2)``, sorted.
    """
    table = np.zeros((len(shingled), _TABLE_SIZE), np.float32)
    owners = np.repeat(np.arange(len(shingled)), shingled.word_counts())
    table[owners, (shingled.words >> np.uint64(54)).astype(np.intp)] = 1
    shared = table @ table.T
    counts = shared.diagonal()
    enough = shared >= share * np.maximum(np.minimum(counts[:, None], counts[None, :]), 1)
    return np.argwhere(np.triu(enough, 1)).astype(np.int64)


def pairs_among_many(shingled: Shingled) -> Places:
    """Return pairs ``(i, j)``, ``i < j``, that MinHash proposes or that share rare shingles, shape ``(pairs, 2)``.

    Which pairs depends on what the texts hold, and where more than ``NEIGHBOURS`` texts fall together on their order.
    """
    signed = signatures(shingled)
    met, _ = _counted(_same_bucket(signed))
    first, second = np.divmod(met, max(len(shingled), 1))
    alike = np.count_nonzero(signed[first] == signed[second], axis=1) >= LEAST_ALIKE * signed.shape[1]
    codes, _ = _counted(np.concatenate([met[alike], _same_rare_shingles(shingled)]))
    return np.stack(np.divmod(codes, max(len(shingled), 1)), axis=1).astype(np.int64)


def signatures(shingled: Shingled, count: int = BANDS * ROWS) -> NDArray[np.uint32]:
    """Return MinHash signatures, shape ``(texts, count)``; the share of equal places estimates the Jaccard similarity.

    A text without words has the highest value everywhere.
    """
    factors, offsets = _permutations(count)
    filled = np.flatnonzero(shingled.sizes())
    signed = np.full((count, len(shingled)), np.iinfo(np.uint32).max, np.uint32)
    if len(filled):
        hashes = (shingled.shingles >> np.uint64(32)).astype(np.uint32)
        places = shingled.starts[filled]
        for row, (factor, offset) in enumerate(zip(factors, offsets, strict=True)):
            signed[row, filled] = np.minimum.reduceat(hashes * factor + offset, places)
    return signed.T


@lru_cache(maxsize=4)
def _permutations(count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return ``x → a·x + b (mod 2³²)`` with odd ``a``: bijections of 32 bits, the same in every process."""
    drawn = np.random.Generator(np.random.PCG64(_SEED)).integers(0, 1 << 32, (2, count), dtype=np.uint32)
    return drawn[0] | np.uint32(1), drawn[1]


def _words(codes: NDArray[np.uint8]) -> tuple[Places, Places]:
    """Return where words start, and how many bytes they have; the first and the last code are blanks."""
    letters = codes != _BLANK
    bounds = letters[1:] != letters[:-1]
    if codes.max() >= _FIRST_UNSPACED:
        bounds |= (codes[1:] >= _FIRST_UNSPACED) & (codes[1:] <= _LAST_UNSPACED)
    places = np.flatnonzero(bounds) + 1
    starting = letters[places]
    return places[starting], np.diff(places)[starting[:-1]]


def _word_hashes(folded: bytes, starts: Places, lengths: Places) -> Hashes:
    """Hash words by their first 32 bytes and their length: eight bytes at a time, all words at once."""
    # An unaligned view of the eight bytes that start at each byte.
    view: Hashes = np.ndarray((len(folded) - _BLOCK + 1,), "<u8", folded, strides=(1,))
    hashed = lengths.astype(np.uint64)
    for block in range(4):
        rest = lengths - block * _BLOCK
        longer = slice(None) if block == 0 else np.flatnonzero(rest > 0)
        bytes_ = view[starts[longer] + block * _BLOCK] & _LOW_BYTES[np.minimum(rest[longer], _BLOCK)]
        hashed[longer] = _mixed(hashed[longer] ^ (bytes_ * _FACTORS[block]))
    return hashed


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> np.uint64(32))) * _FACTORS[0]
    return values ^ (values >> np.uint64(29))


def _shingles(words: Hashes, word_starts: Places, owners: Places) -> tuple[Hashes, Places]:
    if not len(words):
        return words, np.zeros(len(word_starts), np.int64)
    ends = word_starts[1:][owners]
    places = np.arange(len(words))
    combined = words * _FACTORS[1]
    for step in range(1, SHINGLE_WORDS):
        following = np.zeros_like(words)
        following[:-step] = words[step:]
        following[places + step >= ends] = 0
        combined = _mixed(combined ^ (following * _FACTORS[step + 1]))
    whole = (places + SHINGLE_WORDS <= ends) | (places == word_starts[owners])
    # One number to sort: the text in the upper bits, as much of the hash as fits in the lower ones.
    text_bits = _text_bits(len(word_starts) - 1)
    hash_bits = _WORD_BITS - text_bits
    keys = np.sort(owners[whole].astype(np.uint64) << hash_bits | combined[whole] >> text_bits)
    keys = keys[np.append(True, keys[1:] != keys[:-1])]
    sizes = np.bincount((keys >> hash_bits).astype(np.intp), minlength=len(word_starts) - 1)
    return keys << text_bits, np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _text_bits(count: int) -> np.uint64:
    """Return how many bits the number of a text takes."""
    return np.uint64(max(count - 1, 1).bit_length())


def _counted(codes: Places) -> tuple[Places, Places]:
    """Return the distinct codes, sorted, and how often each occurs; ``np.unique`` (NumPy 2.4) takes 30 times longer."""
    ordered = np.sort(codes)
    firsts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    return ordered[firsts], np.diff(np.append(firsts, len(ordered)))


def _same_bucket(signed: NDArray[np.uint32]) -> Places:
    """Return ``i · n + j`` for texts that agree in all rows of a band."""
    count = len(signed)
    rows = signed[:, : BANDS * ROWS].astype(np.uint64).reshape(count, BANDS, ROWS)
    keys = np.arange(BANDS, dtype=np.uint64) * _FACTORS[3]
    for row in range(ROWS):
        keys = _mixed(keys ^ (rows[:, :, row] * _FACTORS[row + 1]))
    texts = np.repeat(np.arange(count, dtype=np.int64), BANDS)
    return _paired(np.asarray(keys, np.uint64).reshape(-1), texts, count)


def _same_rare_shingles(shingled: Shingled) -> Places:
    """Return ``i · n + j`` for texts of which the smaller has enough of its shingles, rare ones, in the other."""
    count, sizes = len(shingled), shingled.sizes()
    texts = np.repeat(np.arange(count, dtype=np.int64), sizes)
    kept = (sizes[texts] <= SAMPLED_ABOVE) | (shingled.shingles >> np.uint64(62) == 0)
    looked_at = np.bincount(texts[kept], minlength=count)
    codes = _paired(shingled.shingles[kept], texts[kept], count, at_most=RARE_TEXTS)
    codes, shared = _counted(codes)
    first, second = np.divmod(codes, max(count, 1))
    smaller = np.minimum(looked_at[first], looked_at[second])
    return np.asarray(codes[shared >= RARE_SHARE * smaller], np.int64)


def _paired(keys: Hashes, texts: Places, count: int, at_most: int | None = None) -> Places:
    """Return ``i · count + j`` with ``i < j`` for texts of equal key, as often as they share one."""
    text_bits = np.uint64(max(count, 1).bit_length())
    # Sorting numbers is many times faster than sorting their places; a few bits of the hash make room for the text.
    ordered = np.sort(keys >> text_bits << text_bits | texts.astype(np.uint64))
    keys, texts = ordered >> text_bits, (ordered & np.uint64((1 << int(text_bits)) - 1)).astype(np.int64)
    bounds = np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1, [len(keys)])).astype(np.int64)
    sizes = np.diff(bounds)
    shared = np.repeat((sizes > 1) & (sizes <= (at_most or len(keys))), sizes)
    firsts = np.repeat(bounds[:-1], sizes)[shared]
    # In the crowd of a bucket everybody meets the first and the next few; at most so many share a rare shingle.
    found = [texts[firsts] * count + texts[shared]] if at_most is None else [np.empty(0, np.int64)]
    keys, texts = keys[shared], texts[shared]
    for step in range(1, min(int(sizes.max(initial=1)), (at_most or NEIGHBOURS) + 1)):
        together = np.flatnonzero(keys[step:] == keys[:-step])
        found.append(texts[together] * count + texts[together + step])
    codes = np.concatenate(found)
    lower, upper = np.divmod(codes, max(count, 1))
    return codes[lower < upper]
