"""Keep the published generation open for queries, and replace it after a publication.

The generations of one domain, as readers know them: where they are, one that is open, the older ones.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from nornweave.core.access import Statement, Viewer, group_name
from nornweave.core.errors import NoGenerationError, StoreError
from nornweave.core.types import GenerationId
from nornweave.index.generations.kept import KeptGenerations, number_of
from nornweave.index.generations.moves import AsOf, Then, then
from nornweave.index.index import Index

# Older generations of a domain that stay open: a comparison of two moments asks them in turn.
MOST_PAST = 2


class OpenGeneration:
    """An open generation. It closes when it is retired and its last user is done."""

    def __init__(self, name: GenerationId, index: Index) -> None:
        self.name = name
        self.index = index
        self.users = 0
        self._is_retired = False
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Begin a use, which ``give_back`` ends. Return ``False`` if the generation is retired."""
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
        """Close the generation when its last use ends."""
        with self._lock:
            is_done = not self.users and not self._is_retired
            self._is_retired = True
        if is_done:
            self.index.close()


class PastGenerations:
    """The older generations of one domain, opened on demand. Thread-safe.

    At most ``MOST_PAST`` stay open. After a publication they are opened again with the access rules of the new
    generation. A removed generation does not answer any more.
    """

    def __init__(self, files: KeptGenerations, statements: Mapping[str, Statement]) -> None:
        self._files = files
        self._statements = statements
        self._open: OrderedDict[tuple[GenerationId, GenerationId | None], OpenGeneration] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    def at(self, as_of: AsOf) -> Then:
        """Return the generation that was published at a moment.

        Raises:
            GenerationNotKeptError: no generation is kept that was published by then.
            StoreError: the kept generations cannot be listed.
        """
        return then(as_of, self._files.moves(), self._files.all())

    def take(self, generation: GenerationId) -> OpenGeneration:
        """Open a generation until ``give_back``. Queries to the current generation never wait for this.

        Raises:
            StoreError: the generation cannot be read, or the process is shutting down.
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
        """Close generations that were removed, or opened before the last publication. While one loads, do nothing."""
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
        """Refuse new questions. Open generations close when running questions have ended."""
        with self._lock:
            self._closed = True
            while self._open:
                self._open.popitem()[1].retire()


log = logging.getLogger(__name__)

# A generation that cannot be opened is tried again: a full disk or a lack of file descriptors passes. One that is
# damaged stays so, hence the growing pauses.
FIRST_RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
NO_GROUPS: Mapping[str, Sequence[str]] = {}


@dataclass(slots=True)
class _Refused:
    """A published generation that could not be opened, with its publication time and when to try again."""

    name: GenerationId
    published_at: float
    retry_at: float
    pause_s: float


class _Opener:
    """Opens the published generation and remembers failures. Not thread-safe.

    Attributes:
        problem: why the published generation does not answer; ``None`` if it does.
        refused: the published generation if it could not be opened, else ``None``.
    """

    def __init__(self, files: KeptGenerations, statements: Mapping[str, Statement], now: Callable[[], float]) -> None:
        self._files = files
        self._statements = statements
        self._now = now
        self.problem: str | None = None
        self.refused: _Refused | None = None

    def forgive(self) -> None:
        """Forget the failures, so that the next call tries again."""
        self.problem = self.refused = None

    def published(self) -> GenerationId | None:
        """Return the published generation; ``None`` if there is none or the pointer cannot be read."""
        try:
            return self._files.current()
        except StoreError as error:
            self._report(str(error))
            return None

    def is_too_soon(self, published: GenerationId) -> bool:
        """Tell whether a generation failed too recently to be tried again."""
        refused = self.refused
        return refused is not None and refused.name == published and self._now() < refused.retry_at

    def open(self, published: GenerationId, serving: GenerationId | None) -> tuple[GenerationId, Index] | None:
        """Open the published generation, or else the newest readable older one.

        Returns:
            Its name and the index; ``None`` if ``serving`` is the newest generation that can be opened, or none can.
        """
        try:
            opened = published, self._files.open(published, self._statements)
        except StoreError as error:
            newer = self.published()
            if newer not in {None, published}:  # the pointer has moved since, and the old generation was removed
                return self.open(newer, serving)
            self._refuse(published)
            problem = str(error)
        else:
            self.forgive()
            return opened
        for name in self._older(published):
            if serving == name:
                break
            try:
                fallback = name, self._files.open(name, self._statements)
            except StoreError:
                continue
            self._report(f"{problem}; {name} answers instead")
            return fallback
        self._report(f"{problem}; {serving} answers instead" if serving else problem)
        return None

    def _refuse(self, name: GenerationId) -> None:
        """Record that a generation could not be opened, and when to try again."""
        before = self.refused
        again = before is not None and before.name == name
        pause_s = min(2 * before.pause_s, LONGEST_RETRY_S) if before and again else FIRST_RETRY_S
        published_at = before.published_at if before and again else self._published_at()
        self.refused = _Refused(name, published_at, self._now() + pause_s, pause_s)

    def _published_at(self) -> float:
        try:
            return self._files.published_at() or time.time()
        except StoreError:
            return time.time()

    def _older(self, published: GenerationId) -> Iterator[GenerationId]:
        """Yield the complete generations before the published one, newest first."""
        try:
            names = self._files.all()
        except (OSError, StoreError) as error:  # no descriptors left: there is none to fall back to now
            log.warning("%s: generations cannot be listed: %s", published, error)
            return
        yield from (name for name in reversed(names) if number_of(name) < number_of(published))

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem


class ServedGeneration:
    """One domain's published generation for readers. Thread-safe.

    A query uses the generation that was current when it began. A newer generation is loaded beside it. The old
    generation is closed when the last query that uses it ends.
    """

    def __init__(
        self,
        files: KeptGenerations,
        *,
        access: Mapping[str, Sequence[str]] = NO_GROUPS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Store the arguments. The first query or ``refresh`` opens the generation.

        Args:
            access: source id → groups that may see its documents, from the current configuration.
            now: the clock for retries, in seconds.
        """
        self._statements = {source: frozenset(map(group_name, groups)) for source, groups in access.items() if groups}
        self.past = PastGenerations(files, self._statements)
        self._loading = threading.Lock()
        self._opener = _Opener(files, self._statements, now)
        self._served: OpenGeneration | None = None
        self._retired: list[OpenGeneration] = []
        self._closed = False

    @property
    def problem(self) -> str | None:
        """Return why the published generation does not answer; ``None`` if it does."""
        return self._opener.problem

    @property
    def name(self) -> GenerationId | None:
        """Return the generation that answers; ``None`` if there is none."""
        served = self._served
        return served.name if served else None

    @property
    def published(self) -> GenerationId | None:
        """Return the published generation as last seen; ``None`` if there was none. An older one may be answering."""
        refused = self._opener.refused
        return refused.name if refused else self.name

    @property
    def behind_s(self) -> float:
        """Return how many seconds ago a generation was published that cannot be opened; 0 if there is none."""
        refused = self._opener.refused
        return max(0.0, time.time() - refused.published_at) if refused else 0.0

    @property
    def meta(self) -> Mapping[str, str]:
        """Return the metadata of the generation that answers; empty if there is none."""
        served = self._served
        return served.index.meta if served else {}

    def sees_all(self, viewer: Viewer) -> bool:
        """Tell whether a viewer may see everything in the answering generation.

        Raises:
            NoGenerationError, StoreError: as ``use``.
        """
        if viewer.sees_everything:
            return True
        with self.use(viewer) as generation:
            return not generation.part

    @property
    def restricted_documents(self) -> int:
        """Count the documents of the answering generation that are not open to everybody."""
        served = self._served
        return served.index.restricted_documents if served else 0

    @property
    def is_used(self) -> bool:
        """Tell whether any query is using the current or an earlier generation."""
        served = self._served
        return any(each.users for each in (*self._retired, *((served,) if served else ())))

    @contextmanager
    def use(self, viewer: Viewer, generation: GenerationId | None = None) -> Iterator[Index]:
        """Open a viewer's view of a generation for one query.

        This is the only way to a generation, so no answer can be made without a viewer.

        Args:
            generation: an older generation that is kept; ``None`` for the current one.

        Raises:
            NoGenerationError: nothing is published yet.
            StoreError: no published generation can be read, or the process is shutting down.
        """
        served = self._take() if generation in {None, self.name} else self.past.take(generation)
        try:
            yield served.index.seen_by(viewer)
        finally:
            served.give_back()

    @contextmanager
    def using(self, viewer: Viewer, as_of: AsOf | None) -> Iterator[tuple[Index, str | None]]:
        """Open a viewer's view of the generation at a moment (``None`` for now). Yield it with a notice for the asker.

        Raises:
            GenerationNotKeptError: no generation is kept that was published by then.
            NoGenerationError, StoreError: as ``use``.
        """
        then = None if as_of is None else self.past.at(as_of)
        with self.use(viewer, then.generation if then else None) as index:
            yield index, then.notice if then else self.problem

    def refresh(self) -> bool:
        """Switch to a newly published generation. If it cannot be opened, the old generation continues to answer.

        A generation that cannot be opened is tried again after ``FIRST_RETRY_S``, then after pauses that double up to
        ``LONGEST_RETRY_S``. Calls between these times do nothing.

        Returns:
            Whether this call switched to another generation.
        """
        with self._loading:
            self.past.tidy()
            published = self._opener.published()
            if published is not None and published == self.name:
                self._opener.forgive()  # rolled back to the generation that answers
            if published is None or self._closed or published == self.name or self._opener.is_too_soon(published):
                return False
            opened = self._opener.open(published, serving=self.name)
            if opened is None:
                return False
            self._swap(OpenGeneration(*opened))
            return True

    def close(self) -> None:
        """Refuse new queries. The generation closes when running queries have ended."""
        with self._loading:
            self._closed = True
            self._swap(None)
        self.past.close()

    def _take(self) -> OpenGeneration:
        if self._served is None and not self._closed:
            self.refresh()
        while served := self._served:
            if served.take():
                return served
        raise self._nothing_to_serve()

    def _nothing_to_serve(self) -> StoreError:
        if self._closed:
            return StoreError("is shutting down; ask again later")
        if self.problem:
            return StoreError(self.problem)
        return NoGenerationError("nothing is published yet; run `nornweave sync`")

    def _swap(self, served: OpenGeneration | None) -> None:
        old, self._served = self._served, served
        if old is not None:
            self._retired = [*(each for each in self._retired if each.users), old]
            old.retire()
