"""Load a reranker by the name of its cross-encoder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

from nornweave.core.errors import EncoderError, RerankerError
from nornweave.models.conversion import FastPathRefusedError, converted
from nornweave.models.folders import ModelFolder
from nornweave.models.rerankers.models import find
from nornweave.models.rerankers.port import Reranker

log = logging.getLogger(__name__)

CONVERTER = "nornweave.models.rerankers.convert"


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
    folder = find(model)
    if device == "cpu":
        try:
            return _fast(folder, cache_dir, batch_size)
        except FastPathRefusedError as error:
            log.warning("cross-encoder %s runs on sentence-transformers, slower: %s", folder.name, error)
    from nornweave.models.rerankers.sentence_transformer import CrossEncoderReranker

    return _tried(CrossEncoderReranker(folder, device=device, batch_size=batch_size))


def _fast(model: ModelFolder, cache_dir: Path, batch_size: int) -> Reranker:
    try:
        target, manifest = converted(model, cache_dir, converter=CONVERTER)
    except EncoderError as error:
        raise RerankerError(str(error)) from error
    from nornweave.models.rerankers.openvino import OpenVinoReranker

    try:
        return _tried(OpenVinoReranker(target, manifest, model=model, batch_size=batch_size))
    except RerankerError as error:
        # Converted on another CPU, perhaps, or damaged since: there is still a way to serve.
        raise FastPathRefusedError(str(error)) from error


def _tried(reranker: Reranker) -> Reranker:
    reranker.score("probe", ["probe"])
    return reranker
