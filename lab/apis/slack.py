"""Slack's Web API, as far as reading the channels of a workspace goes.

Source: docs.slack.dev/reference/methods: ``ok`` and ``error`` with status 200, cursors, ``latest``, scopes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.utils import formatdate
from typing import Any

from lab.apis.server import Api, Reply, Request

BASE = 1_768_521_600  # 2026-01-16 00:00 UTC
TOKEN = "xoxb-12345-secret"


class SlackServer(Api):
    """A workspace of two people; every change moves its clock by a minute."""

    def __init__(self, *, page_size: int = 999) -> None:
        super().__init__()
        self.page_size = page_size
        self.token = TOKEN
        self.now = BASE
        self.team = "T01"
        self.users: dict[str, dict[str, Any]] = {}
        self.channels: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, dict[str, dict[str, Any]]] = {}
        self._threads: dict[tuple[str, str], set[str]] = {}
        self.refused: dict[tuple[str, str | None], dict[str, Any]] = {}
        self.lost_cursors = False
        self.lacks_private = False
        self.shows_addresses = True
        self.inside: dict[str, set[str]] = {}
        self.add_user("U01ALICE", "alice")
        self.add_user("U02BOB", "Bob Okafor")

    def add_user(self, identifier: str, name: str, **more: Any) -> None:
        profile = {"display_name": name, "email": f"{name.split()[0].lower()}@example.org"}
        self.users[identifier] = {
            "id": identifier, "team_id": self.team, "name": name.lower(), "deleted": False, "is_restricted": False,
            "is_ultra_restricted": False, "is_bot": False, "profile": profile, **more,
        }  # fmt: skip

    def add_channel(self, identifier: str, name: str, **more: Any) -> str:
        self.channels[identifier] = {"id": identifier, "name": name, "is_archived": False, "is_member": True, **more}
        self.messages[identifier] = {}
        self.inside[identifier] = {"U01ALICE", "U02BOB"}
        return identifier

    def say(
        self, channel: str, text: str, *, user: str | None = "U01ALICE", thread: str | None = None, **more: Any
    ) -> str:
        self.now += 60
        ts = f"{self.now}.{len(self.messages[channel]) % 1_000_000:06d}"
        event = {"type": "message", "ts": ts, "text": text, "user": user, "team": self.team, **more}
        if thread is not None:
            event["thread_ts"] = thread
        self.put(channel, {key: value for key, value in event.items() if value is not None})
        return ts

    def put(self, channel: str, event: dict[str, Any]) -> None:
        ts, root = event["ts"], event.get("thread_ts", event["ts"])
        self.messages[channel][ts] = event
        if root != ts:
            self._threads.setdefault((channel, root), set()).add(ts)

    def edit(self, channel: str, ts: str, text: str) -> None:
        self.now += 60
        self.messages[channel][ts] |= {"text": text, "edited": {"user": "U01ALICE", "ts": f"{self.now}.000000"}}

    def delete(self, channel: str, ts: str) -> None:
        """Delete a message; the root of a thread leaves a tombstone as long as there are replies."""
        self.now += 60
        event, has_replies = self.messages[channel].pop(ts), bool(self.replies(channel, ts))
        self._threads.get((channel, event.get("thread_ts", ts)), set()).discard(ts)
        if has_replies:
            gone = {"subtype": "tombstone", "ts": ts, "user": "USLACKBOT", "text": "This message was deleted."}
            self.put(channel, {"type": "message", **gone})

    def replies(self, channel: str, root: str) -> list[dict[str, Any]]:
        return [self.messages[channel][ts] for ts in sorted(self._threads.get((channel, root), ()))]

    def handle(self, request: Request) -> Reply:
        method, query = request.path.rpartition("/")[2], request.query
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return self._reply({"ok": False, "error": "invalid_auth"})
        refused = self.refused.get((method, query.get("channel"))) or self.refused.get((method, None))
        if refused:
            return self._reply({"ok": False, **refused})
        answers = {
            "auth.test": self._who,
            "users.list": self._users,
            "users.conversations": self._joined,
            "conversations.history": self._history,
            "conversations.replies": self._thread,
            "conversations.members": self._inside,
        }
        if method not in answers:
            return self._reply({"ok": False, "error": "unknown_method"})
        return self._reply(answers[method](query))

    def _reply(self, content: Mapping[str, Any]) -> Reply:
        return Reply(content, headers={"date": formatdate(self.now + 1, usegmt=True)})

    def _who(self, _: Mapping[str, str]) -> dict[str, Any]:
        url = "https://acme.slack.com/"
        return {"ok": True, "url": url, "team": "Acme", "user": "reader", "team_id": self.team, "user_id": "U09BOT"}

    def _users(self, query: Mapping[str, str]) -> dict[str, Any]:
        users = [self.users[each] for each in sorted(self.users)]
        if not self.shows_addresses:  # the scope users:read.email
            hidden = [{key: value for key, value in each["profile"].items() if key != "email"} for each in users]
            users = [{**each, "profile": profile} for each, profile in zip(users, hidden, strict=True)]
        return self._page("members", users, query)

    def _joined(self, query: Mapping[str, str]) -> dict[str, Any]:
        sees_private = "private_channel" in query["types"]
        if sees_private and self.lacks_private:
            return {"ok": False, "error": "missing_scope", "needed": "groups:read", "provided": "channels:read"}
        joined = [each for _, each in sorted(self.channels.items()) if each["is_member"]]
        listed = [each for each in joined if sees_private or not each.get("is_private")]
        return self._page("channels", listed, query)

    def _history(self, query: Mapping[str, str]) -> dict[str, Any]:
        channel = query["channel"]
        if not self.channels.get(channel, {}).get("is_member"):
            return {"ok": False, "error": "channel_not_found" if channel not in self.channels else "not_in_channel"}
        latest, said = query.get("latest", "9"), self.messages[channel]
        shown = [said[ts] for ts in sorted(said, reverse=True) if ts < latest and _is_in_history(said[ts])]
        page = self._page("messages", shown, query)
        return {**page, "messages": [self._with_marks(channel, each["ts"]) for each in page["messages"]]}

    def _inside(self, query: Mapping[str, str]) -> dict[str, Any]:
        if not self.channels.get(query["channel"], {}).get("is_member"):
            return {"ok": False, "error": "channel_not_found"}
        return self._page("members", sorted(self.inside[query["channel"]]), query)

    def _thread(self, query: Mapping[str, str]) -> dict[str, Any]:
        channel, root = query["channel"], query["ts"]
        if root not in self.messages[channel]:
            return {"ok": False, "error": "thread_not_found"}
        said = [self._with_marks(channel, root), *self.replies(channel, root)]
        return self._page("messages", said, query)

    def _with_marks(self, channel: str, ts: str) -> dict[str, Any]:
        replies = self.replies(channel, ts)
        if not replies:
            return self.messages[channel][ts]
        marks = {"reply_count": len(replies), "latest_reply": replies[-1]["ts"], "thread_ts": ts}
        return {**self.messages[channel][ts], **marks}

    def _page(self, key: str, listed: Sequence[Any], query: Mapping[str, str]) -> dict[str, Any]:
        cursor = query.get("cursor")
        if cursor and self.lost_cursors:
            return {"ok": False, "error": "invalid_cursor"}
        start = int(cursor.removeprefix("c:")) if cursor else 0
        end = start + min(int(query.get("limit", 100)), self.page_size)
        following = f"c:{end}" if end < len(listed) else ""
        metadata = {"response_metadata": {"next_cursor": following}}
        return {"ok": True, key: listed[start:end], "has_more": bool(following), **metadata}


def _is_in_history(event: Mapping[str, Any]) -> bool:
    return event.get("thread_ts", event["ts"]) == event["ts"] or event.get("subtype") == "thread_broadcast"


def small() -> SlackServer:
    """Return a workspace with two channels, a thread and a bot."""
    server = SlackServer()
    general, engineering = server.add_channel("C01", "general"), server.add_channel("C02", "engineering")
    server.say(general, "Welcome, <@U02BOB>!")
    root = server.say(engineering, "The payment module answers 400 instead of 422, see <#C01|general>")
    server.say(engineering, "Mended in release 7", user="U02BOB", thread=root)
    server.say(engineering, "Deployed", user=None, bot_id="B01", username="deployer", subtype="bot_message")
    return server


def large(documents: int, *, page_size: int = 999) -> SlackServer:
    """Return a workspace with so many days of ten channels; on each a question, an answer and a remark."""
    server = SlackServer(page_size=page_size)
    channels = [server.add_channel(f"C{number:03d}", f"team-{number}") for number in range(10)]
    for number in range(documents):
        channel, day = channels[number % 10], number // 10
        at = BASE - 86_400 * (documents // 10 - day) + number % 10
        root, reply, remark = f"{at}.000000", f"{at + 60}.000000", f"{at + 120}.000000"
        for ts, user, text, more in (
            (root, "U01ALICE", f"What happens in case {number}?", {}),
            (reply, "U02BOB", f"It returns {number}.", {"thread_ts": root}),
            (remark, "U01ALICE", f"Fixed in release {number}.", {}),
        ):
            server.put(channel, {"type": "message", "ts": ts, "user": user, "text": text, **more})
    return server
