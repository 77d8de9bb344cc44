"""A source of committed files on another machine: fetch them into a clone, then read that.

A clone keeps what was read: commits and folders of the wanted refs, and chosen files.

Sources of the same address share one bare repository below ``data_dir``, and so everything that their branches have in
common. One process at a time writes, under a lock that git's own processes inherit: what a killed sync leaves running
holds the lock until it has ended; what it leaves unfinished is removed by the next one.

A ref is kept under a name of its own, whatever it points at upstream: force-pushes, renames and deletions move or end
it, and nothing else.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile

from nornweave.connect.connectors import GitSettings
from nornweave.connect.git.address import GitAddress, parse_address
from nornweave.connect.git.network import COMMIT_ID, FETCH_S, DamagedCloneError, Network, find_ref, is_name
from nornweave.connect.git.program import (
    MEGABYTE,
    Bounds,
    GitFailedError,
    TooLargeError,
    check_version,
    git_command,
    git_environment,
    run_git,
    run_watched,
)
from nornweave.connect.git.source import GitSource, UnreadableRepositoryError
from nornweave.connect.git.tree import MAX_FILES
from nornweave.core.errors import ConfigError, DomainBusyError, SourceUnavailableError, TransientDocumentError
from nornweave.core.files.lock import WriterLock
from nornweave.core.types import Document, Entry, Listing, SourceId, digest

log = logging.getLogger(__name__)

FOLDER = "git"
LOCK_WAIT_S = 900.0
"""How long a sync waits for another one that reads the same repository."""
_REPOSITORY, _LOCK = "repository.git", "lock"
MANY_PACKS = 50
"""Every fetch leaves one or two packs; so many are put into one."""
_LOCAL_S = 300.0
_SIZES_BYTES = 128 * MAX_FILES


@dataclass(frozen=True, slots=True)
class Clone:
    """The local clone of a remote repository.

    Attributes:
        repository: the path of the bare repository.
        max_bytes: the maximum size of the clone on disk.
        lock: the file descriptor of the lock; set while this process holds the lock.
    """

    repository: Path
    network: Network
    max_bytes: int
    lock: int = -1

    @contextmanager
    def writing(self) -> Iterator[Clone]:
        """Lock the clone for writing.

        Raises:
            SourceUnavailableError: another sync holds the lock for too long, or the clone cannot be written.
        """
        file = self.repository.parent / _LOCK
        try:
            with WriterLock(file, purpose="a sync", wait_s=LOCK_WAIT_S, waits_silently=True) as lock:
                yield replace(self, lock=lock.descriptor)
        except DomainBusyError as error:
            shown = self.network.address.shown
            raise SourceUnavailableError(
                f"{shown}: another sync has been reading it for {LOCK_WAIT_S:g} s; the next one tries again"
            ) from error
        except OSError as error:
            raise SourceUnavailableError(f"{file}: {error.strerror}; let data_dir be written") from error

    def update(self, ref: str) -> str:
        """Fetch the commit of a ref if the clone lacks it. Return the commit.

        A commit that the clone already has needs no network. A branch or tag that did not move needs one request.

        Raises:
            DamagedCloneError: the clone cannot be used. Call ``start_anew`` to repair it.
            SourceUnavailableError: the repository cannot be read. The message says why and what to do.
        """
        self._prepare()
        kept = self._fetched_commit(ref)
        if COMMIT_ID.fullmatch(ref) and kept:
            return kept
        name, commit = find_ref(self.network, ref)
        if commit != kept:
            self.network.fetch(self.repository, [f"+{name}:{_local_name(ref)}"], self._bounds)
            kept = self._fetched_commit(ref)
        if kept is None:
            raise DamagedCloneError(f"what {ref!r} points at did not arrive")
        return kept

    def provide(self, blobs: Collection[str]) -> Mapping[str, int]:
        """Fetch missing files. Return the sizes of all files that the clone now has, by object id.

        Raises:
            DamagedCloneError: the clone cannot be used.
            SourceUnavailableError: the files cannot be fetched. The message says why and what to do.
        """
        sizes = self._sizes(blobs)
        missing = sorted(set(blobs) - sizes.keys())
        if missing:
            self.network.fetch_blobs(self.repository, missing, self._bounds)
            sizes = self._sizes(blobs)
        if len(list(self.repository.glob("objects/pack/*.pack"))) > MANY_PACKS:
            self.network.repack(self.repository, self._bounds)
        return sizes

    def start_anew(self) -> None:
        """Delete everything that was fetched."""
        shutil.rmtree(self.repository, ignore_errors=True)

    @property
    def _bounds(self) -> Bounds:
        return Bounds(FETCH_S, self.repository, self.max_bytes, inherited=(self.lock,))

    def _prepare(self) -> None:
        """Delete the remains of a killed git process. Create the repository if it does not exist."""
        remove_leftovers(self.repository)
        if (self.repository / "HEAD").is_file() and not self.is_empty:
            return
        self.start_anew()
        try:
            run_git(Path("/"), "init", "--quiet", "--bare", "--template=", str(self.repository), timeout_s=_LOCAL_S)
        except GitFailedError as error:
            raise SourceUnavailableError(
                f"{self.repository}: it cannot be made ({error}); let data_dir be written, and make room"
            ) from error

    def _fetched_commit(self, ref: str) -> str | None:
        """Return the commit that was fetched for a ref; ``None`` if none was."""
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{_local_name(ref)}^{{commit}}")
        try:
            return run_git(self.repository, *arguments, timeout_s=_LOCAL_S).decode("ascii", "replace").strip()
        except GitFailedError:
            return None

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing has been fetched."""
        objects = self.repository / "objects"
        return not any(objects.glob("pack/*.idx")) and not any(objects.glob("??/*"))

    def _sizes(self, blobs: Collection[str]) -> dict[str, int]:
        """Return the sizes of those files that the clone has. Other files are not fetched."""
        with TemporaryFile() as names:
            names.write("".join(f"{blob}\n" for blob in sorted(set(blobs))).encode("ascii"))
            names.seek(0)
            arguments = ("cat-file", "--buffer", "--batch-check=%(objectname) %(objectsize)")
            command, bounds = (
                git_command(self.repository, *arguments),
                Bounds(_LOCAL_S, max_answer_bytes=_SIZES_BYTES, given=names),
            )
            ended = run_watched(command, git_environment(), bounds, str(self.repository))
        if ended.code:
            raise DamagedCloneError(ended.complaint.strip() or "git cat-file fails")
        lines = (line.split() for line in ended.said.decode("ascii", "replace").splitlines())
        return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}


