"""Read the channels of a workspace from Slack's Web API: one document per channel and day, with its threads.

What is stored are the parts of messages that documents need, and names of people and bots. The key of a message is
``message/CHANNEL/DAY/ROOT/TS``: the day (UTC) and the ``ts`` of its thread's root, then its own. Errors of the API have
status 200 and the body ``{"ok": false, "error": …}``.

A message lies in the document of the day on which its thread began. A full pass reads people, channels, their whole
history, and the replies of threads that are new, recent, or whose count of replies changed. Slack cannot say what
changed since, so that a pass of changes reads the newest page of each channel's history, or as many as reach back far
enough, and compares it with what is stored.

History is paged by time (``latest``), which Slack documents beside cursors: such a position never expires.

Source: docs.slack.dev/reference/methods, docs.slack.dev/apis/web-api/pagination and …/rate-limits.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from nornweave.connect.connectors import SlackSettings
from nornweave.connect.conversation import as_is, clean_name, conversation_document, mappings
from nornweave.connect.mirror.api_client import ApiAnswer, ApiClient, Limits, Trouble, listed
from nornweave.connect.mirror.feed import (
    LEFT_OUT,
    MAX_PAGES,
    Body,
    Feed,
    FeedRecord,
    Known,
    Pass,
    PositionLostError,
    RecordPage,
    left_out,
    pages_of,
)
from nornweave.connect.slack.export import NOTICES, count_reactions, day_bytes, read_message
from nornweave.connect.slack.text import Directory, user_name
from nornweave.core.access import account
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.membership import Grant
from nornweave.core.types import Domain

# An edited reply does not change its thread's marks. So each full pass reads this fraction of old threads again.
TURNS = 30
# Replies of a thread beyond this number are left out.
_MAX_REPLIES = 10_000

PREFIX = "user/"

# Slack recommends no more than 200, and allows 999; of apps sold outside its marketplace 15.
PER_PAGE = 200
_RATE_LIMITS = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
# The wait after a rate limit without a time.
_UNNAMED_WAITS = dict.fromkeys(_RATE_LIMITS, 30.0)
_PASSING = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
_REFUSED_TOKEN = frozenset(
    {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "org_login_required"}
)
# These are about one channel; the others can be read.
_OF_A_CHANNEL = frozenset(
    {
        "access_denied",
        "channel_is_limited_access",
        "channel_not_found",
        "is_inactive",
        "method_not_supported_for_channel_type",
        "missing_scope",
        "no_permission",
        "not_in_channel",
        "team_access_not_granted",
    }
)
_UNSHOWN = re.compile(r"[^\w:,.\- ]+")


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


def names_in(known: Known) -> dict[str, str]:
    """Return the stored names of people and bots, by id."""
    return {key.split("/")[1]: str(body.get("name") or "") for key, body in known.under(PREFIX)}


def people_in(users: Iterable[Mapping[str, Any]]) -> list[FeedRecord]:
    """Return the records of listed users.

    Deleted users, guests and bots are included, because they may have written.
    """
    named = ((each["id"], user_name(each)) for each in users if isinstance(each.get("id"), str))
    return [FeedRecord(key=f"{PREFIX}{identifier}/", body={"name": name}) for identifier, name in named]


_TS = re.compile(r"[1-9]\d{9}\.\d{6}")
_FIELDS = ("subtype", "ts", "thread_ts", "user", "bot_id", "username", "text", "reply_count", "latest_reply")
_ATTACHMENT_FIELDS = (
    *("pretext", "title", "text", "fields", "blocks", "fallback"),
    *("from_url", "original_url", "is_msg_unfurl"),
)
# <@U1>, <#C1>, and the same in blocks.
_MENTION = re.compile(r'<[@#]([A-Z][A-Z0-9]{1,30})|"(?:user_id|channel_id)": "([A-Z][A-Z0-9]{1,30})"')


def message_of(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the message of an event; ``None`` if there is none or its ``ts`` is invalid."""
    if event.get("subtype") == "message_changed":
        event = as_is(event.get("message"), dict) or {}
    if event.get("subtype") == "message_deleted" or not _is_ts(event.get("ts")):
        return None
    return event


