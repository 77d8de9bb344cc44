"""Convert an embedding model for OpenVINO in a subprocess, once; keep the result in a folder.

::

    <cache_dir>/<model>-<key>/   model.xml model.bin tokenizer.json manifest.json
                                 int8.xml int8.bin   (if there is a recipe)
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from nornweave.core.errors import EncoderError
from nornweave.core.files.lock import held
from nornweave.core.types import digest
from nornweave.models.encoders.bert import recipe_version
from nornweave.models.folders import ModelFolder

log = logging.getLogger(__name__)

CONVERTER = "3"
"""Part of the key: raise it when a conversion comes out differently."""
CONVERT = "nornweave.models.encoders.convert"
"""The program that converts."""
DEADLINE = 900.0
"""Seconds for one conversion; 15 for a model of 90 MB on two cores."""
UNFINISHED = ".converting-"
MODEL, INT8_MODEL, TOKENIZER, MANIFEST = "model.xml", "int8.xml", "tokenizer.json", "manifest.json"


class FastPathRefusedError(Exception):
    """A model cannot be converted faithfully; sentence-transformers has to run it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionManifest:
    """The result of a conversion, as kept beside the model.

    Attributes:
        refused: why the model must not run converted; empty when it may, and only then the rest says something.
        max_length: tokens of a text that the model sees, special tokens included.
        special_tokens: how many of them are special.
        agreement: the lowest cosine between converted and original vectors over the probes.
        files: SHA-256 of each file beside it, by name.
    """

    refused: str = ""
    dimensions: int = 0
    max_length: int = 0
    special_tokens: int = 0
    pad_id: int = 0
    agreement: float = 0.0
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_int8(self) -> bool:
        """Whether the model is there in int8, too."""
        return INT8_MODEL in self.files

    def write(self, folder: Path) -> None:
        """Write the manifest as the last file of ``folder``."""
        whole = replace(
            self, files={path.name: _checksum(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST}
        )
        (folder / MANIFEST).write_text(json.dumps(asdict(whole), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> ConversionManifest | None:
        """Read the manifest; ``None`` if the folder is missing, incomplete or has a changed file."""
        try:
            manifest = cls(**json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
            is_whole = all(_checksum(folder / name) == expected for name, expected in manifest.files.items())
        except (OSError, ValueError, TypeError, AttributeError):
            return None
        return manifest if is_whole and (manifest.refused or MODEL in manifest.files) else None


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def machine_cache(fallback: Path) -> Path:
    """Return the folder of converted models of this user on this machine; ``fallback`` where it cannot be written.

    It is ``$XDG_CACHE_HOME/nornweave/models``, or below ``~/.cache``.
    """
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = home / "nornweave" / "models"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        return fallback
    return folder if os.access(folder, os.W_OK | os.X_OK) else fallback


def converted(model: ModelFolder, cache_dir: Path, *, deadline: float = DEADLINE) -> tuple[Path, ConversionManifest]:
    """Return the folder of the converted model, converting it first if need be.

    Raises:
        FastPathRefusedError: it cannot be converted, or came out different. Lasting reasons are remembered.
        EncoderError: ``cache_dir`` cannot be written.
    """
    key = digest(model.digest, CONVERTER, recipe_version(), version("openvino"))
    folder = cache_dir / f"{re.sub(r'[^A-Za-z0-9]+', '-', model.name).strip('-')[:60]}-{key[:16]}"
    try:
        manifest = ConversionManifest.read(folder) or _convert(model, folder, deadline)
    except OSError as error:
        raise EncoderError(
            f"the converted model {model.name!r} cannot be kept in {str(cache_dir)!r} ({error}); "
            "make the folder writable, or set data_dir to one that is"
        ) from error
    if manifest.refused:
        raise FastPathRefusedError(manifest.refused)
    return folder, manifest


def _convert(model: ModelFolder, folder: Path, deadline: float) -> ConversionManifest:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _turn(folder):
        return ConversionManifest.read(folder) or _convert_now(model, folder, deadline)


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Wait while another process converts the same model, which spares work; two at once would do no harm."""
    lock = folder.parent / f".{folder.name}.lock"
    with held(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _convert_now(model: ModelFolder, folder: Path, deadline: float) -> ConversionManifest:
    _sweep(folder.parent)
    log.info("converting model %s for OpenVINO, once", model.name)
    building = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
    try:
        _run_converter(model.path, building, deadline)
        manifest = ConversionManifest.read(building)
        if manifest is None:
            raise FastPathRefusedError("the converter left no whole model behind")
        _publish(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return manifest


def _run_converter(source: Path, target: Path, deadline: float) -> None:
    package_root = str(Path(__file__).parents[3])
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH"))))
    }
    command = [sys.executable, "-P", "-m", CONVERT, str(source.resolve()), str(target)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=deadline, check=False)
    except subprocess.TimeoutExpired as error:
        raise FastPathRefusedError(f"conversion took more than {deadline:g} s") from error
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
        raise FastPathRefusedError(f"conversion ended with status {done.returncode}: {last[0]}")


def _publish(building: Path, folder: Path) -> None:
    for path in building.iterdir():
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
    if folder.exists() and ConversionManifest.read(folder) is None:
        # Torn by a crash of the machine; a process that has it open keeps its files.
        folder.rename(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
    try:
        building.rename(folder)
    except OSError:
        if ConversionManifest.read(folder) is None:
            raise
        # Another process was faster; its conversion is as good.


def _sweep(cache_dir: Path) -> None:
    """Remove what killed converters left behind."""
    for path in cache_dir.glob(f"{UNFINISHED}*"):
        if path.stat().st_mtime < time.time() - 2 * DEADLINE:
            shutil.rmtree(path, ignore_errors=True)
