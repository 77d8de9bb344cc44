"""The displayed fields of each chunk (its card), mapped from the file beside the generation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from nornweave.index.connection import Connection
from nornweave.index.searching.arrays import Arrays, ArrayWriter
from nornweave.index.searching.inverted import texts_of

# Chunks written at a time: about 20 MB of cards.
_SLICE = 8_192


class Cards:
    """The cards of a generation by chunk number. Thread-safe.

    DuckDB reads a column 2,048 rows at a time, so reading the cards of twenty of 16,000 chunks takes 3.4 ms. Reading
    twenty slices of a file takes 0.1 ms.
    """

    def __init__(self, arrays: Arrays) -> None:
        """Open the arrays of ``write_cards``."""
        self._starts = arrays["cards.starts"]
        self._text: NDArray[np.uint8] = arrays["cards.text"]

    def read(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """Return cards as UTF-8 by chunk number."""
        return {number: self._text[self._starts[number] : self._starts[number + 1]].tobytes() for number in numbers}


def write_cards(connection: Connection, arrays: ArrayWriter, count: int) -> None:
    """Write the cards of the table ``cards`` in the order of chunk numbers.

    Raises:
        OSError: the disk is full.
    """
    sizes = [np.zeros(1, np.int64)]

    def texts() -> Iterator[NDArray[np.uint8]]:
        # All cards at once would not fit into memory.
        for first in range(0, count, _SLICE):
            last = first + _SLICE - 1
            query = f"select card from cards where chunk_no between {first:d} and {last:d} order by chunk_no"
            cards = connection.sql(query).to_arrow_table()
            written, ends = texts_of(cards, "card")
            sizes.append(np.diff(ends))
            yield written

    arrays.extend("cards.text", np.uint8, texts())
    arrays.add_starts("cards.starts", np.cumsum(np.concatenate(sizes)))