def root_of(event: Mapping[str, Any]) -> str:
    """Return the ``ts`` of the first message of a thread. If the message is not a reply, this is its own ``ts``."""
    root = event.get("thread_ts")
    return str(root) if _is_ts(root) else str(event["ts"])


def day_of(ts: str) -> str:
    """Return the day of a Slack timestamp, in UTC."""
    return datetime.fromtimestamp(int(ts[:10]), UTC).date().isoformat()


def thread_prefix(channel: str, root: str) -> str:
    """Return the key prefix of a thread's messages."""
    return f"message/{channel}/{day_of(root)}/{root}/"


def says_something(event: Mapping[str, Any]) -> bool:
    """Tell whether a message is worth storing. The result is ``False`` for a notice without replies."""
    return as_is(event.get("subtype"), str) not in NOTICES or replies(event) > 0


def replies(event: Mapping[str, Any]) -> int:
    """Return the number of a message's replies."""
    return as_is(event.get("reply_count"), int) or 0


def to_record(
    event: Mapping[str, Any], channel: str, folder: str, people: Mapping[str, str], channels: Mapping[str, str]
) -> FeedRecord:
    """Return the record of a message.

    Args:
        channel: the id of the channel.
        folder: the first part of the document's path.
        people: id → name, for people and bots.
        channels: channel id → name.
    """
    root = root_of(event)
    kept = _kept(event)
    mentioned = ids_in(kept)
    body = {
        "event": kept,
        "people": {each: people[each] for each in sorted(mentioned) if people.get(each)},
        "channels": {each: channels[each] for each in sorted(mentioned) if each in channels},
    }
    key = f"{thread_prefix(channel, root)}{event['ts']}"
    return FeedRecord(key=key, document=f"{folder}/{day_of(root)}", body=body)


def event_in(body: Body) -> dict[str, Any]:
    """Return Slack's event from a message's record."""
    return as_is(body.get("event"), dict) or {}


def ids_in(event: Mapping[str, Any]) -> set[str]:
    """Return the ids of the people, bots and channels that a message names."""
    found = {first or second for first, second in _MENTION.findall(json.dumps(event, ensure_ascii=False))}
    return found | {each for key in ("user", "bot_id") if (each := as_is(event.get(key), str))}


def _kept(event: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: event[key] for key in _FIELDS if event.get(key) is not None}
    if not event.get("text") and event.get("blocks"):
        kept["blocks"] = event["blocks"]
    attachments = [
        {key: each[key] for key in _ATTACHMENT_FIELDS if each.get(key)} for each in mappings(event.get("attachments"))
    ]
    files = [{key: each[key] for key in ("title", "name") if each.get(key)} for each in mappings(event.get("files"))]
    count = count_reactions(event)
    bot, user = as_is(event.get("bot_profile"), dict), as_is(event.get("user_profile"), dict)
    more = {
        "attachments": attachments,
        "files": files,
        "reactions": [{"count": count}] if count else None,
        "bot_profile": {"name": user_name(bot)} if bot else None,
        "user_profile": {"display_name": user_name(user)} if user else None,
    }
    return {**kept, **{key: value for key, value in more.items() if value}}


def _is_ts(value: object) -> bool:
    return isinstance(value, str) and _TS.fullmatch(value) is not None


