"""The vector index takes part in the query that is meant for it."""

from pathlib import Path

import pytest
from support import MemorySource, memory_parts, sync

from nornweave.config import StorageSettings
from nornweave.index.connection import connect_reader
from nornweave.index.corpus import DuckDBStore
from nornweave.index.searching.vectors import nearest_statement
from nornweave.ingest.records import DomainParts


@pytest.mark.vss
def test_the_index_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = MemorySource()
    for number in range(50):
        source.write(f"{number}.txt", f"text number {number}")
    memory = memory_parts(tmp_path, source)
    store = DuckDBStore(tmp_path, StorageSettings(vector_index="hnsw"), dimensions=memory.encoder.dimensions)
    parts = DomainParts(
        domain=memory.domain, sources=memory.sources, chunker=memory.chunker, encoder=memory.encoder, store=store
    )
    sync(parts)
    current = store.current()
    assert current is not None
    connection = connect_reader(store.files.data_files(current)[0].path, searches_vectors=True)
    vector = "[" + ",".join(["0.1"] * memory.encoder.dimensions) + "]"
    plan = connection.execute(f"explain {nearest_statement(memory.encoder.dimensions)}", [vector, 5]).fetchall()
    connection.close()
    assert "HNSW_INDEX_SCAN" in str(plan)
    with store.files.open(current):
        assert "its vector index is not used" not in caplog.text
