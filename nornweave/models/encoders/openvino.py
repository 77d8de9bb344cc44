"""BERT with mean pooling on OpenVINO.

Ingestion and queries use different streams. Measured on two cores with AVX512-BF16 and 238-token chunks: two streams of
one thread encode 10 % more chunks a second, and one stream of two threads encodes a query in two thirds of the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Literal, TypeAlias

import numpy as np

from nornweave.models.encoders.bert import BertFolder, bert_graph, import_openvino
from nornweave.models.encoders.port import Precision, Vectors
from nornweave.models.encoders.tokenizer import Ids
from nornweave.models.encoders.tokens import project_tokens

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


class OpenVinoSession:
    """A session that OpenVINO runs. It holds the compiled models and the idle requests."""

    NAME: str = "OpenVINO"

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
        """Run one small batch as soon as possible. Return its vectors and, with two ``outputs``, the token vectors."""
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
        """Run several batches at once. Yield the first ``outputs`` results of each batch, in order."""
        compiled, tensor = self._compiled_for("THROUGHPUT"), self._openvino.Tensor
        # One request more than streams: a batch is ready while this thread copies the last vectors.
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
    """Return copies of the first ``count`` outputs of a request."""
    return [np.array(request.get_output_tensor(at).data, dtype=np.float32) for at in range(count)]
