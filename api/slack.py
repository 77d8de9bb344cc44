"""``nornweave slack``: answer questions in Slack from documents that the asker and all readers of the answer may see.

=================  ==============================  =====================================================
asked by           answered                        from documents of
=================  ==============================  =====================================================
a mention          in a thread, for the channel    the groups that the channel and the asker are both in
the slash command  for the asker's eyes only       the groups that the asker is in
=================  ==============================  =====================================================

Nobody in Slack operates the service or sees everything. People of another workspace, or without configuration, are in
no group. The engine runs in this process: a server asked over HTTP would have to trust it about the asker.

A message shows sentences first, then conflicts, then the passages with their permalinks.

Passages are data. Slack's links and mentions need three signs, ``&``, ``<`` and ``>``. If these are escaped, a text can
neither mention a channel or a person nor form a link. Each text is one line: emphasis and code end there, but for
fences, of which one sign is left.

Slack's interface for apps is methods of the Web API, and Socket Mode, which needs no public address. Slack sends
envelopes over a WebSocket, whose address a method returns. Each must be acknowledged within three seconds. It announces
the end of a connection: the next one is opened before the old one ends, so that nothing is missed. The addresses hold a
ticket, so they are never logged.

Source: docs.slack.dev/apis/events-api/using-socket-mode, docs.slack.dev/apis/web-api.
"""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import anyio
import httpx
from anyio.abc import TaskGroup
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from api.access.door import Door
from api.errors import ProblemError
from api.pages.addresses import configured_url, original, permalinks
from api.state import Service, arrive
from nornweave.ask.answer.extract import as_read
from nornweave.ask.answer.text_renderer import NEAREST
from nornweave.ask.engine import Engine
from nornweave.ask.fuse.records import Answer, ConflictRecord
from nornweave.ask.views.tools import Link, line, title_of
from nornweave.config import Settings
from nornweave.config.access import SlackAppSettings
from nornweave.connect.conversation import as_is, clean
from nornweave.connect.slack.text import Directory, plain
from nornweave.core.access import Viewer
from nornweave.core.errors import ConfigError, NornWeaveError
from nornweave.core.membership import Memberships
from nornweave.core.text.checked_values import MAX_QUERY_CHARACTERS
from nornweave.core.text.terminal import counted
from nornweave.core.types import Domain

CONFLICTS_SHOWN = 3
TEXT_CHARACTERS = 400
TITLE_CHARACTERS = 120
URL_CHARACTERS = 1_000

_FENCE = re.compile("`{2,}")
_SIGNS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_IN_ADDRESS = str.maketrans({"&": "&amp;", "<": "%3C", ">": "%3E", "|": "%7C"})

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
# It would log the address of a connection, with its ticket, at DEBUG.
_quiet = logging.getLogger(f"{__name__}.socket")
_quiet.setLevel(logging.WARNING)


