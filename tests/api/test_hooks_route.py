"""Webhooks: each service's own signature lets an event in, once; nothing else does, and what is refused is counted."""

import asyncio
import hashlib
import hmac
import json
import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from api_support import CLIENT, is_problem
from configurations import configured
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from api.app import create_app
from nornweave.ask.engine import Engine
from nornweave.config import Settings
from nornweave.connect.connectors import GithubSettings, GitSettings
from nornweave.connect.hooks import SERVICES, HookQueue, ReplayedError, find_sources
from nornweave.core.access import line_of
from nornweave.core.types import Domain

SECRETS = {"GITHUB_HOOK": "g-1", "LAB_HOOK": "l-1", "SLACK_HOOK": "s-1", "JIRA_HOOK": "j-1", "WIKI_HOOK": "w-1"}
SOURCES: list[dict[str, Any]] = [
    {"id": "api", "domain": "code", "type": "git", "url": "https://github.com/Acme/api.git"},
    {"id": "web", "domain": "code", "type": "git", "url": "git@github.com:acme/web.git"},
    {"id": "issues", "domain": "conversations", "type": "github", "repository": "acme/api"},
    {"id": "lab", "domain": "code", "type": "git", "url": "https://git.example.org/team/sub/tool"},
    {"id": "merges", "domain": "conversations", "type": "gitlab", "project": "team/sub/tool"},
    {"id": "pages", "domain": "documentation", "type": "gitlab", "project": "team/tool"},
    {"id": "chat", "domain": "conversations", "type": "slack", "token_env": "SLACK_TOKEN"},
    {"id": "tickets", "domain": "conversations", "type": "jira", "url": "https://team.atlassian.net"},
    {"id": "wiki", "domain": "documentation", "type": "confluence", "url": "https://team.atlassian.net"},
]
VARIABLES = dict(
    zip(
        ("api", "web", "issues", "lab", "merges", "pages", "chat", "tickets", "wiki"),
        ("GITHUB_HOOK",) * 3 + ("LAB_HOOK",) * 3 + ("SLACK_HOOK", "JIRA_HOOK", "WIKI_HOOK"),
        strict=True,
    )
)
SECRET_OF = {"github": "g-1", "gitlab": "l-1", "slack": "s-1", "jira": "j-1", "confluence": "w-1"}


def hub(header: str) -> Callable[[str, bytes], dict[str, str]]:
    return lambda secret, body: {header: f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"}


def slack(secret: str, body: bytes, at: float | None = None) -> dict[str, str]:
    stamp = str(int(time.time() if at is None else at))
    signature = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={signature}"}


SIGN: Mapping[str, Callable[[str, bytes], dict[str, str]]] = {
    "github": hub("X-Hub-Signature-256"),
    "gitlab": lambda secret, _: {"X-Gitlab-Token": secret},
    "slack": slack,
    "jira": hub("X-Hub-Signature"),
    "confluence": hub("X-Hub-Signature"),
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "tokens.yaml").write_text(line_of("nw_a", ["staff"]))
    sources = [{**each, "webhook_secret_env": VARIABLES[each["id"]]} for each in SOURCES]
    return configured(tmp_path, *sources, access={"tokens": "tokens.yaml"})


class Receiver:
    """The app of a workspace; nothing is published, and who sends has no token of its own."""

    def __init__(self, settings: Settings, secrets: Mapping[str, str] = SECRETS) -> None:
        self.engine = Engine(settings, watch=False)
        environment = {"NORNWEAVE_SERVICE_TOKEN": "token-of-operators", **secrets}
        self.app = create_app(settings, self.engine, environment=environment)
        self.queue = HookQueue(settings.data_dir)

    async def post(self, service: str, event: Any, headers: Mapping[str, str] | None = None) -> httpx.Response:
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        signed = SIGN[service](SECRET_OF[service], body) if headers is None else headers
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=CLIENT) as client:
            return await client.post(f"/hooks/{service}", content=body, headers=dict(signed))

    def counted(self) -> dict[tuple[str, str], int]:
        text = self.app.state.metrics.exposition().decode()
        found = re.findall(r'^nornweave_webhooks_total\{outcome="(\w+)",service="(\w+)"\} (\d+)', text, re.M)
        return {(service, outcome): int(count) for outcome, service, count in found}


