"""The manifest of a generation that several files hold: which ones, and what is in each.

``gen-000012.json`` names one file for each shard; a shard that did not change keeps the file of an older generation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nornweave.core.errors import StoreError
from nornweave.core.types import DocumentId, GenerationId
from nornweave.index.inverted import NO_LENGTHS, Lengths
from nornweave.index.port import GenerationCounts

MOST_SHARDS = 256
_HEX_DIGITS = 8


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ShardFile(_Record):
    """One file of a generation.

    Attributes:
        name: in the folder of the generations; of a candidate's new files, the one that they will have.
        checksum: size and CRC-32, as in the file beside it.
        terms: of all chunks together, in each field.
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

    @property
    def number(self) -> int:
        """Return the number of the generation that it was built for."""
        return int(self.name.split("-")[1])

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return int(self.checksum.split()[0])


class Manifest(_Record):
    """The files of one generation, by shard."""

    generation: str = Field(pattern=r"^gen-\d{6,}$")
    built_at: str
    shards: tuple[ShardFile, ...] = Field(min_length=1, max_length=MOST_SHARDS)

    @property
    def lengths(self) -> Lengths:
        """Return how many chunks there are in all shards, and how long they are."""
        return sum((Lengths(shard.chunks, shard.terms) for shard in self.shards), NO_LENGTHS)

    @property
    def counts(self) -> GenerationCounts:
        """Return the sizes of all shards together."""
        names = ("documents", "chunks", "vectors", "indexed_chunks", "orphans")
        return GenerationCounts(**{name: sum(getattr(shard, name) for shard in self.shards) for name in names})


def read_manifest(file: Path) -> Manifest:
    """Return a manifest.

    Raises:
        StoreError: it cannot be read, or it is not one.
    """
    try:
        return Manifest.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise StoreError(f"{file}: cannot be read ({error}); roll back, or sync again") from error


def shard_of(document: DocumentId, count: int) -> int:
    """Return the shard of a document, from 0: a stable hash, for its id is a digest of source and path."""
    return int(document[:_HEX_DIGITS], 16) % count


def named(generation: GenerationId, number: int) -> str:
    """Return the name of a shard's file."""
    return f"{generation}-{number:03d}.duckdb"
