"""A source of committed files that live on another machine: fetched into a clone, then read as any repository."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from nornweave.connect.git.address import parse_address
from nornweave.connect.git.clone import Clone, clone_place
from nornweave.connect.git.connector import GitSettings
from nornweave.connect.git.network import DamagedCloneError, Network, find_ref, is_name
from nornweave.connect.git.program import GitFailedError, check_version, run_git
from nornweave.connect.git.source import GitSource, UnreadableRepositoryError
from nornweave.connect.git.watched import MEGABYTE, TooLargeError
from nornweave.core.errors import ConfigError, SourceUnavailableError, TransientDocumentError
from nornweave.core.types import Document, Entry, Listing, SourceId

_DAMAGED = "damaged"
_LOST = "the server has no blob {}, though a commit names it; the next sync asks again, 'git fsck' there says more"
_VERSION_S = 20.0
_HISTORY_S = 600.0
_VERSIONS = ("rev-list", "--objects", "--all", "--missing=print", "--")


class RemoteGitSource:
    """The files of one branch, tag or commit of a repository that has an address."""

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
        )  # fmt: skip

    @property
    def version(self) -> str:
        return self._files.version

    def check(self) -> None:
        """Ask where the ref points, and store nothing."""
        check_version(timeout_s=_VERSION_S)
        find_ref(self._clone.network, self._ref)

    def list(self) -> Listing:
        """Fetch what is new and list it; a repository that did not change costs one request.

        Raises:
            SourceUnavailableError: why it cannot be read, and what to do; what was fetched before stays.
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
        """Read a file from the clone; the network is not asked.

        Raises:
            DocumentError: it is too large, or was not listed by this source.
            TransientDocumentError: the clone does not have it, or cannot be read; then the next sync clones anew.
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
        """Count the versions of a file that the clone holds, but for those that are another file's now."""
        if not (self._clone.repository / "HEAD").is_file():
            return 0
        try:
            objects = run_git(self._clone.repository, *_VERSIONS, path, timeout_s=_HISTORY_S).decode("utf-8", "replace")
        except GitFailedError as error:
            raise SourceUnavailableError(f"{self._clone.repository}: cannot be read: {error}") from error
        # What is not here begins with "?".
        return sum(not line.startswith("?") and line.endswith(f" {path}") for line in objects.splitlines())

    def forget(self, path: str) -> None:  # noqa: ARG002 - one pack holds all files
        """Remove the clone; the next sync clones anew, without files of former commits."""
        self._files.close()
        with self._clone.writing() as clone:
            clone.start_anew()

    def close(self) -> None:
        """End the git process that ``fetch`` keeps."""
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