async def test_what_a_service_signs_is_accepted_and_waits_for_a_sync(settings: Settings) -> None:
    receiver = Receiver(settings)
    events: dict[str, Any] = {
        "github": {"repository": {"full_name": "acme/API"}},
        "gitlab": {"project": {"path_with_namespace": "team/sub/tool"}},
        "slack": {"type": "event_callback", "event": {"type": "message"}},
        "jira": {"webhookEvent": "jira:issue_created"},
        "confluence": {"event": "page_updated"},
    }
    for service, event in events.items():
        answer = await receiver.post(service, event)
        assert answer.status_code == 202, answer.text
    # Sources of the repository that the event names, each once; those of others rest.
    assert receiver.queue.waiting() == dict.fromkeys(("api", "issues", "lab", "merges", "chat", "tickets", "wiki"), 1)
    assert receiver.counted() == {(service, "accepted"): 1 for service in SERVICES}
    async with asyncio.timeout(60):
        many = [await receiver.post("slack", {"event_id": number}) for number in range(20)]
    assert {one.status_code for one in many} == {202}
    assert many[-1].json() == {"sources": 1, "waiting": 1}
    assert receiver.queue.waiting()["chat"] == 21
    assert receiver.counted()["slack", "coalesced"] == 20
    elsewhere = await receiver.post("github", {"repository": {"full_name": "acme/apis"}})
    assert (elsewhere.status_code, elsewhere.json()) == (202, {"sources": 0, "waiting": 0})


@pytest.mark.parametrize("service", SERVICES)
async def test_what_is_forged_or_old_or_unsigned_is_refused(settings: Settings, service: str) -> None:
    receiver = Receiver(settings)
    body = json.dumps({"a": "b"}).encode()
    right = SIGN[service](SECRET_OF[service], body)
    name = next(key for key in right if key != "X-Slack-Request-Timestamp")
    forged: list[Mapping[str, str]] = [
        {},
        SIGN[service]("another", body),
        {**right, name: right[name][:-1]},
        {**right, name: ""},
        {**right, name: right[name].upper() + "é"},
        SIGN[service]("w-1" if service in {"github", "gitlab"} else "g-1", body),
        {"Authorization": "Bearer token-of-operators"},
        {"Authorization": "Bearer nw_a"},
    ]
    if service != "gitlab":
        forged.append(SIGN[service](SECRET_OF[service], body + b" "))
    if service == "slack":
        forged += [slack("s-1", body, time.time() - 301), slack("s-1", body, time.time() + 302)]
        forged += [{**right, "X-Slack-Request-Timestamp": stamp} for stamp in ("", "١", "9" * 30, "-1")]
    answers = [await receiver.post(service, body, {k: v.encode() for k, v in each.items()}) for each in forged]  # type: ignore[misc]
    for answer in answers:
        is_problem(answer, 401)
    assert len({answer.text for answer in answers}) == 1
    assert receiver.queue.waiting() == {}
    assert receiver.counted() == {(service, "refused"): len(forged)}
    assert (await receiver.post(service, body)).status_code == 202