def remove_leftovers(repository: Path) -> None:
    """Delete unfinished files and locks of a killed git process. The caller must hold the clone's lock."""
    for place, folders, files in os.walk(repository):
        for name in [name for name in folders if name.startswith(("tmp_objdir-", "incoming-"))]:
            shutil.rmtree(f"{place}/{name}", ignore_errors=True)
            folders.remove(name)
        for name in files:
            stem, _, suffix = name.rpartition(".")
            # A pack counts from its index on; ".keep" says that a fetch is under way.
            is_unfinished = place.endswith("/pack") and suffix != "idx" and f"{stem}.idx" not in files
            if suffix in {"lock", "keep"} or name.startswith(("tmp_", ".tmp-")) or is_unfinished:
                with suppress(OSError):
                    os.unlink(f"{place}/{name}")  # noqa: PTH108


def _local_name(ref: str) -> str:
    """Return a ref's local name. It is a digest, because git does not allow both "a" and "a/b" as names."""
    return f"refs/nornweave/{digest(ref)}"


def clone_place(data_dir: Path, address: GitAddress) -> Path:
    """Return the path of the clone of an address."""
    return data_dir / FOLDER / address.key / _REPOSITORY


def remove_unused(data_dir: Path, urls: Iterable[str]) -> None:
    """Delete clones that no source uses, unless they are being written.

    Args:
        urls: the addresses of all sources.

    Raises:
        ConfigError: one of the addresses is invalid.
    """
    wanted = {parse_address(url).key for url in urls}
    folder = data_dir / FOLDER
    for unused in folder.iterdir() if folder.is_dir() else ():
        repository = unused / _REPOSITORY
        if unused.name not in wanted and repository.is_dir():
            with suppress(OSError, DomainBusyError), WriterLock(unused / _LOCK, purpose="removal"):
                shutil.rmtree(repository)
                log.info("removed the clone %s: no source names its repository any more", repository)


