"""The port of embedding models: the vector of a text, and of its tokens; queries are encoded once, in batches.

Token vectors have one byte a component, in fewer dimensions. They are the last layer of the model without the special
tokens, each of length 1, projected on the directions in which such vectors differ most, and of length 1 again.
``token_projection.json`` holds the directions for the default model (decision 32); other models have no token vectors.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

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

TokenVectors: TypeAlias = NDArray[np.int8]
"""Of shape ``(tokens, TOKEN_DIMENSIONS)``; a row of length 1 is one of length ``TOKEN_LENGTH``."""

TOKEN_DIMENSIONS, TOKEN_LENGTH = 64, 127
VERSION = "1"
"""Changes when the token vectors of a text do."""
LAST_LAYER = "encoder.layer.5.output.LayerNorm"
"""What the graph of the default model calls it (``bert.py``)."""


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


@runtime_checkable
class TokenEncoder(Encoder, Protocol):
    """An encoder that also returns token vectors."""

    def encode_tokens(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> tuple[Vectors, list[TokenVectors]]:
        """Encode passages as ``encode`` does; return their token vectors as well."""

    def encode_query_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[TokenVectors]]:
        """Encode a few queries as ``encode_query`` does; return their token vectors as well."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedQuery:
    """A query with its vectors.

    Attributes:
        vector: the vector of the whole query.
        tokens: the vectors of its tokens; ``None`` if the encoder makes none.
        starts: the character at which each token starts.
    """

    text: str
    vector: Vectors
    tokens: TokenVectors | None = None
    starts: Sequence[int] = ()


def token_encoder(encoder: Encoder) -> TokenEncoder | None:
    """Return the encoder if it has token vectors, else ``None``."""
    return encoder if isinstance(encoder, TokenEncoder) and getattr(encoder, "has_tokens", True) else None


def encode_queries(encoder: Encoder, texts: Sequence[str]) -> list[EncodedQuery]:
    """Return queries with their vectors and, if the encoder has them, token vectors. All are encoded together.

    Raises:
        EncoderError: the model fails or cannot be reached.
    """
    of_tokens = token_encoder(encoder)
    if of_tokens is None:
        vectors = encoder.encode(texts) if len(texts) > 1 else [encoder.encode_query(texts[0])]
        return [EncodedQuery(text, vector) for text, vector in zip(texts, vectors, strict=True)]
    vectors, tokens = of_tokens.encode_query_tokens(texts)
    return [
        EncodedQuery(text, vector, own, encoder.tokenizer.token_starts(text)[: len(own)])
        for text, vector, own in zip(texts, vectors, tokens, strict=True)
    ]


@cache
def projection_of(version: str) -> NDArray[np.float32] | None:
    """Return the projection for token vectors of an encoder version; ``None`` if there is none.

    Its shape is ``(dimensions of the encoder, TOKEN_DIMENSIONS)``.
    """
    stored = json.loads(resources.files(__package__).joinpath("token_projection.json").read_text(encoding="utf-8"))
    if not same_space(version, stored["encoder"]):
        return None
    numbers = np.frombuffer(base64.b64decode(stored["directions"]), np.int8).reshape(-1, TOKEN_DIMENSIONS)
    return numbers.astype(np.float32)


def project_tokens(model: Any, projection: Vectors) -> None:
    """Add the padded token vectors ``[texts, tokens, TOKEN_DIMENSIONS]`` to an OpenVINO graph as an output."""
    from openvino import opset15 as ops

    [last] = (operation for operation in model.get_ops() if operation.get_friendly_name() == LAST_LAYER)
    rows = ops.normalize_l2(ops.matmul(last, projection, False, False), np.array([2]), eps=1e-24, eps_mode="max")
    model.add_results([ops.result(ops.multiply(rows, np.float32(TOKEN_LENGTH)))])


def token_rows(padded: Vectors, tokens: int) -> TokenVectors:
    """Return the token vectors of a text from its padded output, without the special first and last token.

    Args:
        tokens: the number of tokens, special tokens included.
    """
    rows: TokenVectors = np.rint(padded[1 : tokens - 1]).astype(np.int8)
    return rows


REMEMBERED = 2048
MOST_TOGETHER = 8
"""Queries of a batch: int8 takes 6 ms for one alone; for each of 2, 4 and 8 together 3.7, 2.9 and 2.6."""
THREADS = 8
"""For encoders on other machines, of which one may hang: those who ask are waiting elsewhere."""


class EncoderLoad(NamedTuple):
    """The numbers of queries that were encoded, were found in memory, and are waiting."""

    encoded: int
    remembered: int
    waiting: int


class QueryMemo:
    """Encodes queries and keeps the vectors of recent ones. Every method is thread-safe.

    Args:
        encoder: encodes the queries.
        together: encode one batch at a time, and collect new queries for the next batch. This suits models in this
            process that encode queries like passages. It does not suit models on another machine, because calls to
            them need not wait for each other.
    """

    def __init__(self, encoder: Encoder, *, together: bool = False) -> None:
        self.encoder = encoder
        self._most = MOST_TOGETHER if together else 1
        self._threads = ThreadPoolExecutor(1 if together else THREADS, thread_name_prefix="dense-queries")
        self._lock = threading.Lock()
        self._queries: OrderedDict[str, Future[EncodedQuery]] = OrderedDict()
        self._waiting: list[tuple[str, Future[EncodedQuery]]] = []
        self._encoded = self._remembered = 0

    @property
    def load(self) -> EncoderLoad:
        """Return the counts of queries so far."""
        return EncoderLoad(self._encoded, self._remembered, len(self._waiting))

    def begin(self, text: str) -> Future[EncodedQuery]:
        """Begin to encode a query and return its future. Equal recent queries share one future.

        If the model fails, the future has an ``EncoderError``, and the next call tries again.
        """
        with self._lock:
            if (known := self._queries.get(text)) is not None:
                self._queries.move_to_end(text)
                self._remembered += 1
                return known
            future = self._queries[text] = Future()
            while len(self._queries) > REMEMBERED:
                self._queries.popitem(last=False)
            self._waiting.append((text, future))
            self._encoded += 1
        self._threads.submit(self._run)
        return future

    def encode(self, text: str) -> EncodedQuery:
        """Return a query with its vectors. Raises ``EncoderError``, like ``begin``."""
        return self.begin(text).result()

    def _run(self) -> None:
        """Encode the next batch of waiting queries, if there are any."""
        with self._lock:
            batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        if not batch:
            return
        try:
            encoded = encode_queries(self.encoder, [text for text, _ in batch])
        except BaseException as error:
            with self._lock:
                for text, _ in batch:
                    self._queries.pop(text, None)
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), own in zip(batch, encoded, strict=True):
            future.set_result(own)
