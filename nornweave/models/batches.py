"""Group and pad batches of tokenised texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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
    """Return the width of a batch whose longest text has so many tokens."""
    return -(-tokens // WIDTH_STEP) * WIDTH_STEP


def batches_of(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Group texts of like length: longest first, so that memory is at its highest at once.

    Args:
        lengths: of each text, in tokens.

    Yields:
        The positions of each batch.
    """
    order = sorted(range(len(lengths)), key=lambda at: (-lengths[at], at))
    start = 0
    while start < len(order):
        size = min(batch_size, BATCH_TOKENS // max(1, padded_width(lengths[order[start]])))
        yield order[start : start + max(1, size)]
        start += max(1, size)


def padded(rows: Sequence[Sequence[int] | Ids], padding: int) -> Ids:
    """Return rows of different length as one array."""
    table = np.full((len(rows), padded_width(max(map(len, rows)))), padding, dtype=np.int64)
    for at, row in enumerate(rows):
        table[at, : len(row)] = row
    return table
