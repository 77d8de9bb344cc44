"""Say what to install where an optional package is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nornweave.core.errors import ConfigError


@contextmanager
def workers_extra() -> Iterator[None]:
    """Translate the import error of a package of the extra ``workers``.

    Raises:
        ConfigError: the package is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"workers: needs the package {error.name!r}, which is not installed: pip install 'nornweave[workers]'"
        ) from error
