"""Follow a publisher: poll its store, download new generations, publish them here, record the replica's state."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nornweave.carry.parts import Digests, ObjectStore, StoredDocument, has_file, pull
from nornweave.carry.publication import (
    DomainStanding,
    PublishedCommit,
    Standing,
    commit_key,
    read_json,
    read_standing,
    standing_file,
    write_standing,
)
from nornweave.carry.publishing import KEY, WorkspaceDocument, replica_configuration, take_over
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import MissingObjectError, NornWeaveError, PublicationError
from nornweave.core.files.writing import sync_path, write_whole
from nornweave.core.types import Domain, GenerationId
from nornweave.index.generations.kept import number_of
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.outcomes import STATUS

log = logging.getLogger(__name__)

POLL_S = 1.0
LONGEST_PAUSE_S = 30.0
# While nothing changes, the record is written this often: its age shows that the follower runs.
WRITE_EVERY_S = 5.0


class Follower:
    """Keeps a replica's folder equal to what the store publishes. ``run`` works until ``stop`` is called."""

    def __init__(
        self,
        store: ObjectStore,
        folder: Path,
        own: Mapping[str, Any] = MappingProxyType({}),
        *,
        keys: Collection[str] = (),
        poll_s: float = POLL_S,
    ) -> None:
        """Store the arguments. Nothing is read before ``prepare``.

        Args:
            folder: the replica's folder. ``nornweave.yaml`` and the folder ``var`` are written there.
            own: this machine's own settings for ``nornweave.yaml``, as in ``replica_configuration``.
            keys: the public keys of trusted publishers. If it is empty, signatures are not checked.
            poll_s: seconds between two polls.
        """
        self._store = store
        self._own = own
        self._keys = keys
        self._poll_s = poll_s
        self._renewed = threading.Event()
        self._stopping = threading.Event()
        self._read: dict[str, StoredDocument] = {}
        self._standing = Standing(url=store.url)
        self._written_at = 0.0
        self._settings: Settings | None = None
        self.config = folder / "nornweave.yaml"
        self.has_looked = threading.Event()
        """Set after the first look at everything."""

    @property
    def settings(self) -> Settings:
        """Return the settings of the current configuration."""
        assert self._settings is not None, "not prepared"
        return self._settings

    def prepare(self) -> bool:
        """Write the configuration from the workspace document. If that fails, keep the old configuration.

        Returns:
            Whether there is a configuration now.

        Raises:
            PublicationError: there is no old configuration, and the store cannot be reached or its document is damaged.
        """
        document = None
        try:
            document = self._workspace()
        except PublicationError as error:
            if not self.config.exists():
                if isinstance(error, MissingObjectError):
                    return False
                raise
            log.warning("%s; what was brought before is served", error)
        if document:
            self.config.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.config, replica_configuration(document, self._store.url, self._own))
        self._settings = load_settings(self.config)
        self.settings.data_dir.mkdir(parents=True, exist_ok=True)
        if document:
            self._take_over(document)
        known = read_standing(standing_file(self.settings.data_dir))
        if known and known.url == self._store.url:
            served = {domain.value for domain in self.settings.served_domains}
            domains = {name: each for name, each in known.domains.items() if name in served}
            self._standing = replace(known, domains=domains)
        return True

    def run(self) -> None:
        """Poll until ``stop`` is called. Pauses grow while the store does not answer."""
        pause_s = self._poll_s
        while not self._stopping.is_set():
            try:
                is_reached = self.poll()
            except Exception:  # a full disk, a defect: the thread that ends is never replaced
                log.exception("the store cannot be followed now; it is tried again")
                is_reached = False
            pause_s = self._poll_s if is_reached else min(2 * pause_s, LONGEST_PAUSE_S)
            self._stopping.wait(pause_s)

    def stop(self) -> None:
        """End ``run`` after the current request."""
        self._stopping.set()

    def poll(self) -> bool:
        """Poll everything once. Return whether the store answered and had everything that it names."""
        try:
            problem = self._look_at_workspace()
            self._note(replace(self._standing, problem=problem))
            problems = [problem, *map(self._follow, self.settings.served_domains)]
        except Stopped:
            return True
        is_reached = not any(problems)
        self._note(replace(self._standing, checked_at=time.time() if is_reached else self._standing.checked_at))
        self.has_looked.set()
        return is_reached

    def _look_at_workspace(self) -> str | None:
        """Apply the workspace document if it has changed. Return what went wrong; ``None`` if nothing did."""
        try:
            document = self._workspace()
            if document:
                wanted = replica_configuration(document, self._store.url, self._own)
                has_changed = wanted != self.config.read_text(encoding="utf-8")
                if has_changed:
                    self._rewrite(wanted)
                self._take_over(document)
                if has_changed:
                    log.info("the publisher's settings have changed; they are taken over")
                    self._renewed.set()
        except (NornWeaveError, OSError) as error:
            self._read.pop(KEY, None)
            return str(error)
        return None

    def has_new_settings(self) -> bool:
        """Tell whether the settings have changed since the last call."""
        if not self._renewed.is_set():
            return False
        self._renewed.clear()
        return True

    def _rewrite(self, wanted: str) -> None:
        """Replace the configuration if the new one can be read.

        Raises:
            ConfigError: the new configuration is of another version.
        """
        aside = self.config.with_name(f".new-{self.config.name}")
        write_whole(aside, wanted)
        load_settings(aside)
        aside.replace(self.config)
        self._settings = load_settings(self.config)

    def _workspace(self) -> WorkspaceDocument | None:
        """Return the workspace document if it has changed since it was last read, else ``None``."""
        stored = self._changed(KEY)
        if stored is None:
            return None
        document = read_json(WorkspaceDocument, stored.content, f"{self._store.url}/{KEY}", self._keys)
        self._read[KEY] = stored
        return document

    def _changed(self, key: str) -> StoredDocument | None:
        known = self._read.get(key)
        return self._store.read(key, unless=known.tag if known else None)

    def _take_over(self, document: WorkspaceDocument) -> None:
        for domain in document.served:
            if domain not in self.settings.served_domains or not any(self.settings.sources_of(domain)):
                self.settings.inbox(domain).mkdir(parents=True, exist_ok=True)
        take_over(document, self.settings)

    def _follow(self, domain: Domain) -> str | None:
        """Bring a domain up to date. Return what went wrong; ``None`` if nothing did.

        After an error the old generation stays.
        """
        files = store_of(self.settings, domain).files
        known = self._standing.domains.get(domain.value, DomainStanding())
        commit: PublishedCommit | None = None

        def note(problem: str | None) -> None:
            standing = _standing_of(files, commit, known, problem)
            self._note(replace(self._standing, domains={**self._standing.domains, domain.value: standing}))

        try:
            stored = self._changed(commit_key(domain.value))
            if stored:
                where = f"{self._store.url}/{commit_key(domain.value)}"
                commit = read_json(PublishedCommit, stored.content, where, self._keys)
                note(known.problem)
                bring(self._store, self.settings, domain, commit, self._stopping)
                self._read[commit_key(domain.value)] = stored
            problem = None
        except Stopped:
            raise
        except MissingObjectError as error:
            problem = f"{error}; it was replaced and removed, looking again" if commit else None
            if commit is None and known.published:
                problem = f"{error}; the store was emptied, or another one is there under the same address"
        except (NornWeaveError, OSError) as error:
            problem = str(error)
        if problem and problem != known.problem:
            log.warning("%s: %s", domain.value, problem)
        note(problem)
        return problem

    def _note(self, standing: Standing) -> None:
        is_same = replace(standing, checked_at=self._standing.checked_at) == self._standing
        self._standing = standing
        if is_same and time.monotonic() - self._written_at < WRITE_EVERY_S:
            return
        write_standing(standing_file(self.settings.data_dir), standing)
        self._written_at = time.monotonic()


