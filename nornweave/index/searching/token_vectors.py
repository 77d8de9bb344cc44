"""The vectors of the tokens of each chunk, mapped beside the generation, and how well they match those of a query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nornweave.index.connection import Connection
from nornweave.index.port import Numbers, Scores
from nornweave.index.searching.arrays import Arrays, ArrayWriter
from nornweave.models.encoders.tokens import TOKEN_DIMENSIONS, TOKEN_LENGTH

ROWS, STARTS = "tokens", "token_starts"
CHANCE = 0.05
"""What the best of e times as many tokens is nearer by, whatever they say."""
_BATCH_ROWS = 1_024


class TokenVectors:
    """The token vectors of a file: those of chunk ``n`` are the rows from ``starts[n]`` to ``starts[n + 1]``."""

    def __init__(self, arrays: Arrays) -> None:
        """Take the arrays that ``write_token_vectors`` wrote; there may be none."""
        self._rows: NDArray[np.int8] = arrays.get(ROWS, np.zeros((0, TOKEN_DIMENSIONS), np.int8))
        self._starts = arrays.get(STARTS)

    def matches(self, tokens: NDArray[np.int8], numbers: Numbers) -> Scores:
        """Return the similarity of each of these tokens to the nearest token of each chunk, less what is chance.

        Returns:
            Of shape ``(len(numbers), len(tokens))``; 0 for a chunk without tokens.
        """
        matches = np.zeros((len(numbers), len(tokens)), np.float32)
        if self._starts is None or not len(tokens) or not len(numbers):
            return matches
        starts, counts = self._starts[numbers], self._starts[numbers + 1] - self._starts[numbers]
        held = np.flatnonzero(counts)
        if not len(held):
            return matches
        starts, counts = starts[held], counts[held]
        rows = np.concatenate([self._rows[start : start + count] for start, count in zip(starts, counts, strict=True)])
        # Whole numbers below 2²⁴, so that float32 is exact: that takes half the time of a product of bytes (SimSIMD 6).
        products = rows.astype(np.float32) @ tokens.astype(np.float32).T
        nearest = np.maximum.reduceat(products, np.cumsum(counts) - counts) / np.float32(TOKEN_LENGTH**2)
        matches[held] = nearest - CHANCE * np.log(counts + 1)[:, None]
        return matches


def write_token_vectors(connection: Connection, arrays: ArrayWriter, count: int) -> None:
    """Write the token vectors of the table ``vectors``, if there are any.

    Raises:
        OSError: the disk is full.
    """
    held = connection.execute(
        "select chunk_no, octet_length(tokens) as bytes from vectors where tokens is not null"
    ).fetchnumpy()
    if not len(held["chunk_no"]):
        return
    starts = np.zeros(count + 1, np.int64)
    starts[held["chunk_no"] + 1] = held["bytes"] // TOKEN_DIMENSIONS
    np.cumsum(starts, out=starts)
    arrays.add_starts(STARTS, starts)
    rows = arrays.reserve(ROWS, np.int8, (int(starts[-1]), TOKEN_DIMENSIONS))
    reader = connection.execute("select chunk_no, tokens from vectors where tokens is not null")
    for batch in reader.to_arrow_reader(_BATCH_ROWS):
        for number, tokens in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            rows[starts[number] : starts[number + 1]] = np.frombuffer(tokens, np.int8).reshape(-1, TOKEN_DIMENSIONS)
