"""The Slack app against a stand-in over real WebSockets: who is answered where, with what, and what goes wrong."""

import logging
import re
import socket
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from access_workspace import INNER, SECRET, publish_access, write_access_workspace
from scripted_engine import ScriptedEngine, copied
from waiting import until_async

from api.access.door import Door
from api.pages.addresses import permalinks
from api.slack import BUSY, ELSEWHERE, MOST_AT_ONCE, USAGE, SlackApp, SlackAppError, SlackQuestion, mrkdwn, serve_slack
from api.state import Service
from lab.apis.server import Reply
from lab.apis.slack_app import APP_TOKEN, BOT_TOKEN, TICKET, SlackAppServer
from nornweave.config import Settings
from nornweave.config.access import SlackAppSettings
from nornweave.core.errors import ConfigError
from nornweave.core.membership import Granted, Memberships, MembershipTable, membership_file, write_table
from nornweave.core.types import Domain

PAGE = "https://search.example.org"
TOKENS = {"SLACK_APP_TOKEN": APP_TOKEN, "SLACK_BOT_TOKEN": BOT_TOKEN}
OPEN, STAFF, OTHER = "C0OPEN", "C0STAFF", "C0OTHER"
ANN, BOB = "U01ANN", "U02BOB"
RETRY = "What is the retry limit?"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = write_access_workspace(tmp_path_factory.mktemp("slack"))
    publish_access(settings)
    return settings


@pytest.fixture
def engine(workspace: Settings, tmp_path: Path) -> Any:
    with ScriptedEngine(copied(workspace, tmp_path), watch=False) as engine:
        yield engine


@asynccontextmanager
async def connected(
    engine: ScriptedEngine, slack: SlackAppServer, tokens: dict[str, str] = TOKENS
) -> AsyncIterator[SlackAppServer]:
    """Run the app until the block ends, from when it is connected."""
    settings = SlackAppSettings.model_validate(
        {
            "channels": {OPEN: [], STAFF: ["staff"]},
            "people": {ANN: ["staff", "board"]},
            "api_url": f"{slack.url}/api",
        }
    )
    service = Service(engine=engine, door=Door(None), alone=None, timeout_ms=60_000)
    async with anyio.create_task_group() as running:
        running.start_soon(SlackApp(service, settings, tokens, permalinks(PAGE)).run, lambda _: None)
        await until_async(lambda: slack.sockets)
        yield slack
        running.cancel_scope.cancel()


async def answer_to(slack: SlackAppServer, ask: Callable[..., str], *arguments: Any, **more: Any) -> dict[str, Any]:
    """Ask, and return what the app writes."""
    before = len(slack.written)
    ask(*arguments, **more)
    await until_async(lambda: len(slack.written) > before)
    return slack.written[-1]


@pytest.fixture
def slack() -> Any:
    with SlackAppServer().running() as server:
        yield server


async def test_a_mention_is_answered_in_its_thread_with_passages_and_conflicts(
    engine: ScriptedEngine, slack: SlackAppServer
) -> None:
    async with connected(engine, slack):
        answer = await answer_to(slack, slack.mention, OPEN, RETRY, ts="1768521700.000100")
        within = await answer_to(slack, slack.mention, OPEN, RETRY, thread_ts="1768521600.000100")
    assert (answer["method"], answer["channel"], answer["thread_ts"]) == ("chat.postMessage", OPEN, "1768521700.000100")
    assert within["thread_ts"] == "1768521600.000100"
    first, *_ = answer["text"].split("\n")
    assert re.fullmatch(r"> .*retry limit is 3.* \[1\]", first, re.IGNORECASE)
    assert "*Sources disagree:* " in answer["text"]
    links = re.findall(r"<([^|>]+)\|([^>]+)>", answer["text"])
    assert links
    assert all(url.startswith(f"{PAGE}/passages/") for url, _ in links)
    assert f"\n1. <{links[-1][0][:30]}" in answer["text"]
    assert 1 <= len(re.findall(r"^\d\. ", answer["text"], re.MULTILINE)) <= 5
    assert (answer["parse"], answer["link_names"], answer["unfurl_links"]) == ("none", False, False)


@pytest.mark.parametrize(("channel", "asker", "sees"), [
    (OPEN, {}, set()), (STAFF, {}, {INNER}), (STAFF, {"user": BOB}, set()), (STAFF, {"team": "T02"}, set()),
    (STAFF, {"user_team": "T02"}, set()), (STAFF, {"source_team": "T02"}, set()),
])  # fmt: skip
async def test_a_channel_is_shown_what_it_and_the_asker_may_see(
    engine: ScriptedEngine, slack: SlackAppServer, channel: str, asker: dict[str, str], sees: set[str]
) -> None:
    async with connected(engine, slack):
        said = [
            (await answer_to(slack, slack.mention, channel, f"Who has the {word}?", **asker))["text"]
            for word in (INNER, SECRET)
        ]
    shown = {word for word, text in zip((INNER, SECRET), said, strict=True) if f"The {word} " in text}
    assert shown == sees


