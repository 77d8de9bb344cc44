"""Convert a cross-encoder for OpenVINO: ``python -m nornweave.models.rerankers.convert MODEL TARGET``.

Runs in a process of its own, so that no other has to load torch. It checks its own work: a model whose converted form
does not give the scores of the original is refused, and the refusal is recorded.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nornweave.core.errors import RerankerError
from nornweave.models.conversion import ConversionManifest, FastPathRefusedError
from nornweave.models.encoders.convert import probes
from nornweave.models.folders import CROSS_ENCODER, ModelFolder
from nornweave.models.rerankers.openvino import OpenVinoReranker
from nornweave.models.rerankers.port import Batches
from nornweave.models.torch_export import export, fast_tokenizer, record
from nornweave.models.torch_models import load_with_torch, logits

AGREEMENT = 0.98
"""Lowest ``1 - |difference|`` of two scores accepted: bfloat16 moves a logit by some hundredths."""
QUERY = "why was the captured payment refunded twice"
UNBOUNDED = 1_000_000
"""A tokenizer without a limit says a huge one."""


def convert(source: Path, target: Path) -> ConversionManifest:
    """Convert the model, compare it with the original, and describe the result.

    Raises:
        FastPathRefusedError: the model is of a kind that is not converted, or its scores came out different.
        RerankerError: it does not load.
    """
    model = load_with_torch(CROSS_ENCODER, source, name=source.name, device="cpu")
    backend = fast_tokenizer(model)
    limit = int(model.max_seq_length or UNBOUNDED)
    if not 0 < limit < UNBOUNDED:
        raise FastPathRefusedError("the model does not say how long a pair may be")
    takes_sides = (
        "token_type_ids" in inspect.signature(model.model.forward).parameters
        and "token_type_ids" in model.tokenizer.model_input_names
    )
    # The whole pipeline but its activation.
    export(model, lambda features: model(features)["scores"], target, takes_sides=takes_sides)
    manifest = ConversionManifest(
        dimensions=1,
        max_length=limit,
        special_tokens=backend.num_special_tokens_to_add(True),
        pad_id=int(model.tokenizer.pad_token_id),
    )
    return replace(manifest, agreement=_agreement(model, target, manifest))


def _agreement(model: Any, target: Path, manifest: ConversionManifest) -> float:
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
    record(convert, refusals=(FastPathRefusedError, RerankerError))
