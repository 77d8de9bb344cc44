"""The port of embedding models."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.core.errors import EncoderError

if TYPE_CHECKING:
    from nornweave.core.text.spans import Tokenizer

Vectors: TypeAlias = NDArray[np.float32]
Progress: TypeAlias = Callable[[int], None]
"""Told how many texts of the call are finished so far; ascending, in the end all of them."""

Precision: TypeAlias = Literal["float32", "bfloat16", "int8"]
"""``bfloat16`` gives the vectors of ``float32`` (cosine .9999); those of ``int8`` are others (.999)."""
Wanted: TypeAlias = Literal["auto", "float", "int8"]

INT8 = "+int8."
_INT8_SUFFIX = re.compile(re.escape(INT8) + r"[0-9a-f]{8}$")

ALIKE = 0.98
"""Cosine of one text's vectors, here and elsewhere: half precision is above, another model or pooling below."""


class Encoder(Protocol):
    """Turns texts into unit vectors whose dot product is their similarity."""

    @property
    def version(self) -> str:
        """The version, which contains no path. It changes when vectors may change by more than rounding."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    @property
    def max_tokens(self) -> int:
        """How many tokens of a text the model reads, without special tokens. It ignores later tokens."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that counts the tokens of ``max_tokens``, at least approximately."""

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Encode passages. ``progress`` is called with the number of texts that are done.

        Returns:
            One row of length 1 per text, in the order of the texts. Without texts the shape is ``(0, dimensions)``.

        Raises:
            EncoderError: the model fails or cannot be reached.
        """

    def encode_query(self, text: str) -> Vectors:
        """Return the vector of one query, of shape ``(dimensions,)``. Thread-safe.

        Raises:
            EncoderError: the model fails or cannot be reached.
        """


def same_space(version: str | None, other: str | None) -> bool:
    """Tell whether two encoder versions are the same model, so that one query can search the vectors of both.

    An unknown version (``None``) is never the same model.
    """
    return version is not None and other is not None and _INT8_SUFFIX.sub("", version) == _INT8_SUFFIX.sub("", other)


def unit_rows(vectors: Vectors, *, source: str) -> Vectors:
    """Return the vectors with every row scaled to length 1.

    Raises:
        EncoderError: a row is zero or not finite, so it has no direction. The message names ``source``.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or np.any(lengths == 0):
        broken = int(np.flatnonzero(~np.isfinite(lengths[:, 0]) | (lengths[:, 0] == 0))[0])
        raise EncoderError(
            f"{source} returned a vector of length {float(lengths[broken, 0])!r} for text {broken} of {len(vectors)}; "
            "expected finite numbers, not all zero: check the model"
        )
    return np.asarray(vectors / lengths, dtype=np.float32)


def encodable(text: str) -> str:
    """Return a text with ``?`` for each lone surrogate, which UTF-8 cannot encode. Offsets stay the same."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
