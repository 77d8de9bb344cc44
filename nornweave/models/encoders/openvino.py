"""An encoder that runs BERT with mean pooling on OpenVINO, without torch in the process.

Ingestion and queries use different streams. Measured on two cores with AVX512-BF16 and 238-token chunks: two streams of
one thread encode 10 % more chunks a second, and one stream of two threads encodes a query in two thirds of the time.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Literal, TypeAlias
from weakref import WeakSet

import numpy as np

from nornweave.core.errors import EncoderError
from nornweave.models.encoders.bert import TOKENIZER_FILE, BertFolder, bert_graph, import_openvino
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
from nornweave.models.encoders.tokens import TokenVectors, project_tokens, projection_of, token_rows

Hint: TypeAlias = Literal["LATENCY", "THROUGHPUT"]
# A query is a dozen tokens: a second thread saves a fraction of a millisecond and costs the next query as much.
_CONFIGS: Mapping[Hint, Mapping[str, str | int]] = {
    "LATENCY": {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": 1},
    "THROUGHPUT": {"PERFORMANCE_HINT": "THROUGHPUT"},
}
# OpenVINO itself takes bfloat16 where the CPU has it. Asked for it, other CPUs emulate it at 0.4 chunks a second. What
# is not a product of int8 numbers stays in float32, so that int8 vectors are the same on every CPU.
_PRECISIONS: Mapping[Precision, Mapping[str, str | int]] = {
    "float32": {"INFERENCE_PRECISION_HINT": "f32"},
    "bfloat16": {},
    "int8": {"INFERENCE_PRECISION_HINT": "f32"},
}

WINDOW = 4_096
"""Texts that are tokenised, sorted by length and encoded together: bounds memory, loses nearly nothing to padding."""
TOKENISED_AT_ONCE = 256


# What numpy and OpenVINO raise for weights and settings that do not make the graph.
_BROKEN = (OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError, IndexError)


class OpenVinoEncoder:
    """A sentence-transformers model as OpenVINO runs it."""

    def __init__(
        self, bert: BertFolder, *, version: str, batch_size: int = 32, precision: Precision = "bfloat16"
    ) -> None:
        """Build the model's graph; it is compiled when it is first used.

        Args:
            precision: ``bfloat16`` is float32 on a CPU that lacks it; ``int8`` is for models that have that form.

        Raises:
            EncoderError: the folder's files do not make such a model.
        """
        self.version = version
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
            self._session: _Session | None = _Session(*self._model)
        except _BROKEN as error:
            raise EncoderError(f"{version} cannot be built for OpenVINO ({type(error).__name__}: {error})") from error
        self._opening = Lock()
        _ENCODERS.add(self)

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Encode passages, longest first within a window; see ``Encoder.encode``."""
        return self._encode(texts, progress, None)

    def encode_tokens(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> tuple[Vectors, list[TokenVectors]]:
        """Encode passages and their tokens in one pass; see ``TokenEncoder.encode_tokens``."""
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
        except RuntimeError as error:
            raise EncoderError(f"OpenVINO failed while encoding ({error}); check the memory that is left") from error
        return unit_rows(vectors, source=self.version)

    def encode_query(self, text: str) -> Vectors:
        """Encode one query; callers in several threads each get a request of their own."""
        vector: Vectors = self._answer([text], 1)[0][0][0]
        return vector

    def encode_query_tokens(self, texts: Sequence[str]) -> tuple[Vectors, list[TokenVectors]]:
        """Encode queries and their tokens in one pass; see ``TokenEncoder.encode_query_tokens``."""
        [vectors, tokens], lengths = self._answer(texts, 2)
        return vectors, [token_rows(own, length) for own, length in zip(tokens, lengths, strict=True)]

    def _answer(self, texts: Sequence[str], outputs: int) -> tuple[list[Vectors], list[int]]:
        """Return the vectors of queries, with two outputs their tokens as well, and how many each has."""
        ids = self._ids(texts)
        try:
            answer = self._opened().answer(self._inputs(ids), outputs)
        except RuntimeError as error:
            raise EncoderError(f"OpenVINO failed while encoding a query ({error})") from error
        answer[0] = unit_rows(answer[0], source=self.version)
        return answer, [len(row) for row in ids]

    def _opened(self) -> _Session:
        with self._opening:
            if self._session is None:
                self._session = _Session(*self._model)
            return self._session

    def _leave_session(self) -> None:
        """Forget, in a forked child, the session of the parent; the next use opens another.

        The parent's threads are not here: waiting for them hangs, and destroying what they work on hangs or crashes,
        also when the child exits. An extra reference keeps it from ever being destroyed.
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
        """Return token ids and mask of a batch."""
        return padded(ids, self._padding), padded([np.ones_like(row) for row in ids], 0)

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        limit = self._bert.max_length
        heads = [encodable(text[: limit * CHARACTERS_PER_TOKEN]) for text in texts]
        encodings = self._tokenizer.encode_batch_fast(heads)
        for position, text in enumerate(texts):
            # A head that does not fill the model was mostly blank: only then does the rest count.
            if len(text) > len(heads[position]) and len(encodings[position]) < limit:
                encodings[position] = self._tokenizer.encode(encodable(text))
        return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]


class _Session:
    """OpenVINO in one process: the compiled models and the idle requests."""

    def __init__(self, bert: BertFolder, precision: Precision, projection: Vectors | None) -> None:
        self._config = _PRECISIONS[precision]
        self._openvino = import_openvino()
        self._core = self._openvino.Core()
        self._model = bert_graph(bert, bert.recipe if precision == "int8" else None)
        if projection is not None:
            project_tokens(self._model, projection)
        self._lock = Lock()
        self._compiled: dict[Hint, Any] = {}
        # Requests of small batches: callers in several threads each have one of their own.
        self._idle: SimpleQueue[Any] = SimpleQueue()

    def _compiled_for(self, hint: Hint) -> Any:
        with self._lock:
            if hint not in self._compiled:
                config = {**_CONFIGS[hint], **self._config}
                self._compiled[hint] = self._core.compile_model(self._model, "CPU", config)
            return self._compiled[hint]

    def answer(self, inputs: tuple[Ids, Ids], outputs: int) -> list[Vectors]:
        """Run one small batch as soon as possible and return its first outputs: vectors, tokens."""
        try:
            request = self._idle.get_nowait()
        except Empty:
            request = self._compiled_for("LATENCY").create_infer_request()
        try:
            request.infer(list(inputs))
            return _outputs(request, outputs)
        finally:
            self._idle.put(request)

    def stream(self, batches: Iterable[tuple[Ids, Ids]], outputs: int) -> Iterator[list[Vectors]]:
        """Run batches, several at once, and return their first outputs in order."""
        compiled, tensor = self._compiled_for("THROUGHPUT"), self._openvino.Tensor
        # One more than there are streams: the next batch waits ready while this thread copies the last one's vectors.
        count = compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") + 1
        idle = [compiled.create_infer_request() for _ in range(count)]
        running: deque[Any] = deque()
        try:
            for ids, mask in batches:
                if not idle:
                    yield _finish(running, idle, outputs)
                request = idle.pop()
                request.start_async([tensor(ids), tensor(mask)])
                running.append(request)
            while running:
                yield _finish(running, idle, outputs)
        finally:
            for request in running:
                request.wait()


def _finish(running: deque[Any], idle: list[Any], outputs: int) -> list[Vectors]:
    request = running.popleft()
    request.wait()
    idle.append(request)
    return _outputs(request, outputs)


def _outputs(request: Any, count: int) -> list[Vectors]:
    """Return copies of the first outputs of a request."""
    return [np.array(request.get_output_tensor(at).data, dtype=np.float32) for at in range(count)]


_ENCODERS: WeakSet[OpenVinoEncoder] = WeakSet()


def _leave_sessions() -> None:
    for encoder in tuple(_ENCODERS):
        encoder._leave_session()


os.register_at_fork(after_in_child=_leave_sessions)
