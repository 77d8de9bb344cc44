"""The generations of one domain as files: list them, find the published one, open them.

``gen-N.json`` is a manifest: it names the segments of a generation, files ``gen-M-SSS.duckdb`` that later generations
have as well. All of them are complete and never change, and their checksums lie beside them. ``CURRENT`` names the
generation that readers open. Files of segments lie on this machine or elsewhere.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from nornweave.core.access import Statement
from nornweave.core.errors import NoGenerationError, StoreError
from nornweave.core.types import GenerationId
from nornweave.index.generations.checksums import check
from nornweave.index.generations.moves import Move, read_moves
from nornweave.index.index import Index
from nornweave.index.manifest import Manifest, read_manifest
from nornweave.index.searching.arrays import arrays_file, check_arrays
from nornweave.index.searching.generation import open_shared
from nornweave.index.searching.generation_file import DataFile, facts_of
from nornweave.index.searching.segments import open_segments
from nornweave.index.searching.visibility import NO_STATEMENTS, AccessToday, access_today

log = logging.getLogger(__name__)


class Elsewhere(Protocol):
    """A remote place of files that are not on this disk yet."""

    def has(self, file: Path) -> bool:
        """Tell whether the remote place has a file."""

    def fetch(self, file: Path) -> None:
        """Download a file if the remote place has it.

        Raises:
            StoreError: the file exists, but cannot be downloaded completely.
        """

    def look(self) -> None:
        """Download the list of generations, if readers of this folder must see new generations.

        Raises:
            StoreError: the remote place cannot be reached.
        """


class SegmentFiles:
    """The files of segments below ``folder``.

    A file that is missing below ``folder`` may be in the remote place ``elsewhere``. It is downloaded when it is read.
    """

    def __init__(self, folder: Path, elsewhere: Elsewhere | None = None) -> None:
        self.folder = folder
        self._elsewhere = elsewhere

    def bring(self, file: Path) -> None:
        """Download a file if it is not on this disk.

        Raises:
            StoreError: the file cannot be downloaded completely.
        """
        if self._elsewhere is None:
            return
        if file.exists():
            try:
                check(file)
            except StoreError as error:
                if not self._elsewhere.has(file):
                    raise
                log.warning("%s; it is brought again", error)
                file.unlink(missing_ok=True)
        if not file.exists():
            self._elsewhere.fetch(file)

    def is_elsewhere(self, file: Path) -> bool:
        """Tell whether a file is missing on this disk but can be downloaded. Remote files count as undamaged."""
        return self._elsewhere is not None and not file.exists() and self._elsewhere.has(file)

    def check_segment(self, file: Path) -> None:
        """Check a segment's local files by their checksums. Remote files are not downloaded.

        Raises:
            StoreError: a file is missing or damaged.
        """
        if not self.is_elsewhere(file):
            if not file.is_file():
                raise StoreError(f"{file}: is missing; roll back, or sync again")
            check(file)
        if not self.is_elsewhere(arrays_file(file)):
            check_arrays(file)


MANIFEST_SUFFIX = ".json"
NAME = re.compile(r"gen-\d{6,}")
_COMPLETE = re.compile(r"^gen-(\d{6,})\.json$")
SEGMENT = re.compile(r"^gen-(\d{6,})(?:-\d{3})?\.duckdb$")
"""Of a segment; versions before there were segments named files otherwise, which nothing names any more."""


class KeptGenerations(SegmentFiles):
    """The generations of one domain, as files below ``folder``, for reading."""

    def __init__(self, folder: Path, elsewhere: Elsewhere | None = None) -> None:
        super().__init__(folder, elsewhere)
        self._pointer = folder / "CURRENT"

    def current(self) -> GenerationId | None:
        """Return the published generation; ``None`` if nothing was published yet."""
        self._look()
        try:
            name = self._pointer.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{self._pointer}: cannot be read: {error}") from error
        if not NAME.fullmatch(name):
            raise StoreError(f"{self._pointer}: names {name!r}, expected a generation such as 'gen-000001'; roll back")
        return GenerationId(name)

    def _look(self) -> None:
        if self._elsewhere:
            self._elsewhere.look()

    def published_at(self) -> float | None:
        """Return the time of the last publication in seconds since 1970; ``None`` if nothing was published yet."""
        try:
            return self._pointer.stat().st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self._pointer}: cannot be read: {error}") from error

    def all(self) -> tuple[GenerationId, ...]:
        """Return the complete generations, oldest first."""
        self._look()
        if not self.folder.is_dir():
            return ()
        numbers = sorted(int(match[1]) for file in self.folder.iterdir() if (match := _COMPLETE.match(file.name)))
        return tuple(GenerationId(f"gen-{number:06d}") for number in numbers)

    def path(self, generation: GenerationId) -> Path:
        """Return the path of a complete generation's manifest."""
        return self.folder / f"{generation}{MANIFEST_SUFFIX}"

    def of_candidate(self, candidate: GenerationId) -> KeptGenerations:
        """Return the generations as if ``candidate`` were published."""
        return CandidateFiles(self.folder, candidate, self._elsewhere)

    def build_path(self, generation: GenerationId) -> Path:
        """Return the path of a candidate's manifest."""
        return self.folder / f".build-{generation.removeprefix('gen-')}{MANIFEST_SUFFIX}"

    def manifest(self, generation: GenerationId) -> Manifest:
        """Return the manifest of a generation.

        Raises:
            StoreError: the manifest cannot be read.
        """
        return read_manifest(self.path(generation))

    def data_files(self, generation: GenerationId) -> tuple[DataFile, ...]:
        """Return a generation's DuckDB files, one per segment, with their gone documents. Missing files are downloaded.

        Raises:
            StoreError: the manifest cannot be read, or a file cannot be downloaded.
        """
        files = self._files_of(generation)
        for file in files:
            self.bring(file.path)
        return files

    def _files_of(self, generation: GenerationId) -> tuple[DataFile, ...]:
        segments = self.manifest(generation).segments
        return tuple(DataFile(self._data_file(each.name), each.gone_numbers()) for each in segments)

    def named_files(self, generation: GenerationId) -> tuple[DataFile, ...]:
        """Return a generation's files. If the manifest cannot be read, return only the manifest."""
        try:
            return self.data_files(generation)
        except StoreError:
            return (DataFile(self.path(generation)),)

    def parts(self, generation: GenerationId) -> tuple[Path, ...]:
        """Return all files of a generation, the manifest first.

        Raises:
            StoreError: the manifest cannot be read.
        """
        files = (each for file in self._files_of(generation) for each in (file.path, arrays_file(file.path)))
        return tuple(dict.fromkeys((self.path(generation), *files)))

    def size_bytes(self, generation: GenerationId) -> int:
        """Return the size of a generation. Missing files count as 0."""
        return sum(file.stat().st_size for file in self.parts(generation) if file.is_file())

    def open(
        self,
        generation: GenerationId,
        statements: Mapping[str, Statement] = NO_STATEMENTS,
        today: AccessToday | None = None,
    ) -> Index:
        """Open a generation for reading, with the access statements of the configuration by source.

        An older generation needs ``today``, the rules of the published generation.

        Raises:
            StoreError: the generation is missing, damaged or of another schema.
        """
        manifest = self.manifest(generation)
        files = [self._data_file(segment.name) for segment in manifest.segments]
        for file in files:
            self.bring(file)
            self.bring(arrays_file(file))
        opening = partial(open_shared, statements=statements, today=today)
        return open_segments(files, manifest, opening)

    def facts(self, generation: GenerationId) -> Mapping[str, str]:
        """Return the metadata of a generation without opening it for searches.

        Raises:
            StoreError: the generation cannot be read.
        """
        manifest = self.manifest(generation)
        file = self._files_of(generation)[-1].path
        self.bring(file)
        return {**facts_of(file), "generation": manifest.generation, "built_at": manifest.built_at}

    def check(self, generation: GenerationId) -> None:
        """Check a generation's local files by their checksums. Remote files are not downloaded.

        Raises:
            StoreError: a file is missing or damaged.
        """
        manifest = self.path(generation)
        if not manifest.is_file():
            raise StoreError(f"{manifest}: is missing; roll back, or sync again")
        check(manifest)
        for segment in self._files_of(generation):
            self.check_segment(segment.path)

    def moves(self) -> list[Move]:
        """Return the publications, oldest first. If a publication was not recorded, its time is that of the build.

        Raises:
            StoreError: the pointer cannot be read.
        """
        moves, current = read_moves(self.folder), self.current()
        # Generations of an earlier version, which recorded no publications. Later ones lack a record only after a kill.
        first = min((number_of(move.generation) for move in moves), default=math.inf)
        unknown = [name for name in self.all() if number_of(name) < first]
        moves += [Move(built_at, name, built_at) for name in unknown for built_at in (self._written_at(name),)]
        moves.sort()
        if current and moves and moves[-1].generation != current:
            moves.append(self._move_to(current, moves))
        return moves

    def _unnoted(self) -> Move | None:
        """Return the last publication if its process was killed before recording it; ``None`` if it is recorded."""
        moves, current = read_moves(self.folder), self.current()
        is_noted = not moves or current in {None, moves[-1].generation}
        return None if is_noted or current is None else self._move_to(current, moves)

    def _move_to(self, current: GenerationId, moves: Sequence[Move]) -> Move:
        at = datetime.fromtimestamp(self.published_at() or time.time(), UTC)
        return Move(at, current, self._built_at(current, moves))

    def _built_at(self, generation: GenerationId, moves: Sequence[Move]) -> datetime:
        """Return the build time of a generation as recorded in ``moves``; if it is not recorded, its file's time."""
        noted = (move.built_at for move in moves if move.generation == generation)
        return next(noted, None) or self._written_at(generation)

    def _written_at(self, generation: GenerationId) -> datetime:
        return datetime.fromtimestamp(self.path(generation).stat().st_mtime, UTC)

    def access_today(self, generation: GenerationId) -> AccessToday:
        """Return today's access rules for the documents of an older generation.

        Raises:
            StoreError: a later generation cannot be read.
        """
        current = self.current()
        later = [name for name in self.all() if number_of(name) > number_of(generation) and name != current]
        published = self.data_files(current) if current else ()
        gone: dict[Path, set[int]] = {}
        for file in (file for name in later for file in self.data_files(name)):
            gone[file.path] = gone.get(file.path, {*file.gone}).intersection(file.gone)
        files = [DataFile(path, tuple(each)) for path, each in gone.items()]
        return access_today(self.folder, published, files, self._removed_since(generation))

    def _removed_since(self, generation: GenerationId) -> set[int]:
        """Return the numbers of later generations that were published and then removed.

        If no publication is recorded, return all missing numbers up to the current generation.
        """
        first = number_of(generation) + 1
        noted = {number_of(move.generation) for move in read_moves(self.folder)}
        numbers = noted or range(first, number_of(self.current() or generation))
        return {number for number in numbers if number >= first}.difference(map(number_of, self.all()))

    def _data_file(self, name: str) -> Path:
        """Return the path of a segment's file."""
        return self.folder / name


