"""The documents of a generation, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nornweave.index.connection import Connection
from nornweave.index.port import Mask, Numbers


@dataclass(frozen=True, slots=True)
class ServedDocument:
    """A document of a generation; ``size`` is that of its text in UTF-8, in bytes."""

    source_id: str
    path: str
    gate: str
    content_hash: str
    updated_at: str | None
    size: int
    chunks: int


def documents_after(
    connection: Connection, documents: Numbers, after: tuple[str, str], limit: int, within: Mask | None = None
) -> list[ServedDocument]:
    """Return the first documents after a place, by source and path.

    Args:
        connection: has the generation open.
        documents: the document of each chunk, by number.
        after: source id and path.
        limit: how many.
        within: only documents with such a chunk, and only such chunks are counted.

    Raises:
        duckdb.Error: the file is damaged.
    """
    count = int(documents[-1]) + 1 if len(documents) else 0
    chunks = np.bincount(documents if within is None else documents[within], minlength=count)
    visible = [] if within is None else np.flatnonzero(chunks).tolist()
    condition = "" if within is None else "and document_no in (select unnest(from_json(?, '[\"integer\"]')))"
    rows = connection.execute(
        f"""
        select
          document_no, source_id, path, gate, content_hash,
          strftime(updated_at, '%Y-%m-%dT%H:%M:%SZ'), strlen("text")
        from documents
        where (source_id > ? or (source_id = ? and path > ?)) {condition}
        order by source_id, path
        limit ?
        """,
        [after[0], *after, *([str(visible)] if condition else []), limit],
    ).fetchall()
    return [
        ServedDocument(source_id, path, gate, content_hash, moment, size, int(chunks[number]))
        for number, source_id, path, gate, content_hash, moment, size in rows
    ]
