"""BERT with mean pooling, without torch: an encoder on OpenVINO, whose graph is built here, else on NumPy.

The graph is the one that ``openvino.convert_model`` makes of such a model (Devlin et al., arXiv:1810.04805, with the
pooling of Reimers & Gurevych, arXiv:1908.10084). It is made in memory each time, in .02 s: the weights stay in their
file, whose pages all processes share. Every matrix product is named after its weights. With a recipe the products are
of int8 numbers, everything between them stays in floating point.

A recipe is what calibration found, kept in ``int8.json`` (``evals.calibrate`` at revision 2d37daa made the file).
Inputs of a product are divided, channel by channel, by what the weights are multiplied with, so that both fit 8 bits
(SmoothQuant, Xiao et al., arXiv:2211.10438); then each input has one range, and each row of weights one scale.

On OpenVINO ingestion and queries use different streams. Measured on two cores with AVX512-BF16 and 238-token chunks:
two streams of one thread encode 10 % more chunks a second, and one stream of two threads encodes a query in two thirds
of the time. NumPy alone is for systems without an OpenVINO wheel. It computes what the graph computes,
in float32: the vectors are the same to five digits.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import math
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Literal, Protocol, TypeAlias
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from nornweave.core.errors import EncoderError
from nornweave.core.types import digest
from nornweave.models.encoders.port import (
    TOKEN_LENGTH,
    Precision,
    Progress,
    TokenVectors,
    Vectors,
    encodable,
    project_tokens,
    projection_of,
    token_rows,
    unit_rows,
)
from nornweave.models.encoders.tokenizer import (
    CHARACTERS_PER_TOKEN,
    Ids,
    ModelTokenizer,
    batches_of,
    padded,
    rewritten,
    rust_tokenizer,
)

Floats = NDArray[np.float32]

RECIPE_FILE = "int8.json"
LEVELS = 256
LARGEST = 127
"""Weights are between minus this and this."""


def import_openvino() -> Any:
    """Import OpenVINO without its telemetry.

    ``import openvino`` (2026.4) sends an event to Google Analytics, from a forked process, unless a consent file in the
    home folder forbids it. OpenVINO works without its telemetry package, so that package is marked as missing by an
    entry ``None`` in ``sys.modules``.
    """
    if "openvino" not in sys.modules:
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    return importlib.import_module("openvino")


@dataclass(frozen=True, slots=True)
class Steps:
    """How to quantise the input of a matrix product to 8 bits.

    Attributes:
        smoothing: for each channel, the number to divide it by.
        low: the number that becomes 0 after this division.
        high: the number that becomes 255 after this division.
    """

    smoothing: Floats
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """The quantisation of every product of one model, by the name of its weights.

    Attributes:
        weights: SHA-256 of the file of weights that the recipe was made for.
        inputs: name of a product → its steps. A product without steps stays in floating point.
    """

    weights: str
    inputs: Mapping[str, Steps]


def recipe_for(weights: Path) -> Recipe | None:
    """Return the recipe for a file of weights; ``None`` if there is none."""
    loaded = json.loads(_text())
    with weights.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != loaded["weights"]:
            return None
    inputs = {
        place: Steps(np.array(steps["smoothing"], np.float32), steps["low"], steps["high"])
        for place, steps in loaded["inputs"].items()
    }
    return Recipe(loaded["weights"], inputs)


def recipe_version() -> str:
    """Return the version of the recipe. Recipes of different versions give different vectors."""
    return digest(_text())[:8]


def quantised_rows(matrix: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Quantise a matrix to 8 bits. Return the quantised matrix and the scale of each row."""
    scales = np.abs(matrix).max(axis=1, keepdims=True) / LARGEST
    scales = np.where(scales > 0, scales, 1).astype(np.float32)
    return np.rint(matrix / scales).astype(np.int8), scales


def _text() -> str:
    return (resources.files(__package__) / RECIPE_FILE).read_text(encoding="utf-8")


WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
# The settings that the graph below implements. A model with other settings is not built here.
_CONFIG = {
    "model_type": ("bert",),
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
}
_MODULES = (("Transformer", "Pooling"), ("Transformer", "Pooling", "Normalize"))
_NUMBERS = {"F32": np.float32, "F16": np.float16}
_LARGEST_HEADER = 100_000_000  # as in the library


@dataclass(frozen=True, slots=True)
class BertFolder:
    """The files of a model that is BERT with mean pooling.

    Attributes:
        max_length: how many tokens of a text the model reads, special tokens included.
    """

    path: Path
    config: Mapping[str, Any]
    max_length: int

    @property
    def recipe(self) -> Recipe | None:
        """The recipe for the folder's weights; ``None`` if there is none."""
        return recipe_for(self.path / WEIGHTS_FILE)


