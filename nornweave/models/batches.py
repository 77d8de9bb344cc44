"""Group, pad and run batches of tokenised texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

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


class Requests:
    """The inference requests of a compiled model; callers in several threads each get one of their own."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self._idle: SimpleQueue[Any] = SimpleQueue()

    def infer(self, inputs: Sequence[Ids], outputs: int = 1) -> list[NDArray[np.float32]]:
        """Run one batch as soon as possible and return its first outputs.

        Raises:
            RuntimeError: OpenVINO failed.
        """
        try:
            request = self._idle.get_nowait()
        except Empty:
            request = self.compiled.create_infer_request()
        try:
            request.infer(list(inputs))
            return outputs_of(request, outputs)
        finally:
            self._idle.put(request)


def outputs_of(request: Any, count: int) -> list[NDArray[np.float32]]:
    """Return copies of the first outputs of a request."""
    return [np.array(request.get_output_tensor(at).data, dtype=np.float32) for at in range(count)]
