"""A source with the documents of a mirror. Listing it first updates the mirror from its API.

What a mirror holds of one document can be counted and removed, bytes of deleted rows included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from nornweave.connect.mirror.feed import LEFT_OUT, Feed, Known, Pass, PositionLostError
from nornweave.connect.mirror.mirror import Mirror, MirrorFile, nothing_known
from nornweave.connect.mirror.settings import MirroredSettings
from nornweave.core.access import KEY, RIGHTS, every_of
from nornweave.core.errors import DocumentError, SourceUnavailableError, StoreError, TransientDocumentError
from nornweave.core.files.paths import PathFilter, unsafe_path
from nornweave.core.membership import MembershipTable, membership_file, read_table, write_table
from nornweave.core.types import Document, Domain, Entry, Listing, Skip, SourceId, canonical_json, digest, freeze
from nornweave.read.isolated import parse_apart

_MAX_SKIPS = 1_000
_CHECK_S = 60.0
Watcher: TypeAlias = Callable[[int, int, int | None], None]
"""Called while a source is listed: documents so far, their bytes, and how many are expected, if that is known."""


def mirror_file(data_dir: Path, source_id: str) -> Path:
    """Return the path of a source's mirror."""
    return data_dir / "remote" / f"{source_id}.sqlite"


class MirroredSource:
    """The documents of one API. A copy of what the API sent is the mirror.

    ``list`` asks the API for changes. Once in ``relist_hours`` it asks for everything, to find deletions. If the API's
    lists are short, it always asks for everything. If the API or a kill interrupts a pass, the next call of ``list``
    continues the pass. ``fetch`` reads only the mirror.
    """

    def __init__(
        self, settings: MirroredSettings, feed: Feed, data_dir: Path, *, now: Callable[[], float] = time.time
    ) -> None:
        """Store the parameters. Nothing is read.

        Args:
            data_dir: the data folder of the workspace. The mirror is stored in it.
            now: a function that returns the current time, in seconds since 1970.

        Raises:
            ConfigError: a glob is broken.
        """
        self.id = SourceId(settings.id)
        self._paths = PathFilter(settings.chosen, settings.exclude)
        self._feed = feed
        self._mirror = MirrorFile(mirror_file(data_dir, self.id), feed.scope)
        self._relist_s = 0.0 if settings.lists_everything else settings.relist_hours * 3600
        self._members = membership_file(data_dir, self.id) if RIGHTS in settings.restricted_to else None
        self._problem = settings.problem
        self._budget_s = settings.max_minutes * 60
        self._now = now
        self._is_thorough = False
        self._watcher: Watcher = lambda *_: None

    @property
    def domain(self) -> Domain:
        return self._feed.domain

    @property
    def version(self) -> str:
        return self._feed.version

    def watched_by(self, watcher: Watcher) -> None:
        """Let the source call ``watcher`` while it is listed."""
        self._watcher = watcher

    def list_everything_again(self) -> None:
        """Make the next call of ``list`` run a full pass."""
        self._is_thorough = True

    def check(self) -> None:
        """Ask the API for the first page without storing it."""
        self._begin(_CHECK_S)
        with _translate_shape_errors():
            next(self._feed.pages(Pass(is_full=True), nothing_known()), None)

    def list(self) -> Listing:
        """Update the mirror and list its documents.

        Returns:
            The documents in the mirror. If the API failed during the pass, the listing has a ``problem``. In that case
            a missing document does not count as deleted.

        Raises:
            SourceUnavailableError: the API failed, and the mirror is still empty.
        """
        with self._mirror.reading() as mirror:
            problem = None
            try:
                self._pull(mirror)
            except SourceUnavailableError as error:
                if not mirror.totals()[0]:
                    raise SourceUnavailableError(f"source {self.id!r}: {error}") from error
                problem = str(error)
            entries, skipped = [], _left_out(mirror)
            for each in mirror.documents():
                if reason := unsafe_path(each.path):
                    skipped.append(Skip(each.path, reason))
                elif self._paths.matches(each.path):
                    entries.append(self._with_readers(each, mirror))
            listed_at = mirror.state().listed_at
            notices = self._refresh_members(mirror)
        moment = datetime.fromtimestamp(listed_at, UTC) if listed_at else None
        return Listing(tuple(entries), tuple(skipped), problem, listed_at=moment, notices=notices)

    def refresh_members(self) -> MembershipTable | None:
        """Ask only for members. Return the table of members; ``None`` if ``rights`` is not set.

        Raises:
            SourceUnavailableError: the mirror of the last sync cannot be opened.
        """
        if self._members is None:
            return None
        with self._mirror.open() as mirror:
            self._refresh_members(mirror)
        return read_table(self._members)

    def fetch(self, entry: Entry) -> bytes:
        try:
            with self._mirror.open() as mirror:
                records = list(mirror.records_of(entry.path))
                if not records:
                    raise TransientDocumentError("it vanished after it was listed; the next sync settles it")
                return self._feed.assemble(entry.path, records, mirror)
        except SourceUnavailableError as error:
            raise TransientDocumentError(str(error)) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DocumentError(f"the API's answer has another shape than expected ({error!r})") from error

    def parse(self, entry: Entry, raw: bytes) -> Document:
        return parse_apart(self._feed.parser, self.id, entry, raw, **self._feed.options)

    def copies_of(self, path: str) -> int:
        return self._mirror.copies_of(path)

    def forget(self, path: str) -> None:
        self._mirror.forget(path)

    def _with_readers(self, entry: Entry, known: Known) -> Entry:
        """Return an entry with its readers if ``rights`` is set. The entry's gate changes with the readers."""
        if self._members is None:
            return entry
        readers = tuple(tuple(sorted(each)) for each in self._feed.readers(entry.path, known)) or ((),)
        metadata = freeze({**entry.metadata, KEY: every_of(readers)})
        return replace(entry, gate=digest(entry.gate, canonical_json(metadata)), metadata=metadata)

    def _refresh_members(self, known: Known) -> tuple[str, ...]:
        """Ask for members and store them. Return notices about failures.

        After a failure the members of the last answer stay valid until a time limit.
        """
        if self._members is None:
            return ()
        now, origin = self._now(), self._feed.origin(known)
        before = None
        with suppress(StoreError):  # an unreadable table is replaced
            before = read_table(self._members)
        if before is None or before.origin != origin:
            before = MembershipTable(origin=origin, tried_at=now)
        try:
            self._begin(self._budget_s)
            with _translate_shape_errors():
                table = before.read_again(self._feed.members(known), now)
        except SourceUnavailableError as error:
            table = before.not_read(str(error), now)
        with suppress(StoreError):  # a process that asked later but finished earlier has newer members
            there = read_table(self._members)
            if there and there.origin == origin and now < there.tried_at <= self._now():
                return ()
        try:
            write_table(self._members, table)
        except StoreError as error:
            return (f"who may read is not known anew: {error}",)
        more = f"; and {len(table.problems) - 1:,} more" if len(table.problems) > 1 else ""
        return (f"who may read is not known anew of {table.problems[0]}{more}",) if table.problems else ()

    def _pull(self, mirror: Mirror) -> None:
        """Read the API to the end of a pass."""
        self._begin(self._budget_s)
        now, anew = self._now(), self._is_thorough
        state = mirror.begin(full=anew or self._is_due(mirror.state(), now), anew=anew, now=now)
        state = replace(state, is_thorough=anew)
        with _translate_shape_errors():
            try:
                self._read(mirror, state)
            except PositionLostError:
                mirror.restart()
                self._read(mirror, replace(state, position=None))
        mirror.complete(now)
        self._is_thorough = False

    def _read(self, mirror: Mirror, state: Pass) -> None:
        expected, asked_at = None, self._now()
        for page in self._feed.pages(state, mirror):
            mirror.store(page, state.number, asked_at)
            asked_at = self._now()
            expected = page.expected if page.expected is not None else expected
            self._watcher(*mirror.totals(), expected)

    def _begin(self, seconds: float) -> None:
        """Limit the time for asking the API to ``seconds``."""
        if self._problem:
            raise SourceUnavailableError(self._problem)
        if self._feed.client:
            self._feed.client.ends_at = time.monotonic() + seconds

    def _is_due(self, before: Pass, now: float) -> bool:
        """Tell whether a full pass is due.

        If the last full pass lies in the future, a clock was wrong, and a full pass counts as due.
        """
        return not before.full_at or not 0 <= now - before.full_at < self._relist_s


@contextmanager
def _translate_shape_errors() -> Iterator[None]:
    """Turn the errors that an answer of unexpected form causes inside the block into ``SourceUnavailableError``."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SourceUnavailableError(f"an answer of another shape than expected ({error!r})") from error


def _left_out(mirror: Mirror) -> list[Skip]:
    """Return at most ``_MAX_SKIPS`` skips of what the feed left out. If there are more, the last skip counts them."""
    reasons = (
        Skip(str(body.get("path")), str(body["reason"])) for _, body in mirror.under(LEFT_OUT) if body.get("reason")
    )
    skipped = list(islice(reasons, _MAX_SKIPS))
    more = sum(1 for _ in reasons)
    return [*skipped, Skip("…", f"{more:,} more are left out")] if more else skipped
