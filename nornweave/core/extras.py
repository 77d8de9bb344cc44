"""Name the extra to install where an optional package is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nornweave.core.errors import ConfigError, NornWeaveError


def missing_package(purpose: str, package: str, extra: str) -> str:
    """Return the message for a missing package: what needs it, and what to install."""
    return f"{purpose}: needs the package {package!r}, which is not installed: pip install 'nornweave[{extra}]'"


@contextmanager
def optional(extra: str, purpose: str, error_class: type[NornWeaveError] = ConfigError) -> Iterator[None]:
    """Translate the import error of a package of an extra.

    Args:
        extra: of ``pyproject.toml``.
        purpose: what needs the package, for people.
        error_class: what is raised.

    Raises:
        NornWeaveError: of ``error_class``, the package is not installed.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        raise error_class(missing_package(purpose, package, extra)) from error