def read_bert(folder: Path) -> BertFolder | None:
    """Return the BERT model in a folder; ``None`` for any other model, or one whose files cannot be read."""
    try:
        config = _json(folder / "config.json")
        modules = [Path(module["type"].replace(".", "/")).name for module in _json(folder / "modules.json")]
        transformer = _json(folder / "sentence_bert_config.json")
        limits = transformer.get("max_seq_length") or _json(folder / "tokenizer_config.json")["model_max_length"]
        is_plain = (
            tuple(modules) in _MODULES
            and all(config.get(key) in allowed for key, allowed in _CONFIG.items())
            and transformer.get("transformer_task", "feature-extraction") == "feature-extraction"
            and not transformer.get("do_lower_case")
            and _pools_the_mean(folder)
            and not any((_json(folder / "config_sentence_transformers.json").get("prompts") or {}).values())
            and all((folder / file).is_file() for file in (WEIGHTS_FILE, TOKENIZER_FILE))
        )
        max_length = min(int(limits), int(config["max_position_embeddings"]))
    except (OSError, ValueError, KeyError, TypeError, StopIteration, AttributeError):
        return None
    return BertFolder(folder, config, max_length) if is_plain else None


def _pools_the_mean(folder: Path) -> bool:
    place = next(module["path"] for module in _json(folder / "modules.json") if "Pooling" in module["type"])
    pooling = _json(folder / place / "config.json")
    # sentence-transformers names the mode since version 6; before, it had a switch for each.
    modes = {name for name, value in pooling.items() if name.startswith("pooling_mode_") and value is True}
    return modes == {"pooling_mode_mean_tokens"} or pooling.get("pooling_mode") == "mean"


def bert_graph(bert: BertFolder, recipe: Recipe | None = None) -> Any:
    """Build the graph from ``(input_ids, attention_mask)``, each ``[texts, tokens]``, to unit vectors.

    Args:
        recipe: how to multiply in int8. With ``None`` everything stays in float32.

    Raises:
        OSError: the file of the weights cannot be read. Other defects of the file raise other errors.
    """
    return _Graph(bert_weights(bert), bert.config, recipe).build()


def bert_weights(bert: BertFolder) -> Mapping[str, Floats]:
    """Return the model's weights by their names in BERT. Float32 weights are mapped from the file, not copied."""
    weights = _map_tensors(bert.path / WEIGHTS_FILE)
    prefix = "bert." if any(name.startswith("bert.") for name in weights) else ""
    return {name.removeprefix(prefix): np.asarray(value, np.float32) for name, value in weights.items()}


def _map_tensors(file: Path) -> dict[str, NDArray[Any]]:
    """Return name → tensor for a safetensors file, which is mapped into memory and not read."""
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        tensors = json.loads(stream.read(min(size, _LARGEST_HEADER)))
    numbers = np.memmap(file, np.uint8, "c", 8 + size)  # OpenVINO shares only what could be written
    return {
        name: numbers[slice(*tensor["data_offsets"])].view(_NUMBERS[tensor["dtype"]]).reshape(tensor["shape"])
        for name, tensor in tensors.items()
        if name != "__metadata__" and tensor["dtype"] in _NUMBERS
    }