@pytest.mark.parametrize(("asker", "sees"), [({}, {INNER, SECRET}), ({"user": BOB}, set()), ({"team": "T02"}, set())])
async def test_the_command_shows_the_asker_alone_what_they_may_see(
    engine: ScriptedEngine, slack: SlackAppServer, asker: dict[str, str], sees: set[str]
) -> None:
    async with connected(engine, slack):
        said = [
            await answer_to(slack, slack.command, OPEN, f"Who has the {word}?", **asker) for word in (INNER, SECRET)
        ]
    assert {each["method"] for each in said} == {"chat.postEphemeral"}
    assert {each["user"] for each in said} == {asker.get("user", ANN)}
    shown = {word for word, each in zip((INNER, SECRET), said, strict=True) if f"The {word} " in each["text"]}
    assert shown == sees


async def test_only_channels_that_opted_in_are_answered_and_programs_are_not(
    engine: ScriptedEngine, slack: SlackAppServer
) -> None:
    async with connected(engine, slack):
        quiet = [
            slack.mention(OTHER, RETRY),
            slack.mention(OPEN, RETRY, bot_id="B01"),
            slack.mention(OPEN, RETRY, type="message"),
            slack.send({"type": "interactive", "payload": "odd"}),
            slack.send({"type": "events_api", "payload": {"event": ["odd"]}}),
            slack.mention(OTHER, RETRY, team={"id": "T01"}, ts=["odd"]),
            slack.send({"type": ["odd"], "payload": None}),
        ]
        refused = slack.command(OTHER, RETRY)
        await answer_to(slack, slack.mention, OPEN, RETRY)
    assert {each: slack.acknowledged[each] for each in quiet} == dict.fromkeys(quiet)
    assert slack.acknowledged[refused] == {"text": ELSEWHERE}
    assert len(slack.written) == len(engine.questions) == 1


async def test_what_slack_sends_again_is_acknowledged_and_not_answered_again(
    engine: ScriptedEngine, slack: SlackAppServer
) -> None:
    async with connected(engine, slack):
        await answer_to(slack, slack.mention, OPEN, RETRY, ts="1768521999.000100")
        again = slack.mention(OPEN, RETRY, ts="1768521999.000100")
        await answer_to(slack, slack.mention, OPEN, "And refunds?")
    assert again in slack.acknowledged
    assert len(engine.questions) == len(slack.written) == 2


async def test_questions_are_acknowledged_before_they_are_answered_and_a_flood_is_bounded(
    engine: ScriptedEngine, slack: SlackAppServer
) -> None:
    held = threading.Event()
    for domain in (Domain.CODE, Domain.DOCUMENTATION):
        engine.agent(domain).seconds, engine.agent(domain).released = 240, held
    async with connected(engine, slack):
        asked = [slack.mention(OPEN, f"{RETRY} {number}") for number in range(MOST_AT_ONCE)]
        dropped = slack.mention(OPEN, RETRY)
        busy = slack.command(OPEN, RETRY)
        await until_async(lambda: busy in slack.acknowledged)
        assert not slack.written
        assert slack.acknowledged == {**dict.fromkeys([*asked, dropped]), busy: {"text": BUSY}}
        held.set()
        await until_async(lambda: len(slack.written) == MOST_AT_ONCE)
        await answer_to(slack, slack.mention, OPEN, RETRY)


async def test_a_connection_that_slack_closes_is_replaced_before_it_ends(
    engine: ScriptedEngine, slack: SlackAppServer
) -> None:
    async with connected(engine, slack):
        old = slack.sockets[-1]
        slack.announce_closing()
        slack.announce_closing()
        await until_async(lambda: slack.opened == 2)
        assert old in slack.sockets
        await answer_to(slack, slack.mention, OPEN, RETRY)
        old.close()
        await until_async(lambda: old not in slack.sockets)
        slack.sockets[-1].socket.shutdown(socket.SHUT_RDWR)  # the network fails
        await until_async(lambda: slack.opened == 3)
        await answer_to(slack, slack.mention, OPEN, RETRY)
    assert slack.opened == 3


