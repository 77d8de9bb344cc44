"""Load an encoder by the name of its model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from nornweave.core.errors import EncoderError
from nornweave.models.conversion import FastPathRefusedError, converted
from nornweave.models.encoders.bert import read_bert
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.encoders.port import INT8, Encoder
from nornweave.models.encoders.precision import Precision, Speeds, Wanted, speeds_of
from nornweave.models.folders import ModelFolder, locate
from nornweave.models.int8 import recipe_version

log = logging.getLogger(__name__)

HASH = "hash:"
LITELLM = ("litellm:", "litellm/")
PROBE_BATCH = 2
"""Texts in a batch while the CPU's speed is measured: enough batches for all streams of OpenVINO."""
Choose: TypeAlias = Callable[[ModelFolder, Speeds], Precision]


def load_encoder(
    model: str,
    *,
    dimensions: int | None = None,
    device: Literal["cpu", "cuda"] = "cpu",
    batch_size: int = 32,
    cache_dir: Path,
    precision: Wanted = "auto",
    like: str | None = None,
) -> Encoder:
    """Load an embedding model and try it on one text.

    Args:
        model: ``sentence-transformers/all-MiniLM-L6-v2`` (bundled), any sentence-transformers model by name or folder,
            ``litellm:<model>`` for one behind an API, ``hash:<dimensions>`` for none at all.
        dimensions: what the domain declares; ``None`` takes what the model has.
        cache_dir: where converted models are kept; read by every process, written once per model.
        precision: numbers that the vectors are computed with; ``auto`` takes what ``like`` was made with, else the
            fastest of this CPU.
        like: version of the vectors that those of this encoder join; ``None`` when they join none.

    Raises:
        EncoderError: the model cannot be found, loaded or reached, or has other dimensions than declared.
    """
    if model.startswith(HASH):
        encoder: Encoder = _hash_encoder(model)
    elif model.startswith(LITELLM):
        encoder = _hosted_encoder(model, dimensions, batch_size)
    else:
        choose = partial(_precision, wanted=precision, like=like)
        encoder = _local_encoder(locate(model), device, batch_size, cache_dir, choose)
    _check(encoder, model, dimensions, precision)
    return encoder


def _check(encoder: Encoder, model: str, dimensions: int | None, precision: Wanted) -> None:
    if precision == "int8" and INT8 not in encoder.version:
        raise EncoderError(
            f"embedding model {model!r} cannot be computed with embedding.precision 'int8'; only the default model has "
            "that form, on device 'cpu': set it to 'auto'"
        )
    probe = encoder.encode_query("probe")
    if dimensions is not None and probe.shape != (dimensions,):
        raise EncoderError(
            f"embedding model {model!r} has {probe.shape[0]} dimensions, the domain declares {dimensions}; "
            f"set embedding.dimensions to {probe.shape[0]}, or name another model"
        )


def _local_encoder(folder: ModelFolder, device: str, batch_size: int, cache_dir: Path, choose: Choose) -> Encoder:
    """Load BERT with mean pooling converted, if it runs so on this CPU; everything else with sentence-transformers."""
    if device == "cpu" and read_bert(folder.path) is not None:
        try:
            return _converted(folder, batch_size, cache_dir, choose)
        except FastPathRefusedError as error:
            log.warning("embedding model %s runs on sentence-transformers, slower: %s", folder.name, error)
    from nornweave.models.torch_models import SentenceTransformerEncoder

    return SentenceTransformerEncoder(folder, device=device, batch_size=batch_size)


def _converted(folder: ModelFolder, batch_size: int, cache_dir: Path, choose: Choose) -> Encoder:
    from nornweave.models.encoders.openvino import OpenVinoEncoder

    bundle, manifest = converted(folder, cache_dir)

    def opened(precision: Precision, batch_size: int = PROBE_BATCH) -> Encoder:
        version = _version(folder, precision)
        return OpenVinoEncoder(bundle, manifest, version=version, batch_size=batch_size, precision=precision)

    try:
        encoder = opened(choose(folder, speeds_of(opened, bundle, has_int8=manifest.has_int8)), batch_size)
        encoder.encode_query("probe")
    except EncoderError as error:
        # It may be damaged, or converted on another CPU: sentence-transformers can still run the original.
        raise FastPathRefusedError(str(error)) from error
    return encoder


def _hosted_encoder(model: str, dimensions: int | None, batch_size: int) -> Encoder:
    from nornweave.models.encoders.litellm import LiteLLMEncoder

    name = model[len(LITELLM[0]) :]
    return LiteLLMEncoder(name, dimensions=dimensions, batch_size=batch_size)


def _hash_encoder(model: str) -> HashEncoder:
    try:
        return HashEncoder(int(model.removeprefix(HASH)))
    except ValueError as error:
        raise EncoderError(
            f"embedding model {model!r}: {error}; expected 'hash:64' or another number of at least 2"
        ) from error


def _version(folder: ModelFolder, precision: Precision) -> str:
    return f"{folder.version}{INT8}{recipe_version()}" if precision == "int8" else folder.version


def _precision(folder: ModelFolder, speeds: Speeds, *, wanted: Wanted, like: str | None) -> Precision:
    """Choose what to compute with.

    Vectors join those that are there already in their precision: nobody's corpus is encoded again because it moved to
    another machine. Only int8 vectors that this CPU cannot compute faithfully make an exception.
    """
    if wanted == "auto" and like == _version(folder, "float32"):
        wanted = "float"
    if wanted == "auto" and like == _version(folder, "int8") and speeds.has_faithful_int8:
        wanted = "int8"
    if wanted == "int8" and "int8" in speeds.per_second:
        return "int8"
    return speeds.fastest if wanted == "auto" else speeds.floating
