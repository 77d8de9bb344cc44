"""The default model, converted once for all tests."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nornweave.models.encoders.conversion import ConversionManifest

ROOT = Path(__file__).parents[2]
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
# Python finds none of these packages in a process that starts with this.
WITHOUT_TORCH = """
import importlib.machinery
class Without(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = ("torch", "transformers", "sentence_transformers", "nncf", "onnx")
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)
import sys
sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Without
"""
ENCODE = f"""
import sys
from pathlib import Path
from nornweave.models.encoders import load_encoder
encoder = load_encoder({MODEL!r}, cache_dir=Path(sys.argv[1]), precision="int8")
print(encoder.version, float(encoder.encode_query("refund") @ encoder.encode(["refund"])[0]))
"""


@pytest.fixture(scope="session")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of processes where torch is not installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "sitecustomize.py").write_text(WITHOUT_TORCH)
    return {**os.environ, "PYTHONPATH": f"{site}:{ROOT}"}


@pytest.fixture(scope="session")
def converted_once(tmp_path_factory: pytest.TempPathFactory, without_torch: dict[str, str]) -> Path:
    """Return the folder of the converted model, which all workers of a run share: nobody may change it.

    It is made by two processes at once where torch is not installed.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "converted"
    folder.mkdir(exist_ok=True)
    with (folder.parent / "converted.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not bundles(folder):
            _convert(folder, without_torch)
    return folder


def _convert(folder: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", ENCODE, str(folder)]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [(process.communicate(timeout=240), process.returncode) for process in running]
    assert {(returncode, error) for (_, error), returncode in ended} == {(0, "")}
    printed = {output for (output, _), _ in ended}
    assert len(printed) == 1
    assert "+int8." in printed.pop()


def bundles(folder: Path) -> list[Path]:
    """Return the converted models in a folder."""
    return [path for path in folder.iterdir() if path.is_dir() and ConversionManifest.read(path)]