class _Graph:
    def __init__(self, weights: Mapping[str, Floats], config: Mapping[str, Any], recipe: Recipe | None) -> None:
        self._openvino = import_openvino()
        from openvino import opset15

        self._ops: Any = opset15
        self._weights = weights
        self._recipe = recipe
        self._heads = int(config["num_attention_heads"])
        self._head_size = int(config["hidden_size"]) // self._heads
        self._layers = int(config["num_hidden_layers"])
        self._epsilon = float(config["layer_norm_eps"])

    def build(self) -> Any:
        ops = self._ops
        ids = ops.parameter([-1, -1], np.int64, name="input_ids")
        mask = ops.parameter([-1, -1], np.int64, name="attention_mask")
        hidden = self._embeddings(ids)
        # Added to the attention scores: 0 where there is a token, as little as float32 can hold where there is none.
        present = ops.convert(mask, np.float32)
        absent = ops.subtract(np.float32(1), ops.unsqueeze(present, np.array([1, 2])))
        bias = ops.multiply(absent, np.float32(np.finfo(np.float32).min))
        for layer in range(self._layers):
            hidden = self._layer(hidden, bias, f"encoder.layer.{layer}")
        pooled = self._mean(hidden, present)
        vector = ops.normalize_l2(pooled, np.array([1]), eps=1e-24, eps_mode="max")
        vector.output(0).tensor.set_names({"sentence_embedding"})
        for parameter in (ids, mask):
            parameter.output(0).tensor.set_names({parameter.friendly_name})
        return self._openvino.Model([vector], [ids, mask], "bert")

    def _embeddings(self, ids: Any) -> Any:
        ops = self._ops
        words = ops.gather(self._weight("embeddings.word_embeddings.weight"), ids, np.int64(0))
        width = ops.gather(ops.shape_of(ids), np.int64(1), np.int64(0))
        positions = ops.range(np.int64(0), width, np.int64(1), output_type="i64")
        places = ops.gather(self._weight("embeddings.position_embeddings.weight"), positions, np.int64(0))
        # One text at a time: every token is of the first kind.
        kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        return self._layer_norm(ops.add(ops.add(words, kind), places), "embeddings.LayerNorm")

    def _layer(self, hidden: Any, bias: Any, name: str) -> Any:
        ops = self._ops
        projections = [f"{name}.attention.self.{role}" for role in ("query", "key", "value")]
        query, key, value = map(self._split_heads, self._linear(hidden, f"{name}.attention.self", projections))
        attended = ops.scaled_dot_product_attention(query, key, value, bias)
        joined = ops.reshape(
            ops.transpose(attended, np.array([0, 2, 1, 3])), np.array([0, 0, self._heads * self._head_size]), True
        )
        [attention] = self._linear(joined, f"{name}.attention.output.dense")
        hidden = self._layer_norm(ops.add(attention, hidden), f"{name}.attention.output.LayerNorm")
        [wide] = self._linear(hidden, f"{name}.intermediate.dense")
        [narrow] = self._linear(ops.gelu(wide, "erf"), f"{name}.output.dense")
        return self._layer_norm(ops.add(narrow, hidden), f"{name}.output.LayerNorm")

    def _split_heads(self, hidden: Any) -> Any:
        ops = self._ops
        split = ops.reshape(hidden, np.array([0, 0, self._heads, self._head_size]), True)
        return ops.transpose(split, np.array([0, 2, 1, 3]))

    def _linear(self, hidden: Any, place: str, names: Sequence[str] = ()) -> list[Any]:
        """Multiply an input by the weights of each name, and return the products.

        Args:
            hidden: the input.
            place: the name under which the recipe has the quantisation of the input.
            names: the names of the weights; empty for ``place`` alone.
        """
        ops, steps = self._ops, self._recipe and self._recipe.inputs.get(place)
        if steps:
            # OpenVINO turns this pattern into 8-bit products: unsigned inputs, signed weights.
            low, high = np.array([steps.low], np.float32), np.array([steps.high], np.float32)
            hidden = ops.fake_quantize(ops.multiply(hidden, 1 / steps.smoothing), low, high, low, high, LEVELS)
        found = []
        for name in names or [place]:
            matrix: Any = self._weight(f"{name}.weight")
            if steps:
                numbers, scales = quantised_rows(self._weights[f"{name}.weight"] * steps.smoothing)
                matrix = ops.multiply(ops.convert(ops.constant(numbers), np.float32), scales)
            product = ops.matmul(hidden, matrix, False, True, name=name)
            found.append(ops.add(product, self._weights[f"{name}.bias"]))
        return found

    def _layer_norm(self, hidden: Any, name: str) -> Any:
        ops = self._ops
        normal = ops.mvn(hidden, np.array([-1]), True, self._epsilon, "inside_sqrt")
        return ops.add(ops.multiply(normal, self._weights[f"{name}.weight"]), self._weights[f"{name}.bias"], name=name)

    def _mean(self, hidden: Any, present: Any) -> Any:
        ops = self._ops
        column = ops.unsqueeze(present, np.array([-1]))
        total = ops.reduce_sum(ops.multiply(hidden, column), np.array([1]))
        return ops.divide(total, ops.maximum(ops.reduce_sum(column, np.array([1])), np.float32(1e-9)))

    def _weight(self, name: str) -> Any:
        return self._ops.constant(self._weights[name], name=name, shared_memory=True)


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


WINDOW = 4_096
"""Texts that are tokenised, sorted by length and encoded together: bounds memory, loses nearly nothing to padding."""
TOKENISED_AT_ONCE = 256


# What numpy and OpenVINO raise for weights and settings that do not make the graph.
_BROKEN = (OSError, RuntimeError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError, IndexError)

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

# The rational approximation of erf(x) in float32 by Eigen and XLA (ErfImpl32): x · P(x²) / Q(x²) for |x| ≤ 4.
_ERF_P = (-2.72614226e-10, 2.77068142e-08, -2.10102402e-06, -5.69250639e-05, -7.34990631e-04, -2.95459981e-03,
          -1.60960333e-02)  # fmt: skip
