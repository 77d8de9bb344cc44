"""Working files of older versions: brought up to this one, without asking a model again."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from support import MemorySource, memory_parts, sync

from nornweave.config import Bm25Settings, FieldWeights
from nornweave.index.index import Index
from nornweave.index.writing.working_file import MIGRATIONS, SCHEMA
from nornweave.ingest.records import DomainParts

# What made the newest schema of the one before, undone.
BACK = {
    "9": "alter table published drop column segment",
    "7": "alter table documents drop column access",
    "8": "alter table embeddings drop column tokens",
    "6": "alter table not_stored drop column content_hash",
    "5": """
        alter table chunks drop column facts;
        alter table chunks drop column fact_keys;
        alter table chunks add column claims varchar;
        """,
    "4": """
        update chunks set in_content = list_transform(
          range(1, len(terms) + 1),
          lambda place: in_path[place] + in_title[place] + in_section[place] + in_content[place]
        );
        alter table chunks rename column in_content to frequencies;
        alter table chunks drop column in_path;
        alter table chunks drop column in_title;
        alter table chunks drop column in_section;
        """,
    "3": "alter table chunks drop column claims",
}


def opened(parts: DomainParts) -> Index:
    return parts.store.files.open(parts.store.current())


@pytest.mark.parametrize("schema", ["2", "3", "4", "5", "6", "7", "8"])
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
        if int(schema) < 4:  # until its document is read again, what a chunk holds counts as content
            assert generation.sparse({"a": 1.0}, bm25=Bm25Settings(fields=FieldWeights(path=0)))[0] > 0
    # "d" and "moose" make the average shorter; where nothing stands nothing is found, as before.
    assert (after[:3] > 0).tolist() == (before > 0).tolist()
    np.testing.assert_allclose(after[:3], before, rtol=0.2)


def test_every_older_schema_leads_to_this_one() -> None:
    for schema in MIGRATIONS:
        steps = 0
        while schema != SCHEMA:
            schema, _ = MIGRATIONS[schema]
            steps += 1
            assert steps <= len(MIGRATIONS)
