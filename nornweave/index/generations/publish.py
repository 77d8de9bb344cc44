"""Write generation files and the pointer to the published one.

``.build-N.json`` and ``.build-N-SSS.duckdb`` are being built; ``gen-N.json``, a manifest, and the segments that it
names are complete and never change, their checksums lie beside them; ``CURRENT`` names the generation that readers
open. Every step is a rename: a reader sees the old generation or the new one, a killed writer leaves the pointer valid.
A generation never takes the name of another: DuckDB keeps an instance per path, so a reused name would serve old data.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from nornweave.config.domain import KeepSettings
from nornweave.core.errors import NoGenerationError, StoreError
from nornweave.core.files.writing import sync_path, write_whole
from nornweave.core.types import GenerationId
from nornweave.index.generations.checksums import SUFFIX, checksum_file, write_checksum
from nornweave.index.generations.kept import (
    MANIFEST_SUFFIX,
    NAME,
    SEGMENT,
    KeptGenerations,
    number_of,
    previous_of,
    segment_build_path,
)
from nornweave.index.generations.moves import Move, kept_by, note_move, read_moves, trim_moves
from nornweave.index.manifest import read_manifest
from nornweave.index.searching.arrays import arrays_file, remove_arrays
from nornweave.index.searching.visibility import remember_access

log = logging.getLogger(__name__)


class GenerationFiles(KeptGenerations):
    """The generations of one domain, for reading and writing."""

    def next(self) -> GenerationId:
        """Return a name for a new generation. A number is never used twice."""
        known = [*self.all(), *([current] if (current := self.current()) else [])]
        files = self.folder.iterdir() if self.folder.is_dir() else ()
        segments = [int(match[1]) for file in files if (match := SEGMENT.match(file.name.removesuffix(SUFFIX)))]
        newest = max([*map(number_of, known), *segments, self.floor()])
        return GenerationId(f"gen-{newest + 1:06d}")

    def floor(self) -> int:
        """Return the highest generation number that a remote copy is known to use; 0 if none is known."""
        try:
            return int((self.folder / "FLOOR").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0

    def raise_floor(self, number: int) -> None:
        """Reserve all generation numbers up to this one."""
        if number > self.floor():
            write_whole(self.folder / "FLOOR", f"{number}\n")

    def publish(self, generation: GenerationId, built_at: datetime | None = None) -> None:
        """Complete the built files, segments first, and point readers at the generation.

        ``built_at`` is the time of the build. The default is the recorded time, or else the file's time.
        """
        built = self.build_path(generation)
        for segment in read_manifest(built).segments:
            if (candidate := segment_build_path(self.folder, segment.name)).exists():
                _complete(candidate, self._data_file(segment.name), segment.checksum)
        _complete(built, self.folder / f"{generation}{MANIFEST_SUFFIX}")
        sync_path(self.folder)
        self.point_at(generation, built_at=built_at)

    def point_at(self, generation: GenerationId, at: datetime | None = None, built_at: datetime | None = None) -> None:
        """Point readers at a complete generation.

        Args:
            at: the time of publication, if another machine published it. The default is the present time.
            built_at: the time of the build. The default is the recorded time, or else the file's time.

        Raises:
            NoGenerationError: the generation has no file.
        """
        if not NAME.fullmatch(generation) or not self.path(generation).is_file():
            available = ", ".join(self.all()) or "none"
            raise NoGenerationError(f"{self.folder}: no generation {generation!r}; there are: {available}")
        with suppress(StoreError, FileNotFoundError):  # the pointer may be damaged
            if unnoted := self._unnoted():
                note_move(self.folder, unnoted)
        write_whole(self._pointer, f"{generation}\n")
        built_at = built_at or self._built_at(generation, read_moves(self.folder))
        note_move(self.folder, Move(at or datetime.now(UTC), generation, built_at))

    def previous(self) -> GenerationId:
        """Return the newest generation before the published one, or the newest of all if the pointer is damaged.

        Raises:
            NoGenerationError: there is none.
        """
        try:
            current = self.current()
        except StoreError:
            current = None
        return previous_of(self.all(), current, str(self.folder))

    def prune(self, keep: int, policy: KeepSettings | None = None) -> None:
        """Remove generations except the newest ``keep``, those that the policy keeps, and the published one."""
        names = self.all()
        kept = {*names[-keep:]}
        if policy:
            kept |= kept_by(policy, [move for move in self.moves() if move.generation in names])
        self.remove([name for name in names if name not in kept])
        trim_moves(self.folder, self.all())

    def remove(self, generations: Collection[GenerationId]) -> None:
        """Remove generations (never the published one), with files that no other generation needs."""
        current = self.current()
        going = [name for name in self.all() if name in generations and name != current]
        staying = [number_of(name) for name in self.all() if name not in going]
        if going and staying:
            newer = [name for name in going if number_of(name) > min(staying)]
            remember_access(self.folder, min(staying), {number_of(name): self.named_files(name) for name in newer})
        for generation in going:
            _remove(self.path(generation))
        for file in _unnamed_segments(self):
            _remove(file)
        remove_arrays(self.folder)

    def remove_candidate(self, candidate: GenerationId) -> None:
        """Remove an unpublished build."""
        for file in self.folder.glob(f".build-{candidate.removeprefix('gen-')}*"):
            file.unlink(missing_ok=True)

    def clear_builds(self) -> None:
        """Remove the builds of killed writers."""
        for file in self.folder.glob(".build-*"):
            file.unlink(missing_ok=True)


def _complete(built: Path, file: Path, checksum: str | None = None) -> None:
    """Rename a built file to its final name and write its checksum, which is computed if it is ``None``."""
    if built.with_name(f"{built.name}.wal").exists():
        raise StoreError(f"{built}: still has a write-ahead log; it must be checkpointed and closed first")
    sync_path(built)
    write_checksum(built, file, checksum)
    if (arrays := arrays_file(built)).exists():  # a manifest has none
        sync_path(arrays)
        arrays.rename(arrays_file(file))
    built.rename(file)


def _remove(file: Path) -> None:
    for each in (file, checksum_file(file), arrays_file(file)):
        each.unlink(missing_ok=True)


def _unnamed_segments(files: GenerationFiles) -> list[Path]:
    """Return the paths of the segments that no manifest names; empty if a manifest cannot be read.

    Of a segment that is stored elsewhere, the path is that of its checksum on this disk.
    """
    here = {file.name.removesuffix(SUFFIX) for file in files.folder.iterdir()}
    segments = [files.folder / name for name in sorted(here) if SEGMENT.match(name)]
    try:
        manifests = [files.manifest(generation) for generation in files.all()] if segments else []
    except StoreError as error:
        log.warning("no file of a segment is removed: %s", error)
        return []
    named = {segment.name for manifest in manifests for segment in manifest.segments}
    return [file for file in segments if file.name not in named]
