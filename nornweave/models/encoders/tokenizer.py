"""Find the starts of tokens in a text, with the encoder's own tokenizer or with a pattern.

Group and pad batches of tokenised texts.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.types import digest
from nornweave.models.encoders.port import encodable

if TYPE_CHECKING:
    from tokenizers import Tokenizer as RustTokenizer

# One long text is tokenised on one core; pieces of 8,000 characters run twice as fast on two (tokenizers 0.23).
PIECE = 8_000
# Pieces that are handed to Rust together: bounds the memory of their encodings.
PIECES_AT_ONCE = 64
BLANK = re.compile(r"\s")


class PatternTokenizer:
    """Treats every match of a pattern as a token."""

    def __init__(self, pattern: str, *, version: str) -> None:
        self._pattern = re.compile(pattern)
        self.version = version

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the start of each match."""
        return array("q", (match.start() for match in self._pattern.finditer(text)))


WORDS = PatternTokenizer(r"\w+|[^\w\s]", version="words-1")
# Byte-pair vocabularies of hosted models average four characters a token in prose; this counts rather too many.
WORD_PIECES = PatternTokenizer(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]{1,6}|\d{1,3}|_|[^\w\s]", version="word-pieces-1"
)


class ModelTokenizer:
    """A Hugging Face tokenizer, without truncation and special tokens.

    Long texts are cut at line ends, or else at blank space, before they are tokenised. A tokenizer that first splits at
    blank space, such as WordPiece's, gives the same tokens as without cuts. Others may give one token more or less at a
    cut.
    """

    def __init__(self, serialized: str) -> None:
        self._tokenizer = rust_tokenizer(serialized)
        self.version = f"tokenizer-{digest(serialized)[:16]}"

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the character offset at which each token starts."""
        if len(text) <= PIECE:  # most documents; a batch of one costs a fifth more
            encoding = self._tokenizer.encode(encodable(text), add_special_tokens=False)
            return array("q", [start for start, _ in encoding.offsets])
        starts = array("q")
        pieces = list(_pieces(encodable(text)))
        for first in range(0, len(pieces), PIECES_AT_ONCE):
            batch = pieces[first : first + PIECES_AT_ONCE]
            encodings = self._tokenizer.encode_batch([piece for _, piece in batch], add_special_tokens=False)
            for (offset, _), encoding in zip(batch, encodings, strict=True):
                starts.extend([offset + start for start, _ in encoding.offsets])
        return starts


def rewritten(serialized: str) -> str:
    """Return a ``tokenizer.json`` as the library itself writes it, so that equal tokenizers give equal texts.

    Raises:
        ValueError: it is invalid.
    """
    return _loaded(serialized).to_str()


def rust_tokenizer(serialized: str, *, max_length: int | None = None) -> RustTokenizer:
    """Return the tokenizer of a ``tokenizer.json``, without padding. ``max_length`` cuts texts; ``None`` cuts none.

    Raises:
        ValueError: it is invalid.
    """
    tokenizer = _loaded(serialized)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if max_length is not None:
        tokenizer.enable_truncation(max_length)
    return tokenizer


def _loaded(serialized: str) -> RustTokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_str(serialized)
    except Exception as error:  # tokenizers 0.23 raises plain Exception for every broken file
        raise ValueError(f"not a tokenizer.json: {error}") from error


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = _cut(text, start + PIECE)
        yield start, text[start:end]
        start = end


def _cut(text: str, at: int) -> int:
    line_end = text.find("\n", at, at + PIECE)
    if line_end >= 0:
        return line_end
    blank = BLANK.search(text, at)
    return blank.start() if blank else len(text)


Ids: TypeAlias = NDArray[np.int64]

BATCH_TOKENS = 2_048
"""Padded tokens of a batch, at most: some 50 ms of a small model on two cores, by which a deadline may be overrun.

Eight long texts (127 chunks/s; 32 of them: 118), or many short ones.
"""
WIDTH_STEP = 8
"""Widths are rounded up to it: fewer shapes to compile for."""
CHARACTERS_PER_TOKEN = 64
"""A text is cut to so many characters per token it may have before it is tokenised: nobody reads a blob to its end."""


def padded_width(tokens: int) -> int:
    """Return the padded width of a batch whose longest text has this number of tokens."""
    return -(-tokens // WIDTH_STEP) * WIDTH_STEP


def batches_of(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Group texts of similar length, longest first, so that memory peaks at once.

    Args:
        lengths: the number of tokens of each text.

    Yields:
        For each batch, the positions of its texts in ``lengths``.
    """
    order = sorted(range(len(lengths)), key=lambda at: (-lengths[at], at))
    start = 0
    while start < len(order):
        size = min(batch_size, BATCH_TOKENS // max(1, padded_width(lengths[order[start]])))
        yield order[start : start + max(1, size)]
        start += max(1, size)


def padded(rows: Sequence[Sequence[int] | Ids], padding: int) -> Ids:
    """Return rows of different length as one array, filled up with ``padding``."""
    table = np.full((len(rows), padded_width(max(map(len, rows)))), padding, dtype=np.int64)
    for at, row in enumerate(rows):
        table[at, : len(row)] = row
    return table
