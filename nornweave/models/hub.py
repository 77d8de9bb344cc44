"""Fetch models by name: from the local Hugging Face cache first, then briefly from the hub."""

from __future__ import annotations

import os
from pathlib import Path

# Exports for other runtimes, which nothing here reads, and documents about the model.
UNUSED_FOLDERS = frozenset({"onnx", "openvino", "coreml", ".cache", ".git"})
UNUSED_FILES = (
    "*.onnx",
    "*.h5",
    "*.ot",
    "*.msgpack",
    "*.tflite",
    "*.gguf",
    "*.md",
    *(f"{name}/*" for name in UNUSED_FOLDERS),
)


def fetch(model: str, *, timeout: float) -> Path:
    """Return the folder of a model, downloading it only when no local copy is complete.

    Args:
        model: its name on the hub.
        timeout: seconds until a hub that does not answer counts as out of reach.

    Raises:
        OSError: it is neither in the cache nor to be had; the message says why.
    """
    # Set before the first import only: huggingface_hub reads its environment then.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        cached = Path(snapshot_download(model, local_files_only=True))
        if has_weights(cached):
            return cached
    except (OSError, ValueError):
        pass  # not in the cache, which the hub may mend
    try:
        # Asked first, because snapshot_download waits for this answer without a limit (huggingface_hub 1.33).
        revision = HfApi().model_info(model, timeout=timeout).sha
        return Path(
            snapshot_download(model, revision=revision, etag_timeout=timeout, ignore_patterns=list(UNUSED_FILES))
        )
    except (OSError, ValueError, HfHubHTTPError, httpx.HTTPError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise OSError(
            f"neither a folder nor in the local Hugging Face cache, and the hub did not give it "
            f"({type(error).__name__}: {reason})"
        ) from error


def has_weights(folder: Path) -> bool:
    """Tell whether a model's folder is complete."""
    return any(folder.glob("*.safetensors")) or any(folder.glob("*.bin"))
