"""An encoder for BERT with mean pooling, without torch: on OpenVINO, else on NumPy."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Protocol
from weakref import WeakSet

import numpy as np

from nornweave.core.errors import EncoderError
from nornweave.models.encoders.bert import TOKENIZER_FILE, BertFolder
from nornweave.models.encoders.port import Precision, Progress, Vectors, encodable, unit_rows
from nornweave.models.encoders.tokenizer import (
    CHARACTERS_PER_TOKEN,
    Ids,
    ModelTokenizer,
    batches_of,
    padded,
    rewritten,
    rust_tokenizer,
)
from nornweave.models.encoders.tokens import TokenVectors, projection_of, token_rows

WINDOW = 4_096
"""Texts that are tokenised, sorted by length and encoded together: bounds memory, loses nearly nothing to padding."""
TOKENISED_AT_ONCE = 256


# What numpy and OpenVINO raise for weights and settings that do not make the graph.
_BROKEN = (OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError, IndexError)


class Session(Protocol):
    """A model that is ready to compute, for any number of threads."""

    NAME: str

    def __init__(self, bert: BertFolder, precision: Precision, projection: Vectors | None) -> None:
        """Build the model. With a projection, the model also returns token vectors."""

    def answer(self, inputs: tuple[Ids, Ids], outputs: int) -> list[Vectors]:
        """Run one small batch as soon as possible. Return its vectors and, with two ``outputs``, the token vectors."""

    def stream(self, batches: Iterable[tuple[Ids, Ids]], outputs: int) -> Iterator[list[Vectors]]:
        """Run batches. Yield the first ``outputs`` results of each batch, in order."""


class BertEncoder:
    """A sentence-transformers model that OpenVINO or NumPy runs."""

    def __init__(
        self,
        bert: BertFolder,
        session: type[Session],
        *,
        version: str,
        batch_size: int = 32,
        precision: Precision = "bfloat16",
    ) -> None:
        """Build the model. OpenVINO compiles it at its first use.

        Args:
            session: the runtime.
            precision: the numbers to compute with. A CPU without ``bfloat16`` uses float32 instead. ``int8`` needs
                a model with a recipe.

        Raises:
            EncoderError: the folder's files are not a valid BERT model.
        """
        self.version = version
        self.runs_on = f"{session.NAME} in {precision}"
        self._bert = bert
        self.has_tokens = (projection := projection_of(version)) is not None
        self._batch_size = batch_size
        try:
            self.dimensions = int(bert.config["hidden_size"])
            self._padding = int(bert.config.get("pad_token_id") or 0)
            serialized = rewritten((bert.path / TOKENIZER_FILE).read_text(encoding="utf-8"))
            self.tokenizer = ModelTokenizer(serialized)
            self._tokenizer = rust_tokenizer(serialized, max_length=bert.max_length)
            self.max_tokens = bert.max_length - self._tokenizer.num_special_tokens_to_add(False)
            self._model = bert, precision, projection
            self._open = session
            self._session: Session | None = session(*self._model)
        except _BROKEN as error:
            raise EncoderError(
                f"{version} cannot be built for {session.NAME} ({type(error).__name__}: {error})"
            ) from error
        self._opening = Lock()
        _ENCODERS.add(self)

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Encode passages as ``Encoder.encode`` does. Within each window of texts, the longest are encoded first."""
        return self._encode(texts, progress, None)

    def encode_tokens(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> tuple[Vectors, list[TokenVectors]]:
        """Encode passages and their tokens in one pass; return the vectors and, for each text, its token vectors."""
        tokens: list[TokenVectors] = []
        return self._encode(texts, progress, tokens), tokens

    def _encode(self, texts: Sequence[str], progress: Progress | None, tokens: list[TokenVectors] | None) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        done = 0
        try:
            for start in range(0, len(texts), WINDOW):
                rows = vectors[start : start + WINDOW]
                for finished in self._encode_window(texts[start : start + WINDOW], rows, tokens):
                    done += finished
                    if progress is not None:
                        progress(done)
        except (RuntimeError, MemoryError) as error:
            raise EncoderError(
                f"{self._open.NAME} failed while encoding ({error}); check the memory that is left"
            ) from error
        return unit_rows(vectors, source=self.version)

    def encode_query(self, text: str) -> Vectors:
        """Encode one query. Several threads can do this at once."""
        vector: Vectors = self._answer([text], 1)[0][0][0]
        return vector

    def encode_query_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[TokenVectors]]:
        """Encode queries and their tokens in one pass; return the vectors and, for each text, its token vectors."""
        [vectors, tokens], lengths = self._answer(texts, 2)
        return vectors, [token_rows(own, length) for own, length in zip(tokens, lengths, strict=True)]

    def _answer(self, texts: Sequence[str], outputs: int) -> tuple[list[Vectors], list[int]]:
        """Return the outputs for queries (vectors and, with two ``outputs``, token vectors) and their token counts."""
        ids = self._ids(texts)
        try:
            answer = self._opened().answer(self._inputs(ids), outputs)
        except (RuntimeError, MemoryError) as error:
            raise EncoderError(f"{self._open.NAME} failed while encoding a query ({error})") from error
        answer[0] = unit_rows(answer[0], source=self.version)
        return answer, [len(row) for row in ids]

    def _opened(self) -> Session:
        with self._opening:
            if self._session is None:
                self._session = self._open(*self._model)
            return self._session

    def _leave_session(self) -> None:
        """After a fork, drop the parent's session in the child. The next use opens a new one.

        The parent's threads do not exist in the child. Waiting for them hangs, and destroying their session hangs or
        crashes, even at exit. An extra reference keeps the session from being destroyed.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
        self._session = None
        self._opening = Lock()

    def _encode_window(self, texts: Sequence[str], rows: Vectors, tokens: list[TokenVectors] | None) -> Iterator[int]:
        ids: list[Ids] = []
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            ids += self._ids(texts[start : start + TOKENISED_AT_ONCE])
        batches = list(batches_of([len(row) for row in ids], self._batch_size))
        inputs = (self._inputs([ids[at] for at in batch]) for batch in batches)
        of_texts: dict[int, TokenVectors] = {}
        outputs = 1 if tokens is None else 2
        for batch, [vectors, *padded_tokens] in zip(batches, self._opened().stream(inputs, outputs), strict=True):
            rows[batch] = vectors
            for rows_of in padded_tokens:
                of_texts |= {at: token_rows(own, len(ids[at])) for at, own in zip(batch, rows_of, strict=True)}
            yield len(batch)
        if tokens is not None:
            tokens += [of_texts[at] for at in range(len(texts))]

    def _inputs(self, ids: Sequence[Ids]) -> tuple[Ids, Ids]:
        """Return the padded token ids of a batch and their attention mask."""
        return padded(ids, self._padding), padded([np.ones_like(row) for row in ids], 0)

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        limit = self._bert.max_length
        heads = [encodable(text[: limit * CHARACTERS_PER_TOKEN]) for text in texts]
        encodings = self._tokenizer.encode_batch_fast(heads)
        for position, text in enumerate(texts):
            # The head of a text may be mostly blank. Only if it does not fill the model, tokenise the rest.
            if len(text) > len(heads[position]) and len(encodings[position]) < limit:
                encodings[position] = self._tokenizer.encode(encodable(text))
        return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]


_ENCODERS: WeakSet[BertEncoder] = WeakSet()


def _leave_sessions() -> None:
    for encoder in tuple(_ENCODERS):
        encoder._leave_session()


os.register_at_fork(after_in_child=_leave_sessions)
