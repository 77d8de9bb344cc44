"""Read one Slack channel: its history, newest first, and the replies of its threads."""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from nornweave.connect.conversation import as_is, clean_name
from nornweave.connect.mirror.answers import listed
from nornweave.connect.mirror.feed import MAX_PAGES, FeedRecord, Known, RecordPage
from nornweave.connect.slack.api import PER_PAGE, SlackApi, SlackError, next_cursor
from nornweave.connect.slack.records import (
    day_of,
    event_in,
    message_of,
    replies,
    root_of,
    says_something,
    thread_prefix,
    to_record,
)
from nornweave.core.errors import SourceUnavailableError

# An edited reply does not change its thread's marks. So each full pass reads this fraction of old threads again.
TURNS = 30
# Replies of a thread beyond this number are left out.
_MAX_REPLIES = 10_000


@dataclass(frozen=True, slots=True)
class Channel:
    """A Slack channel. Its ``folder`` is the first part of the paths of its documents."""

    id: str
    name: str
    folder: str
    is_archived: bool
    is_private: bool


@dataclass(slots=True, kw_only=True)
class ChannelReader:
    """Reads the channels in one pass, page by page, from the newest message to older ones.

    The position of a page is the oldest message that was read so far. All newer messages were read too.

    Attributes:
        is_thorough: whether all threads are read again.
        turn: the number that selects which of the old threads a full pass reads again.
        until: the time back to which a pass for changes reads, in seconds since 1970. It may read further back.
        people: user id → name.
        channels: channel id → name.
    """

    api: SlackApi
    known: Known
    people: Mapping[str, str]
    is_full: bool
    is_thorough: bool
    turn: int
    until: float
    began_at: float
    channels: Mapping[str, str]

    def read(self, channel: Channel, latest: str) -> Iterator[RecordPage]:
        """Read a channel backwards from the message before ``latest``. An empty ``latest`` means the newest message.

        A channel that was never read completely under its present name is read completely now.
        """
        key = f"channel/{channel.id}/"
        before = self.known.body(key) or {}
        body = {key: value for key, value in asdict(channel).items() if key != "id"}
        is_complete = before.get("is_complete") is True and before.get("folder") == channel.folder
        if is_complete and not self.is_full and channel.is_archived and before.get("is_archived"):
            return  # nobody can write in it
        is_whole = self.is_full or not is_complete
        yield RecordPage(records=(FeedRecord(key=key, body={**body, "is_complete": is_complete}),), position=latest)
        for step in self._history(channel, latest, is_whole=is_whole):
            yield step
            latest = str(step.position)
        complete = FeedRecord(key=key, body={**body, "is_complete": True})
        gone = (
            () if self.is_full else self._deleted_keys(channel, "" if is_whole else min(latest or "9", _ts(self.until)))
        )
        yield RecordPage(records=(complete,), gone=tuple(gone), position=latest)

    def _deleted_keys(self, channel: Channel, lower: str) -> Iterator[str]:
        """Yield the keys of deleted messages: those in threads since ``lower`` that this pass did not find."""
        prefix = f"message/{channel.id}/"
        for key in self.known.unnamed(prefix, f"{prefix}{day_of(lower)}/" if lower else prefix):
            if key.split("/")[3] >= lower:
                yield key

    def _history(self, channel: Channel, latest: str, *, is_whole: bool) -> Iterator[RecordPage]:
        cursor = None
        for _ in range(MAX_PAGES):
            place: dict[str, str | int] = {"cursor": cursor} if cursor else {}
            place |= {"latest": latest} if latest else {}
            _, content = self.api.ask("conversations.history", channel=channel.id, limit=PER_PAGE, **place)
            events = _newest_first(listed(content, "messages", "conversations.history"), before=latest)
            cursor = None if events else next_cursor(content)  # needed only beyond a page without messages
            has_more = content.get("has_more") is True
            if has_more and not events and not cursor:
                raise SourceUnavailableError(
                    f"#{channel.name}: the history goes on without saying where; try again later"
                )
            if events:
                yield from self._page(channel, events, latest, is_whole=is_whole)
                latest = str(events[-1]["ts"])
            if not has_more or (not is_whole and events and float(latest) < self.until):
                return
        raise SourceUnavailableError(f"#{channel.name}: more than {MAX_PAGES:,} pages of history; expected an end")

    def _page(
        self, channel: Channel, events: Sequence[Mapping[str, Any]], latest: str, *, is_whole: bool
    ) -> Iterator[RecordPage]:
        """Yield the records of a page of a channel's history, and end a record page after each thread that is read.

        If ``is_whole``, the whole channel is read, so the old threads are not read for single replies.
        """
        records: list[FeedRecord] = []
        for event in events:
            root = root_of(event)
            if root != event["ts"]:
                # A reply that was also sent to the channel is the only sign of new replies in an old thread.
                key = f"{thread_prefix(channel.id, root)}{event['ts']}"
                if not is_whole and float(root) < self.until and self.known.body(key) is None:
                    yield self._old_thread(channel, root, latest=latest)
            elif self._needs_replies(channel, event):
                records += self._thread(channel, root, event)
                yield RecordPage(records=tuple(records), position=root)
                records, latest = [], root
            elif says_something(event):
                records += self._repeat_known(channel, event)
        yield RecordPage(records=tuple(records), position=str(events[-1]["ts"]))

    def _old_thread(self, channel: Channel, root: str, *, latest: str) -> RecordPage:
        records = self._thread(channel, root)
        read = {record.key for record in records}
        known = self.known.under(thread_prefix(channel.id, root))
        gone = tuple(key for key, _ in known if key not in read)
        return RecordPage(records=tuple(records), gone=gone, position=latest)

    def _needs_replies(self, channel: Channel, event: Mapping[str, Any]) -> bool:
        if not replies(event):
            return False
        known = event_in(self.known.body(f"{thread_prefix(channel.id, event['ts'])}{event['ts']}") or {})
        if any(known.get(mark) != event.get(mark) for mark in ("ts", "reply_count", "latest_reply")):
            return True
        latest = as_is(event.get("latest_reply"), str) or ""
        # The checksum spreads threads evenly over the turns.
        is_due = latest >= _ts(self.until) or zlib.crc32(event["ts"].encode()) % TURNS == self.turn % TURNS
        return self.is_thorough or (self.is_full and is_due)

    def _thread(self, channel: Channel, root: str, opening: Mapping[str, Any] | None = None) -> list[FeedRecord]:
        """Read the replies of a thread. ``opening`` is the first message of the thread, taken from the history."""
        listed = self.api.listed("conversations.replies", "messages", channel=channel.id, ts=root)
        try:
            said = [message for each in itertools.islice(listed, _MAX_REPLIES) if (message := message_of(each))]
        except SlackError as error:
            if error.code != "thread_not_found":
                raise
            # Deleted meanwhile. Without marks it is read again if it still exists next time.
            said, opening = [], {**opening, "reply_count": 0} if opening else None
        events = {each["ts"]: each for each in said if root_of(each) == root and says_something(each)}
        if opening is not None:
            events[root] = opening
        return [self._record(channel, each) for each in events.values()]

    def _repeat_known(self, channel: Channel, event: Mapping[str, Any]) -> Iterator[FeedRecord]:
        """Yield a message and its stored replies again, with the current names of people and channels."""
        own = self._record(channel, event)
        yield own
        if replies(event):
            for key, body in self.known.under(thread_prefix(channel.id, event["ts"])):
                if key != own.key:
                    yield replace(self._record(channel, event_in(body)), is_verified=False)

    def _record(self, channel: Channel, event: Mapping[str, Any]) -> FeedRecord:
        return to_record(event, channel.id, channel.folder, self.people, self.channels)


def channel_of(listed: Mapping[str, Any]) -> Channel:
    """Return the channel of an item in Slack's list. Its folder is its name if that is a valid path component."""
    identifier = str(listed["id"])
    name = clean_name(as_is(listed.get("name"), str) or "") or identifier
    folder = name if re.fullmatch(r"\w[\w.-]{0,99}", name) else identifier
    return Channel(identifier, name, folder, bool(listed.get("is_archived")), bool(listed.get("is_private")))


def _newest_first(events: Iterable[Mapping[str, Any]], *, before: str) -> list[Mapping[str, Any]]:
    found = {message["ts"]: message for each in events if (message := message_of(each))}
    return [found[ts] for ts in sorted(found, reverse=True) if not before or ts < before]


def _ts(moment: float) -> str:
    return f"{max(moment, 1e9):017.6f}"
