"""Slack's interface for apps: methods of the Web API, and Socket Mode, which needs no public address.

Slack sends envelopes over a WebSocket, whose address a method returns. Each must be acknowledged within three seconds.
It announces the end of a connection: the next one is opened before the old one ends, so that nothing is
missed. The addresses hold a ticket, so they are never logged.

Source: docs.slack.dev/apis/events-api/using-socket-mode, docs.slack.dev/apis/web-api.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import httpx
from anyio.abc import TaskGroup
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from nornweave.core.errors import NornWeaveError

# The environment variables that hold the tokens.
APP_TOKEN, BOT_TOKEN = "SLACK_APP_TOKEN", "SLACK_BOT_TOKEN"
TRIES = 3
TIMEOUT_S = 10.0
MAX_WAIT_S = 60.0
# Before the next connection. Slack announces some ten seconds before that it will close one.
PAUSE_S = 1.0
CLOSE_WITHIN_S = 1.0
_REFUSED = frozenset(
    {"account_inactive", "invalid_auth", "missing_scope", "not_allowed_token_type", "not_authed", "token_expired"}
    | {"token_revoked"}
)

logger = logging.getLogger(__name__)
# It would log the address of a connection, with its ticket, at DEBUG.
_quiet = logging.getLogger(f"{__name__}.socket")
_quiet.setLevel(logging.WARNING)


class SlackAppError(NornWeaveError):
    """Slack refuses a call or does not answer. ``is_final`` means that it refuses a token."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class SlackAppApi(httpx.AsyncClient):
    """The methods of Slack's Web API; ``tokens`` are named by their environment variables."""

    def __init__(self, url: str, tokens: Mapping[str, str]) -> None:
        super().__init__(base_url=url, timeout=TIMEOUT_S)
        self._tokens = tokens

    async def call(self, token: str, method: str, **fields: Any) -> Mapping[str, Any]:
        """Call a method and return its answer. If Slack limits the rate or cannot be reached, wait and call again.

        Raises:
            SlackAppError: Slack refuses, or does not answer. The message holds no part of a token.
        """
        headers = {"Authorization": f"Bearer {self._tokens[token]}", "Content-Type": "application/json; charset=utf-8"}
        problem = "cannot be reached"
        for attempt in range(TRIES):
            wait_s = float(2**attempt)
            try:
                answer = await self.post(method, json=fields, headers=headers)
            except httpx.ConnectError:
                problem = "cannot be reached"
            except httpx.HTTPError as error:  # the call may have succeeded: a repetition would act twice
                raise SlackAppError(f"{method}: {type(error).__name__}") from error
            else:
                content = _content(answer)
                if content.get("ok") is True:
                    return content
                problem = str(content.get("error") or f"HTTP {answer.status_code}")[:80]
                if answer.status_code != httpx.codes.TOO_MANY_REQUESTS and problem != "ratelimited":
                    break
                named = answer.headers.get("retry-after", "")
                wait_s = min(float(named), MAX_WAIT_S) if named.isdecimal() else wait_s
            await anyio.sleep(wait_s)
        if problem in _REFUSED:
            remedy = f"renew {token}, or give the app the scopes of its manifest (docs/slack.md)"
            raise SlackAppError(f"{method}: {problem}; {remedy}", is_final=True)
        raise SlackAppError(f"{method}: {problem}")


class SocketMode:
    """Receives the events of a workspace, over one connection after another.

    ``accept`` gets every envelope and must not block. Its result is sent with the acknowledgement.
    """

    def __init__(self, api: SlackAppApi, accept: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]) -> None:
        self._api = api
        self._accept = accept
        self._refusal: SlackAppError | None = None

    async def run(self) -> SlackAppError | None:
        """Receive until Slack refuses the token. Return the error of the refusal."""
        async with anyio.create_task_group() as connections:
            connections.start_soon(self._connect, connections)
        return self._refusal

    async def _connect(self, connections: TaskGroup, pause_s: float = 0.0) -> None:
        """Open a connection after ``pause_s`` and receive over it.

        The next connection is opened when Slack announces the end of this one, or else when it ends.
        """
        await anyio.sleep(pause_s)
        is_last = True
        try:
            opened = await self._api.call(APP_TOKEN, "apps.connections.open")
            async with connect(str(opened.get("url")), logger=_quiet, close_timeout=CLOSE_WITHIN_S) as socket:
                try:
                    async for text in socket:
                        envelope = json.loads(text)
                        if envelope.get("type") == "disconnect" and is_last:
                            is_last = False
                            connections.start_soon(self._connect, connections, PAUSE_S)
                        if identity := envelope.get("envelope_id"):
                            more = self._accept(envelope)
                            told = {"envelope_id": identity, **({"payload": more} if more else {})}
                            await socket.send(json.dumps(told))
                finally:
                    with anyio.CancelScope(shield=True):
                        await socket.close()
        except SlackAppError as error:
            if error.is_final:
                self._refusal = error
                connections.cancel_scope.cancel()
            logger.warning("slack: not connected: %s", error)
        except (OSError, TimeoutError, WebSocketException, ValueError, AttributeError) as error:
            logger.warning("slack: a connection ended: %s", type(error).__name__)
        if is_last:
            connections.start_soon(self._connect, connections, PAUSE_S)


def _content(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        content = answer.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