class SlackError(SourceUnavailableError):
    """Slack refuses a request. The attribute ``code`` is Slack's own error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_of_a_channel(self) -> bool:
        """Tell whether the error concerns only one channel, so that other channels may be readable."""
        return self.code in _OF_A_CHANNEL


class SlackApi(ApiClient):
    """The API methods of one Slack workspace, called with a token."""

    def __init__(self, settings: SlackSettings, limits: Limits | None) -> None:
        self._token_name = settings.token_name
        super().__init__(settings.api_url, token=settings.token, token_name=self._token_name, limits=limits)

    def ask(self, method: str, **parameters: str | int) -> tuple[ApiAnswer, Mapping[str, Any]]:
        """Call an API method. Return the answer and its content.

        Raises:
            SlackError: Slack refuses. The message says what to do.
            PositionLostError: Slack does not know the cursor any more.
            SourceUnavailableError: Slack does not answer, gives an invalid answer, or limits the rate for too long.
        """
        answer = self.get(method, parameters)
        return answer, answer.mapping()

    def trouble(self, answer: ApiAnswer) -> Trouble | None:
        """Return the problem with an answer, including Slack's message; ``None`` if there is no problem."""
        found = super().trouble(answer)
        content = {} if found else answer.mapping()
        if found or content.get("ok") is True:
            return found
        method = urlsplit(answer.url).path.rpartition("/")[2]
        code = self._shown(content.get("error")) or "no error named"
        if code == "invalid_cursor":
            return Trouble(PositionLostError(f"{method}: the cursor is not valid any more"))
        wait = answer.headers.get("retry-after", "")
        return Trouble(
            SlackError(code, f"{method}: {code}; {self._remedy(code, content)}"),
            is_passing=code in _RATE_LIMITS | _PASSING,
            wait_s=float(wait) if re.fullmatch(r"\d{1,9}", wait) else _UNNAMED_WAITS.get(code),
        )

    def listed(self, method: str, key: str, **parameters: str) -> Iterator[Mapping[str, Any]]:
        """Yield the items that an API method lists, over all pages.

        Raises:
            SlackError: Slack refuses. The message says what to do.
            SourceUnavailableError: Slack does not answer, gives an invalid answer, limits the rate for too long, or
                refuses a cursor that it has just sent.
        """
        try:
            for found, _ in self.pages(method, key, **parameters):
                yield from found
        except PositionLostError as error:
            raise SourceUnavailableError(f"{error}; try again later") from error

    def ids(self, method: str, channel: str) -> Iterator[object]:
        """Yield the ids that an API method lists for a channel, over all pages. The errors are those of ``listed``."""

        def ask(at: str | None) -> tuple[list[object], str | None]:
            _, content = self.ask(method, channel=channel, limit=PER_PAGE, **({"cursor": at} if at else {}))
            found = as_is(content.get("members"), list)
            if found is None:
                raise SourceUnavailableError(f"{method}: no list 'members' in the answer; check api_url")
            return found, next_cursor(content)

        return (each for found, _ in pages_of(ask, None, method) for each in found)

    def pages(
        self, method: str, key: str, *, cursor: str | None = None, **parameters: str
    ) -> Iterator[tuple[list[dict[str, Any]], str | None]]:
        """Yield the pages of a list, each with the cursor of the next page; ``None`` for the last page."""

        def ask(at: str | None) -> tuple[list[dict[str, Any]], str | None]:
            _, content = self.ask(method, limit=PER_PAGE, **parameters, **({"cursor": at} if at else {}))
            return listed(content, key, method), next_cursor(content)

        return pages_of(ask, cursor, method)

    def _remedy(self, code: str, content: Mapping[str, Any]) -> str:
        if code in _REFUSED_TOKEN:
            return f"the token is refused; renew {self._token_name}"
        if code == "missing_scope":
            needed, provided = self._shown(content.get("needed")), self._shown(content.get("provided"))
            return f"add the scope {needed or '?'} to the app and install it again; {self._token_name} has {provided}"
        if code == "not_allowed_token_type":
            return f"{self._token_name} has to be a bot token (xoxb-…) or a user token (xoxp-…)"
        if code in _OF_A_CHANNEL:
            return "invite the app to the channel, or leave the channel out"
        if code in _RATE_LIMITS:
            return "what was read is kept; the next sync continues"
        return "try again later"

    def _shown(self, value: object) -> str:
        """Return a text of the server as it is shown in messages, without secrets."""
        return _UNSHOWN.sub("?", self.origin.hide(as_is(value, str) or ""))[:200]


