"""Claims as the store keeps them, and all claims of a generation, for the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from nornweave.claims.located import LocatedClaim
from nornweave.errors import StoreError
from nornweave.store.connection import connect_reader
from nornweave.types import ChunkId, Claim, Span

# Rows that are read at a time: some 10 MB.
_WINDOW = 16_384


def encode_claims(claims: Sequence[Claim]) -> str | None:
    """Write claims as JSON; ``None`` for none, which is most chunks."""
    if not claims:
        return None
    rows = [
        {
            "kind": claim.kind,
            "entity": claim.entity,
            "attribute": claim.attribute,
            "value": claim.value,
            "unit": claim.unit,
            "first": claim.span.start,
            "last": claim.span.end,
            "statement": claim.statement,
            "topics": list(claim.topics),
            "mood": claim.mood,
        }
        for claim in claims
    ]
    return json.dumps(rows, ensure_ascii=False)


def decode_claims(rows: Sequence[Mapping[str, Any]] | None) -> tuple[Claim, ...]:
    """Return the claims of ``encode_claims``, read as JSON."""
    return tuple(
        Claim(
            kind=row["kind"],
            entity=row["entity"],
            attribute=row["attribute"],
            value=row["value"],
            unit=row["unit"],
            span=Span(row["first"], row["last"]),
            statement=row["statement"],
            topics=tuple(row["topics"]),
            mood=row["mood"],
        )
        for row in rows or ()
    )


def read_claims(file: Path) -> Iterator[LocatedClaim]:
    """Yield every claim of a generation file, by document and place, without loading the rest of it.

    Raises:
        StoreError: the file is missing, damaged or older than claims.
    """
    if not file.is_file():
        raise StoreError(f"{file}: no such generation")
    connection = connect_reader(file)
    try:
        rows = connection.execute(
            """
            select c.chunk_id, c.claims, d.source_id, d.path, c.line_start, c.line_end, c.page, len(c.message_ids),
              d.updated_at
            from chunks c
            join documents d using (document_no)
            where c.claims is not null
            order by c.chunk_no
            """
        )
        while window := rows.fetchmany(_WINDOW):
            for chunk_id, claims, source_id, path, first, last, page, messages, updated_at in window:
                lines = None if page or messages else (first, last)
                for claim in decode_claims(json.loads(claims)):
                    yield LocatedClaim(
                        claim=claim,
                        chunk_id=ChunkId(chunk_id),
                        source_id=source_id,
                        path=path,
                        line_range=lines,
                        updated_at=updated_at,
                    )
    except duckdb.Error as error:
        raise StoreError(f"{file}: its claims cannot be read ({error}); run `nornweave sync`") from error
    finally:
        connection.close()
