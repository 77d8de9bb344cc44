"""Convert a sentence-transformers model for OpenVINO: ``python -m nornweave.models.encoders.convert MODEL TARGET``.

BERT with mean pooling, the default model among them, is built from its weights, also in int8 where there is a recipe.
Other kinds need torch, which no process but this one has to load. The converter checks its own work: a model whose
converted form does not give the vectors of the original is refused, and the refusal is recorded.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nornweave.core.errors import EncoderError
from nornweave.models.conversion import INT8_MODEL, MODEL, TOKENIZER, ConversionManifest, FastPathRefusedError
from nornweave.models.encoders.bert import TOKENIZER_FILE, WEIGHTS_FILE, BertFolder, bert_graph, read_bert
from nornweave.models.encoders.openvino import OpenVinoEncoder
from nornweave.models.encoders.port import Vectors
from nornweave.models.encoders.tokenizer import rust_tokenizer
from nornweave.models.folders import ENCODER
from nornweave.models.int8 import recipe_for
from nornweave.models.runtimes import import_openvino, lacks_torch
from nornweave.models.torch_export import CONVERSION_ERRORS, conversion_failed, export, fast_tokenizer, record
from nornweave.models.torch_models import load_with_torch

AGREEMENT = 0.999
"""Lowest cosine accepted of a converted model; bfloat16 reaches .99998."""
SENTENCE = (
    "The refund endpoint answers 422 when a captured payment was voided before, see café – Größe 3.5 µs, 支払い. "
)
# Words per probe: around nothing, a query, a chunk, and beyond the length of every usual model.
PROBE_WORDS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 120, 144, 180, 233, 300, 377, 610, 1_200)


def convert(source: Path, target: Path) -> ConversionManifest:
    """Convert the model, compare it with the original, and describe the result.

    Raises:
        FastPathRefusedError: the model is of a kind that is not converted, at least without torch, or its vectors came
            out different.
    """
    bert = read_bert(source)
    return _convert_bert(bert, target) if bert else _convert_with_torch(source, target)


def _convert_bert(bert: BertFolder, target: Path) -> ConversionManifest:
    from safetensors import SafetensorError
    from tokenizers import Tokenizer

    try:
        graph = bert_graph(bert)
    except (*CONVERSION_ERRORS, OSError, SafetensorError) as error:
        raise conversion_failed(error) from error
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


def _convert_with_torch(source: Path, target: Path) -> ConversionManifest:
    if reason := lacks_torch():
        raise FastPathRefusedError(reason)
    import torch

    model = load_with_torch(ENCODER, source, name=source.name, device="cpu")
    backend = fast_tokenizer(model)
    max_length = _max_length(model)

    def normalised(features: Any) -> Any:
        """Run the whole pipeline: transformer, pooling, and what the model has after them."""
        return torch.nn.functional.normalize(model(features)["sentence_embedding"], p=2.0, dim=1)

    export(model, normalised, target)
    manifest = ConversionManifest(
        dimensions=int(model.encode(["probe"], show_progress_bar=False).shape[1]),
        max_length=max_length,
        special_tokens=backend.num_special_tokens_to_add(False),
        pad_id=int(model.tokenizer.pad_token_id),
    )
    # One text a batch: the padding of the original must not enter the comparison.
    wanted = model.encode(probes(), batch_size=1, normalize_embeddings=True, show_progress_bar=False)
    return _verified(wanted, target, manifest)


def _max_length(model: Any) -> int:
    limits = (model.max_seq_length, getattr(model[0].config, "max_position_embeddings", None))
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < 1_000_000]
    if not known:
        raise FastPathRefusedError("the model does not say how long a text may be")
    return known[0]


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


if __name__ == "__main__":
    record(convert)
