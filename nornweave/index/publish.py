"""Generation files, and the pointer to the published one.

``.build-N.duckdb`` is being built; ``gen-N.duckdb`` is complete and never changes, its checksum lies beside it;
of a domain in shards it is ``gen-N.json``, a manifest, that names a file ``gen-M-SSS.duckdb`` for each shard;
``CURRENT`` names the one that readers open. Every step is a rename: a reader sees the old generation or the new one, a
killed writer leaves the pointer valid.
A generation never takes the name of another: DuckDB keeps an instance per path, so a reused name would serve old data.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from nornweave.core.access.rules import Statement
from nornweave.core.errors import NoGenerationError, StoreError
from nornweave.core.files.atomic_write import sync_path, write_whole
from nornweave.core.types import GenerationId
from nornweave.index.arrays import arrays_file, remove_arrays
from nornweave.index.checksums import check, checksum_file, write_checksum
from nornweave.index.generation import open_generation
from nornweave.index.generation_file import facts_of
from nornweave.index.index import Index
from nornweave.index.manifest import Manifest, read_manifest
from nornweave.index.sharded_index import open_shards
from nornweave.index.visibility import NO_STATEMENTS

log = logging.getLogger(__name__)

MANIFEST_SUFFIX = ".json"
_NAME = re.compile(r"gen-\d{6,}")
_COMPLETE = re.compile(r"^gen-(\d{6,})\.(?:duckdb|json)$")
_SHARD = re.compile(r"^gen-(\d{6,})-\d{3}\.duckdb$")


class GenerationFiles:
    """The generations of one domain, as files below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pointer = folder / "CURRENT"

    def current(self) -> GenerationId | None:
        """Return the published generation, or ``None`` when nothing was published."""
        try:
            name = self._pointer.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{self._pointer}: cannot be read: {error}") from error
        if not _NAME.fullmatch(name):
            raise StoreError(f"{self._pointer}: names {name!r}, expected a generation such as 'gen-000001'; roll back")
        return GenerationId(name)

    def published_at(self) -> float | None:
        """Return when the pointer was moved last, in seconds since 1970; ``None`` when nothing was published."""
        try:
            return self._pointer.stat().st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self._pointer}: cannot be read: {error}") from error

    def all(self) -> tuple[GenerationId, ...]:
        """Return the complete generations, oldest first."""
        if not self.folder.is_dir():
            return ()
        numbers = sorted(int(match[1]) for file in self.folder.iterdir() if (match := _COMPLETE.match(file.name)))
        return tuple(GenerationId(f"gen-{number:06d}") for number in numbers)

    def path(self, generation: GenerationId) -> Path:
        """Return the file of a complete generation, or its manifest."""
        return _file_or_manifest(self.folder / f"{generation}.duckdb")

    def of_candidate(self, candidate: GenerationId) -> GenerationFiles:
        """Return the generations as if a candidate was published."""
        return CandidateFiles(self.folder, candidate)

    def build_path(self, generation: GenerationId) -> Path:
        """Return the file that a generation is built in, or the manifest of several."""
        return _file_or_manifest(self.folder / f".build-{generation.removeprefix('gen-')}.duckdb")

    def manifest(self, generation: GenerationId) -> Manifest | None:
        """Return the manifest of a generation; ``None`` when one file holds it.

        Raises:
            StoreError: it cannot be read.
        """
        file = self.path(generation)
        return read_manifest(file) if file.suffix == MANIFEST_SUFFIX else None

    def data_files(self, generation: GenerationId) -> tuple[Path, ...]:
        """Return the DuckDB files of a generation, one for each shard.

        Raises:
            StoreError: its manifest cannot be read.
        """
        manifest = self.manifest(generation)
        if manifest is None:
            return (self.path(generation),)
        return tuple(self._data_file(shard.name) for shard in manifest.shards)

    def parts(self, generation: GenerationId) -> tuple[Path, ...]:
        """Return all files that a reader of a generation needs, the manifest first if there is one.

        Raises:
            StoreError: its manifest cannot be read.
        """
        return tuple(dict.fromkeys((self.path(generation), *self.data_files(generation))))

    def size_bytes(self, generation: GenerationId) -> int:
        """Return the size of a generation; what is missing has none."""
        return sum(file.stat().st_size for file in self.parts(generation) if file.is_file())

    def open(self, generation: GenerationId, statements: Mapping[str, Statement] = NO_STATEMENTS) -> Index:
        """Open a generation for reading.

        Args:
            generation: to open.
            statements: what the configuration says now about who may see each source, beside what the generation says.

        Raises:
            StoreError: it is missing, damaged or of another schema.
        """
        manifest = self.manifest(generation)
        if manifest is None:
            return open_generation(self.path(generation), statements)
        return open_shards(self.path(generation), self.data_files(generation), manifest, statements)

    def facts(self, generation: GenerationId) -> Mapping[str, str]:
        """Return the metadata of a generation without loading it.

        Raises:
            StoreError: it cannot be read.
        """
        manifest = self.manifest(generation)
        facts = facts_of(self.data_files(generation)[0])
        if manifest is None:
            return facts
        return {**facts, "generation": manifest.generation, "built_at": manifest.built_at}

    def check(self, generation: GenerationId) -> None:
        """Compare the files of a generation with what was published.

        Raises:
            StoreError: one is missing or damaged.
        """
        for file in self.parts(generation):
            if not file.is_file():
                raise StoreError(f"{file}: is missing; roll back, or sync again")
            check(file)

    def _data_file(self, name: str) -> Path:
        """Return where a shard's file lies."""
        return self.folder / name

    def next(self) -> GenerationId:
        """Return a name that was never published; numbers only grow."""
        known = [*self.all(), *([current] if (current := self.current()) else [])]
        files = self.folder.iterdir() if self.folder.is_dir() else ()
        shards = [int(match[1]) for file in files if (match := _SHARD.match(file.name))]
        newest = max([*map(number_of, known), *shards, self.floor()])
        return GenerationId(f"gen-{newest + 1:06d}")

    def floor(self) -> int:
        """Return the highest number that was given to a copy elsewhere, as far as it was noted here."""
        try:
            return int((self.folder / "FLOOR").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0

    def raise_floor(self, number: int) -> None:
        """Give no generation a number up to this one from now on."""
        if number > self.floor():
            write_whole(self.folder / "FLOOR", f"{number}\n")

    def publish(self, generation: GenerationId) -> None:
        """Make what was built complete and point readers at it, the shards before the manifest."""
        built = self.build_path(generation)
        if built.suffix == MANIFEST_SUFFIX:
            for shard in read_manifest(built).shards:
                if (candidate := shard_build_path(self.folder, shard.name)).exists():
                    _complete(candidate, self._data_file(shard.name), shard.checksum)
        _complete(built, self.folder / f"{generation}{built.suffix}")
        sync_path(self.folder)
        self.point_at(generation)

    def point_at(self, generation: GenerationId) -> None:
        """Point readers at a complete generation.

        Raises:
            NoGenerationError: there is no such file.
        """
        if not _NAME.fullmatch(generation) or not self.path(generation).is_file():
            available = ", ".join(self.all()) or "none"
            raise NoGenerationError(f"{self.folder}: no generation {generation!r}; there are: {available}")
        write_whole(self._pointer, f"{generation}\n")

    def previous(self) -> GenerationId:
        """Return the newest generation before the published one; the newest of all when the pointer is damaged.

        Raises:
            NoGenerationError: there is none.
        """
        try:
            current = self.current()
        except StoreError:
            current = None
        return previous_of(self.all(), current, str(self.folder))

    def prune(self, keep: int) -> None:
        """Remove all but the newest ``keep`` generations; never the published one."""
        self.remove(self.all()[:-keep])

    def remove(self, generations: Iterable[GenerationId]) -> None:
        """Remove generations with what only they need; never the published one."""
        current = self.current()
        for generation in generations:
            if generation != current:
                _remove(self.path(generation))
        for file in _unnamed_shards(self):
            _remove(file)
        remove_arrays(self.folder)

    def clear_builds(self) -> None:
        """Remove what killed writers left behind."""
        for file in self.folder.glob(".build-*"):
            file.unlink(missing_ok=True)


class CandidateFiles(GenerationFiles):
    """The files of one domain as if a candidate was published, to measure it before it is."""

    def __init__(self, folder: Path, candidate: GenerationId) -> None:
        super().__init__(folder)
        self._candidate = candidate

    def current(self) -> GenerationId:
        """Return the candidate."""
        return self._candidate

    def all(self) -> tuple[GenerationId, ...]:
        """Return the candidate alone: when it cannot be read, no other generation may answer in its place."""
        return (self._candidate,)

    def path(self, generation: GenerationId) -> Path:
        """Return the file of a generation; the candidate's is the one that it was built in."""
        return self.build_path(generation) if generation == self._candidate else super().path(generation)

    def _data_file(self, name: str) -> Path:
        """Return where a shard's file lies: those that the candidate has in common with others are complete."""
        built = shard_build_path(self.folder, name)
        return built if built.exists() else super()._data_file(name)


def shard_build_path(folder: Path, name: str) -> Path:
    """Return where a shard's file is built that will have this name."""
    return folder / f".build-{name.removeprefix('gen-')}"


def _file_or_manifest(file: Path) -> Path:
    manifest = file.with_suffix(MANIFEST_SUFFIX)
    return manifest if manifest.exists() else file


def _complete(built: Path, file: Path, checksum: str | None = None) -> None:
    """Give a built file its name, with its checksum beside it."""
    if built.with_name(f"{built.name}.wal").exists():
        raise StoreError(f"{built}: still has a write-ahead log; it must be checkpointed and closed first")
    sync_path(built)
    write_checksum(built, file, checksum)
    with suppress(FileNotFoundError):  # whoever measured the candidate made them
        arrays_file(built).rename(arrays_file(file))
    built.rename(file)


def remove_candidate(built: Path) -> None:
    """Remove what was built and not published, and what was derived from it to measure it."""
    built.unlink(missing_ok=True)
    arrays_file(built).unlink(missing_ok=True)


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    checksum_file(file).unlink(missing_ok=True)


def _unnamed_shards(files: GenerationFiles) -> list[Path]:
    """Return the files of shards that no manifest names; none while one cannot be read."""
    shards = [file for file in files.folder.iterdir() if _SHARD.match(file.name)]
    try:
        named = {file for generation in files.all() for file in files.data_files(generation)} if shards else set()
    except StoreError as error:
        log.warning("no file of a shard is removed: %s", error)
        return []
    return [file for file in shards if file not in named]


def previous_of(generations: Sequence[GenerationId], current: GenerationId | None, place: str) -> GenerationId:
    """Return the newest generation before the current one; the newest of all when none is current.

    Raises:
        NoGenerationError: there is none in ``place``.
    """
    older = [each for each in generations if current is None or number_of(each) < number_of(current)]
    if not older:
        raise NoGenerationError(f"{place}: no generation before {current or 'the first'}; nothing to roll back to")
    return older[-1]


def number_of(generation: GenerationId) -> int:
    """Return a generation's number: names do not sort as text, ``gen-1000000`` comes after ``gen-999999``."""
    return int(generation.removeprefix("gen-"))
