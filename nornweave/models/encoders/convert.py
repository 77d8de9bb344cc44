"""Convert BERT with mean pooling for OpenVINO: ``python -m nornweave.models.encoders.convert MODEL TARGET``.

The default model is one of these. It is built from its weights, also in int8 where there is a recipe. The converter
checks its own work: a model that does not give the same vectors when it is compiled for this CPU is refused, and the
refusal is recorded.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nornweave.core.errors import EncoderError
from nornweave.models.encoders.bert import (
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    bert_graph,
    import_openvino,
    read_bert,
    recipe_for,
)
from nornweave.models.encoders.conversion import INT8_MODEL, MODEL, TOKENIZER, ConversionManifest, FastPathRefusedError
from nornweave.models.encoders.openvino import OpenVinoEncoder
from nornweave.models.encoders.port import Vectors
from nornweave.models.encoders.tokenizer import rust_tokenizer

# What OpenVINO raises for weights that do not make the graph.
CONVERSION_ERRORS = (RuntimeError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError, IndexError)
AGREEMENT = 0.999
"""Lowest cosine accepted of a converted model; bfloat16 reaches .99998."""
SENTENCE = (
    "The refund endpoint answers 422 when a captured payment was voided before, see café – Größe 3.5 µs, 支払い. "
)
# Words per probe: around nothing, a query, a chunk, and beyond the length of every usual model.
PROBE_WORDS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 120, 144, 180, 233, 300, 377, 610, 1_200)


def convert(source: Path, target: Path) -> ConversionManifest:
    """Convert the model, compare it with what float32 gives, and describe the result.

    Raises:
        FastPathRefusedError: the model is of another kind, its weights are broken, or its vectors came out different.
    """
    bert = read_bert(source)
    if bert is None:
        raise FastPathRefusedError("the model is not BERT with mean pooling")
    from safetensors import SafetensorError
    from tokenizers import Tokenizer

    try:
        graph = bert_graph(bert)
    except (*CONVERSION_ERRORS, OSError, SafetensorError) as error:
        raise FastPathRefusedError(
            f"conversion failed: {type(error).__name__}: {str(error).splitlines()[:1]}"
        ) from error
    openvino = import_openvino()
    openvino.save_model(graph, target / MODEL, compress_to_fp16=False)
    tokenizer = Tokenizer.from_file(str(bert.path / TOKENIZER_FILE))
    (target / TOKENIZER).write_text(tokenizer.to_str(), encoding="utf-8")
    manifest = ConversionManifest(
        dimensions=int(bert.config["hidden_size"]),
        max_length=bert.max_length,
        special_tokens=tokenizer.num_special_tokens_to_add(False),
        pad_id=int(bert.config.get("pad_token_id") or 0),
    )
    wanted = _float32_vectors(graph, tokenizer.to_str(), bert.max_length)
    recipe = recipe_for(bert.path / WEIGHTS_FILE)
    if recipe:
        openvino.save_model(bert_graph(bert, recipe), target / INT8_MODEL, compress_to_fp16=False)
    return _verified(wanted, target, manifest)


def _float32_vectors(graph: Any, tokenizer: str, max_length: int) -> Vectors:
    """Return the probes' vectors without the CPU's faster, less exact kinds of numbers."""
    compiled = import_openvino().Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    encodings = rust_tokenizer(tokenizer, max_length=max_length).encode_batch(probes())
    rows = [np.array([encoding.ids], dtype=np.int64) for encoding in encodings]
    return np.concatenate([compiled([ids, np.ones_like(ids)])[0] for ids in rows])


def _verified(wanted: Vectors, target: Path, manifest: ConversionManifest) -> ConversionManifest:
    """Compare with the vectors that the probes should have."""
    texts = probes()
    try:
        encoder = OpenVinoEncoder(target, manifest, version="probe")
        together = encoder.encode(texts)
        alone = np.stack([encoder.encode_query(text) for text in texts])
    except EncoderError as error:
        raise FastPathRefusedError(f"the converted model does not run here: {error}") from error
    agreement = float(min((wanted * together).sum(axis=1).min(), (wanted * alone).sum(axis=1).min()))
    if not agreement >= AGREEMENT:
        raise FastPathRefusedError(
            f"the converted model's vectors differ: cosine {agreement:.5f}, expected {AGREEMENT}"
        )
    return replace(manifest, agreement=round(agreement, 6))


def probes() -> list[str]:
    """Return texts of all lengths; each starts elsewhere, so that they differ."""
    words = (SENTENCE * 80).split()
    return ["", "\n\t ", *(" ".join(words[count % 17 : count % 17 + count]) for count in PROBE_WORDS)]


def main() -> None:
    """Convert the first folder of the command line into the second, or write there why that is refused."""
    source, target = map(Path, sys.argv[1:3])
    try:
        manifest = convert(source, target)
    except FastPathRefusedError as error:
        manifest = ConversionManifest(refused=str(error))
    manifest.write(target)


if __name__ == "__main__":
    main()
