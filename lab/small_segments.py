"""Divide small corpora into segments, as large ones are; publish a segment by itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from nornweave.core.types import FIELDS, GenerationId
from nornweave.index import corpus
from nornweave.index.generations.checksums import checksum_of
from nornweave.index.generations.kept import segment_build_path
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.manifest import Manifest, SegmentFile, named
from nornweave.index.searching.arrays import arrays_file
from nornweave.index.searching.generation_file import DataFile, read_rows
from nornweave.index.searching.inverted import Lengths


@contextmanager
def small_segments(largest: int = corpus.LARGEST, smallest: int = 0, worn: float = corpus.WORN_SHARE) -> Iterator[None]:
    """Divide and merge segments as if few chunks were many, until the block ends.

    Args:
        largest: most chunks of a segment.
        smallest: a domain of so few chunks is one segment.
        worn: share of a segment's chunks that may be gone before it is written anew.
    """
    before = corpus.LARGEST, corpus.SMALLEST, corpus.WORN_SHARE
    corpus.LARGEST, corpus.SMALLEST, corpus.WORN_SHARE = largest, smallest, worn
    try:
        yield
    finally:
        corpus.LARGEST, corpus.SMALLEST, corpus.WORN_SHARE = before


def lengths_in(file: DataFile) -> Lengths:
    """Return how many chunks there are in a file, and how many terms they hold together in each field."""
    columns = ", ".join(f"coalesce(sum(in_{field}), 0)" for field in FIELDS)
    query = f"select count(*), {columns} from lengths semi join chunks using (chunk_no)"  # noqa: S608 - constants
    ((chunks, *terms),) = read_rows(file, query)
    return Lengths(chunks, tuple(map(int, terms)))


def publish_copy(files: GenerationFiles, built: Path) -> GenerationId:
    """Publish a copy of a segment as a generation of its own, under the next name, as a writer does."""
    generation = files.next()
    copy = segment_build_path(files.folder, named(generation, 0))
    shutil.copyfile(built, copy)
    shutil.copyfile(arrays_file(built), arrays_file(copy))
    lengths = lengths_in(DataFile(copy))
    ((documents,),) = read_rows(DataFile(copy), "select count(*) from documents")
    segment = SegmentFile(
        name=named(generation, 0), checksum=checksum_of(copy), documents=documents, chunks=lengths.chunks,
        vectors=lengths.chunks, indexed_chunks=lengths.chunks, orphans=0, terms=lengths.terms,
    )  # fmt: skip
    manifest = Manifest(generation=generation, built_at=datetime.now(UTC).isoformat(), segments=(segment,))
    files.build_path(generation).write_text(manifest.model_dump_json(), encoding="utf-8")
    files.publish(generation)
    return generation
