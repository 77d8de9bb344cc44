"""Load a model that sentence-transformers saved, of either kind, without code of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nornweave.core.errors import EncoderError, NornWeaveError, RerankerError
from nornweave.models.runtimes import lacks_torch

# What transformers raises for files that are missing, broken, or want code of their own.
LOAD_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError, ImportError)


@dataclass(frozen=True, slots=True)
class TorchModelKind:
    """A kind of model.

    Attributes:
        noun: what errors call it.
        class_name: of sentence-transformers.
        error: what is raised when it does not load.
    """

    noun: str
    class_name: str
    error: type[NornWeaveError]


ENCODER = TorchModelKind("embedding model", "SentenceTransformer", EncoderError)
CROSS_ENCODER = TorchModelKind("cross-encoder", "CrossEncoder", RerankerError)


def load_with_torch(kind: TorchModelKind, folder: Path, *, name: str, device: str) -> Any:
    """Load a model from local files and set it to inference.

    Args:
        name: what errors call the model.
        device: ``cpu`` or ``cuda``.

    Raises:
        NornWeaveError: ``kind.error``: torch or the device is not there, or the files are no such model.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    if missing := lacks_torch():
        raise kind.error(f"{kind.noun} {name!r} cannot be loaded: {missing}")
    import sentence_transformers
    import torch
    from safetensors import SafetensorError

    if device == "cuda" and not torch.cuda.is_available():
        raise kind.error(
            f"device {device!r} is asked for, but torch {torch.__version__} finds no CUDA device; "
            "set embedding.device (EMBEDDING_DEVICE) to 'cpu', or install a CUDA build of torch and its driver"
        )
    load = getattr(sentence_transformers, kind.class_name)
    try:
        return load(str(folder), device=device, local_files_only=True, trust_remote_code=False).eval()
    except (*LOAD_ERRORS, SafetensorError) as error:
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise kind.error(
            f"{kind.noun} {name!r} does not load ({type(error).__name__}: {reason[0]}); "
            f"expected a complete {kind.class_name} model that needs no code of its own"
        ) from error
