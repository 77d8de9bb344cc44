"""What a change costs in a large domain: 100 changed documents, then a year of days on which 50 of them change.

Chunks are made up (words by Zipf's law, random vectors) and stored without reading or encoding, which cost the same
whatever the index does. Everything after that is what a sync does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from nornweave.config import StorageSettings
from nornweave.core.types import Chunk, ContentHash, Document, Domain, SourceId, Span, digest, document_id
from nornweave.index.corpus import DuckDBStore, SegmentFill, joining
from nornweave.index.port import Batch, StoredDocument, Writer
from nornweave.index.records import IndexedChunk
from nornweave.index.writing.working_tables import open_working_file

DIMENSIONS = 384
CHUNKS = 3
DAYS, A_DAY, AT_ONCE = 365, 50, 100
_WORDS, _LENGTH, _BATCH = 200_000, 120, 1_000
_MADE = 20_000
"""Documents that are made up word by word; further ones are these once more, with turned vectors."""
FACTS = {"encoder": "random", "domain": "code", "access": "{}"}


def print_segments(work: Path, documents: int) -> None:
    """Print what publications cost, first of a year by its sizes alone; a corpus that is in ``work`` is used again."""
    random, console = np.random.default_rng(1), Console(width=140)
    console.print(_year(random, 60_000))
    store = DuckDBStore(work, StorageSettings(keep_generations=1), dimensions=DIMENSIONS)
    if not store.current():
        _change(store, range(min(documents, _MADE)), random, 0)
        for first in range(_MADE, documents, _MADE):
            _copy(work / "working.duckdb", first, min(_MADE, documents - first))
        console.print(f"{documents * CHUNKS:,} chunks: {_published(store, 'first')}")
    open_at, cpu = time.perf_counter(), time.process_time()
    with store.files.open(store.current() or "") as index:  # type: ignore[arg-type]
        took, cpu = time.perf_counter() - open_at, time.process_time() - cpu
        console.print(f"{index.size:,} chunks open in {took:.1f} s, processor {cpu:.2f} s")
        sizes = {"working.duckdb": (work / "working.duckdb").stat().st_size} | _sizes(_files(store))
        each = ", ".join(f"{kind} {size / index.size:,.0f}" for kind, size in sizes.items())
        console.print(f"bytes a chunk: {each}")
    for round_ in range(3):
        _change(store, _some(random, documents, AT_ONCE), random, round_ + 1)
        console.print(f"{AT_ONCE} changed documents: {_published(store, f'round {round_}')}")
    written = most = 0
    for day in range(DAYS):
        _change(store, _some(random, documents, A_DAY), random, 100 + day)
        before = _files(store)
        _published(store, f"day {day}")
        after = _files(store)
        written += sum(size for file, size in after.items() if file not in before)
        most = max(most, len(store.data_files(store.current() or "")))  # type: ignore[arg-type]
    current = store.current() or ""
    console.print(
        f"after {DAYS} days of {A_DAY} changed documents: {len(store.data_files(current))} segments (most: {most}) "  # type: ignore[arg-type]
        f"of {store.files.size_bytes(current):,} bytes, {written:,} bytes written"  # type: ignore[arg-type]
    )


def _year(random: np.random.Generator, documents: int) -> str:
    """Say what the choice of segments makes of a year of changes."""
    place, sizes, written, most = np.zeros(documents, np.int64), [documents], 0, 1
    for day in range(1, DAYS + 1):
        place[_some(random, documents, A_DAY)] = day
        live = np.bincount(place, minlength=day + 1)
        held = [SegmentFill(str(at), sizes[at] * CHUNKS, int(live[at]) * CHUNKS) for at in np.flatnonzero(live[:day])]
        for name in joining(held, int(live[day]) * CHUNKS):
            place[place == int(name)] = day
        sizes.append(int(np.count_nonzero(place == day)))
        written, most = written + sizes[day], max(most, len(np.unique(place)))
    stored = sum(sizes[at] for at in np.unique(place))
    return (
        f"{DAYS} days of {A_DAY} changed of {documents:,} documents: at most {most} segments, {stored / documents:.2f} "
        f"times the size of one, {written / DAYS / A_DAY:.1f} times what changed is written; "
        f"all days kept {1 + written / documents:.2f} times the size of one"
    )


def _some(random: np.random.Generator, documents: int, count: int) -> list[int]:
    return [int(number) for number in random.choice(documents, count, replace=False)]


def _published(store: DuckDBStore, run_id: str) -> str:
    """Publish what is stored; return what it took."""
    before, started, cpu = _files(store), time.perf_counter(), time.process_time()
    with store.writer() as writer:
        candidate = writer.build(run_id, FACTS)
        built = time.perf_counter()
        writer.publish(candidate)
    ended, cpu = time.perf_counter(), time.process_time() - cpu
    written = sum(size for file, size in _files(store).items() if file not in before)
    return (
        f"build {built - started:.2f} s, publish {ended - built:.2f} s, processor {cpu:.2f} s, "
        f"{written:,} bytes written, {candidate.size_bytes:,} in all"
    )


def _files(store: DuckDBStore) -> dict[Path, int]:
    return {file: file.stat().st_size for file in store.files.folder.glob("gen-*.duckdb*")}


def _sizes(files: Mapping[Path, int]) -> dict[str, int]:
    """Return how large files are, by what their names end with."""
    return {kind: sum(size for file, size in files.items() if file.suffix == kind) for kind in (".duckdb", ".arrays")}


def _change(store: DuckDBStore, numbers: Sequence[int], random: np.random.Generator, version: int) -> None:
    """Store documents, each with other words than before."""
    with store.writer() as writer:
        for start in range(0, len(numbers), _BATCH):
            stored = tuple(_stored(number, random, version) for number in numbers[start : start + _BATCH])
            writer.apply(Batch(stored=stored))
            _embed(writer, [chunk.embedding_key for one in stored for chunk in one.chunks], random)


def _copy(file: Path, first: int, count: int) -> None:
    """Store the first documents once more under other names, in SQL: that takes a tenth of the time."""
    paths = [(_path(number), _path(first + number)) for number in range(count)]
    copies = pa.table({  # noqa: F841 - DuckDB reads it by name
        "document_id": [document_id("made-up", path) for path, _ in paths],
        "copy_id": [document_id("made-up", path) for _, path in paths],
        "copy_path": [path for _, path in paths],
    })  # fmt: skip
    turned = f"vector[{first // _MADE + 1}:] || vector[:{first // _MADE}]"
    with open_working_file(file, DIMENSIONS) as connection:
        connection.execute(
            f"""
            insert into embeddings by name
              select md5(embedding_key || '{first}') as embedding_key, ({turned})::float[{DIMENSIONS}] as vector
              from embeddings semi join (select embedding_key from chunks join copies using (document_id))
                using (embedding_key);
            insert into chunks by name
              select c.* replace (copy_id as document_id, md5(chunk_id || '{first}') as chunk_id,
                md5(embedding_key || '{first}') as embedding_key)
              from chunks c join copies using (document_id);
            insert into documents by name
              select d.* replace (copy_id as document_id, copy_path as path)
              from documents d join copies using (document_id);
            """
        )


def _path(number: int) -> str:
    return f"folder-{number % 97}/{number:07d}.py"


def _embed(writer: Writer, keys: Sequence[str], random: np.random.Generator) -> None:
    vectors = random.standard_normal((len(keys), DIMENSIONS), np.float32)
    writer.add_vectors(keys, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _stored(number: int, random: np.random.Generator, version: int) -> StoredDocument:
    path, text = _path(number), f"version {version} of document {number}"
    document = Document(
        id=document_id("made-up", path), domain=Domain.CODE, source_id=SourceId("made-up"), path=path, text=text,
        format="python", content_hash=ContentHash(digest(text)),
    )  # fmt: skip
    chunks = tuple(_chunks(number, random, version))
    return StoredDocument(document=document, gate=str(version), pipeline="made up", chunks=chunks)


def _chunks(number: int, random: np.random.Generator, version: int) -> Iterator[IndexedChunk]:
    for place in range(CHUNKS):
        words = np.minimum(random.zipf(1.2, _LENGTH), _WORDS)
        distinct, counts = np.unique(words, return_counts=True)
        key = digest(f"{version} {number} {place}")
        yield IndexedChunk(
            chunk_id=key[:32],  # type: ignore[arg-type]
            chunk=Chunk(span=Span(0, 1), content=" ".join(f"word{word}" for word in words), token_count=_LENGTH),
            embedding_key=key,
            terms={f"word{word}": (0, 0, 0, int(count)) for word, count in zip(distinct, counts, strict=True)},
            lines=(1, 1),
            pairs=tuple(np.unique(words[1:] * 31 + words[:-1]).tolist()),
            keys=(f"path:{number}",),
        )
