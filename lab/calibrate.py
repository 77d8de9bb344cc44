"""Find the ranges for int8 and write them down: ``python -m lab.calibrate``; needed once per model.

Runs the model in float32 over texts of this repository, of all four domains, and notes what goes into each matrix
product. The file that results, ``nornweave/models/int8.json``, is part of the package.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from safetensors.numpy import load_file

from lab.bench.encoding import texts_under
from nornweave.models import int8
from nornweave.models.encoders import bert
from nornweave.models.encoders.tokenizer import ModelTokenizer, rust_tokenizer
from nornweave.models.folders import MINILM, locate
from nornweave.models.runtimes import import_openvino

ROOT = Path(__file__).parents[1]
ALPHA = 0.7
"""How much of an input's spread the weights take over. Lowest cosine to float32: .5 .942, .6 .989, .7 .993, .8 .986."""
FLOATING = ("encoder.layer.0.output.dense", "encoder.layer.1.output.dense", "encoder.layer.2.output.dense")
"""Products that stay in floating point: the most sensitive. Mean cosine .9967 without them, .9989 with; 6 % slower."""
TEXTS = 25
"""Chunks per folder."""
FOLDERS = ("examples", "docs", "nornweave", "tests")
SHORT = ("refund", "how do I void a captured payment?", "")
"""Queries and the empty text have other ranges than chunks."""
DIGITS = 5
MOST_TOKENS = 256
SMALLEST = 1e-5
"""A channel or a column that is always zero must not divide by it."""
PROJECTIONS = ("query", "key", "value")
"""Products that share their input."""
TARGET = Path(int8.__file__).with_name(int8.RECIPE_FILE)


def main(target: Annotated[Path, typer.Option(help="File to write.")] = TARGET) -> None:
    """Write the recipe of the default model."""
    folder = locate(MINILM).path
    model = bert.read_bert(folder)
    assert model, "the default model is BERT with mean pooling"
    file = folder / bert.WEIGHTS_FILE
    weights = load_file(file)
    found = _ranges(bert.bert_graph(model), list(_ids(folder)))
    inputs = {
        place: _steps(lows, highs, _matrix(weights, place))
        for place, (lows, highs) in found.items()
        if place not in FLOATING
    }
    recipe = {"weights": hashlib.sha256(file.read_bytes()).hexdigest(), "inputs": inputs}
    target.write_text(json.dumps(recipe, separators=(",", ":")).replace("},", "},\n") + "\n", encoding="utf-8")


def _ids(folder: Path) -> Iterator[NDArray[np.int64]]:
    serialized = (folder / bert.TOKENIZER_FILE).read_text(encoding="utf-8")
    tokenizer, limited = ModelTokenizer(serialized), rust_tokenizer(serialized, max_length=MOST_TOKENS)
    for text in [*SHORT, *(text for place in FOLDERS for text in texts_under([ROOT / place], tokenizer, TEXTS))]:
        yield np.array([limited.encode(text).ids])


def _ranges(graph: Any, texts: list[NDArray[np.int64]]) -> dict[str, tuple[int8.Floats, int8.Floats]]:
    """Return, per product, the lowest and the highest of each channel of its input in each text."""
    places = {_place(node.friendly_name): node.input_value(0) for node in graph.get_ops() if _has_weights(node)}
    graph.add_outputs(list(places.values()))
    compiled = import_openvino().Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    lows: dict[str, list[int8.Floats]] = {place: [] for place in places}
    highs: dict[str, list[int8.Floats]] = {place: [] for place in places}
    for ids in texts:
        results = compiled([ids, np.ones_like(ids)])
        for number, place in enumerate(places, start=1):
            lows[place].append(results[number][0].min(axis=0))
            highs[place].append(results[number][0].max(axis=0))
    return {place: (np.stack(lows[place]), np.stack(highs[place])) for place in places}


def _has_weights(node: Any) -> bool:
    return bool(node.get_type_name() == "MatMul" and node.friendly_name.startswith("encoder.layer."))


def _place(product: str) -> str:
    """Return what the input of a product is called; three products share theirs."""
    place, _, last = product.rpartition(".")
    return place if last in PROJECTIONS else product


def _matrix(weights: Mapping[str, int8.Floats], place: str) -> int8.Floats:
    """Return the weights that an input is multiplied with, all of them below one another."""
    names = [f"{place}.weight"] if f"{place}.weight" in weights else [f"{place}.{one}.weight" for one in PROJECTIONS]
    return np.concatenate([weights[name] for name in names])


def _steps(lows: int8.Floats, highs: int8.Floats, matrix: int8.Floats) -> dict[str, Any]:
    spread = np.maximum(np.abs(lows), np.abs(highs)).max(axis=0)
    smoothing = np.maximum(spread, SMALLEST) ** ALPHA / np.maximum(np.abs(matrix).max(axis=0), SMALLEST) ** (1 - ALPHA)
    # The mean over the texts, not the extremes: a text in a hundred loses its outliers, the others gain finer steps.
    low, high = (lows / smoothing).min(axis=1).mean(), (highs / smoothing).max(axis=1).mean()
    return {"smoothing": [_rounded(one) for one in smoothing], "low": _rounded(low), "high": _rounded(high)}


def _rounded(number: np.floating[Any]) -> float:
    return float(f"{number:.{DIGITS}g}")


if __name__ == "__main__":
    typer.run(main)
