"""Names of a generation's tables and of the advisory locks of a schema."""

from __future__ import annotations

import zlib

from nornweave.core.errors import StoreError
from nornweave.core.types import GenerationId
from nornweave.index.kept_generations import number_of


def lock_class(schema: str) -> int:
    """Return the first key of a schema's advisory locks: they are common to the whole database."""
    return zlib.crc32(f"nornweave/{schema}".encode()) - (1 << 31)


def name_of(number: int) -> GenerationId:
    """Return the name of a generation."""
    return GenerationId(f"gen-{number:06d}")


def prefix_of(generation: GenerationId) -> str:
    """Return what the names of a generation's tables begin with.

    Raises:
        StoreError: it is not the name of a generation.
    """
    try:
        return f"g{number_of(generation):06d}_"
    except ValueError as error:
        raise StoreError(f"{generation!r} is not a generation; expected a name such as 'gen-000001'") from error
