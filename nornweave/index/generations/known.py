"""The generations of one domain, as readers know them: where they are, one that is open, the older ones."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping

from nornweave.core.access.rules import Statement
from nornweave.core.errors import StoreError
from nornweave.core.types import GenerationId
from nornweave.index.generations.kept import KeptGenerations
from nornweave.index.generations.moves import AsOf, Then, then
from nornweave.index.index import Index

log = logging.getLogger(__name__)

# Older generations of a domain that stay open: who compares two moments asks them in turn.
MOST_PAST = 2


class OpenGeneration:
    """An open generation; it is closed once it is retired and nobody uses it any more."""

    def __init__(self, name: GenerationId, index: Index) -> None:
        self.name = name
        self.index = index
        self.users = 0
        self._is_retired = False
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Use it until ``give_back``; ``False`` if it is retired."""
        with self._lock:
            self.users += not self._is_retired
            return not self._is_retired

    def give_back(self) -> None:
        """End a use."""
        with self._lock:
            self.users -= 1
            is_done = self._is_retired and not self.users
        if is_done:
            self.index.close()

    def retire(self) -> None:
        """Close it when the last use ends."""
        with self._lock:
            is_done = not self.users and not self._is_retired
            self._is_retired = True
        if is_done:
            self.index.close()


class PastGenerations:
    """The older generations of one domain, open while they are asked; for any thread.

    At most ``MOST_PAST`` stay open. One that is opened again after a publication goes by the statements of access of
    that, and one whose files were removed answers nobody any more.
    """

    def __init__(self, files: KeptGenerations, statements: Mapping[str, Statement]) -> None:
        self._files = files
        self._statements = statements
        self._open: OrderedDict[tuple[GenerationId, GenerationId | None], OpenGeneration] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    def at(self, as_of: AsOf) -> Then:
        """Return what was published at a moment.

        Raises:
            GenerationNotKeptError: nothing that was published so early is kept.
            StoreError: what is kept cannot be told.
        """
        return then(as_of, self._files.moves(), self._files.all())

    def take(self, generation: GenerationId) -> OpenGeneration:
        """Return a generation, open until ``give_back``; who asks for the current one waits for none that is loaded.

        Raises:
            StoreError: it cannot be read, or the process is shutting down.
        """
        with self._lock:
            if self._closed:
                raise StoreError("is shutting down; ask again later")
            self._retire_stale()
            key = generation, self._files.current()
            known = self._open.get(key)
            if known is None:
                index = self._files.open(generation, self._statements, self._files.access_today(generation))
                known = self._open[key] = OpenGeneration(generation, index)
            self._open.move_to_end(key)
            known.take()
            while len(self._open) > MOST_PAST:
                self._open.popitem(last=False)[1].retire()
        return known

    def tidy(self) -> None:
        """Close what was removed, and what was opened before the last publication; unless one is being loaded."""
        if self._open and self._lock.acquire(blocking=False):
            try:
                self._retire_stale()
            except (StoreError, OSError) as error:
                log.warning("older generations stay open: %s", error)
            finally:
                self._lock.release()

    def _retire_stale(self) -> None:
        if not self._open:
            return
        kept, current = self._files.all(), self._files.current()
        for generation, published in list(self._open):
            if generation not in kept or published != current:
                self._open.pop((generation, published)).retire()

    def close(self) -> None:
        """Refuse new questions; what is open is closed when the running ones have ended."""
        with self._lock:
            self._closed = True
            while self._open:
                self._open.popitem()[1].retire()
