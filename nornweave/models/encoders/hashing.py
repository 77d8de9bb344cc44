"""An encoder without a model: feature hashing, for tests and first trials."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from nornweave.models.encoders.port import Progress, Vectors, encodable
from nornweave.models.encoders.tokenizer import WORDS

if TYPE_CHECKING:
    from nornweave.core.text.spans import Tokenizer

WORD = re.compile(r"\w+|[^\w\s]")
TRIGRAM_WEIGHT = 0.3
"""Against 1 for the word itself: related forms (refund, refunds) meet, different words of like spelling hardly do."""


class HashEncoder:
    """Hashes words and character trigrams. A text has the same vector on every machine.

    Texts that share words are similar. Words of the same meaning are not.
    """

    max_tokens = 1_000_000

    def __init__(self, dimensions: int = 64) -> None:
        if dimensions < 2:
            raise ValueError(f"dimensions is {dimensions!r}; expected at least 2")
        self.dimensions = dimensions
        self.version = f"hash:{dimensions}:1"

    @property
    def tokenizer(self) -> Tokenizer:
        """A tokenizer whose tokens are words and punctuation marks."""
        return WORDS

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Encode texts one by one. An empty text gets the first unit vector, because a zero vector has no direction."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for done, text in enumerate(texts):
            vectors[done] = self.encode_query(text)
            if progress is not None:
                progress(done + 1)
        return vectors

    def encode_query(self, text: str) -> Vectors:
        """Encode one text, the same way as a passage."""
        vector = np.zeros(self.dimensions, dtype=np.float64)
        for word in WORD.findall(encodable(text).lower()):
            for feature, weight in _features(word):
                vector[(feature >> 1) % self.dimensions] += weight if feature & 1 else -weight
        if not vector.any():
            vector[0] = 1.0
        return (vector / np.linalg.norm(vector)).astype(np.float32)


@lru_cache(maxsize=65_536)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    padded = f"<{word}>"
    trigrams = (padded[start : start + 3] for start in range(len(padded) - 2))
    return ((crc32(word.encode()), 1.0), *((crc32(b"3" + trigram.encode()), TRIGRAM_WEIGHT) for trigram in trigrams))
