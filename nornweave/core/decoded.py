"""Undo the compression of an answer, a bounded piece at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

PIECE_BYTES = 65_536
ACCEPTED = {"Accept-Encoding": "gzip"}
"""What is asked for; ``decoded`` reads nothing else."""


def decoded(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """Yield what an answer holds, at most ``PIECE_BYTES`` more than was looked at before.

    A few kilobytes that were compressed twice are gigabytes, which are there before their size can be looked at.

    Args:
        coding: the header ``Content-Encoding``.

    Raises:
        ValueError: it is compressed in another way, or damaged.
    """
    if coding.strip().lower() in {"", "identity"}:
        yield from pieces
        return
    if coding.strip().lower() not in {"gzip", "x-gzip", "deflate"}:
        raise ValueError(f"an answer that is compressed as {coding[:60]!r}; expected gzip")
    inflating = zlib.decompressobj(zlib.MAX_WBITS | 32)  # of gzip or of zlib
    try:
        for piece in pieces:
            left = piece
            while (content := inflating.decompress(left, PIECE_BYTES)) or inflating.unconsumed_tail:
                yield content
                left = inflating.unconsumed_tail
    except zlib.error as error:
        raise ValueError(f"an answer whose compression is damaged ({error})") from error
