"""The default model in processes without PyTorch."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


@pytest.fixture(scope="session")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of processes where torch is not installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "sitecustomize.py").write_text(WITHOUT_TORCH)
    return {**os.environ, "PYTHONPATH": f"{site}:{ROOT}"}