_DAMAGED = "damaged"
_LOST = "the server has no blob {}, though a commit names it; the next sync asks again, 'git fsck' there says more"
_VERSION_S = 20.0
_HISTORY_S = 600.0
_VERSIONS = ("rev-list", "--objects", "--all", "--missing=print", "--")


class RemoteGitSource:
    """The files of one branch, tag or commit of a remote repository."""

    def __init__(self, settings: GitSettings, data_dir: Path) -> None:
        self.id, self.domain = SourceId(settings.id), settings.domain
        self._ref = settings.ref
        if not is_name(self._ref):
            raise ConfigError(
                f"sources[{self.id}].ref: {self._ref!r}; expected a branch, a tag or all digits of a commit"
            )
        address = parse_address(settings.url or "")
        only = settings.public_addresses_only
        network = Network(address, credentials_env=settings.credentials_env, public_only=only)
        place, most = clone_place(data_dir, address), settings.max_megabytes * MEGABYTE
        self._clone = Clone(place, network, most)
        self._files = GitSource(
            self.id, self.domain, self._clone.repository, include=settings.include, only=settings.only,
            exclude=settings.exclude, web_url=settings.web_url, origin=address.url, shown=address.shown,
            history=settings.commit_history(self._clone.repository, is_partial=True),
        )  # fmt: skip

    @property
    def version(self) -> str:
        return self._files.version

    def check(self) -> None:
        """Ask the server for the commit of the ref. Store nothing."""
        check_version(timeout_s=_VERSION_S)
        find_ref(self._clone.network, self._ref)

    def list(self) -> Listing:
        """Fetch the newest commit and list its files. If nothing changed, only one request is made.

        Raises:
            SourceUnavailableError: the repository cannot be read. The message says why and what to do. Earlier fetches
                are kept.
        """
        check_version(timeout_s=_VERSION_S)
        self._files.close()
        with self._clone.writing() as clone:
            if not clone.is_empty and not self._mark.exists():
                # Files of former commits may be most of what is too large.
                with suppress(DamagedCloneError, TooLargeError):
                    return self._list(clone)
            clone.start_anew()
            self._mark.unlink(missing_ok=True)
            try:
                return self._list(clone)
            except (DamagedCloneError, TooLargeError) as error:
                clone.start_anew()
                raise SourceUnavailableError(str(error)) from error

    def fetch(self, entry: Entry) -> bytes:
        """Read a file from the clone, without the network.

        Raises:
            DocumentError: the file is too large, or this source did not list it.
            TransientDocumentError: the clone does not have the file, or the clone cannot be read. In that case the next
                sync makes a new clone.
        """
        try:
            return self._files.fetch(entry)
        except TransientDocumentError as error:
            if error.__cause__ is None:
                raise TransientDocumentError(_LOST.format(entry.gate)) from error
            if not isinstance(error.__cause__, TimeoutError):
                with suppress(OSError):
                    self._mark.touch()
            raise

    def parse(self, entry: Entry, raw: bytes) -> Document:
        return self._files.parse(entry, raw)

    def copies_of(self, path: str) -> int:
        """Count the versions of a file in the clone.

        A version that is now the content of another file does not count.
        """
        if not (self._clone.repository / "HEAD").is_file():
            return 0
        try:
            objects = run_git(self._clone.repository, *_VERSIONS, path, timeout_s=_HISTORY_S).decode("utf-8", "replace")
        except GitFailedError as error:
            raise SourceUnavailableError(f"{self._clone.repository}: cannot be read: {error}") from error
        # The line of a missing object begins with "?".
        return sum(not line.startswith("?") and line.endswith(f" {path}") for line in objects.splitlines())

    def forget(self, path: str) -> None:  # noqa: ARG002 - one pack holds all files
        """Delete the whole clone. The next sync makes a new clone, which has no files of old commits."""
        self._files.close()
        with self._clone.writing() as clone:
            clone.start_anew()

    def close(self) -> None:
        """End the git process that ``fetch`` uses."""
        self._files.close()

    @property
    def _mark(self) -> Path:
        return self._clone.repository.parent / _DAMAGED

    def _list(self, clone: Clone) -> Listing:
        commit = clone.update(self._ref)
        try:
            return replace(self._files, ref=commit, provide=clone.provide).list()
        except UnreadableRepositoryError as error:
            raise DamagedCloneError(str(error)) from error
