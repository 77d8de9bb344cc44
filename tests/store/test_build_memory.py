"""Building a generation holds no whole column of texts in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import MemorySource, memory_parts, sync

from nornweave.store.generation import Generation

# More than a writer was allowed to hold when this failed (128 MB).
DOCUMENTS, CHARACTERS = 40, 4_000_000


@pytest.mark.slow
def test_texts_larger_than_the_writers_memory_are_published(tmp_path: Path) -> None:
    source = MemorySource()
    for number in range(DOCUMENTS):
        # Blank space is no chunk: what counts here is the size of the texts, not of their chunks.
        source.write(f"{number}.txt", f"document {number}" + " " * CHARACTERS)
    parts = memory_parts(tmp_path, source)
    sync(parts)
    current = parts.store.current()
    assert current is not None
    with Generation(parts.store.files.path(current)) as generation:
        assert (generation.document_count, generation.chunk_count) == (DOCUMENTS, DOCUMENTS)