async def test_where_no_secret_is_set_nothing_is_signed(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver(settings, {"GITHUB_HOOK": "  "})
    assert "source api: webhooks are refused: webhook_secret_env names GITHUB_HOOK, which is not set" in caplog.text
    for secret in ("", " "):
        for service in SERVICES:
            is_problem(await receiver.post(service, b"{}", SIGN[service](secret, b"{}")), 401)


async def test_what_came_before_is_refused_by_every_process(settings: Settings) -> None:
    receiver, other = Receiver(settings), Receiver(settings)
    first = json.dumps({"n": 1}).encode()
    signed = {**SIGN["github"]("g-1", first), "X-GitHub-Delivery": "d-1"}
    assert (await receiver.post("github", first, signed)).status_code == 202
    # Sent again; with another id, which is not signed; another event with the id.
    renamed = {**signed, "X-GitHub-Delivery": "d-2"}
    second = json.dumps({"n": 2}).encode()
    for body, headers in (
        (first, signed),
        (first, renamed),
        (second, {**SIGN["github"]("g-1", second), "X-GitHub-Delivery": "d-1"}),
    ):
        problem = is_problem(await other.post("github", body, headers), 409)
        assert problem["type"].endswith("replayed")
    assert (
        await other.post("github", second, {**SIGN["github"]("g-1", second), "X-GitHub-Delivery": "d-2"})
    ).is_success
    # Slack's second try has another time and signature.
    assert (
        await receiver.post("slack", {"event_id": "E"}, slack("s-1", b'{"event_id": "E"}', time.time() - 9))
    ).is_success
    again = await other.post("slack", {"event_id": "E"})
    assert (again.status_code, again.headers["x-slack-no-retry"]) == (409, "1")
    # What one service may send again says nothing of another's.
    assert (await receiver.post("jira", {"event_id": "E"})).is_success
    assert other.counted()["github", "replayed"] == 3
    with sqlite3.connect(settings.data_dir / "hooks.sqlite") as connection:
        connection.execute("update seen set at = at - 3 * 86400 - 1")
    assert (await other.post("github", first, signed)).status_code == 202, "after three days it is not known any more"


async def test_slack_is_told_what_it_asks_when_it_learns_the_address(settings: Settings) -> None:
    receiver = Receiver(settings)
    asked = {"type": "url_verification", "challenge": "3eZbrw1aB"}
    for _ in range(2):
        answer = await receiver.post("slack", asked)
        assert (answer.status_code, answer.json()) == (200, {"challenge": "3eZbrw1aB"})
    is_problem(await receiver.post("slack", asked, {}), 401)
    half = await receiver.post("slack", b'{"type": "url_verification", "challenge": "\\ud800"}')
    assert half.status_code == 200
    assert receiver.queue.waiting() == {}


async def test_bad_requests_are_clear_errors(settings: Settings) -> None:
    receiver = Receiver(settings)
    for body in (b"", b"[]", b"{", b"payload=%7B%7D", b"\xff", b"[" * 100_000, b"null"):
        is_problem(await receiver.post("jira", body), 422)
    is_problem(await receiver.post("gitlab", b" " * (1 << 20) + b"{}"), 413)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(receiver.app), base_url=CLIENT) as client:
        token = {"Authorization": "Bearer token-of-operators"}
        is_problem(await client.post("/hooks/bitbucket", json={}, headers=token), 404)
        is_problem(await client.post("/hooks/bitbucket", json={}), 401)
        is_problem(await client.get("/hooks/github", headers=token), 405)
        foreign = {**SIGN["github"]("g-1", b"{}"), "Origin": "https://evil.example"}
        is_problem(await client.post("/hooks/github", content=b"{}", headers=foreign), 403)
    assert receiver.queue.waiting() == {}
    assert receiver.counted() == {("jira", "invalid"): 7, ("gitlab", "invalid"): 1}


NAMES = st.none() | st.integers() | st.text(max_size=20) | st.sampled_from(("acme/api", "Acme/API", "team/sub/tool"))
EVENTS = st.fixed_dictionaries(
    {}, optional={"repository": NAMES | st.fixed_dictionaries({"full_name": NAMES}), "project": NAMES | st.just({})}
)


@examples(max_examples=60)
@given(service=st.sampled_from(tuple(SERVICES)), event=EVENTS)
def test_an_event_is_about_the_repository_that_it_names_or_all(service: str, event: dict[str, Any]) -> None:
    sources = [
        GitSettings(id="api", domain=Domain.CODE, url="https://github.com/Acme/api.git"),
        GithubSettings(id="issues", domain=Domain.CONVERSATIONS, repository="acme/api"),
        GitSettings(id="other", domain=Domain.CODE, url="git@github.com:acme/other"),
    ]
    found = find_sources(service, event, sources)
    named = event.get("repository") if service == "github" else None
    name = named.get("full_name") if isinstance(named, dict) else None
    if isinstance(name, str):
        assert found == (["api", "issues"] if name.lower() == "acme/api" else [])
    else:
        assert found == ["api", "issues", "other"]


def test_what_comes_during_a_sync_waits_for_the_next(tmp_path: Path) -> None:
    queue = HookQueue(tmp_path)
    assert queue.waiting() == {}
    assert (queue.put(["a"], ["x", "y"]), queue.put(["b"], ["x"])) == (2, 0)
    taken = queue.waiting()
    queue.put(["c"], ["x"])
    with pytest.raises(ReplayedError):
        queue.put(["d", "b"], ["y"])
    queue.done(taken)
    assert queue.waiting() == {"x": 3}
    queue.put(["d"], [])
    queue.done(queue.waiting())
    assert queue.waiting() == {}
