"""The generation that a process serves: opened once, shared by every query, swapped when another is published."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from nornweave.errors import NoGenerationError, StoreError
from nornweave.store.generation import Generation
from nornweave.store.publish import GenerationFiles
from nornweave.types import GenerationId

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Served:
    """An open generation and how many queries use it; the lock of its ``ServedGeneration`` guards both."""

    name: GenerationId
    generation: Generation
    users: int = 0
    retired: bool = False


class ServedGeneration:
    """One domain's published generation, for reading from any thread.

    A query holds the generation that was current when it began; a newer one is loaded beside it, and the old one is
    closed when the last query that uses it ends.
    """

    def __init__(self, files: GenerationFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._served: _Served | None = None
        self._problem: str | None = None
        self._refused: GenerationId | None = None
        self._closed = False
        self._users = 0

    @property
    def problem(self) -> str | None:
        """Say why it is not the published generation that answers, if so."""
        return self._problem

    @property
    def name(self) -> GenerationId | None:
        """Return the generation that answers."""
        served = self._served
        return served.name if served else None

    @property
    def meta(self) -> Mapping[str, str]:
        """Return how the generation that answers was built; empty before there is one."""
        served = self._served
        return served.generation.meta if served else {}

    @property
    def is_used(self) -> bool:
        """Tell whether queries are running on a generation that serves or did."""
        with self._lock:
            return bool(self._users)

    @contextmanager
    def use(self) -> Iterator[Generation]:
        """Keep the current generation open for the length of a query.

        Raises:
            NoGenerationError: nothing is published yet.
            StoreError: nothing that was published can be read, or the process is shutting down.
        """
        served = self._take()
        try:
            yield served.generation
        finally:
            self._give_back(served)

    def refresh(self) -> bool:
        """Swap to the published generation if it is another one; an unreadable one leaves the old one serving.

        Returns:
            Whether another generation answers now.
        """
        with self._loading:
            published = self._published()
            if published is not None and published == self.name:
                self._problem = self._refused = None  # rolled back to what answers: nothing is wrong any more
            if published is None or self._closed or published in {self.name, self._refused}:
                return False
            served = self._open(published)
            if served is None or served.name == self.name:
                return False
            self._swap(served)
            return True

    def close(self) -> None:
        """Refuse new queries; the generation is closed when the running ones have ended."""
        with self._loading:
            self._closed = True
            self._swap(None)

    def _take(self) -> _Served:
        if self._served is None and not self._closed:
            self.refresh()
        with self._lock:
            if self._served is None:
                raise self._nothing_to_serve()
            self._served.users += 1
            self._users += 1
            return self._served

    def _nothing_to_serve(self) -> StoreError:
        if self._closed:
            return StoreError("is shutting down; ask again later")
        if self._problem:
            return StoreError(self._problem)
        return NoGenerationError("nothing is published yet; run `nornweave sync`")

    def _give_back(self, served: _Served) -> None:
        with self._lock:
            served.users -= 1
            self._users -= 1
            finished = served.retired and not served.users
        if finished:
            served.generation.close()

    def _published(self) -> GenerationId | None:
        try:
            return self._files.current()
        except StoreError as error:
            self._report(str(error))
            return None

    def _open(self, published: GenerationId) -> _Served | None:
        """Open the published generation, or the newest older one that can be read."""
        try:
            opened = _Served(published, Generation(self._files.path(published)))
        except StoreError as error:
            self._refused = published
            problem = str(error)
        else:
            self._problem, self._refused = None, None
            return opened
        older = [name for name in self._files.all() if (len(name), name) < (len(published), published)]
        for name in reversed(older):
            if self._served and self._served.name == name:
                break
            try:
                fallback = _Served(name, Generation(self._files.path(name)))
            except StoreError:
                continue
            self._report(f"{problem}; {name} answers instead")
            return fallback
        self._report(f"{problem}; {self.name} answers instead" if self.name else problem)
        return None

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            log.warning("%s", problem)
        self._problem = problem

    def _swap(self, served: _Served | None) -> None:
        with self._lock:
            old, self._served = self._served, served
            if old is not None:
                old.retired = True
            finished = old is not None and not old.users
        if finished and old is not None:
            old.generation.close()
