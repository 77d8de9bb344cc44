"""The manifest of a generation: its segments, their contents, and which of their documents are gone.

``gen-000012.json`` names segments. A segment never changes: a document that was replaced or removed since stays in it
and is gone for whoever reads the generation.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nornweave.core.errors import StoreError
from nornweave.core.types import GenerationId
from nornweave.index.port import GenerationCounts, Mask
from nornweave.index.query_map import QueryMap
from nornweave.index.searching.inverted import NO_LENGTHS

MOST_SEGMENTS = 1_000


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SegmentFile(_Record):
    """One file of a generation.

    Attributes:
        name: the file name in the generations' folder; for a candidate's new files, the final name.
        checksum: size and CRC-32, as in the checksum file beside it.
        terms: the number of terms of all chunks together, in each field.
        gone: which documents are gone, as one bit per document, compressed; empty if all documents exist.
        gone_documents, gone_chunks: the number of these documents, and of their chunks.
    """

    name: str = Field(pattern=r"^gen-\d{6,}-\d{3}\.duckdb$")
    checksum: str = Field(pattern=r"^\d+ [0-9a-f]{8}$")
    documents: int = Field(ge=0)
    chunks: int = Field(ge=0)
    vectors: int = Field(ge=0)
    indexed_chunks: int = Field(ge=0)
    orphans: int = Field(ge=0)
    terms: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        min_length=len(NO_LENGTHS.terms), max_length=len(NO_LENGTHS.terms)
    )
    gone: str = ""
    gone_documents: int = Field(0, ge=0)
    gone_chunks: int = Field(0, ge=0)

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return int(self.checksum.split()[0])

    def without(self, numbers: Sequence[int], chunks: int) -> SegmentFile:
        """Return the segment with more documents marked as gone. ``chunks`` is the number of their chunks."""
        mask = np.zeros(self.documents, np.bool_)
        mask[list(numbers)] = True
        bits = base64.b64encode(zlib.compress(np.packbits(mask).tobytes())).decode() if len(numbers) else ""
        return self.model_copy(update={"gone": bits, "gone_documents": len(numbers), "gone_chunks": chunks})

    def live(self) -> Mask | None:
        """Return a mask of the documents that are not gone, by document number; ``None`` if none is gone.

        Raises:
            StoreError: ``gone`` is damaged.
        """
        if not self.gone:
            return None
        try:
            bits = np.frombuffer(zlib.decompress(base64.b64decode(self.gone, validate=True)), np.uint8)
            return ~np.unpackbits(bits, count=self.documents).astype(np.bool_)
        except (ValueError, zlib.error) as error:
            raise StoreError(f"{self.name}: which documents are gone cannot be read: {error}; roll back") from error

    def gone_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the gone documents.

        Raises:
            StoreError: ``gone`` is damaged.
        """
        live = self.live()
        return () if live is None else tuple(np.flatnonzero(~live).tolist())


class Manifest(_Record):
    """The files of one generation, oldest first, and its query map."""

    generation: str = Field(pattern=r"^gen-\d{6,}$")
    built_at: str
    segments: tuple[SegmentFile, ...] = Field(min_length=1, max_length=MOST_SEGMENTS)
    query_map: QueryMap | None = None

    @property
    def counts(self) -> GenerationCounts:
        """Return the sums over all segments, without gone documents.

        Every chunk counts as having a vector and terms, because a segment without them is never published.
        """
        gone = sum(segment.gone_chunks for segment in self.segments)
        return GenerationCounts(
            documents=sum(segment.documents - segment.gone_documents for segment in self.segments),
            chunks=sum(segment.chunks for segment in self.segments) - gone,
            vectors=sum(segment.vectors for segment in self.segments) - gone,
            indexed_chunks=sum(segment.indexed_chunks for segment in self.segments) - gone,
            orphans=sum(segment.orphans for segment in self.segments),
        )

    def to_json(self) -> str:
        """Return the stored form. If there is no query map, versions that know no query maps can read it, too."""
        return self.model_dump_json(exclude=None if self.query_map else {"query_map"})


def read_manifest(file: Path) -> Manifest:
    """Return the manifest in a file.

    Raises:
        StoreError: the file cannot be read, or is not a manifest.
    """
    try:
        return Manifest.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise StoreError(f"{file}: cannot be read ({error}); roll back, or sync again") from error


def named(generation: GenerationId, number: int) -> str:
    """Return the name of a segment's file: ``("gen-000012", 3) → "gen-000012-003.duckdb"``."""
    return f"{generation}-{number:03d}.duckdb"
