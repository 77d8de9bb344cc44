"""A feed as a source, whose clock a test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.apis.server import Api, serving
from nornweave.config.sources import MirroredSettings
from nornweave.connect.connectors import CONNECTORS
from nornweave.connect.mirror.feed import Feed
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.core.errors import DocumentSkipped
from nornweave.core.types import Document, Entry, Listing, SourceId

DAY = 86_400
ID = SourceId("source")


def served(api: Callable[[], Api]) -> Any:
    """Return a fixture: a stand-in that answers while a test runs."""

    @pytest.fixture
    def server() -> Iterator[Any]:
        with serving(api()) as running:
            yield running

    return server


class FeedSource:
    """The documents of a feed.

    Args:
        parse: the parser, called in this process.
        say: what tests compare of a document.
    """

    def __init__(
        self,
        feed: Feed,
        settings: MirroredSettings,
        folder: Path,
        parse: Callable[[SourceId, Entry, bytes], Document],
        say: Callable[[Document], Any],
    ) -> None:
        self.clock = 1_000_000.0
        self.bound = CONNECTORS[settings.type].bound(settings)
        self.source = MirroredSource(settings, feed, folder, now=self._tick)
        self._parse = parse
        self._say = say

    def _tick(self) -> float:
        self.clock += 0.001
        return self.clock

    def list(self) -> Listing:
        return self.source.list()

    def _sound(self) -> tuple[Entry, ...]:
        listing = self.source.list()
        assert listing.problem is None
        return listing.entries

    def paths(self) -> list[str]:
        return [entry.path for entry in self.list().entries]

    def gates(self) -> dict[str, str]:
        return {entry.path: entry.gate for entry in self._sound()}

    def document(self, entry: Entry) -> Document:
        return self._parse(ID, entry, self.source.fetch(entry))

    def documents(self) -> dict[str, Document]:
        return {entry.path: self.document(entry) for entry in self._sound()}

    def said(self) -> dict[str, Any]:
        return {path: self._say(document) for path, document in self.documents().items()}

    def a_day_later(self) -> None:
        self.clock += 1.1 * DAY


class TolerantSource(FeedSource):
    """A source whose documents may be empty."""

    def documents(self) -> dict[str, Document]:
        documents = {}
        for entry in self._sound():
            try:
                documents[entry.path] = self.document(entry)
            except DocumentSkipped:
                continue
        return documents
