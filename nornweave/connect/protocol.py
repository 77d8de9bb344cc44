"""The ports of sources: what every kind implements, and the ``Connector`` that declares a kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from nornweave.config.sources import SourceSettings
from nornweave.core.errors import DocumentError, SourceUnavailableError
from nornweave.core.files.paths import OwnFiles, Within
from nornweave.core.types import Document, Domain, Entry, Listing, SourceId


@runtime_checkable
class Checked(Protocol):
    """A source that can be tested without reading all of it."""

    def check(self) -> None:
        """Test with as few requests as possible whether the source can be read.

        Raises:
            SourceUnavailableError: the source cannot be read.
        """


@runtime_checkable
class Copying(Protocol):
    """A source that stores copies of its documents, because they are fetched or deposited."""

    def copies_of(self, path: str) -> int:
        """Count the stored copies of a document.

        Raises:
            SourceUnavailableError: the copies cannot be read.
        """

    def forget(self, path: str) -> None:
        """Delete the stored copies of a document, including their bytes on disk.

        A document that still exists at its origin is fetched again.

        Raises:
            SourceUnavailableError: the copies cannot be removed.
        """


@runtime_checkable
class Watchable(Protocol):
    """A source in a folder whose changes the file system reports."""

    def watched_folder(self) -> str | None:
        """Return the folder outside of which no change affects the documents; ``None`` if there is no such folder."""

    def list_within(self, within: Within | None) -> Listing:
        """List the documents at some paths in the same way as ``list``.

        A path that affects other paths, such as ``.gitignore``, stands for its whole folder. Paths that the rules
        exclude are not in the listing's ``within``.
        """


class Source(Protocol):
    """A place from which documents come.

    ``list`` is cheap and reads no contents. ``fetch`` reads one document. ``parse`` depends only on the bytes that
    ``fetch`` returns, so their hash tells whether the document changed.
    """

    @property
    def id(self) -> SourceId:
        """The source's name in ``nornweave.yaml``."""

    @property
    def domain(self) -> Domain:
        """The domain to which its documents belong."""

    @property
    def version(self) -> str:
        """The version of parsing. It changes whenever the same bytes may give another document."""

    def list(self) -> Listing:
        """List every document by path, and all files that are left out, with the reasons.

        Raises:
            SourceUnavailableError: the source cannot be listed now. Documents that are already indexed stay.
        """

    def fetch(self, entry: Entry) -> bytes:
        """Read one document.

        Raises:
            DocumentError: the document cannot be read. It is a ``TransientDocumentError`` if another attempt may
                succeed.
        """

    def parse(self, entry: Entry, raw: bytes) -> Document:
        """Parse the bytes of ``fetch`` into a document.

        Raises:
            DocumentError: the document is broken, empty, encrypted or otherwise unreadable. It is a ``DocumentSkipped``
                if the document should be left out.
        """


@dataclass(frozen=True, slots=True)
class UnopenedSource:
    """A source that cannot be opened. Its indexed documents stay as they are."""

    id: SourceId
    domain: Domain
    problem: str
    version: str = ""

    def list(self) -> Listing:
        """Raise the reason why the source cannot be opened."""
        raise SourceUnavailableError(self.problem)

    def fetch(self, _: Entry) -> bytes:
        """Raise the reason why the source cannot be opened."""
        raise DocumentError(self.problem)

    def parse(self, _: Entry, __: bytes) -> Document:
        """Raise the reason why the source cannot be opened."""
        raise DocumentError(self.problem)


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a repository is ahead of the commit that was read.

    Attributes:
        commits: the number of newer commits, along first parents.
        uncommitted: whether tracked files differ from the last commit; ``None`` if unknown.
    """

    commits: int
    uncommitted: bool | None


S = TypeVar("S", bound=SourceSettings)

AT_ONCE = "the next sync"


@dataclass(frozen=True, slots=True)
class Connector(Generic[S]):
    """A kind of source.

    Attributes:
        settings: the class of the settings of an entry in ``sources:``. Its field ``type`` names the kind.
        open: a function that returns a source without reading it. Its arguments are the settings and the workspace's
            own files. It imports the feed and the parser only when it is called, because a process that only answers
            questions needs just the settings.
        bound: a function that returns how long a change or a deletion at the source may go unnoticed, in syncs or as a
            time.
    """

    settings: type[S]
    open: Callable[[S, OwnFiles], Source]
    bound: Callable[[S], str] = lambda _: AT_ONCE

    @property
    def type(self) -> str:
        """The ``type`` that the configuration of its sources states."""
        return str(self.settings.model_fields["type"].default)
