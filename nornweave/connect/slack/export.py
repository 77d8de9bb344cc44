"""A source of Slack exports: one document per channel and day.

``fetch`` resolves everything that lies outside the day's file (names, the roots of threads that began on other days),
so that its bytes change exactly when the document does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any

from nornweave.connect.conversation import (
    as_is,
    clean,
    clean_name,
    conversation_document,
    gather_threads,
    load_json,
    mappings,
    parse_time,
    to_canonical,
)
from nornweave.connect.files.source import FolderSource
from nornweave.connect.slack.text import Directory, body_of, speaker_of, user_name
from nornweave.core.errors import DocumentError, SourceUnavailableError
from nornweave.core.text.messages import line_of
from nornweave.core.types import Entry, JsonValue, Listing, Message, Skip, digest

USERS = "users.json"
# Public, private, direct and group-direct channels; each file is optional.
CHANNEL_FILES = ("channels.json", "groups.json", "dms.json", "mpims.json")
_MANIFEST = (USERS, *CHANNEL_FILES)
# The users of a large workspace take more than a document may.
_MAX_MANIFEST_BYTES = 200 * 1024 * 1024
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}\.json")

# Slack's notices about the channel itself, which nobody would search for.
NOTICES = frozenset(
    f"{kind}_{event}"
    for kind in ("channel", "group", "bot", "reminder")
    for event in ("join", "leave", "archive", "unarchive", "add", "remove", "convert_to_private")
) | {"tombstone", "message_deleted", "channel_posting_permissions", "pinned_item", "unpinned_item"}

# Search a thread's root on its day and the days beside it: exports cut days in the workspace's time zone.
_ROOT_DAYS = (0, -1, 1)
_MAX_ROOTS = 200
_MAX_REMEMBERED_DAYS = 64
_LEAD_CHARACTERS = 600


def day_bytes(channel: str, day: str, messages: Sequence[Message], links: Mapping[str, str]) -> bytes:
    """Write the messages of a channel on one day. The messages come from an export or from the API.

    Args:
        links: given only for messages of the API: ``permalink`` and ``thread_permalink``. In these templates
            ``{digits}`` stands for the digits of a message's id, and ``{thread_id}`` for the id of its thread.
    """
    first = "".join(filter(str.isdigit, messages[0].id)) if messages else ""
    header: dict[str, JsonValue] = {
        "format": "slack",
        "title": f"{channel} {day}",
        "url": links["permalink"].replace("{digits}", first) if links else None,
        "metadata": {"source_type": "slack", "channel": channel, **links},
    }
    return to_canonical(header, messages)


class SlackSource(FolderSource):
    """A Slack export folder: ``users.json``, ``channels.json``, ``<channel>/<date>.json``."""

    version = "slack-3"
    suffixes = (".json",)
    has_types = False
    parser = staticmethod(conversation_document)
    _export: _Export | None = None

    def list(self) -> Listing:
        """List the days of all channels. Each day of a channel is a document.

        The gate of a day covers its own file, the names, and the earlier days of its channel, where its threads may
        begin.

        Raises:
            SourceUnavailableError: the folder cannot be read or does not look like an export.
        """
        listed = super().list()
        files = listed.entries
        days = [file for file in files if file.path.count("/") == 1]
        deeper = (Skip(file.path, "deeper than <channel>/<date>.json") for file in files if file.path.count("/") > 1)
        self._require_export(days)
        gates = _gates(days, _manifest_mark(self))
        entries = tuple(replace(file, gate=gates[file.path]) for file in days)
        return Listing(entries, (*listed.skipped, *deeper, *self._current().broken))

    def fetch(self, entry: Entry) -> bytes:
        """Read one day of a channel. Names are resolved, and the first messages of its threads are included.

        Raises:
            DocumentError: the JSON is broken or is not a list of messages. The message names line and column of broken
                JSON.
        """
        export = self._current()
        path = PurePosixPath(entry.path)
        messages = gather_threads(export.with_leads(path, export.messages(entry.path)))
        return day_bytes(export.title(path.parent.name), path.stem, messages, {})

    def _current(self) -> _Export:
        """Return the names in the export. They are read again only when one of their files changed."""
        mark = _manifest_mark(self)
        if self._export is None or self._export.mark != mark:
            self._export = _Export(self, mark)
        return self._export

    def _require_export(self, days: Sequence[Entry]) -> None:
        root = self.root
        if any((root / name).is_file() for name in _MANIFEST):
            return
        if not any(_DATED.fullmatch(PurePosixPath(day.path).name) for day in days):
            raise SourceUnavailableError(
                f"{str(root)!r} is not a Slack export; expected users.json, channels.json and a folder per channel "
                "with <date>.json files. Unzip the export and name the folder that holds channels.json."
            )


class _Export:
    """The names in an export, and the days that were read for the first messages of threads."""

    def __init__(self, source: SlackSource, mark: str) -> None:
        self.mark = mark
        self.broken: tuple[Skip, ...] = ()
        self._source = source
        people = {key: name for key, user in self._objects(USERS) if (name := user_name(user))}
        channels: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        for file in CHANNEL_FILES:
            for key, channel in self._objects(file):
                name = clean_name(as_is(channel.get("name"), str) or "") or key
                channels[key] = name
                self._titles[name] = self._titles[key] = _title(name, channel, people, file)
        self._names = Directory(people, channels)
        self._days: dict[tuple[str, str], Mapping[str, str]] = {}

    def title(self, folder: str) -> str:
        """Return a channel's title: ``#general``, or ``@alice, @bob`` for a direct conversation."""
        return self._titles.get(folder, f"#{folder}")

    def messages(self, path: str) -> list[Message]:
        """Return the messages of one day's file, by time."""
        content = load_json(self._source.read(path), path)
        listed = content.get("messages") if isinstance(content, dict) else content
        if not isinstance(listed, list):
            raise DocumentError(f"{path}: expected a list of Slack messages, as in an export; found something else.")
        said = [read_message(each, number, self._names) for number, each in enumerate(mappings(listed), start=1)]
        # Exports repeat messages now and then (a reply that was also sent to the channel).
        unique = {(each.id, each.speaker, each.body): each for each in said if each is not None}
        return sorted(unique.values(), key=lambda each: each.timestamp.timestamp() if each.timestamp else math.inf)

    def with_leads(self, path: PurePosixPath, said: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages. A first message that has replies is marked as a member of its thread.

        If the first message is in another file, its line becomes the lead of the replies.
        """
        here = {each.id for each in said}
        threads = {each.thread_id for each in said}
        away = sorted({each.thread_id for each in said if each.thread_id and each.thread_id not in here})
        roots = {thread: self._root(path, thread) for thread in away[:_MAX_ROOTS]}
        for each in said:
            lead = roots.get(each.thread_id or "")
            if lead:
                yield replace(each, lead=(lead,))
            else:
                yield replace(each, thread_id=each.id) if each.id in threads else each

    def _root(self, path: PurePosixPath, thread: str) -> str | None:
        began = parse_time(thread)
        if began is None or not 2000 < began.year < 9000:
            return None
        for days in _ROOT_DAYS:
            name = f"{began.date() + timedelta(days=days)}.json"
            line = self._day(str(path.with_name(name))).get(thread) if name <= path.name else None
            if line:
                return line
        return None

    def _day(self, path: str) -> Mapping[str, str]:
        """Return the first words of each message of a day; empty if the day cannot be read."""
        key = (path, self._source.mark(path))
        if key not in self._days:
            if len(self._days) >= _MAX_REMEMBERED_DAYS:
                self._days.clear()
            try:
                said = self.messages(path) if key[1] else []
            except DocumentError:
                said = []
            self._days[key] = {each.id: line_of(each.speaker, each.body)[:_LEAD_CHARACTERS] for each in said}
        return self._days[key]

    def _objects(self, file: str) -> list[tuple[str, dict[str, Any]]]:
        if not self._source.mark(file):
            return []
        try:
            found = load_json(self._source.read(file, _MAX_MANIFEST_BYTES), file)
        except DocumentError as error:
            self.broken += (Skip(file, f"{error} Until then ids stand in for names."),)
            return []
        return [(each["id"], each) for each in mappings(found) if isinstance(each.get("id"), str)]


def _title(name: str, channel: Mapping[str, Any], people: Mapping[str, str], file: str) -> str:
    members = [people[each] for each in as_is(channel.get("members"), list) or [] if people.get(str(each))]
    if file in ("dms.json", "mpims.json") and members:
        return ", ".join(f"@{member}" for member in members)
    return f"#{name}"


def _manifest_mark(source: SlackSource) -> str:
    return digest(*(source.mark(name) or "none" for name in _MANIFEST))


def _gates(days: Sequence[Entry], manifest: str) -> dict[str, str]:
    """Return the gate of each day. It changes if an earlier day of the channel changes, but not if a later day does."""
    gates = {}
    earlier: dict[str, str] = {}
    for file in days:
        channel = file.path.split("/")[0]
        before = earlier.get(channel, "")
        gates[file.path] = digest(manifest, before, file.gate)
        earlier[channel] = digest(before, file.gate)
    return gates


def read_message(event: Mapping[str, Any], number: int, names: Directory) -> Message | None:
    """Return one message of an export or the API.

    Return ``None`` for a notice, for a message without text, and for a message that only one person can see.
    """
    if event.get("subtype") == "message_changed" and isinstance(event.get("message"), dict):
        event = event["message"]
    is_unseen = event.get("is_ephemeral") is True or as_is(event.get("subtype"), str) in NOTICES
    body = "" if is_unseen else body_of(event, names)
    if not body:
        return None
    ts = event.get("ts")
    thread = event.get("thread_ts")
    return Message(
        id=clean(str(ts)) if ts else str(number),
        speaker=speaker_of(event, names),
        body=body,
        thread_id=clean(str(thread)) if thread else None,
        timestamp=parse_time(ts),
        reactions=count_reactions(event),
    )


def count_reactions(event: Mapping[str, Any]) -> int:
    """Count the reactions to a message, all emoji together."""
    return sum(map(_count, mappings(event.get("reactions"))))


def _count(reaction: Mapping[str, Any]) -> int:
    count = reaction.get("count")
    return max(count, 0) if isinstance(count, int) else len(as_is(reaction.get("users"), list) or [])
