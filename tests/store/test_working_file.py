"""Working files of older versions: brought up to this one, without asking a model again."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from support import MemorySource, memory_parts, sync

from nornweave.index.index import Index
from nornweave.index.writing.working_tables import MIGRATIONS, SCHEMA
from nornweave.ingest.records import DomainParts

# What made the newest schema of the one before, undone.
BACK = {
    "10": "alter table chunks drop column settings",
    "9": "alter table published drop column segment",
    "8": "alter table embeddings drop column tokens",
}


def opened(parts: DomainParts) -> Index:
    return parts.store.files.open(parts.store.current())


@pytest.mark.parametrize("schema", ["7", "8", "9"])
def test_an_older_working_file_is_migrated_and_answers_as_before(tmp_path: Path, schema: str) -> None:
    source = MemorySource()
    for name, text in {"a": "cat cat dog", "b": "dog bird", "c": "bird bird bird fish"}.items():
        source.write(name, text)
    parts = memory_parts(tmp_path, source)
    sync(parts)
    with opened(parts) as generation:
        before = generation.sparse({"a": 1.0, "cat": 2.0, "bird": 1.0})
    with duckdb.connect(str(next(tmp_path.rglob("working.duckdb")))) as connection:
        for step in range(int(SCHEMA), int(schema), -1):
            connection.execute(BACK[str(step)])
        connection.execute("update meta set value = ? where key = 'schema'", [schema])
    source.write("d", "moose")
    assert sync(parts).published
    with opened(parts) as generation:
        after = generation.sparse({"a": 1.0, "cat": 2.0, "bird": 1.0})
    # "d" and "moose" make the average shorter; where nothing stands nothing is found, as before.
    assert (after[:3] > 0).tolist() == (before > 0).tolist()
    np.testing.assert_allclose(after[:3], before, rtol=0.2)


def test_a_file_that_no_step_leads_from_is_built_anew_from_the_sources(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = MemorySource()
    source.write("a", "cat")
    parts = memory_parts(tmp_path, source)
    sync(parts)
    with duckdb.connect(str(next(tmp_path.rglob("working.duckdb")))) as connection:
        connection.execute("update meta set value = '6' where key = 'schema'")
    assert "6" not in MIGRATIONS
    source.write("b", "dog")
    assert sync(parts).published
    assert f"has schema 6, this version needs {SCHEMA}: rebuilding it from the sources" in caplog.text
    with opened(parts) as generation:
        assert (generation.sparse({"cat": 1.0, "dog": 1.0}) > 0).tolist() == [True, True]
