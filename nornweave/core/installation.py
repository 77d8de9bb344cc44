"""How NornWeave is installed: the extras of optional packages, and the folder of its own packages.

In a checkout ``api``, ``evals`` and ``orchestration`` lie beside ``nornweave``. A wheel carries them inside it, since
names like these belong to the user's own programs, in the environment as in the working directory. They come first on
the path of this program, which never imports from the working directory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from nornweave.core.errors import ConfigError, NornWeaveError

DISTRIBUTION = "nornweave-search"
"""The name that pip knows; ``nornweave`` on the public index is another project."""


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation."""
    return f"{installer()} '{DISTRIBUTION}[{extra}]'"


def installer() -> str:
    """Return the command that installs packages into this environment (pip, uv or pipx)."""
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return f"pipx runpip {DISTRIBUTION} install"
    # Environments made by uv have no pip, and that of another environment would install elsewhere.
    return "pip install" if find_spec("pip") else f"uv pip install --python {sys.executable}"


def missing_package(purpose: str, package: str, extra: str) -> str:
    """Return the message for a missing package. It says what needs the package, and how to install it."""
    return f"{purpose}: needs the package {package!r}, which is not installed: {install_command(extra)}"


@contextmanager
def optional(extra: str, purpose: str, error_class: type[NornWeaveError] = ConfigError) -> Iterator[None]:
    """Translate an ``ImportError`` of an optional package.

    Args:
        extra: the extra of ``pyproject.toml`` with the package.
        purpose: what needs the package, for the message.
        error_class: the error to raise.

    Raises:
        NornWeaveError: an ``error_class``, because the package is not installed.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        raise error_class(missing_package(purpose, package, extra)) from error


def bundled_folder() -> Path:
    """Return the folder that holds ``api``, ``evals`` and ``orchestration``."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "_bundled"
    return inside if inside.is_dir() else package.parent


def use_bundled_packages(environment: MutableMapping[str, str] | None = None) -> None:
    """Let this process and its Python child processes import the bundled packages.

    Args:
        environment: the environment that child processes inherit, by default ``os.environ``.
    """
    environment = os.environ if environment is None else environment
    folder = str(bundled_folder())
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path != folder]
    environment["PYTHONPATH"] = os.pathsep.join([folder, *paths])
    environment["PYTHONSAFEPATH"] = "1"  # python -m: without the working directory
    sys.path[:] = [folder, *(path for path in sys.path if path != folder)]
