from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from remote_server import HANG_UP, Reply, serving
from slack_server import BASE, TOKEN, SlackServer, large, small

from nornweave.errors import ConfigError, DocumentError, DocumentSkipped, SourceUnavailableError
from nornweave.sources.remote.api_client import Limits
from nornweave.sources.remote.mirrored import MirroredSource
from nornweave.sources.remote.slack import SlackFeed
from nornweave.sources.slack import slack_document
from nornweave.types import Document, Entry, SourceId

QUICK = Limits(backoff_s=0.0, max_wait_s=2.0)
DAY = 86_400


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    server = SlackServer()
    with serving(server):
        yield server


class Source:
    """A workspace as a source, whose clock a test moves."""

    def __init__(
        self, server: SlackServer, folder: Path, *, channels: Sequence[str] = (), token: str | None = TOKEN
    ) -> None:
        self.clock = 1_000_000.0
        feed = SlackFeed(channels, api_url=f"{server.url}/api", token=token, limits=QUICK)
        self.source = MirroredSource(SourceId("chat"), feed, folder, relist_s=DAY, now=lambda: self.clock)

    def paths(self) -> list[str]:
        return [entry.path for entry in self.source.list().entries]

    def documents(self) -> dict[str, Document]:
        listing = self.source.list()
        assert listing.problem is None
        documents = {entry.path: self._document(entry) for entry in listing.entries}
        return {path: document for path, document in documents.items() if document is not None}

    def _document(self, entry: Entry) -> Document | None:
        try:
            return slack_document(SourceId("chat"), entry, self.source.fetch(entry))
        except DocumentSkipped:
            return None

    def said(self) -> dict[str, list[tuple[str, str, str]]]:
        return {
            path: [(message.id, message.speaker, message.body) for message in found.messages]
            for path, found in self.documents().items()
        }

    def a_day_later(self) -> None:
        self.clock += 1.1 * DAY


def test_a_channels_day_is_a_document_with_its_threads_names_and_links(slack: SlackServer, tmp_path: Path) -> None:
    channel = slack.add_channel("C02", "engineering")
    slack.add_channel("C01", "general")
    root = slack.say(channel, "400 instead of 422, see <#C01> and <@U02BOB>", reactions=[{"name": "eyes", "count": 2}])
    other = slack.say(channel, "Lunch?")
    slack.now += 2 * DAY
    reply = slack.say(channel, "Mended", user="U02BOB", thread=root, files=[{"title": "log.txt", "mode": "hosted"}])
    (found,) = Source(slack, tmp_path).documents().values()
    assert (found.path, found.title) == ("engineering/2026-01-16", "#engineering 2026-01-16")
    assert [(each.id, each.speaker, each.body, each.thread_id, each.reactions) for each in found.messages] == [
        (root, "alice", "400 instead of 422, see #general and @Bob Okafor", root, 2),
        (reply, "Bob Okafor", "Mended\n[file] log.txt", root, 0),
        (other, "alice", "Lunch?", None, 0),
    ]
    assert str(found.messages[0].timestamp) == "2026-01-16 00:01:00+00:00"
    assert found.metadata["permalink"] == "https://acme.slack.com/archives/C02/p{digits}"
    assert found.metadata["thread_permalink"] == (
        "https://acme.slack.com/archives/C02/p{digits}?thread_ts={thread_id}&cid=C02"
    )
    assert found.url == "https://acme.slack.com/archives/C02/p1768521660000000"
    assert found.metadata["channel"] == "#engineering"
