"""Find the packages ``api``, ``evals`` and ``orchestration`` for NornWeave's own processes only.

In a checkout they lie beside ``nornweave``. A wheel carries them inside it, since names like these belong to the user's
own programs, in the environment as in the working directory. They come first on the path of this program, which never
imports from the working directory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path


def bundled_folder() -> Path:
    """Return the folder that holds the packages."""
    package = Path(__file__).resolve().parents[2]
    inside = package / "_bundled"
    return inside if inside.is_dir() else package.parent


def use_bundled_packages(environment: MutableMapping[str, str] | None = None) -> None:
    """Let this process and the Python programs that it starts import the packages, wherever they run.

    Args:
        environment: what the programs inherit; ``os.environ`` unless given.
    """
    environment = os.environ if environment is None else environment
    folder = str(bundled_folder())
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path != folder]
    environment["PYTHONPATH"] = os.pathsep.join([folder, *paths])
    environment["PYTHONSAFEPATH"] = "1"  # python -m: without the working directory
    sys.path[:] = [folder, *(path for path in sys.path if path != folder)]
