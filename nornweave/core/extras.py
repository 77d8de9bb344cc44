"""Name the extra to install where an optional package is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
    """Return the command that installs into this environment, also where ``uv`` or ``pipx`` made it."""
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return f"pipx runpip {DISTRIBUTION} install"
    # Environments made by uv have no pip, and that of another environment would install elsewhere.
    return "pip install" if find_spec("pip") else f"uv pip install --python {sys.executable}"


def missing_package(purpose: str, package: str, extra: str) -> str:
    """Return the message for a missing package: what needs it, and what to install."""
    return f"{purpose}: needs the package {package!r}, which is not installed: {install_command(extra)}"


@contextmanager
def optional(extra: str, purpose: str, error_class: type[NornWeaveError] = ConfigError) -> Iterator[None]:
    """Translate the import error of a package of an extra.

    Args:
        extra: of ``pyproject.toml``.
        purpose: what needs the package, for people.

    Raises:
        NornWeaveError: of ``error_class``, the package is not installed.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        raise error_class(missing_package(purpose, package, extra)) from error
