"""``python -m orchestration.watch``: sync a saved file within seconds.

The file system tells which paths changed in the folders of sources; they alone are listed and compared, and stored by a
run in this process, which has the encoder loaded. It is a run like any other: under the domain's lock, and in the UI.
What this process leaves alone (many changes at once, removals that a person must confirm, what failed) is for the
sensors, which read in ``watched.json`` when to look at what.

Like the daemon it begins with the first byte of its standard input and ends with its end.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from nornweave.core.process import collect_rarely, end_silently, heed_signals

if __name__ == "__main__":
    end_silently()  # before anything large is imported
    collect_rarely()
import dagster as dg
import psutil
from watchfiles import watch

from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.connect.connectors import open_source
from nornweave.connect.protocol import Watchable
from nornweave.core.errors import ConfigError, DomainBusyError, NornWeaveError
from nornweave.core.files.paths import Within, is_inside
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import DomainSync
from nornweave.ingest.records import SyncOptions, no_progress
from nornweave.ingest.wiring import domain_parts
from orchestration.automation import Watched, has_unfinished_run, write_watched
from orchestration.daemon import end_with_starter
from orchestration.definitions import settings_from_environment
from orchestration.instance import open_instance
from orchestration.leases import process_mark
from orchestration.resources import sync_of
from orchestration.runs import materialize

log = logging.getLogger(__name__)

QUIET_MS = 200
"""Changes are taken together until nothing has changed for that long, at most for ``LONGEST_MS``."""
LONGEST_MS = 2_000
POLL_MS = 1_000
MAX_PATHS = 200
"""More changes of a domain at once (a branch that was checked out) are a sync of all of it."""
AGAIN_S = 60.0
# Others may be written by other machines, of which this one's kernel is told nothing.
LOCAL_FILE_SYSTEMS = frozenset(
    {"apfs", "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)


@dataclass(frozen=True, slots=True)
class WatchedSource:
    """A source with its watched folder and that folder's identity."""

    domain: Domain
    id: str
    source: Watchable
    folder: str
    identity: tuple[int, int] | None

    @property
    def key(self) -> str:
        """The source's name in the sensors: ``domain/source``."""
        return f"{self.domain.value}/{self.id}"


