"""Divide the working file of a domain into those of its shards, by document, or join them again.

``working.duckdb`` holds a domain of one shard; ``shards/004/002/working.duckdb`` is the third of four. Another number
moves what is stored: no document is read again, no text encoded again. The new files are made aside and take their
place in one rename; what they were made of is removed after it. A killed writer leaves one of both, whole.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import duckdb

from nornweave.core.errors import StoreError
from nornweave.index.connection import Connection, explain, quote
from nornweave.index.generation_file import lengths_in
from nornweave.index.manifest import MOST_SHARDS
from nornweave.index.publish import GenerationFiles
from nornweave.index.working_file import open_working_file

log = logging.getLogger(__name__)

WORKING_FILE = "working.duckdb"
_SHARDS, _ASIDE = "shards", ".partition"
# ``auto`` divides a domain into shards of so many chunks, when they have grown to twice as many.
CHUNKS_PER_SHARD = 1_000_000


def working_files(folder: Path, count: int) -> list[Path]:
    """Return the working files of a domain that is divided into ``count`` shards."""
    if count == 1:
        return [folder / WORKING_FILE]
    return [_shards_folder(folder, count) / f"{number:03d}" / WORKING_FILE for number in range(count)]


def shard_count(folder: Path, files: GenerationFiles, wanted: int | Literal["auto"]) -> int:
    """Return how many shards a domain has; ``auto`` keeps the number that there is while they are not too large."""
    if wanted != "auto":
        return wanted
    count = next(iter(_counts(folder)), 1)
    chunks = published_chunks(files)
    if chunks <= 2 * CHUNKS_PER_SHARD * count:
        return count
    return min(-(-chunks // CHUNKS_PER_SHARD), MOST_SHARDS)


def published_chunks(files: GenerationFiles) -> int:
    """Count the chunks of the published generation; 0 when it cannot be read."""
    try:
        current = files.current()
        manifest = files.manifest(current) if current else None
        return manifest.counts.chunks if manifest else lengths_in(files.path(current)).chunks if current else 0
    except StoreError as error:
        log.warning("%s: how many chunks there are cannot be told: %s", files.folder, error)
        return 0


def partition(folder: Path, count: int, dimensions: int) -> None:
    """Bring the working files of a domain to this number of shards; the caller holds the domain's lock.

    Raises:
        StoreError: a file is damaged, or the disk is full; what there was stays.
    """
    aside = folder / _ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    before = [*([1] if (folder / WORKING_FILE).exists() else []), *_counts(folder)]
    others = [number for number in before if number != count]
    if others and count not in before:
        log.warning("%s: is divided into %d shards instead of %d", folder, count, others[0])
        sources = [file for file in working_files(folder, others[0]) if file.exists()]
        _divide(sources, working_files(aside, count), dimensions)
        _take_place(folder, aside, count)
    for number in others:
        _remove(folder, aside, number)


def _divide(sources: Sequence[Path], targets: Sequence[Path], dimensions: int) -> None:
    for source in sources:
        open_working_file(source, dimensions).close()  # brings it to this version's schema
    for number, target in enumerate(targets):
        target.parent.mkdir(parents=True, exist_ok=True)
        connection = open_working_file(target, dimensions)
        try:
            for source in sources:
                _copy(connection, source, number, len(targets))
        except duckdb.Error as error:
            raise StoreError(f"{target.name} cannot be divided, it stays: {explain(error)}") from error
        finally:
            connection.close()


def _copy(connection: Connection, source: Path, number: int, count: int) -> None:
    """Copy what belongs to a shard out of one file. Vectors that no chunk uses are left behind."""
    connection.execute(f"attach {quote(str(source))} as older (read_only)")
    for table in ("documents", "chunks", "not_stored", "published"):
        connection.execute(
            f"""
            insert into {table} by name
            select * from older.{table}
            where ('0x' || left(document_id, 8))::ubigint % ? = ?
            """,
            [count, number],
        )
    connection.execute(
        """
        insert into embeddings by name
        select * replace (null as orphaned_in)
        from older.embeddings
        where embedding_key in (select embedding_key from chunks)
        and embedding_key not in (select embedding_key from embeddings)
        """
    )
    if number == 0:
        connection.execute("insert into publications by name select * from older.publications")
    connection.execute("detach older")


def _take_place(folder: Path, aside: Path, count: int) -> None:
    if count == 1:
        _rename(aside / WORKING_FILE, folder / WORKING_FILE)
    else:
        _rename(_shards_folder(aside, count), _shards_folder(folder, count))


def _remove(folder: Path, aside: Path, count: int) -> None:
    if count == 1:
        for file in folder.glob(f"{WORKING_FILE}*"):
            file.unlink(missing_ok=True)
    else:  # in one rename: shards of which some are gone must not be taken for the domain
        _rename(_shards_folder(folder, count), _shards_folder(aside, count))
    shutil.rmtree(aside, ignore_errors=True)


def _rename(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    except OSError as error:
        raise StoreError(f"{source}: cannot be moved to {target}: {error}") from error


def _counts(folder: Path) -> list[int]:
    """Return the numbers of shards that there are working files for; more than one after a kill only."""
    shards = folder / _SHARDS
    return sorted(int(each.name) for each in shards.iterdir() if each.name.isdigit()) if shards.is_dir() else []


def _shards_folder(folder: Path, count: int) -> Path:
    return folder / _SHARDS / f"{count:03d}"
