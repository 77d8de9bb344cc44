"""The manifest of a generation: its segments, which of their documents are gone, and the map of query vectors.

``gen-000012.json`` names segments. A segment never changes: a document that was replaced or removed since stays in it
and is gone for whoever reads the generation.
"""

from __future__ import annotations

import base64
import json
import logging
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nornweave.core.errors import StoreError
from nornweave.core.files.writing import write_whole
from nornweave.core.types import GenerationId
from nornweave.index.port import GenerationCounts, Mask, Vectors
from nornweave.index.searching.inverted import NO_LENGTHS

log = logging.getLogger(__name__)

RANK = 32
"""Directions that a map changes; what is beyond them adds nothing to what answers."""


class QueryMap(BaseModel):
    """The map ``q → q + up · down · q`` of query vectors. The result is normalised.

    Attributes:
        encoder: the version of the encoder whose vectors it maps.
        shape: rank and dimensions.
        factors: ``down``, then the transpose of ``up``, in half precision, in base64.
        fitted_at: when it was learnt, as ISO 8601 in UTC.
        examples: the number of commits that it was learnt from.
        tested: the number of commits that tested maps learnt from older commits.
        before, after: the share of tested commits for which a changed file is among the first three results, without
            a map and with one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: str
    shape: tuple[Annotated[int, Field(ge=1, le=4096)], Annotated[int, Field(ge=1, le=16384)]]
    factors: str
    fitted_at: str
    examples: int = Field(ge=0)
    tested: int = Field(0, ge=0)
    before: float = Field(0, ge=0, le=1)
    after: float = Field(0, ge=0, le=1)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if len(base64.b64decode(self.factors, validate=True)) != 4 * self.shape[0] * self.shape[1]:
            raise ValueError("the factors of the query map are of another shape")
        if not np.isfinite(_numbers(self.factors, self.shape)).all():
            raise ValueError("the factors of the query map are no numbers")
        return self

    def apply(self, vector: Vectors) -> Vectors:
        """Return the map's result for a normalised query vector, normalised again."""
        down, up = _numbers(self.factors, self.shape)
        mapped = vector + (down @ vector) @ up
        length = np.linalg.norm(mapped)
        return np.asarray(mapped / length if length else vector, np.float32)


@lru_cache(maxsize=16)
def _numbers(factors: str, shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(factors), np.float16).astype(np.float32).reshape(2, *shape)


@dataclass(frozen=True, slots=True)
class QueryMapReport:
    """The result of learning a map.

    Attributes:
        reason: why the map is used or not used.
        at: when it was learnt, as ISO 8601 in UTC.
        gain: how much the share of questions with a hit among the first three rose; ``None`` if nothing was tested.
        interval: the 95 % interval of ``gain``.
        newest: when the newest example was made, as ISO 8601.
        generation: the generation that was published with the result; ``None`` if none was.
        learnt_at: when the map to use was learnt; empty if no map is used.
        query_map: the map to use. It is not stored in the file.
    """

    reason: str
    at: str
    examples: int = 0
    tested: int = 0
    gain: float | None = None
    interval: tuple[float, float] | None = None
    newest: str = ""
    generation: str | None = None
    learnt_at: str = ""
    query_map: QueryMap | None = None


NAME = "query_map.json"
TURNED_OFF = "the plan of the domain turns it off (`plan: {query_map: false}`)"


def write_report(folder: Path, report: QueryMapReport) -> None:
    """Replace the report of the last learning."""
    write_whole(folder / NAME, json.dumps(asdict(replace(report, query_map=None)), ensure_ascii=False))


def read_report(folder: Path) -> QueryMapReport | None:
    """Return the report that ``write_report`` stored; ``None`` if there is none."""
    try:
        return QueryMapReport(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        log.warning("%s: cannot be read: %s", folder / NAME, error)
        return None


def factors_of(change: NDArray[np.float64], rank: int = RANK) -> tuple[tuple[int, int], str]:
    """Return ``shape`` and ``factors`` of the matrix of a rank that is closest to ``change`` (Eckart & Young 1936)."""
    left, sizes, right = np.linalg.svd(change)
    rank = min(rank, len(sizes))
    roots = np.sqrt(sizes[:rank])
    factors = np.stack([roots[:, None] * right[:rank], (left[:, :rank] * roots).T])
    return (rank, len(change)), base64.b64encode(factors.astype(np.float16).tobytes()).decode("ascii")


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
