"""The port that every kind of source implements."""

from __future__ import annotations

from typing import Protocol

from nornweave.types import Document, Domain, Entry, Listing, SourceId


class Source(Protocol):
    """Where documents come from.

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
        """Changes when the same bytes may be parsed into a different document."""

    def list(self) -> Listing:
        """List every document, by path, and what was left out and why.

        Raises:
            SourceUnavailableError: the source cannot be listed now; nothing follows about its documents.
        """

    def fetch(self, entry: Entry) -> bytes:
        """Read one document.

        Raises:
            DocumentError: it cannot be read; ``TransientDocumentError`` when trying again may help.
        """

    def parse(self, entry: Entry, raw: bytes) -> Document:
        """Turn what ``fetch`` returned into a document.

        Raises:
            DocumentError: it is broken, empty, encrypted, …; ``DocumentSkipped`` when leaving it out is right.
        """