def mrkdwn(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """Return foreign text as one line, escaped so that Slack shows it unchanged."""
    return _FENCE.sub("`", line(text, limit)).translate(_SIGNS)


def answer_text(answer: Answer, link: Link) -> str:
    """Return an answer in Slack's markup. It usually has some 2,000 characters; Slack accepts 40,000."""
    return "\n".join(_lines(answer, link))


def _lines(answer: Answer, link: Link) -> Iterator[str]:
    numbered = {item.chunk_id: (number, item.domain == Domain.CODE) for number, item in enumerate(answer.items, 1)}
    if answer.answerable.words:
        yield mrkdwn(answer.answerable.words)
    if answer.nearest:
        yield NEAREST
    sentences = answer.extract or answer.nearest
    for sentence in sentences:
        number, is_code = numbered[sentence.chunk_id]
        yield f"> {mrkdwn(as_read(sentence.text, is_code=is_code))} [{number}]"
    for conflict in answer.conflicts[:CONFLICTS_SHOWN]:
        yield from _conflict(conflict, link)
    if (left := len(answer.conflicts) - CONFLICTS_SHOWN) > 0:
        yield f"and {counted(left, 'more conflict')}"
    if answer.items:
        yield "*Passages*"
    elif not answer.answerable.words:
        yield "Nothing was found."
    for item in answer.items:
        linked = _linked(link(item.chunk_id, item.citation.url), title_of(item))
        yield f"{numbered[item.chunk_id][0]}. {linked} · {mrkdwn(item.domain)}"
    for gap in answer.recalled.coverage_gaps:
        yield f"Not searched: {mrkdwn(gap.name)}: {mrkdwn(gap.reason)}"


def _conflict(conflict: ConflictRecord, link: Link) -> Iterator[str]:
    yield f"*Sources disagree:* {mrkdwn(conflict.explanation)}"
    for side in conflict.sides:
        said = f": “{mrkdwn(side.fact.statement)}”" if side.fact else ""
        yield f"• {side.role}: {_linked(link(side.chunk_id, side.citation.url), side.citation.source_path)}{said}"
    yield f"{'because' if conflict.resolved_to else 'Unresolved'}: {mrkdwn(conflict.reason)}"


def _linked(url: str, title: str) -> str:
    """Return a link; only the title if there is no address or it is too long."""
    shown = mrkdwn(title, TITLE_CHARACTERS)
    return f"<{url.translate(_IN_ADDRESS)}|{shown}>" if 0 < len(url) <= URL_CHARACTERS else shown


PASSAGES = 5
# Answered or waiting for it; Slack takes about one message a second in each channel.
MOST_AT_ONCE = 16
# Slack sends again, within minutes, what it thinks was not received.
REMEMBERED = 1_000
POST_WITHIN_S = 30.0
USAGE = "Ask a question, such as: how often is a payment retried?"
BUSY = "Too many questions are being answered. Ask again in a minute."
ELSEWHERE = "NornWeave does not answer in this channel."
FAILED = "That could not be answered; the log of NornWeave says why."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackQuestion:
    """A question in a channel.

    Attributes:
        identity: the id of the message or the command, because Slack may send it twice.
        is_member: whether the asker belongs to the workspace of the app.
        thread: the thread for the answer; ``None`` answers the asker alone.
    """

    identity: str
    text: str
    channel: str
    user: str
    is_member: bool
    thread: str | None


class SlackApp:
    """Answers the questions of one workspace from a service."""

    def __init__(
        self,
        service: Service,
        settings: SlackAppSettings,
        tokens: Mapping[str, str],
        link: Link,
        memberships: Memberships | None = None,
    ) -> None:
        self._service = service
        self._memberships = memberships
        self._settings = settings
        self._link = link
        self._api = SlackAppApi(settings.api_url, tokens)
        self._team = self._user = ""
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._at_once = 0

    async def run(self, announce: Callable[[str], None]) -> None:
        """Answer until cancelled.

        Raises:
            SlackAppError: Slack refuses a token.
        """
        async with self._api:
            await self._run(announce)

    async def _run(self, announce: Callable[[str], None]) -> None:
        who = await self._api.call(BOT_TOKEN, "auth.test")
        self._team, self._user = str(who.get("team_id")), str(who.get("user_id"))
        channels = counted(len(self._settings.channels), "channel")
        announce(f"slack: {who.get('user')} answers in {channels} of {who.get('team')}")
        async with anyio.create_task_group() as answering:
            refusal = await SocketMode(self._api, lambda envelope: self._accept(answering, envelope)).run()
            answering.cancel_scope.cancel()
        if refusal:
            raise refusal

    def _accept(self, answering: TaskGroup, envelope: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Start to answer a question. Return the immediate reply to the asker; ``None`` for no reply."""
        asked = self._asked(envelope)
        if asked is None or asked.identity in self._seen:
            return None
        if asked.channel not in self._settings.channels:
            return None if asked.thread else {"text": ELSEWHERE}
        self._seen[asked.identity] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        if self._at_once >= MOST_AT_ONCE:
            logger.warning("slack: %d questions are being answered; one more is not", self._at_once)
            return None if asked.thread else {"text": BUSY}
        self._at_once += 1
        answering.start_soon(self._answer, asked)
        return None

    def _asked(self, envelope: Mapping[str, Any]) -> SlackQuestion | None:
        """Return the question of a mention or a slash command; ``None`` for other events and for programs."""
        kind, payload = envelope.get("type"), as_is(envelope.get("payload"), dict) or {}
        event = as_is(payload.get("event"), dict) or {}
        if kind == "slash_commands":
            channel, user, text = (str(payload.get(key, "")) for key in ("channel_id", "user_id", "text"))
            identity, thread, teams = str(envelope.get("envelope_id")), None, {str(payload.get("team_id"))}
        elif kind == "events_api" and event.get("type") == "app_mention" and not event.get("bot_id"):
            channel, user, text, sent = (str(event.get(key, "")) for key in ("channel", "user", "text", "ts"))
            identity, thread = f"{channel} {sent}", str(event.get("thread_ts") or sent)
            teams = {str(event[key]) for key in ("team", "user_team", "source_team") if event.get(key)}
        else:
            return None
        text = clean(plain(text.replace(f"<@{self._user}>", " "), Directory()))
        is_member = teams == {self._team}
        return SlackQuestion(
            identity=identity, text=text, channel=channel, user=user, is_member=is_member, thread=thread
        )

    def _viewer(self, asked: SlackQuestion) -> Viewer:
        groups = frozenset(self._settings.people.get(asked.user, ()) if asked.is_member else ())
        channel = frozenset(self._settings.channels[asked.channel]) if asked.thread else frozenset[str]()
        if self._memberships:  # Slack has proved who asks, and everybody in a channel is in it
            person = [f"slack:user:{asked.user}"] if asked.is_member else []
            groups = self._memberships.expanded(groups, person)
            channel |= {f"slack:channel:{asked.channel}"}
        if asked.thread:  # everybody in the channel reads the answer
            groups &= channel
        return Viewer(groups=groups, name=f"slack {asked.user}")

    async def _answer(self, asked: SlackQuestion) -> None:
        try:
            text = await self._text(asked)
            # Names and addresses in a text stay text, and linked pages are not previewed.
            message = {"channel": asked.channel, "text": text, "parse": "none", "link_names": False}
            hidden = {"unfurl_links": False, "unfurl_media": False}
            with anyio.fail_after(POST_WITHIN_S):
                if asked.thread:
                    await self._api.call(BOT_TOKEN, "chat.postMessage", thread_ts=asked.thread, **message, **hidden)
                else:
                    await self._api.call(BOT_TOKEN, "chat.postEphemeral", user=asked.user, **message)
        except (SlackAppError, TimeoutError) as error:
            logger.warning(
                "slack: an answer in %s was not written: %s", asked.channel, str(error) or "it took too long"
            )
        finally:
            self._at_once -= 1

    async def _text(self, asked: SlackQuestion) -> str:
        if not asked.text:
            return USAGE
        if len(asked.text) > MAX_QUERY_CHARACTERS:
            return f"A question has at most {MAX_QUERY_CHARACTERS} characters; this one has {len(asked.text)}."
        arrived = arrive(self._service.timeout_ms, self._viewer(asked))
        question = replace(arrived, text=asked.text, top_k=PASSAGES)
        try:
            serving = self._service.seen_by(question.viewer)
            return answer_text(await serving.ask(question, lambda answers: answers.answer(question)), self._link)
        except (ProblemError, NornWeaveError) as error:
            return f"Not answered: {mrkdwn(error.detail if isinstance(error, ProblemError) else str(error))}"
        except Exception:
            logger.exception("slack: a question could not be answered")
            return FAILED


def serve_slack(settings: Settings, environment: Mapping[str, str], announce: Callable[[str], None]) -> None:
    """Answer in Slack until SIGINT.

    Raises:
        ConfigError: the app is not configured, or a token is missing.
        SlackAppError: Slack refuses a token.
    """
    if settings.slack is None:
        raise ConfigError(f"{settings.file}: key 'slack' is missing; it names channels to answer in (docs/slack.md)")
    base = configured_url(environment)
    link = permalinks(base) if base else lambda _, url: original(url) or ""
    tokens = {name: environment.get(name, "").strip() for name in (APP_TOKEN, BOT_TOKEN)}
    if missing := [name for name, token in tokens.items() if not token]:
        raise ConfigError(f"{missing[0]} is not set; it holds a token of the Slack app (docs/slack.md)")
    with suppress(KeyboardInterrupt), Engine(settings) as engine:
        service = Service(engine=engine, door=Door(None), alone=None, timeout_ms=settings.fusion.timeout_ms)
        anyio.run(SlackApp(service, settings.slack, tokens, link, settings.memberships).run, announce)


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
