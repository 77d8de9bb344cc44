"""The ports of sources: what every kind implements, and the ``Connector`` that declares a kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from nornweave.config.sources import SourceSettings
from nornweave.core.errors import DocumentError, SourceUnavailableError
from nornweave.core.files.paths import Within
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Document, Domain, Entry, Listing, SourceId


@runtime_checkable
class Checked(Protocol):
    """A source that can be tested without a full reading."""

    def check(self) -> None:
        """Test with as few requests as possible whether the source can be read.

        Raises:
            SourceUnavailableError: it cannot.
        """


@runtime_checkable
class Copying(Protocol):
    """A source that stores copies of documents: fetched or deposited ones."""

    def copies_of(self, path: str) -> int:
        """Count the stored copies of a document.

        Raises:
            SourceUnavailableError: the copies cannot be read.
        """

    def forget(self, path: str) -> None:
        """Delete the stored copies of a document with their bytes. A document that still exists is fetched again.

        Raises:
            SourceUnavailableError: it cannot be removed.
        """


@runtime_checkable
class Watchable(Protocol):
    """A source in a folder whose changes the file system reports."""

    def watched_folder(self) -> str | None:
        """Return the resolved folder of everything that affects the documents, or ``None`` if there is none."""

    def list_within(self, within: Within | None) -> Listing:
        """List what exists at some paths, as ``list`` would.

        A path that affects others (``.gitignore``) stands for its folder. Paths that the rules exclude are not in the
        listing's ``within``.
        """


class Source(Protocol):
    """A place of documents.

    ``list`` is cheap and reads no contents; ``fetch`` reads one document; ``parse`` is pure. The bytes that ``fetch``
    returns are everything that ``parse`` depends on, so their hash tells whether the document changed.
    """

    @property
    def id(self) -> SourceId:
        """The source's name in ``nornweave.yaml``."""

    @property
    def domain(self) -> Domain:
        """The domain that it feeds."""

    @property
    def version(self) -> str:
        """The version; it changes when the same bytes may give another document."""

    def list(self) -> Listing:
        """List every document by path, and all files that are left out, with the reasons.

        Raises:
            SourceUnavailableError: the source cannot be listed now. Its documents stay.
        """

    def fetch(self, entry: Entry) -> bytes:
        """Read one document.

        Raises:
            DocumentError: it cannot be read; ``TransientDocumentError`` when trying again may help.
        """

    def parse(self, entry: Entry, raw: bytes) -> Document:
        """Parse the bytes of ``fetch`` into a document.

        Raises:
            DocumentError: it is broken, empty, encrypted, …; ``DocumentSkipped`` when leaving it out is right.
        """


@dataclass(frozen=True, slots=True)
class UnopenedSource:
    """A source that cannot be opened. Its documents stay as they are."""

    id: SourceId
    domain: Domain
    problem: str
    version: str = ""

    def list(self) -> Listing:
        """Raise the reason."""
        raise SourceUnavailableError(self.problem)

    def fetch(self, _: Entry) -> bytes:
        """Raise the reason. Nothing was listed."""
        raise DocumentError(self.problem)

    def parse(self, _: Entry, __: bytes) -> Document:
        """Raise the reason. Nothing was listed."""
        raise DocumentError(self.problem)


@dataclass(frozen=True, slots=True)
class Lag:
    """The commits after the one that was read.

    Attributes:
        commits: along first parents.
        uncommitted: tracked files that changed since the last commit; ``None`` if unknown.
    """

    commits: int
    uncommitted: bool | None


S = TypeVar("S", bound=SourceSettings)

AT_ONCE = "the next sync"


@dataclass(frozen=True, slots=True)
class Connector(Generic[S]):
    """A kind of source.

    Attributes:
        settings: the keys of an entry of ``sources:``; its field ``type`` names the kind.
        open: returns a source without reading anything. Takes the settings and the workspace's own files. It imports
            the feed and the parser itself: a process that only answers reads settings and loads neither.
        bound: returns how many syncs, or how much time, a change or deletion at the source takes to count.
    """

    settings: type[S]
    open: Callable[[S, OwnFiles], Source]
    bound: Callable[[S], str] = lambda _: AT_ONCE

    @property
    def type(self) -> str:
        """The ``type`` of its sources."""
        return str(self.settings.model_fields["type"].default)
