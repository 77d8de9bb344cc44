"""Convert a sentence-transformers model for OpenVINO: ``python -m nornweave.embedding.convert MODEL TARGET``.

Runs in a process of its own, so that no other has to load torch. It checks its own work: a model whose converted form
does not give the vectors of the original is refused, and the refusal is recorded.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from nornweave.embedding.bundle import MODEL, TOKENIZER, WEIGHTS, FastPathRefusedError, Manifest
from nornweave.embedding.openvino import OpenVinoEncoder
from nornweave.embedding.runtime import import_openvino
from nornweave.errors import EncoderError

AGREEMENT = 0.999
"""Lowest cosine accepted; bfloat16 reaches .99998, int8 .93."""
SENTENCE = (
    "The refund endpoint answers 422 when a captured payment was voided before, see café – Größe 3.5 µs, 支払い. "
)
# Words per probe: around nothing, a query, a chunk, and beyond the length of every usual model.
PROBE_WORDS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 120, 144, 180, 233, 300, 377, 610, 1_200)
# What torch's tracer and OpenVINO's translator raise for a model that they cannot follow.
CONVERSION_ERRORS = (RuntimeError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError, IndexError)


def main(source: Path, target: Path) -> None:
    """Write the converted model, or the reason why there is none, into ``target``."""
    try:
        manifest = convert(source, target)
    except FastPathRefusedError as error:
        manifest = Manifest(refused=str(error))
    manifest.write(target)


def convert(source: Path, target: Path) -> Manifest:
    """Convert, compare, and describe the result.

    Raises:
        FastPathRefusedError: the model is of a kind that is not converted, or its vectors came out different.
    """
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(source), device="cpu", local_files_only=True, trust_remote_code=False).eval()
    backend = _supported_tokenizer(model)
    max_length = _max_length(model)
    try:
        _export(model, target)
    except CONVERSION_ERRORS as error:
        raise FastPathRefusedError(
            f"conversion failed: {type(error).__name__}: {str(error).splitlines()[:1]}"
        ) from error
    (target / TOKENIZER).write_text(backend.to_str(), encoding="utf-8")
    dimensions = int(model.encode(["probe"], show_progress_bar=False).shape[1])
    manifest = Manifest(
        dimensions=dimensions,
        max_length=max_length,
        special_tokens=backend.num_special_tokens_to_add(False),
        pad_id=int(model.tokenizer.pad_token_id),
        weights_size=(target / WEIGHTS).stat().st_size,
    )
    return _verified(model, target, manifest)


def _supported_tokenizer(model: Any) -> Any:
    """Return the Rust tokenizer of a model whose texts go through nothing else."""
    if any(model.prompts.values()):
        raise FastPathRefusedError(f"the model puts prompts before its texts ({sorted(model.prompts)})")
    tokenizer = getattr(model[0], "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if tokenizer is None or backend is None:
        raise FastPathRefusedError("the model has no fast tokenizer")
    if tokenizer.pad_token_id is None:
        raise FastPathRefusedError("the model's tokenizer has no padding token")
    return backend


def _max_length(model: Any) -> int:
    limits = (model.max_seq_length, getattr(model[0].config, "max_position_embeddings", None))
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < 1_000_000]
    if not known:
        raise FastPathRefusedError("the model does not say how long a text may be")
    return known[0]


def _export(model: Any, target: Path) -> None:
    import torch

    class TextToVector(torch.nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
        """The whole pipeline: transformer, pooling, and what the model has after them."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            features = self.model({"input_ids": input_ids, "attention_mask": attention_mask})
            return torch.nn.functional.normalize(features["sentence_embedding"], p=2.0, dim=1)

    openvino = import_openvino()
    # Two texts, one of them padded: a mask of ones alone would be optimised away while tracing.
    ids = torch.full((2, 16), int(model.tokenizer.pad_token_id), dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for row, length in enumerate((16, 9)):
        ids[row, :length] = torch.arange(3, 3 + length) % len(model.tokenizer)
        mask[row, :length] = 1
    open_shape = openvino.PartialShape([-1, -1])
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the tracer warns of every constant; the probes judge the outcome
        graph = openvino.convert_model(
            TextToVector().eval(),
            example_input={"input_ids": ids, "attention_mask": mask},
            input=[open_shape, open_shape],
        )
    # float32 as in the original: half the size in float16, but slower to start and less exact on CPUs without bfloat16.
    openvino.save_model(graph, target / MODEL, compress_to_fp16=False)


def _verified(model: Any, target: Path, manifest: Manifest) -> Manifest:
    texts = probes()
    # One text a batch: the padding of the original must not enter the comparison.
    wanted = model.encode(texts, batch_size=1, normalize_embeddings=True, show_progress_bar=False)
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
    return Manifest(
        dimensions=manifest.dimensions,
        max_length=manifest.max_length,
        special_tokens=manifest.special_tokens,
        pad_id=manifest.pad_id,
        weights_size=manifest.weights_size,
        agreement=round(agreement, 6),
    )


def probes() -> list[str]:
    """Return texts of all lengths; each starts elsewhere, so that they differ."""
    words = (SENTENCE * 80).split()
    return ["", "\n\t ", *(" ".join(words[count % 17 : count % 17 + count]) for count in PROBE_WORDS)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