_ERF_Q = (-1.45660718e-05, -2.13374055e-04, -1.68282697e-03, -7.37332917e-03, -1.42647390e-02)


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


class NumpySession:
    """Runs the model on NumPy. It keeps nothing between calls."""

    NAME: str = "NumPy"

    def __init__(self, bert: BertFolder, precision: Precision, projection: Vectors | None) -> None:  # noqa: ARG002
        # BLAS needs aligned arrays, and tensors in a file may not be aligned. Other products take far longer.
        self._weights = {name: np.require(of, requirements="A") for name, of in bert_weights(bert).items()}
        self._projection = projection
        self._heads = int(bert.config["num_attention_heads"])
        self._layers = int(bert.config["num_hidden_layers"])
        self._epsilon = np.float32(bert.config["layer_norm_eps"])
        self._width = int(bert.config["hidden_size"])

    def answer(self, inputs: tuple[Ids, Ids], outputs: int) -> list[Vectors]:
        """Return the vectors and, with two ``outputs``, the padded token vectors."""
        ids, mask = inputs
        hidden = self._hidden(ids, mask)
        found = [_unit((hidden * mask[:, :, None]).sum(axis=1, dtype=np.float32))]
        if outputs > 1 and self._projection is not None:
            found.append(_unit(hidden @ self._projection) * np.float32(TOKEN_LENGTH))
        return found

    def stream(self, batches: Iterable[tuple[Ids, Ids]], outputs: int) -> Iterator[list[Vectors]]:
        """Run batches one by one, because NumPy uses all threads for one batch."""
        for batch in batches:
            yield self.answer(batch, outputs)

    def _hidden(self, ids: Ids, mask: Ids) -> Floats:
        """Return the last layer, ``[texts, tokens, width]``."""
        weights = self._weights
        hidden = weights["embeddings.word_embeddings.weight"][ids]
        hidden += weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        hidden += weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._layer_norm(hidden, "embeddings.LayerNorm")
        absent = np.where(mask[:, None, None, :] > 0, np.float32(0), np.finfo(np.float32).min)
        for layer in range(self._layers):
            name = f"encoder.layer.{layer}"
            attention = self._linear(self._attended(hidden, absent, name), f"{name}.attention.output.dense")
            hidden = self._layer_norm(attention + hidden, f"{name}.attention.output.LayerNorm")
            narrow = self._linear(gelu(self._linear(hidden, f"{name}.intermediate.dense")), f"{name}.output.dense")
            hidden = self._layer_norm(narrow + hidden, f"{name}.output.LayerNorm")
        return hidden

    def _attended(self, hidden: Floats, absent: Floats, name: str) -> Floats:
        texts, tokens, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{name}.attention.self.{role}")
            .reshape(texts, tokens, self._heads, width // self._heads)
            .transpose(0, 2, 1, 3)
            for role in ("query", "key", "value")
        )
        scores: Floats = query @ key.swapaxes(2, 3) * np.float32(1 / math.sqrt(width // self._heads)) + absent
        scores -= scores.max(axis=3, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=3, keepdims=True)
        joined: Floats = (scores @ value).transpose(0, 2, 1, 3).reshape(texts, tokens, width)
        return joined

    def _linear(self, hidden: Floats, name: str) -> Floats:
        rows = hidden.reshape(-1, hidden.shape[-1]) @ self._weights[f"{name}.weight"].T
        rows += self._weights[f"{name}.bias"]
        return rows.reshape(*hidden.shape[:-1], -1)

    def _layer_norm(self, hidden: Floats, name: str) -> Floats:
        centred = hidden - hidden.mean(axis=2, keepdims=True)
        centred /= np.sqrt(np.square(centred).mean(axis=2, keepdims=True) + self._epsilon)
        normal: Floats = centred * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normal


def gelu(numbers: Floats) -> Floats:
    """Return ``x · (1 + erf(x / √2)) / 2`` (Hendrycks & Gimpel, arXiv:1606.08415), within 3e-7 · |x|."""
    scaled = np.clip(numbers * np.float32(math.sqrt(0.5)), -4, 4)
    square = np.square(scaled)
    above, below = (_polynomial(square, coefficients) for coefficients in (_ERF_P, _ERF_Q))
    activated: Floats = numbers * (1 + scaled * above / below) / 2
    return activated


def _polynomial(at: Floats, coefficients: tuple[float, ...]) -> Floats:
    total = np.full_like(at, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= at
        total += np.float32(coefficient)
    return total


def _unit(rows: Floats) -> Floats:
    unit: Floats = rows / np.maximum(np.sqrt(np.square(rows).sum(axis=-1, keepdims=True)), np.float32(1e-12))
    return unit
