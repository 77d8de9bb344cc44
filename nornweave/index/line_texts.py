"""Read single lines of stored documents without loading the documents."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from nornweave.index.generation_file import read_rows


def read_lines(file: Path, places: Collection[tuple[str, str, int]]) -> dict[tuple[str, str, int], str]:
    """Return lines of the documents of a generation.

    Args:
        file: of a generation.
        places: source, path and line, from 1.

    Returns:
        By place, without their ends; what the generation does not have is left out.

    Raises:
        StoreError: the generation cannot be read.
    """
    rows = read_rows(
        file,
        """
        with wanted as (
          select distinct unnest($sources) as source_id, unnest($paths) as path, unnest($lines) as line
        )
        select source_id, path, line, string_split(d."text", chr(10))[line]
        from wanted
        join documents d using (source_id, path)
        """,
        {
            "sources": [source_id for source_id, _, _ in places],
            "paths": [path for _, path, _ in places],
            "lines": [line for _, _, line in places],
        },
    )
    return {
        (source_id, path, line): text.removesuffix("\r") for source_id, path, line, text in rows if text is not None
    }
