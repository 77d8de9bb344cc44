"""A model converted for OpenVINO, kept in a folder: made once by a subprocess, published by a rename.

::

    <cache_dir>/<model>-<key>/   model.xml model.bin tokenizer.json manifest.json
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from nornweave.embedding.models import ModelFolder
from nornweave.errors import EncoderError
from nornweave.types import digest

log = logging.getLogger(__name__)

CONVERTER = "1"
"""Part of the key: raise it when a conversion comes out differently."""
ENCODERS = "nornweave.embedding.convert"
DEADLINE = 900.0
"""Seconds for one conversion; 15 for a model of 90 MB on two cores."""
UNFINISHED = ".converting-"
MODEL, WEIGHTS, TOKENIZER, MANIFEST = "model.xml", "model.bin", "tokenizer.json", "manifest.json"


class FastPathRefusedError(Exception):
    """A model cannot be converted faithfully; sentence-transformers has to run it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the converter found out about a model.

    Attributes:
        refused: why the model must not run converted; empty when it may, and only then the rest says something.
        max_length: tokens of a text that the model sees, special tokens included.
        special_tokens: how many of them are special.
        agreement: the lowest cosine between converted and original vectors over the probes.
        weights_size: bytes of ``model.bin``.
    """

    refused: str = ""
    dimensions: int = 0
    max_length: int = 0
    special_tokens: int = 0
    pad_id: int = 0
    agreement: float = 0.0
    weights_size: int = 0

    def write(self, folder: Path) -> None:
        """Write it as the last file of ``folder``."""
        (folder / MANIFEST).write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """Read it; ``None`` when the folder is not there or not whole."""
        try:
            manifest = cls(**json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
            whole = bool(manifest.refused) or (folder / WEIGHTS).stat().st_size == manifest.weights_size
        except (OSError, ValueError, TypeError):
            return None
        return manifest if whole else None


def converted(
    model: ModelFolder, cache_dir: Path, *, converter: str = ENCODERS, deadline: float = DEADLINE
) -> tuple[Path, Manifest]:
    """Return the folder of the converted model, converting it first if need be.

    Args:
        converter: the module that converts models of this kind, run as ``python -m``.

    Raises:
        FastPathRefusedError: it cannot be converted, or came out different. Lasting reasons are remembered.
        EncoderError: ``cache_dir`` cannot be written.
    """
    key = digest(
        model.digest,
        converter,
        CONVERTER,
        version("openvino"),
        version("sentence-transformers"),
        version("transformers"),
    )
    folder = cache_dir / f"{re.sub(r'[^A-Za-z0-9]+', '-', model.name).strip('-')[:60]}-{key[:16]}"
    try:
        manifest = Manifest.read(folder) or _convert(model, folder, converter, deadline)
    except OSError as error:
        raise EncoderError(
            f"the converted model {model.name!r} cannot be kept in {str(cache_dir)!r} ({error}); "
            "make the folder writable, or set data_dir to one that is"
        ) from error
    if manifest.refused:
        raise FastPathRefusedError(manifest.refused)
    return folder, manifest


def _convert(model: ModelFolder, folder: Path, converter: str, deadline: float) -> Manifest:
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder.parent)
    log.info("converting model %s for OpenVINO, once", model.name)
    building = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
    try:
        _run_converter(converter, model.path, building, deadline)
        manifest = Manifest.read(building)
        if manifest is None:
            raise FastPathRefusedError("the converter left no whole model behind")
        _publish(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return manifest


def _run_converter(converter: str, source: Path, target: Path, deadline: float) -> None:
    package_root = str(Path(__file__).parents[2])
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH")))),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    command = [sys.executable, "-P", "-m", converter, str(source.resolve()), str(target)]
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
    if folder.exists() and Manifest.read(folder) is None:
        # Torn by a crash of the machine; a process that has it open keeps its files.
        folder.rename(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
    try:
        building.rename(folder)
    except OSError:
        if Manifest.read(folder) is None:
            raise
        # Another process was faster; its conversion is as good.


def _sweep(cache_dir: Path) -> None:
    """Remove what killed converters left behind."""
    for path in cache_dir.glob(f"{UNFINISHED}*"):
        if path.stat().st_mtime < time.time() - 2 * DEADLINE:
            shutil.rmtree(path, ignore_errors=True)
