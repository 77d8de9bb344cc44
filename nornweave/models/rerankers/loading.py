"""Load a reranker by the name of its cross-encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from nornweave.models.conversion import ConversionManifest, load_fastest
from nornweave.models.folders import CROSS_ENCODER, locate
from nornweave.models.rerankers.port import Reranker


def load_reranker(
    model: str, *, device: Literal["cpu", "cuda"] = "cpu", batch_size: int = 32, cache_dir: Path
) -> Reranker:
    """Load a cross-encoder and try it on one pair.

    Args:
        model: a sentence-transformers ``CrossEncoder`` by folder, or by name on the Hugging Face hub. The hub is asked
            only for what is not on this machine, and counts as out of reach after five seconds.
        batch_size: pairs at once, at most.
        cache_dir: where converted models are kept; read by every process, written once per model.

    Raises:
        RerankerError: the model cannot be found or loaded, or does not give one score to a pair.
    """
    folder = locate(model, CROSS_ENCODER)

    def run_converted(bundle: Path, manifest: ConversionManifest) -> Reranker:
        from nornweave.models.rerankers.openvino import OpenVinoReranker

        return _tried(OpenVinoReranker(bundle, manifest, model=folder, batch_size=batch_size))

    def run_with_torch() -> Reranker:
        from nornweave.models.torch_models import CrossEncoderReranker

        return _tried(CrossEncoderReranker(folder, device=device, batch_size=batch_size))

    return load_fastest(
        CROSS_ENCODER, folder, cache_dir, device, run_converted=run_converted, run_with_torch=run_with_torch
    )


def _tried(reranker: Reranker) -> Reranker:
    reranker.score("probe", ["probe"])
    return reranker
