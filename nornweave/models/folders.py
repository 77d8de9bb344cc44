"""Find a model's files: bundled with a package, in a folder, or in the Hugging Face cache."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from nornweave.core.errors import EncoderError
from nornweave.models.hub import UNUSED_FOLDERS, fetch
from nornweave.models.weights import default_weights

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
BUNDLED = frozenset({MINILM, "all-MiniLM-L6-v2"})
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
        """Return the version of its vectors, which depends on the files (weights, tokenizer, maximum length) only."""
        return f"{self.name}@{self.digest[:16]}"


def locate(model: str) -> ModelFolder:
    """Find a model's files; download them only when no local copy is complete.

    Args:
        model: a name on the Hugging Face hub, or a folder. The default one comes with a package.

    Raises:
        EncoderError: there is no such folder, or the hub has no such model or cannot be reached.
    """
    if model in BUNDLED:
        return _opened(MINILM, default_weights())
    folder = Path(model).expanduser()
    if model.strip() and folder.is_dir():
        return _opened(folder.resolve().name, folder)
    if not model.strip() or model.startswith((".", "~", "/")) or model.count("/") > 1:
        raise EncoderError(
            f"embedding model {model!r} is not a folder; expected one with a sentence-transformers model, "
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
    try:
        return fetch(model, timeout=HUB_TIMEOUT)
    except OSError as error:
        raise EncoderError(
            f"embedding model {model!r} is {error}; check the name, copy the model into a folder and name that, "
            f"or use {MINILM!r}, which is bundled"
        ) from error
