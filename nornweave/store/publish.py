"""Generation files, and the pointer to the published one.

``.build-N.duckdb`` is being built; ``gen-N.duckdb`` is complete and never changes, its checksum lies beside it;
``CURRENT`` names the one that readers open. Every step is a rename: a reader sees the old generation or the new one, a
killed writer leaves the pointer valid.
A generation never takes the name of another: DuckDB keeps an instance per path, so a reused name would serve old data.
"""

from __future__ import annotations

import re
from pathlib import Path

from nornweave.errors import NoGenerationError, StoreError
from nornweave.files.atomic_write import sync_path, write_whole
from nornweave.store.checksums import checksum_file, write_checksum
from nornweave.types import GenerationId

_NAME = re.compile(r"gen-\d{6,}")
_COMPLETE = re.compile(r"^gen-(\d{6,})\.duckdb$")


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
        """Return the file of a complete generation."""
        return self.folder / f"{generation}.duckdb"

    def build_path(self, generation: GenerationId) -> Path:
        """Return the file that a generation is built in."""
        return self.folder / f".build-{generation.removeprefix('gen-')}.duckdb"

    def next(self) -> GenerationId:
        """Return a name that was never published; numbers only grow."""
        known = [*self.all(), *([current] if (current := self.current()) else [])]
        newest = max(map(number_of, known), default=0)
        return GenerationId(f"gen-{newest + 1:06d}")

    def publish(self, generation: GenerationId) -> None:
        """Make a built file complete and point readers at it."""
        built = self.build_path(generation)
        if built.with_name(f"{built.name}.wal").exists():
            raise StoreError(f"{built}: still has a write-ahead log; it must be checkpointed and closed first")
        sync_path(built)
        write_checksum(built, self.path(generation))
        built.rename(self.path(generation))
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
        older = [
            generation for generation in self.all() if current is None or number_of(generation) < number_of(current)
        ]
        if not older:
            raise NoGenerationError(
                f"{self.folder}: no generation before {current or 'the first'}; nothing to roll back to"
            )
        return older[-1]

    def prune(self, keep: int) -> None:
        """Remove all but the newest ``keep`` generations; never the published one."""
        current = self.current()
        for generation in self.all()[:-keep]:
            if generation != current:
                self.path(generation).unlink(missing_ok=True)
                checksum_file(self.path(generation)).unlink(missing_ok=True)

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


def number_of(generation: GenerationId) -> int:
    """Return a generation's number: names do not sort as text, ``gen-1000000`` comes after ``gen-999999``."""
    return int(generation.removeprefix("gen-"))