class CandidateFiles(KeptGenerations):
    """The generations of one domain as if a candidate were published, to measure the candidate."""

    def __init__(self, folder: Path, candidate: GenerationId, elsewhere: Elsewhere | None) -> None:
        super().__init__(folder, elsewhere)
        self._candidate = candidate

    def current(self) -> GenerationId:
        """Return the candidate."""
        return self._candidate

    def all(self) -> tuple[GenerationId, ...]:
        """Return only the candidate, so that no other generation answers if it cannot be read."""
        return (self._candidate,)

    def path(self, generation: GenerationId) -> Path:
        """Return the path of a generation's manifest. The manifest of the candidate is where it was built."""
        return self.build_path(generation) if generation == self._candidate else super().path(generation)

    def _data_file(self, name: str) -> Path:
        """Return the path of a segment's file, in the candidate's build or among the complete segments."""
        built = segment_build_path(self.folder, name)
        return built if built.exists() else super()._data_file(name)


def segment_build_path(folder: Path, name: str) -> Path:
    """Return the path at which a segment's file is built."""
    return folder / f".build-{name.removeprefix('gen-')}"


def previous_of(generations: Sequence[GenerationId], current: GenerationId | None, place: str) -> GenerationId:
    """Return the newest generation before ``current``; the newest of all if ``current`` is ``None``.

    Raises:
        NoGenerationError: there is no such generation. The message names ``place``.
    """
    older = [each for each in generations if current is None or number_of(each) < number_of(current)]
    if not older:
        raise NoGenerationError(f"{place}: no generation before {current or 'the first'}; nothing to roll back to")
    return older[-1]


def number_of(generation: GenerationId) -> int:
    """Return a generation's number. Sort by it, because as text ``gen-1000000`` is before ``gen-999999``."""
    return int(generation.removeprefix("gen-"))