def next_cursor(content: Mapping[str, Any]) -> str | None:
    """Return the cursor of the next page; ``None`` on the last page."""
    return as_is((as_is(content.get("response_metadata"), dict) or {}).get("next_cursor"), str) or None


log = logging.getLogger(__name__)

# A pass of changes also reads this long before the last one, to find edits and deletions.
WINDOW_S = 3 * 86_400
_NOT_JOINED = "not among the channels that the token's owner has joined; invite the app, or correct 'channels'"
_WEB_ADDRESS = re.compile(r"https?://[\w.:-]{1,200}/?")


class SlackFeed(Feed):
    """The channels that the owner of a token has joined."""

    domain = Domain.CONVERSATIONS
    version = "slack-api-3"
    parser = staticmethod(conversation_document)

    def __init__(self, settings: SlackSettings, *, limits: Limits | None = None) -> None:
        self._wanted = frozenset(each.removeprefix("#") for each in settings.channels)
        # A change of channels takes effect in the next pass.
        self.scope = f"1,{settings.api_url.rstrip('/')}"
        self.client = self._api = SlackApi(settings, limits)

    def pages(self, state: Pass, known: Known) -> Iterator[RecordPage]:
        answer, workspace = self._api.ask("auth.test")
        before = state.since or {"at": answer.moment, "turn": 0}
        position = state.position or {"at": answer.moment, "stage": "people" if state.is_full else "channels"}
        began_at = position["at"]
        turn = before["turn"] + state.is_full
        since = {"at": began_at, "turn": turn}
        yield RecordPage(records=(_workspace_record(workspace),), position=position, since=since)
        if position["stage"] == "people":
            yield from self._people(position)
            position = {"at": began_at, "stage": "channels"}
        joined, unseen = self._joined_channels()
        reader = ChannelReader(
            api=self._api,
            known=known,
            is_full=state.is_full,
            is_thorough=state.is_thorough,
            turn=turn,
            until=min(before["at"], began_at) - WINDOW_S,
            began_at=began_at,
            channels={each.id: each.name for each in joined},
            people=names_in(known),
        )
        chosen = self._chosen(joined)
        unread = (*self._missing(joined), *([left_out("private channels", str(unseen))] if unseen else ()))
        gone, kept = _not_chosen(known, chosen, keep_private=unseen is not None)
        if "channel" not in position:  # a continued pass keeps its left-out records
            gone = (*gone, LEFT_OUT)
        yield RecordPage(gone=gone, kept=kept, records=unread, position=position)
        yield from self._channels(reader, chosen, position)

    def assemble(self, path: str, records: Iterable[tuple[str, Body]], known: Known) -> bytes:
        """Return the threads of a channel that began on one day. Names are resolved."""
        said = []
        channel = ""
        for number, (key, body) in enumerate(records, start=1):
            channel = key.split("/")[1]
            names = Directory(body.get("people") or {}, body.get("channels") or {})
            said.append(read_message(event_in(body), number, names))
        name = (known.body(f"channel/{channel}/") or {}).get("name") or channel
        messages = [each for each in said if each is not None]
        return day_bytes(f"#{name}", path.rpartition("/")[2], messages, _links(known, channel))

    def readers(self, path: str, known: Known) -> Sequence[Collection[str]]:
        """Return the readers of a document: the members of its channel."""
        key = known.key_of(path)
        return [(f"slack:channel:{key.split('/')[1]}",)] if key else []

    def origin(self, known: Known) -> str:
        """Return the workspace."""
        return f"{self.scope},{(known.body('workspace/') or {}).get('team_id', '')}"

    def members(self, known: Known) -> Iterator[Grant]:
        """Yield grants for the members of channels. A public channel is open to all in the workspace except guests.

        Guests may read only the channels in which they are members. People of other workspaces are known only by their
        Slack account, because this workspace has not verified their e-mail addresses.

        If the token has no scope for e-mail addresses, Slack shows none. The earlier addresses of people who are still
        in the workspace then stay valid until a time limit.
        """
        _, workspace = self._api.ask("auth.test")
        team, staff, guests, shows_addresses = str(workspace.get("team_id")), set[str](), set[str](), False
        for user in self._api.listed("users.list", "members"):
            if user.get("deleted") or user.get("is_bot") or not _is_id(user.get("id")):
                continue
            name = f"slack:user:{user['id']}"
            teams = as_is((as_is(user.get("enterprise_user"), dict) or {}).get("teams"), list) or ()
            if team not in (user.get("team_id"), *teams):
                continue
            (guests if user.get("is_restricted") or user.get("is_ultra_restricted") else staff).add(name)
            email = as_is((as_is(user.get("profile"), dict) or {}).get("email"), str) or ""
            shows_addresses = shows_addresses or "@" in email
            if "@" in email and user.get("is_email_confirmed") is not False:
                yield Grant(principal=name, members=frozenset({account("email", email)}))
        if not shows_addresses:
            unread = "no address of anybody; add the scope users:read.email to the app"
            yield Grant(principal="slack:user", unread=unread, also_unread=frozenset(staff | guests))
        yield Grant(principal=f"slack:team:{team}", members=frozenset(staff))
        joined, unseen = self._joined_channels()
        if unseen:
            private = {key.split("/")[1] for key, body in known.under("channel/") if body.get("is_private") is True}
            private -= {channel.id for channel in joined}
            also = frozenset(f"slack:channel:{each}" for each in private)
            yield Grant(principal="slack:channel", unread=f"of private channels: {unseen}", also_unread=also)
        for channel in self._chosen(joined, may_be_none=unseen is not None):
            principal = f"slack:channel:{channel.id}"
            everybody = [] if channel.is_private else [f"slack:team:{team}"]
            try:
                inside = self._api.ids("conversations.members", channel.id) if channel.is_private or guests else ()
                members = {f"slack:user:{each}" for each in inside if _is_id(each)}
                alone = members if channel.is_private else members - staff
                yield Grant(principal=principal, members=frozenset(alone.union(everybody)))
            except SlackError as error:
                if not error.is_of_a_channel:
                    raise
                yield Grant(principal=principal, unread=str(error))

    def _people(self, position: Mapping[str, Any]) -> Iterator[RecordPage]:
        """Read the list of users. Stored names of people who are no longer listed are kept."""
        for found, cursor in self._api.pages("users.list", "members", cursor=position.get("cursor")):
            stage = "people" if cursor else "channels"
            at = {"at": position["at"], "stage": stage, "cursor": cursor}
            yield RecordPage(records=tuple(people_in(found)), confirmed=(PREFIX,), position=at)

    def _joined_channels(self) -> tuple[list[Channel], SlackError | None]:
        """Return the joined channels by id.

        Return also Slack's error if private channels cannot be listed, else ``None``.
        """
        unseen = None
        try:
            listed = self._listed_channels("public_channel,private_channel")
        except SlackError as error:
            if error.code != "missing_scope":
                raise
            unseen, listed = error, self._listed_channels("public_channel")
        joined = {each.id: each for each in map(channel_of, listed) if _is_id(each.id)}
        return [joined[identifier] for identifier in sorted(joined)], unseen

    def _listed_channels(self, types: str) -> list[Mapping[str, Any]]:
        return list(self._api.listed("users.conversations", "channels", types=types, exclude_archived="false"))

    def _channels(
        self, reader: ChannelReader, chosen: Sequence[Channel], position: Mapping[str, Any]
    ) -> Iterator[RecordPage]:
        """Read the channels by id. A channel that Slack refuses is left out, and its stored messages are kept."""
        has_worked, refusal = bool(position.get("has_worked")), None
        for channel in chosen:
            if channel.id < position.get("channel", ""):
                continue
            at = {"at": position["at"], "stage": "channels", "channel": channel.id, "has_worked": has_worked}
            latest = position.get("latest", "") if channel.id == position.get("channel") else ""
            try:
                for step in reader.read(channel, latest):
                    yield replace(step, position={**at, "latest": step.position})
                has_worked = True
            except SlackError as error:
                if not error.is_of_a_channel:
                    raise
                refusal = error
                yield _page_of_refusal(reader.known, channel, error, at)
        if refusal is not None and not has_worked:
            yield RecordPage(position=None)  # the next pass tries every channel again
            raise SourceUnavailableError(f"no channel can be read: {refusal}")

    def _chosen(self, joined: Sequence[Channel], *, may_be_none: bool = False) -> list[Channel]:
        """Return the channels to read, by id.

        Raises:
            SourceUnavailableError: there is no channel to read, and ``may_be_none`` is not set.
        """
        chosen: dict[str, Channel] = {}
        for each in joined:
            if not self._wanted or self._wanted & {each.id, each.name}:
                folder = each.id if each.folder in chosen else each.folder
                chosen[folder] = replace(each, folder=folder)
        if chosen or may_be_none:
            return list(chosen.values())
        if self._wanted:
            named = ", ".join(sorted(self._wanted))
            raise SourceUnavailableError(f"channels: {named}: {_NOT_JOINED}")
        raise SourceUnavailableError("the token's owner has joined no channel; invite the app to those to be read")

    def _missing(self, joined: Sequence[Channel]) -> Iterator[FeedRecord]:
        """Yield the configured channels that were not joined."""
        for name in sorted(self._wanted - {name for each in joined for name in (each.id, each.name)}):
            yield left_out(f"#{name}", _NOT_JOINED)


