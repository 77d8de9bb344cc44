"""A generation of several times the size: every chunk as many times, its vector moved a little."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from nornweave.settings import StorageSettings, load_settings
from nornweave.store.build import index_vectors
from nornweave.store.connection import Connection, attach, connect_memory, quote
from nornweave.types import Domain, GenerationId
from nornweave.wiring import store_of

# Of a vector's length: copies are neighbours, as chunks of a real corpus are.
_NOISE = 0.5
_NUMBERED = ("postings", "lengths", "pairs", "chunk_names", "cards", "facets", "moments")
_ORDER = {
    "postings": "term_id, chunk_no",
    "lengths": "chunk_no",
    "pairs": "pair, chunk_no",
    "chunk_names": "name_id, chunk_no",
}


def build_large(config: Path, work: Path, copies: int) -> Path:
    """Build a workspace whose code domain holds the chunks of another one ``copies`` times, with an HNSW index.

    Args:
        config: of the workspace that is multiplied.
        work: where the new one goes; what is there already is used.
        copies: how many times.

    Returns:
        The new workspace's configuration file.
    """
    target = work / "nornweave.yaml"
    if target.exists():
        return target
    settings = load_settings(config)
    store = store_of(settings, Domain.CODE)
    current = store.current()
    if current is None:
        raise RuntimeError(f"{config}: nothing is published")
    work.mkdir(parents=True, exist_ok=True)
    (work / "var").mkdir(exist_ok=True)
    source = {"id": "copies", "domain": "code", "type": "files", "path": "."}
    configured = json.dumps({"data_dir": "./var", "sources": [source]})
    draft = work / "draft.yaml"
    draft.write_text(configured, encoding="utf-8")
    files = store_of(load_settings(draft), Domain.CODE).files
    files.folder.mkdir(parents=True, exist_ok=True)
    name = GenerationId("gen-000001")
    _multiply(store.files.path(current), files.build_path(name), copies)
    files.publish(name)
    draft.rename(target)
    return target


def _multiply(source: Path, target: Path, copies: int) -> None:
    connection = connect_memory("4GB", spill=target.parent)
    connection.execute(f"attach {quote(str(source))} as source (read_only)")
    attach(connection, target, "generation")
    size, documents = (_count(connection, table) for table in ("chunks", "documents"))
    connection.execute("create table generation.terms as from source.terms")
    connection.execute("create table generation.facet_values as from source.facet_values")
    connection.execute("create table generation.names as from source.names")
    connection.execute(f"update generation.terms set document_frequency = document_frequency * {copies:d}")
    connection.execute(f"update generation.names set chunk_count = chunk_count * {copies:d}")
    connection.execute(
        f"""
        create table generation.chunks as
        select c.* replace (
          (chunk_no + copy * {size:d})::integer as chunk_no,
          (document_no + copy * {documents:d})::integer as document_no
        )
        from source.chunks c, range({copies:d}) copies (copy)
        order by chunk_no
        """
    )
    connection.execute(
        f"""
        create table generation.documents as
        select d.* replace ((document_no + copy * {documents:d})::integer as document_no)
        from source.documents d, range({copies:d}) copies (copy)
        order by document_no
        """
    )
    for table in _NUMBERED:
        connection.execute(
            f"""
            create table generation.{table} as
            select t.* replace ((chunk_no + copy * {size:d})::integer as chunk_no)
            from source.{table} t, range({copies:d}) copies (copy)
            order by {_ORDER.get(table, "chunk_no")}
            """
        )
    # The copies are other chunks; what they are called stands in what is shown of them.
    connection.execute(
        f"""
        update generation.cards
        set card = replace(card, '{{"chunk_id":"', '{{"chunk_id":"' || (chunk_no // {size:d}) || '-')
        """
    )
    _copy_vectors(connection, size, copies)
    index_vectors(connection, StorageSettings())
    connection.execute("create table generation.meta as from source.meta")
    connection.execute("update generation.meta set value = 'hnsw' where key = 'built_with'")
    connection.execute("checkpoint generation")
    connection.close()


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(f"select count(*) from source.{table}").fetchall()[0][0])


def _copy_vectors(connection: Connection, size: int, copies: int) -> None:
    """Copy each vector, moved at random but in the first copy, and at length 1 again."""
    rows = connection.execute("select vector from source.vectors order by chunk_no").to_arrow_table()
    vectors = rows.column("vector").combine_chunks().flatten().to_numpy().reshape(size, -1)
    dimensions = vectors.shape[1]
    connection.execute(f"create table generation.vectors (chunk_no integer, vector float[{dimensions:d}])")
    generator = np.random.default_rng(7)
    for copy in range(copies):
        noise = generator.standard_normal(vectors.shape, np.float32) * (_NOISE / np.sqrt(dimensions)) if copy else 0
        moved = (vectors + noise).astype(np.float32)
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        numbers = np.arange(copy * size, (copy + 1) * size, dtype=np.int32)
        table = pa.table(
            {"chunk_no": numbers, "vector": pa.FixedSizeListArray.from_arrays(moved.reshape(-1), dimensions)}
        )
        connection.register("moved", table)
        connection.execute("insert into generation.vectors select * from moved")
        connection.unregister("moved")
