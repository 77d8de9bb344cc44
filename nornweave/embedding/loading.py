"""From the name of a model to an encoder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

from nornweave.embedding.bundle import FastPathRefusedError, converted
from nornweave.embedding.hashing import HashEncoder
from nornweave.embedding.models import ModelFolder, locate
from nornweave.embedding.port import Encoder
from nornweave.errors import EncoderError

log = logging.getLogger(__name__)

HASH = "hash:"
LITELLM = ("litellm:", "litellm/")


def load_encoder(
    model: str,
    *,
    dimensions: int | None = None,
    device: Literal["cpu", "cuda"] = "cpu",
    batch_size: int = 32,
    cache_dir: Path,
    timeout: float = 30.0,
    api_base: str | None = None,
) -> Encoder:
    """Load an embedding model and try it on one text.

    Args:
        model: ``sentence-transformers/all-MiniLM-L6-v2`` (bundled), any sentence-transformers model by name or folder,
            ``litellm:<model>`` for one behind an API, ``hash:<dimensions>`` for none at all.
        dimensions: what the domain declares; ``None`` takes what the model has.
        batch_size: texts at once, at most.
        cache_dir: where converted models are kept; read by every process, written once per model.
        timeout: seconds for one call of an API.
        api_base: address of the API; ``None`` leaves it to the environment, as LiteLLM reads it.

    Raises:
        EncoderError: the model cannot be found, loaded or reached, or has other dimensions than declared.
    """
    encoder = _open(model, dimensions, device, batch_size, cache_dir, timeout, api_base)
    probe = encoder.encode_query("probe")
    if dimensions is not None and probe.shape != (dimensions,):
        raise EncoderError(
            f"embedding model {model!r} has {probe.shape[0]} dimensions, the domain declares {dimensions}; "
            f"set embedding.dimensions to {probe.shape[0]}, or name another model"
        )
    return encoder


def _open(
    model: str,
    dimensions: int | None,
    device: Literal["cpu", "cuda"],
    batch_size: int,
    cache_dir: Path,
    timeout: float,
    api_base: str | None,
) -> Encoder:
    if model.startswith(HASH):
        return _hash_encoder(model)
    if model.startswith(LITELLM):
        from nornweave.embedding.litellm import LiteLLMEncoder

        name = model[len(LITELLM[0]) :]
        return LiteLLMEncoder(name, dimensions=dimensions, batch_size=batch_size, timeout=timeout, api_base=api_base)
    folder = locate(model)
    if device == "cpu":
        try:
            return _fast(folder, cache_dir, batch_size)
        except FastPathRefusedError as error:
            log.warning("embedding model %s runs on sentence-transformers, slower: %s", folder.name, error)
    from nornweave.embedding.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(folder, device=device, batch_size=batch_size)


def _hash_encoder(model: str) -> HashEncoder:
    try:
        return HashEncoder(int(model.removeprefix(HASH)))
    except ValueError as error:
        raise EncoderError(
            f"embedding model {model!r}: {error}; expected 'hash:64' or another number of at least 2"
        ) from error


def _fast(folder: ModelFolder, cache_dir: Path, batch_size: int) -> Encoder:
    target, manifest = converted(folder, cache_dir)
    from nornweave.embedding.openvino import OpenVinoEncoder

    try:
        encoder = OpenVinoEncoder(target, manifest, version=folder.version, batch_size=batch_size)
        encoder.encode_query("probe")
    except EncoderError as error:
        # Converted on another CPU, perhaps, or damaged since: there is still a way to serve.
        raise FastPathRefusedError(str(error)) from error
    return encoder
