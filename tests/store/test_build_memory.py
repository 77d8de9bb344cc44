"""Building a generation holds no whole column of texts in memory."""

from pathlib import Path

import pytest

from nornweave.config import StorageSettings
from nornweave.core.types import ContentHash, Document, Domain, SourceId, document_id
from nornweave.index import connection
from nornweave.index.corpus import DuckDBStore
from nornweave.index.port import Batch, StoredDocument
from nornweave.index.writing import build

LITTLE = "64MB"


def store_of(folder: Path, documents: int, characters: int) -> DuckDBStore:
    """Return a store whose working file holds so many documents of so many characters, none of them in chunks."""
    store = DuckDBStore(folder, StorageSettings(), dimensions=16)
    stored = tuple(
        StoredDocument(
            document=Document(
                id=document_id("memory", f"{number}.txt"),
                domain=Domain.DOCUMENTATION,
                source_id=SourceId("memory"),
                path=f"{number}.txt",
                text=f"document {number}" + " " * characters,
                format="text",
                content_hash=ContentHash(f"{number}"),
            ),
            gate="",
            pipeline="",
            chunks=(),
        )
        for number in range(documents)
    )
    with store.writer() as writer:
        writer.apply(Batch(stored=stored))
    return store


@pytest.mark.slow
@pytest.mark.parametrize(("documents", "characters", "many", "large", "tries"), [
    (16_384, 5_000, build._MANY, "4GB", 1),  # 82 MB, which DuckDB reads 2,048 rows at a time
    (160, 500_000, build._MANY, "4GB", 2),  # 80 MB, which it reads at once
    (160, 500_000, -1, "4GB", 1),  # a large build has more from the start
    (160, 500_000, build._MANY, LITTLE, 3),  # most of the machine's memory is left
])  # fmt: skip
def test_texts_larger_than_the_writers_memory_are_built(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    documents: int,
    characters: int,
    many: int,
    large: str,
    tries: int,
) -> None:
    store = store_of(tmp_path, documents, characters)
    for module in (connection, build):
        monkeypatch.setattr(module, "WRITER_MEMORY", LITTLE)
    monkeypatch.setattr(build, "_MANY", many)
    monkeypatch.setattr(build, "LARGE_MEMORY", large)
    with store.writer() as writer:
        candidate = writer.build("test", {})
    assert candidate.counts.documents == documents
    assert candidate.size_bytes > 64_000_000
    assert caplog.text.count("building with") == tries - 1
