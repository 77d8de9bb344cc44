"""Read the channels of a workspace from Slack's Web API: one document per channel and day.

A message lies in the document of the day on which its thread began. A full pass reads people, channels, their whole
history, and the replies of threads that are new, recent, or whose count of replies changed. Slack cannot say what
changed since, so that a pass of changes reads the newest page of each channel's history, or as many as reach back far
enough, and compares it with what is stored.

History is paged by time (``latest``), which Slack documents beside cursors: such a position never expires.

Source: docs.slack.dev/reference/methods.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nornweave.connect.connectors import SlackSettings
from nornweave.connect.conversation import as_is, conversation_document
from nornweave.connect.mirror.api_client import Limits
from nornweave.connect.mirror.feed import LEFT_OUT, Body, Feed, FeedRecord, Known, Pass, RecordPage, left_out
from nornweave.connect.slack.channel import (
    PREFIX,
    Channel,
    ChannelReader,
    SlackApi,
    SlackError,
    channel_of,
    event_in,
    names_in,
    people_in,
)
from nornweave.connect.slack.export import day_bytes, read_message
from nornweave.connect.slack.text import Directory
from nornweave.core.access import account
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.membership import Grant
from nornweave.core.types import Domain

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