async def test_a_rate_limit_is_waited_for_and_a_refusal_is_logged(
    engine: ScriptedEngine, slack: SlackAppServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(engine, slack):
        slack.faults.append(Reply({"ok": False, "error": "ratelimited"}, 429, {"retry-after": "1"}))
        await answer_to(slack, slack.mention, OPEN, RETRY)
        slack.refused["chat.postMessage"] = "not_in_channel"
        slack.mention(OPEN, RETRY)
        await until_async(lambda: "not_in_channel" in caplog.text)
        del slack.refused["chat.postMessage"]
        await answer_to(slack, slack.mention, OPEN, RETRY)


async def test_what_cannot_be_answered_is_said(engine: ScriptedEngine, slack: SlackAppServer) -> None:
    async with connected(engine, slack):
        usage = await answer_to(slack, slack.command, OPEN, "  ")
        long = await answer_to(slack, slack.command, OPEN, "why " * 8_001)
        engine.failure = KeyError("nobody thought of this")
        broken = await answer_to(slack, slack.mention, OPEN, RETRY)
        engine.failure = None
        for domain in (Domain.CODE, Domain.DOCUMENTATION):
            engine.agent(domain).failure = OSError("<!channel> the disk is on fire")
        gone = await answer_to(slack, slack.mention, OPEN, RETRY)
    assert usage["text"] == USAGE
    assert long["text"].startswith("A question has at most 32000 characters")
    assert "nobody thought" not in broken["text"]
    assert "Not searched: code: " in gone["text"]
    assert "<!" not in gone["text"]


async def test_tokens_and_tickets_are_not_logged_and_a_refused_token_ends_the_app(
    engine: ScriptedEngine, slack: SlackAppServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ExceptionGroup) as ended:
        async with connected(engine, slack):
            await answer_to(slack, slack.mention, OPEN, RETRY)
            slack.refused["apps.connections.open"] = "token_revoked"
            slack.announce_closing()
            await anyio.sleep_forever()
    assert isinstance(ended.value.exceptions[0], SlackAppError)
    said = [record.getMessage() for record in caplog.records if record.name != "websockets.server"]  # the stand-in
    assert any("apps.connections.open" in line for line in said)
    assert not [line for line in said for secret in (APP_TOKEN, BOT_TOKEN, TICKET) if secret in line]


def test_text_of_passages_mentions_nobody_links_nowhere_and_stays_on_its_line() -> None:
    hostile = "<!channel> <@U01ANN> <https://evil.example|docs>\n```\n*Passages*\u202e & ``x``"
    assert mrkdwn(hostile) == (
        "&lt;!channel&gt; &lt;@U01ANN&gt; &lt;https://evil.example|docs&gt; ` *Passages* &amp; `x`"
    )


def test_the_command_needs_channels_and_tokens(workspace: Settings) -> None:
    with pytest.raises(ConfigError, match="key 'slack' is missing"):
        serve_slack(workspace, TOKENS, print)
    slack = SlackAppSettings.model_validate({"channels": {OPEN: []}})
    with pytest.raises(ConfigError, match="SLACK_BOT_TOKEN is not set"):
        serve_slack(workspace.model_copy(update={"slack": slack}), {"SLACK_APP_TOKEN": APP_TOKEN}, print)


def test_the_page_has_a_manifest_and_a_configuration_that_fit() -> None:
    page = Path(__file__).parents[2] / "docs" / "slack.md"
    manifest, configuration = (
        yaml.safe_load(textwrap.dedent(each)) for each in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    )
    assert manifest["settings"]["socket_mode_enabled"] is True
    assert manifest["settings"]["event_subscriptions"] == {"bot_events": ["app_mention"]}
    assert manifest["oauth_config"]["scopes"] == {"bot": ["app_mentions:read", "chat:write", "commands"]}
    assert SlackAppSettings.model_validate(configuration["slack"]).people == {"U0123456789": ("staff", "board")}


def test_a_refused_token_is_an_error_that_names_its_variable(workspace: Settings, slack: SlackAppServer) -> None:
    configured = SlackAppSettings.model_validate({"channels": {OPEN: []}, "api_url": f"{slack.url}/api"})
    settings = workspace.model_copy(update={"slack": configured})
    for token, remedy in (("SLACK_BOT_TOKEN", "auth.test"), ("SLACK_APP_TOKEN", "apps.connections.open")):
        with pytest.raises(SlackAppError, match=rf"{remedy}: invalid_auth; renew {token}") as raised:
            serve_slack(settings, {**TOKENS, token: "xoxb-wrong-secret"}, lambda _: None)
        assert "wrong-secret" not in str(raised.value)


@pytest.mark.parametrize(("channel", "thread", "member", "sees"), [
    (OPEN, None, True, True), (OPEN, "t", True, False), (STAFF, "t", True, True), (STAFF, "t", False, False),
    (OPEN, None, False, False),
])  # fmt: skip
def test_who_asks_in_slack_is_in_their_channels_and_a_channel_shows_its_own(
    engine: ScriptedEngine, tmp_path: Path, channel: str, thread: str | None, member: bool, sees: bool
) -> None:
    principal = f"slack:channel:{STAFF}"
    grants = {principal: Granted(members=(f"slack:user:{BOB}",), verified_at=time.time())}
    write_table(membership_file(tmp_path, "chat"), MembershipTable(origin="x", tried_at=0.0, grants=grants))
    settings = SlackAppSettings.model_validate({"channels": {OPEN: [], STAFF: ["staff"]}})
    service = Service(engine=engine, door=Door(None), alone=None, timeout_ms=60_000)
    app = SlackApp(service, settings, TOKENS, permalinks(PAGE), Memberships(tmp_path, ["chat"]))
    asked = SlackQuestion(identity="x", text="?", channel=channel, user=BOB, is_member=member, thread=thread)
    assert {each for each in app._viewer(asked).groups if "channel" in each} == ({principal} if sees else set())