@dataclass(slots=True)
class Watch:
    """Watches folders and syncs their changes."""

    settings: Settings
    instance: dg.DagsterInstance
    _sources: tuple[WatchedSource, ...] = ()
    _told: dict[Domain, dict[str, set[str]]] = field(default_factory=dict)
    _watched: Watched = field(default_factory=lambda: Watched(process_mark()))
    _prepared: set[Domain] = field(default_factory=set)
    _is_refused: bool = False

    def run(self) -> None:
        """Watch until the settings change."""
        while True:
            self._sources = tuple(watched_sources(self.settings))
            for _ in self._rounds():
                if self._told and self._is_outdated():
                    return  # the next process lets the sensors look
                for domain in tuple(self._told):
                    self._sync(domain)
                if any(identity_of(each.folder) != each.identity for each in self._sources):
                    break  # a folder was replaced: what is watched is the old one

    def _rounds(self) -> Iterator[None]:
        """Collect changed paths. A round lasts up to a second and ends soon after a change."""
        folders = sorted({each.folder for each in self._sources})
        outermost = [each for each in folders if not any(is_inside(each, other) for other in folders if other != each)]
        changes = watch(
            *outermost,
            watch_filter=None,
            debounce=LONGEST_MS,
            step=QUIET_MS,
            rust_timeout=POLL_MS,
            yield_on_timeout=True,
            force_polling=False,
            ignore_permission_denied=True,
        )
        try:
            first = next(changes) if outermost else None
        except (OSError, RuntimeError) as error:  # too many folders; too many processes that watch some
            if not self._is_refused:
                log.warning("folders cannot be watched, they are listed again and again instead: %s", error)
            self._is_refused, first = True, None
        if first is None:
            self._tell(replace(self._watched, sources={}))
            time.sleep(AGAIN_S)
            return
        # Earlier changes are left to the sensors.
        self._tell(replace(self._watched, sources={each.key: new_mark() for each in self._sources}))
        for changed in chain([first], changes):
            self._note(path for _, path in changed)
            yield
            self._prepare()

    def _is_outdated(self) -> bool:
        with suppress(ConfigError):  # somebody is editing it
            return settings_from_environment() != self.settings
        return False

    def _note(self, paths: Iterator[str]) -> None:
        for path in map(_without_links, paths):
            for each in self._sources:
                if is_inside(path, each.folder):
                    told = self._told.setdefault(each.domain, {}).setdefault(each.id, set())
                    told.add(os.path.relpath(path, each.folder) if path != each.folder else "")

    def _prepare(self) -> None:
        """Compute the checksums of the published files of each domain, so that its first sync does not wait."""
        for domain in {each.domain for each in self._sources} - self._prepared:
            if store_of(self.settings, domain).current():
                self._prepared.add(domain)
                with suppress(NornWeaveError):
                    parts = domain_parts(self.settings, domain)
                    with parts.store.writer() as writer:
                        writer.unpublished(parts.provenance())  # files are read for their checksums once a process

    def _sync(self, domain: Domain) -> None:
        """Sync a domain's changed paths. While another process syncs the domain, the paths wait for the next round."""
        if has_unfinished_run(self.instance, domain.value):
            return
        told = self._told.pop(domain)
        try:
            if sum(map(len, told.values())) > MAX_PATHS or not self._is_done(domain, told):
                self._tell_changed(domain, told)
        except DomainBusyError:
            self._told[domain] = told
        except NornWeaveError as error:
            log.warning("%s: what changed is left to the next look: %s", domain.value, error)
            self._tell_changed(domain, told)

    def _is_done(self, domain: Domain, told: Mapping[str, set[str]]) -> bool:
        """Sync some paths. Return ``False`` if the sensor must start a run for them instead.

        Args:
            told: source id → changed paths.
        """
        if not store_of(self.settings, domain).current():
            return False
        # Before the domain is locked, which writes to ``data_dir``: that may lie in a folder that is watched.
        sources = [each for each in self._sources if each.domain is domain and each.id in told]
        listings = {each.id: each.source.list_within(Within(frozenset(told[each.id]))) for each in sources}
        listed = {name: each for name, each in listings.items() if each.within is None or each.within.paths}
        if not listed:
            return True
        with sync_of(self.settings, domain, SyncOptions(listed=listed, wait_s=0), no_progress) as sync:
            changes = sync.list_changes()
            if changes.held or changes.unavailable or not sync.is_of_paths:
                return False
            return not (changes.due or changes.removed) or self._is_synced(domain, sync)

    def _is_synced(self, domain: Domain, sync: DomainSync) -> bool:
        run = materialize(self.settings, [domain], SyncOptions(), None, self.instance, after=(), opened={domain: sync})
        outcome = run.outcomes[domain]
        if isinstance(outcome, str):
            log.warning("%s: what changed is left to the next look: %s", domain.value, outcome)
            return False
        if outcome.published:
            self._tell(replace(self._watched, ledger=new_mark()))
        return True

    def _tell_changed(self, domain: Domain, told: Mapping[str, set[str]]) -> None:
        """Tell the sensors that these sources have changed."""
        wanted = {f"{domain.value}/{each}" for each in told}
        marks = {
            each.key: new_mark() if each.key in wanted else self._watched.sources[each.key] for each in self._sources
        }
        self._tell(replace(self._watched, sources=marks))

    def _tell(self, watched: Watched) -> None:
        self._watched = watched
        write_watched(self.settings, self._watched)


def watched_sources(settings: Settings) -> Iterator[WatchedSource]:
    """Yield the sources whose folders can be watched, because only this machine writes to their disk."""
    for domain in settings.served_domains:
        for configured in settings.sources_of(domain):
            with suppress(NornWeaveError):
                source = open_source(configured, settings.own_files)
                if not isinstance(source, Watchable):
                    continue
                folder = source.watched_folder()
                if folder and _is_local(folder):
                    yield WatchedSource(domain, configured.id, source, folder, identity_of(folder))


def identity_of(folder: str) -> tuple[int, int] | None:
    """Return a folder's device and inode, or ``None`` if it is missing."""
    try:
        status = os.stat(folder)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _without_links(path: str) -> str:
    """Return a path with the links in its folder resolved."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


def _is_local(folder: str) -> bool:
    places = [each for each in psutil.disk_partitions(all=True) if is_inside(folder, each.mountpoint)]
    nearest = max(places, key=lambda each: len(each.mountpoint), default=None)
    return nearest is not None and nearest.fstype in LOCAL_FILE_SYSTEMS


def new_mark() -> str:
    """Return a mark that was not used before."""
    return str(time.time_ns())


def main() -> int:
    """Watch until a signal comes, the starting process ends or the settings change. Return the exit code, 0."""
    if not os.read(0, 1):
        return 0
    heed_signals()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=end_with_starter, args=(signal.SIGINT,), name="starter", daemon=True).start()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    try:
        settings = settings_from_environment()
        with open_instance(settings) as instance:
            Watch(settings, instance).run()
    except NornWeaveError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