def _is_id(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9]{1,40}", value) is not None


def _page_of_refusal(known: Known, channel: Channel, error: SlackError, position: Mapping[str, Any]) -> RecordPage:
    """Return a page which records that Slack refused a channel. The stored messages of the channel are kept.

    The channel will be read completely when it becomes readable again.
    """
    log.warning("#%s is left out: %s", channel.name, error)
    key = f"channel/{channel.id}/"
    record = FeedRecord(key=key, body={**(known.body(key) or {}), "is_complete": False})
    return RecordPage(
        records=(record, left_out(f"#{channel.name}", str(error))),
        kept=(f"message/{channel.id}/",),
        position=dict(position),
    )


def _workspace_record(workspace: Mapping[str, Any]) -> FeedRecord:
    body = {key: as_is(workspace.get(key), str) for key in ("team_id", "url")}
    if not body["team_id"]:
        raise SourceUnavailableError("auth.test: no team_id in the answer; check api_url")
    return FeedRecord(key="workspace/", body=body)


def _not_chosen(
    known: Known, chosen: Iterable[Channel], *, keep_private: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the key prefixes of channels that are no longer read: those to delete, and private ones to keep."""
    ids = {channel.id for channel in chosen}
    prefixes: dict[bool, list[str]] = {False: [], True: []}
    for key, body in known.under("channel/"):
        if (identifier := key.split("/")[1]) not in ids:
            prefixes[keep_private and body.get("is_private") is True] += [key, f"message/{identifier}/"]
    return tuple(prefixes[False]), tuple(prefixes[True])


def _links(known: Known, channel: str) -> dict[str, str]:
    """Return the templates for the web addresses of messages; empty if the workspace's address is unknown."""
    url = (known.body("workspace/") or {}).get("url") or ""
    if not _WEB_ADDRESS.fullmatch(url):
        return {}
    permalink = f"{url.rstrip('/')}/archives/{channel}/p{{digits}}"
    return {"permalink": permalink, "thread_permalink": f"{permalink}?thread_ts={{thread_id}}&cid={channel}"}
