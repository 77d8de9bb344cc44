"""Build BERT with mean pooling as an OpenVINO graph over its weights, without torch.

The graph is the one that ``openvino.convert_model`` makes of such a model (Devlin et al., arXiv:1810.04805, with the
pooling of Reimers & Gurevych, arXiv:1908.10084). It is made in memory each time, in .02 s: the weights stay in their
file, whose pages all processes share. Every matrix product is named after its weights. With a recipe the products are
of int8 numbers, everything between them stays in floating point.

A recipe is what calibration found, kept in ``int8.json`` (``evals.calibrate`` at revision 2d37daa made the file).
Inputs of a product are divided, channel by channel, by what the weights are multiplied with, so that both fit 8 bits
(SmoothQuant, Xiao et al., arXiv:2211.10438); then each input has one range, and each row of weights one scale.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nornweave.core.types import digest

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
