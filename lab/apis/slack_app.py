"""Slack as an app meets it: Socket Mode over real WebSockets, and the methods that write.

Source: docs.slack.dev/apis/events-api/using-socket-mode, docs.slack.dev/reference/methods.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from lab.apis.server import Api, Reply, Request, serving

APP_TOKEN, BOT_TOKEN = "xapp-1-secret", "xoxb-2-secret"
TEAM, BOT, TICKET = "T01", "U09BOT", "ticket-of-a-connection"


class SlackAppServer(Api):
    """A workspace with an app in it.

    Attributes:
        written: the messages that the app wrote, with the method in ``method``.
        acknowledged: envelopes by id → what came with the acknowledgement.
        sockets: the connections that are open, the newest last.
    """

    def __init__(self) -> None:
        super().__init__()
        self.written: list[dict[str, Any]] = []
        self.acknowledged: dict[str, Any] = {}
        self.sockets: list[ServerConnection] = []
        self.refused: dict[str, str] = {}
        self.opened = 0
        self._port = 0
        self._sent = 0

    @contextmanager
    def running(self) -> Iterator[SlackAppServer]:
        with serve(self._connection, "127.0.0.1", 0, close_timeout=1) as sockets:
            self._port = sockets.socket.getsockname()[1]
            thread = threading.Thread(target=sockets.serve_forever, daemon=True)
            thread.start()
            try:
                with serving(self):
                    yield self
            finally:
                self._end(sockets)
                thread.join()

    def mention(self, channel: str, text: str, user: str = "U01ANN", **more: Any) -> str:
        """Mention the app in a message; return the id of the envelope. ``more`` replaces what the event says."""
        self._sent += 1
        event = {"type": "app_mention", "channel": channel, "user": user, "team": TEAM, "text": f"<@{BOT}> {text}"}
        event["ts"] = f"{1_768_521_600 + self._sent}.000100"
        payload = {"type": "event_callback", "team_id": TEAM, "event_id": f"Ev{self._sent}", "event": {**event, **more}}
        return self.send({"type": "events_api", "payload": payload, "accepts_response_payload": False})

    def command(self, channel: str, text: str, user: str = "U01ANN", team: str = TEAM) -> str:
        """Use the slash command; return the id of the envelope."""
        payload = {"command": "/nornweave", "channel_id": channel, "user_id": user, "team_id": team, "text": text}
        return self.send({"type": "slash_commands", "payload": payload, "accepts_response_payload": True})

    def send(self, envelope: Mapping[str, Any]) -> str:
        self._sent += 1
        identity = f"envelope-{self._sent}"
        self.sockets[-1].send(json.dumps({**envelope, "envelope_id": identity}))
        return identity

    def announce_closing(self) -> None:
        self.sockets[-1].send(json.dumps({"type": "disconnect", "reason": "refresh_requested"}))

    def handle(self, request: Request) -> Reply:
        method = request.path.rpartition("/")[2]
        token = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if request.headers.get("authorization") != f"Bearer {token}":
            return Reply({"ok": False, "error": "invalid_auth"})
        if method in self.refused:
            return Reply({"ok": False, "error": self.refused[method]})
        if method == "apps.connections.open":
            return Reply({"ok": True, "url": f"ws://127.0.0.1:{self._port}/link/?ticket={TICKET}"})
        if method == "auth.test":
            return Reply({"ok": True, "team": "Acme", "user": "nornweave", "team_id": TEAM, "user_id": BOT})
        self.written.append({"method": method, **request.json()})
        return Reply({"ok": True})

    def _connection(self, socket: ServerConnection) -> None:
        socket.send(json.dumps({"type": "hello", "num_connections": len(self.sockets) + 1}))
        self.sockets.append(socket)
        self.opened += 1
        with suppress(ConnectionClosed):
            for text in socket:
                answer = json.loads(text)
                self.acknowledged[answer["envelope_id"]] = answer.get("payload")
        self.sockets.remove(socket)

    def _end(self, sockets: Server) -> None:
        sockets.shutdown()
        for socket in [*self.sockets]:
            socket.close()