def _standing_of(
    files: GenerationFiles, commit: PublishedCommit | None, before: DomainStanding, problem: str | None
) -> DomainStanding:
    published = commit.generation if commit else before.published
    current = files.current()
    is_behind = published is not None and published != current
    return DomainStanding(
        published=published,
        published_at=commit.published_at if commit else before.published_at,
        generation=current,
        behind_since=(before.behind_since or time.time()) if is_behind else None,
        problem=problem,
    )


class Stopped(PublicationError):  # noqa: N818 - not a failure
    """A download was stopped because the replica is shutting down. The next start continues it."""


def bring(
    store: ObjectStore, settings: Settings, domain: Domain, commit: PublishedCommit, stopping: threading.Event
) -> None:
    """Download and serve a committed generation. Remove generations that must not answer any more.

    Raises:
        MissingObjectError: an object is no longer in the store.
        PublicationError: the store cannot be reached, or its generation is damaged, older or of another domain.
        Stopped: the replica is shutting down.
    """
    files = store_of(settings, domain).files
    if commit.domain is not domain:
        raise PublicationError(f"{store.url}/{commit_key(domain.value)}: is of {commit.domain.value}")
    if not _is_here(store, commit, files.current()):
        if commit.generation not in files.all():
            _download(store, domain_folder(settings, domain), commit, stopping)
        files.point_at(commit.generation, datetime.fromisoformat(commit.published_at), commit.built_at)
        log.info("%s: %s was brought", domain.value, commit.generation)
        # For the status. Only the publisher knows why documents failed.
        latest = {"generation": commit.generation, "documents": commit.documents, "chunks": commit.chunks}
        status = {"checked_at": commit.published_at, "latest": latest}
        write_whole(domain_folder(settings, domain) / STATUS, json.dumps(status))
        storage = settings.domains[domain].storage
        files.prune(storage.keep_generations, storage.keep)
    files.remove([generation for generation in files.all() if number_of(generation) < commit.oldest])


def _is_here(store: ObjectStore, commit: PublishedCommit, current: GenerationId | None) -> bool:
    """Tell whether the committed generation is the current one here.

    Raises:
        PublicationError: this machine serves a newer generation.
    """
    if current and number_of(current) > commit.number:
        raise PublicationError(
            f"{store.url}: names {commit.generation} of {commit.domain.value}, older than {current}, which "
            "answers: a stale answer of the store, or another store under the same address"
        )
    return current == commit.generation


def _download(store: ObjectStore, folder: Path, commit: PublishedCommit, stopping: threading.Event) -> None:
    """Download a generation's missing files. The pointer is not moved.

    Raises:
        PublicationError: another file has the name of a segment, and processes may have it open.
    """
    digests = Digests(folder)
    for name, file in commit.files.items():
        if ".duckdb" in name and (folder / name).is_file() and not has_file(folder / name, file, digests):
            raise PublicationError(
                f"{folder / name}: is another file than the one that was published under this name, as after the loss "
                "of the publisher's disk; run `nornweave sync --full` there"
            )
    digests.save()
    pull(store, folder, commit.files, arrived=partial(_go_on, stopping))
    sync_path(folder / "generations")


def _go_on(stopping: threading.Event, _: int) -> None:
    if stopping.is_set():
        raise Stopped("is shutting down")


def follow_in_background(follower: Follower) -> Callable[[], None]:
    """Start a follower in a thread. Return a function that ends it."""
    thread = threading.Thread(target=follower.run, name="follow-publisher", daemon=True)
    thread.start()

    def end() -> None:
        follower.stop()
        thread.join(timeout=5)

    return end
