"""Convert a cross-encoder for OpenVINO: ``python -m nornweave.cross_encoder.convert MODEL TARGET``.

Runs in a process of its own, so that no other has to load torch. It checks its own work: a model whose converted form
does not give the scores of the original is refused, and the refusal is recorded.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from nornweave.cross_encoder.openvino import OpenVinoReranker
from nornweave.cross_encoder.port import Batches
from nornweave.cross_encoder.sentence_transformer import load_cross_encoder, logits
from nornweave.embedding.bundle import MODEL, TOKENIZER, WEIGHTS, FastPathRefusedError, Manifest
from nornweave.embedding.convert import CONVERSION_ERRORS, probes
from nornweave.embedding.models import ModelFolder
from nornweave.embedding.runtime import import_openvino
from nornweave.errors import RerankerError

AGREEMENT = 0.98
"""Lowest ``1 - |difference|`` of two scores accepted: bfloat16 moves a logit by some hundredths."""
QUERY = "why was the captured payment refunded twice"
UNBOUNDED = 1_000_000
"""A tokenizer without a limit says a huge one."""


def main(source: Path, target: Path) -> None:
    """Write the converted model, or the reason why there is none, into ``target``."""
    try:
        manifest = convert(source, target)
    except (FastPathRefusedError, RerankerError) as error:
        manifest = Manifest(refused=str(error))
    manifest.write(target)


def convert(source: Path, target: Path) -> Manifest:
    """Convert, compare, and describe the result.

    Raises:
        FastPathRefusedError: the model is of a kind that is not converted, or its scores came out different.
        RerankerError: it does not load.
    """
    model = load_cross_encoder(source, name=source.name, device="cpu")
    backend = _supported_tokenizer(model)
    limit = int(model.max_seq_length or UNBOUNDED)
    if not 0 < limit < UNBOUNDED:
        raise FastPathRefusedError("the model does not say how long a pair may be")
    try:
        _export(model, target)
    except CONVERSION_ERRORS as error:
        raise FastPathRefusedError(
            f"conversion failed: {type(error).__name__}: {str(error).splitlines()[:1]}"
        ) from error
    (target / TOKENIZER).write_text(backend.to_str(), encoding="utf-8")
    facts: dict[str, Any] = {
        "dimensions": 1,
        "max_length": limit,
        "special_tokens": backend.num_special_tokens_to_add(True),
        "pad_id": int(model.tokenizer.pad_token_id),
        "weights_size": (target / WEIGHTS).stat().st_size,
    }
    return Manifest(**facts, agreement=_agreement(model, target, Manifest(**facts)))


def _supported_tokenizer(model: Any) -> Any:
    """Return the Rust tokenizer of a model whose pairs go through nothing else."""
    if any(model.prompts.values()):
        raise FastPathRefusedError(f"the model puts prompts before its texts ({sorted(model.prompts)})")
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise FastPathRefusedError("the model has no fast tokenizer")
    if model.tokenizer.pad_token_id is None:
        raise FastPathRefusedError("the model's tokenizer has no padding token")
    return backend


def _export(model: Any, target: Path) -> None:
    import torch

    class PairToLogit(torch.nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
        """The whole pipeline but its activation."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> Any:
            features = {"input_ids": input_ids, "attention_mask": attention_mask}
            if token_type_ids is not None:
                features["token_type_ids"] = token_type_ids
            return self.model(features)["scores"]

    openvino = import_openvino()
    example = _example(model)
    open_shape = openvino.PartialShape([-1, -1])
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the tracer warns of every constant; the probes judge the outcome
        graph = openvino.convert_model(PairToLogit().eval(), example_input=example, input=[open_shape] * len(example))
    # float32 as in the original: see nornweave.embedding.convert.
    openvino.save_model(graph, target / MODEL, compress_to_fp16=False)


def _example(model: Any) -> dict[str, Any]:
    """Return two pairs, one of them padded: a mask of ones alone would be optimised away while tracing."""
    import torch

    ids = torch.full((2, 16), int(model.tokenizer.pad_token_id), dtype=torch.int64)
    mask, sides = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, length in enumerate((16, 9)):
        ids[row, :length] = torch.arange(3, 3 + length) % len(model.tokenizer)
        mask[row, :length] = 1
        sides[row, length // 2 : length] = 1
    takes_sides = "token_type_ids" in inspect.signature(model.model.forward).parameters
    if takes_sides and "token_type_ids" in model.tokenizer.model_input_names:
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": sides}
    return {"input_ids": ids, "attention_mask": mask}


def _agreement(model: Any, target: Path, manifest: Manifest) -> float:
    texts = probes()
    # One pair a batch: the padding of the original must not enter the comparison.
    wanted = Batches("original", 1).score(
        [1] * len(texts), lambda batch: logits(model, [(QUERY, texts[at]) for at in batch]), None
    )
    try:
        reranker = OpenVinoReranker(target, manifest, model=ModelFolder("converted", target, ""))
        scores = reranker.score(QUERY, texts)
    except RerankerError as error:
        raise FastPathRefusedError(f"the converted model does not run here: {error}") from error
    agreement = 1.0 - float(np.abs(wanted - scores).max())
    if not agreement >= AGREEMENT:
        raise FastPathRefusedError(f"the converted model's scores differ by {1 - agreement:.4f}; expected 0.02 at most")
    return round(agreement, 6)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
