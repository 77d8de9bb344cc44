"""Rights that come from the source, over every route: what is shown is what the service allows, and nothing besides."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import nornweave
from identity_provider import Provider

from api.access.door import Door
from lab.access import rights
from lab.access.rights import Somebody, World, compare, find_documents, world
from lab.access.serving import SERVICE, Outcome, as_somebody, served
from nornweave.ask.views.status import access_document
from nornweave.config.access import AccessSettings, OidcSettings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import account
from nornweave.core.membership import Granted, Memberships, MembershipTable, membership_file, read_table, write_table
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

CHAT = Domain.CONVERSATIONS


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(rights.os, "environ", dict(rights.os.environ))
    with ExitStack() as stack:
        made = world(tmp_path, stack, seed=7, people=4, count=3)
        made.sync()
        yield made


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Slack alone: three channels with a message each."""
    monkeypatch.setattr(rights, "SERVICES", (rights.SlackRights,))
    with ExitStack() as stack:
        made = world(tmp_path, stack, seed=3, people=3, count=3)
        made.sync()
        yield made


def readers(made: World, channel: str) -> set[str]:
    known = made.settings.memberships
    assert known is not None
    return {person.name for person in made.people if f"slack:channel:{channel}" in known.expanded(groups_of(person))}


def groups_of(person: Somebody) -> frozenset[str]:
    return person.groups | {account("email", person.email)}


async def seen(app: Any, token: str) -> set[str]:
    async with as_somebody(app, token) as client:
        found = await client.get("/find", params={"regex": r"tells\d{4}x", "limit": "100"})
        assert found.status_code == 200, found.text
        return {match["source_path"].partition("/")[0] for match in found.json()["matches"]}


async def test_every_route_shows_what_the_services_allow(made: World) -> None:
    outcome = Outcome()
    async with served(made.settings) as app:
        await find_documents(made, app)
        assert {one.source for one in made.documents} == {*made.services, rights.CODE}
        for _ in range(2):
            await compare(made, app, outcome, share=0.25)
            for service in made.services.values():
                for _ in range(4):
                    service.change_members(made.rng)
            await asyncio.to_thread(made.refresh)
        for service in made.services.values():
            service.change_rights(made.rng)
        await asyncio.to_thread(made.sync)
        await rights._published(made, app)
        await compare(made, app, outcome, share=0.25)
    assert outcome.shown == []
    assert min(outcome.tried.values()) > 10, outcome.tried


async def test_who_leaves_a_channel_loses_it_with_a_refresh_that_reads_no_document(chat: World) -> None:
    slack = chat.services["chat"].api
    slack.channels["C01"]["is_private"] = True
    slack.inside["C01"] = {"U00", "U01"}
    slack.users["U00"] |= {"deleted": False, "team_id": "T01"}
    slack.users["U01"] |= {"deleted": False, "team_id": "T01", "is_restricted": True}
    chat.refresh()
    assert readers(chat, "C01") == {"person0", "person1"}
    async with served(chat.settings) as app:
        assert "room-1" in await seen(app, "person1")
        token = await own_token(app, "person1")
        assert "room-1" in await seen(app, token)
        async with as_somebody(app, "person1") as client:
            (kept,) = (await client.get("/tokens")).json()["tokens"]
        assert kept["groups"] == sorted(chat.people[1].groups), "what follows from membership is not kept"
        slack.inside["C01"] -= {"U01"}
        assert "room-1" in await seen(app, "person1"), "nobody has asked since"
        slack.requests.clear()
        await asyncio.to_thread(chat.refresh)
        assert {request.path.rpartition("/")[2] for request in slack.requests} == {
            "auth.test", "users.list", "users.conversations", "conversations.members"
        }  # fmt: skip
        assert "room-1" not in await seen(app, "person1") | await seen(app, token)
        assert "room-1" in await seen(app, "person0")
        slack.channels["C01"]["is_private"] = False
        await asyncio.to_thread(chat.refresh)
        assert "room-1" not in await seen(app, "person1"), "a guest sees public channels that they were let into"
        slack.users["U01"]["is_restricted"] = False
        await asyncio.to_thread(chat.refresh)
        assert "room-1" in await seen(app, "person1") & await seen(app, token)


async def own_token(app: Any, maker: str) -> str:
    async with as_somebody(app, maker) as client:
        made = await client.post("/tokens", json={"name": "CI", "scope": "ask", "expires_in_days": 7})
        return str(made.json()["token"])


async def test_what_the_source_did_not_say_is_hidden_and_counted(chat: World, caplog: pytest.LogCaptureFixture) -> None:
    slack = chat.services["chat"].api
    for channel in slack.channels.values():
        channel["is_private"] = False
    for user in slack.users.values():
        user |= {"deleted": False, "is_restricted": False, "team_id": "T01"}
    chat.refresh()
    assert {len(readers(chat, f"C0{number}")) for number in range(3)} == {3}
    numbers = access_document(chat.settings, CHAT)["rights"]["chat"]
    assert (numbers["documents"], numbers["hidden"], numbers["people"], numbers["problems"]) == (3, 0, 3, [])

    slack.channels["C02"]["is_private"] = True
    slack.refused["conversations.members", "C02"] = {"error": "not_in_channel"}
    report = run(domain_parts(chat.settings, CHAT), SyncOptions(run_id="refused", wait_s=0))
    (notice,) = report.sources["chat"].notices
    assert "not known anew of slack:channel:C02: conversations.members: not_in_channel" in notice
    assert len(readers(chat, "C02")) == 3, "what was said before counts until the bound"
    later = Memberships(chat.settings.data_dir, ["chat"], now=lambda: time.time() + 23 * 3600)
    much_later = Memberships(chat.settings.data_dir, ["chat"], now=lambda: time.time() + 25 * 3600)
    hers = groups_of(chat.people[0])
    assert "slack:channel:C02" in later.expanded(hers)
    assert much_later.expanded(hers) == hers


def test_a_token_that_loses_a_scope_takes_nobodys_rights_at_once_and_leaves_nobody_theirs_for_longer(
    chat: World, tmp_path: Path
) -> None:
    slack = chat.services["chat"].api
    for user in slack.users.values():
        user |= {"deleted": False, "is_restricted": False, "team_id": "T01"}
    for channel in slack.channels.values():
        channel["is_private"] = channel["id"] != "C02"
    slack.inside |= {channel: {"U00", "U01", "U02"} for channel in ("C00", "C01")}
    chat.sync()
    everybody = {person.name for person in chat.people}
    assert [readers(chat, f"C0{number}") for number in range(3)] == [everybody] * 3

    slack.shows_addresses = False
    slack.inside["C01"] -= {"U01"}
    report = run(domain_parts(chat.settings, CHAT), SyncOptions(run_id="nameless", wait_s=0))
    (notice,) = report.sources["chat"].notices
    assert "users:read.email" in notice
    assert (readers(chat, "C00"), readers(chat, "C01")) == (everybody, everybody - {"person1"})
    slack.users["U00"]["deleted"] = True
    slack.users["U01"]["team_id"] = "T99"
    refreshed = nornweave(tmp_path, "access", "refresh")
    assert (refreshed.returncode, "users:read.email" in refreshed.stderr) == (1, True)
    assert [readers(chat, f"C0{number}") for number in range(3)] == [{"person2"}] * 3
    doctor = nornweave(tmp_path, "doctor").stdout
    assert "warning access chat: who may read is not known anew: slack:user: no address of anybody" in doctor
    for hours, expected in ((23, True), (25, False)):
        later = Memberships(chat.settings.data_dir, ["chat"], now=lambda hours=hours: time.time() + hours * 3600)
        assert ("slack:channel:C00" in later.expanded(groups_of(chat.people[2]))) is expected

    slack.lacks_private = True  # another scope: who is in private channels is not told either
    slack.users["U00"]["deleted"] = False
    nornweave(tmp_path, "access", "refresh")
    assert [readers(chat, f"C0{number}") for number in range(3)] == [{"person2"}] * 3, "U00 has no known address"
    slack.channels["C02"]["is_member"] = False
    slack.users["U02"]["deleted"] = True
    assert nornweave(tmp_path, "access", "refresh").returncode == 1
    assert [readers(chat, f"C0{number}") for number in range(3)] == [set()] * 3
    slack.shows_addresses, slack.lacks_private = True, False
    assert nornweave(tmp_path, "access", "refresh").returncode == 0
    assert readers(chat, "C00") == {"person0"}


async def test_rights_that_are_configured_anew_hide_at_once_and_encode_nothing(chat: World, tmp_path: Path) -> None:
    file = tmp_path / "nornweave.yaml"
    with_rights = file.read_text()
    without = json.loads(with_rights)
    for source in without["sources"]:
        source.pop("rights", None)
    file.write_text(json.dumps(without))
    settings = load_settings(file, {})
    before = run(domain_parts(settings, CHAT), SyncOptions(run_id="without", wait_s=0))
    assert (before.changed, before.embedded) == (3, 0)
    everything = {"room-0", "room-1", "room-2"}
    async with served(settings) as app:
        assert await seen(app, "person0") >= everything, "for everybody who may ask"
    file.write_text(with_rights)
    async with served(chat.settings) as app:
        for person in chat.people:
            assert not await seen(app, person.name) & everything, "until the source has said who may"
        assert await seen(app, SERVICE) >= everything
        assert access_document(chat.settings, CHAT)["rights"]["chat"]["hidden"] == 3
        after = await asyncio.to_thread(run, domain_parts(chat.settings, CHAT), SyncOptions(run_id="with", wait_s=0))
        assert (after.changed, after.embedded, after.published) == (3, 0, True)
        await rights._published(chat, app)
        for person in chat.people:
            allowed = {f"room-{n}" for n in range(3) if chat.services["chat"].may_read(f"room-{n}/x", person.email)}
            assert await seen(app, person.name) & everything == allowed


def test_the_command_line_says_who_and_why_and_asks_again(chat: World, tmp_path: Path) -> None:
    slack = chat.services["chat"].api
    slack.channels["C01"]["is_private"] = True
    slack.inside["C01"] = {"U00"}
    for number in range(3):
        slack.users[f"U0{number}"] |= {"deleted": False, "team_id": "T01", "is_restricted": False}
    refreshed = nornweave(tmp_path, "access", "refresh")
    assert (refreshed.returncode, refreshed.stdout) == (0, "chat: 7 principals\n"), refreshed.stderr
    path = "room-1/2026-01-16"
    who = nornweave(tmp_path, "access", "who", path).stdout
    assert f"conversations chat/{path}: for slack:channel:C01 (the source lets them read it)\n" in who
    assert "   slack:channel:C01: 1 member, as chat said at 20" in who
    chain = "slack:channel:C01 has slack:user:U00 has person0@example.org (chat says so)"
    for person, code, reason in (
        ("person1", 1, "not met: for slack:channel:C01 (the source lets them read it)"),
        ("Person0@example.org", 0, chain),
        ("nobody@example.org", 1, "not met: for slack:channel:C01"),
    ):
        answered = nornweave(tmp_path, "access", "can", person, path)
        assert (answered.returncode, reason in answered.stdout) == (code, True), answered.stdout + answered.stderr
    assert nornweave(tmp_path, "access", "can", "--groups", "slack:user:U00, staff", path).returncode == 0
    table = read_table(membership_file(chat.settings.data_dir, "chat"))
    assert table is not None
    old = {
        name: Granted(members=each.members, verified_at=each.verified_at - 90_000)
        for name, each in table.grants.items()
    }
    write_table(membership_file(chat.settings.data_dir, "chat"), replace(table, grants=old))
    late = nornweave(tmp_path, "access", "can", "person0", path)
    assert (late.returncode, "that is too long ago, nobody is in it" in late.stdout) == (1, True)
    status = nornweave(tmp_path, "status", "--access").stdout
    assert (
        "conversations: chat: 3 of 3 documents are for those whom it lets read; 7 principals (7 too long ago to count)"
        in status
    )
    assert "room-" not in status, "documents of which nothing else is stated are counted"
    slack.token = "another"
    failed = nornweave(tmp_path, "access", "refresh", "chat")
    assert (failed.returncode, "chat: not said now: auth.test: invalid_auth" in failed.stderr) == (1, True)
    unknown = nornweave(tmp_path, "access", "refresh", "code")
    assert (unknown.returncode, "no source 'code' has 'rights: source'" in unknown.stderr) == (2, True)


def test_a_refresh_beside_a_broken_file_of_members_fails_and_asks_the_sources_all_the_same(
    chat: World, tmp_path: Path
) -> None:
    slack = chat.services["chat"].api
    slack.channels["C01"]["is_private"] = True
    slack.users["U00"] |= {"deleted": False, "team_id": "T01", "is_restricted": False}
    slack.users["U01"] |= {"deleted": False, "team_id": "T01", "is_restricted": False}
    slack.inside["C01"] = {"U00", "U01"}
    chat.refresh()
    members = tmp_path / "members.yaml"
    members.write_text("members:\n  ann@example.org: [board]\n")
    slack.inside["C01"] -= {"U01"}
    refused = nornweave(tmp_path, "access", "refresh")
    assert (refused.returncode, f"{members}:2: 'ann@example.org': expected" in refused.stderr) == (2, True)
    assert readers(chat, "C01") == {"person0"}, "what sources say counts"
    members.write_text("members: {ann@example.org: slack:channel:c01}")
    notice = "access: no source has slack:channel:c01, which the configuration names\n"
    named = nornweave(tmp_path, "access", "refresh")
    assert (named.returncode, notice in named.stderr) == (0, True)
    assert notice in nornweave(tmp_path, "sync").stderr
    assert "warning access principals: no source has slack:channel:c01" in nornweave(tmp_path, "doctor").stdout


ANN = account("email", "ann@example.org")


@pytest.mark.parametrize(
    ("claims", "keys", "address"),
    [
        ({"email": "Ann@Example.org", "email_verified": True}, {}, True),
        ({"email": "ann@example.org"}, {}, False),
        ({"email": "ann@example.org", "email_verified": False}, {}, False),
        ({"email": "ann@example.org", "email_verified": "true"}, {}, False),
        ({"email": "ann@example.org", "email_verified": 1}, {}, False),
        ({"email": "ann@example.org"}, {"email_verified": "always"}, True),
        ({"email": ["ann@example.org"], "email_verified": True}, {}, False),
        ({"preferred_username": "ann@example.org"}, {"email_verified": "always"}, False),
        (
            {"preferred_username": "ann@example.org"},
            {"email_verified": "always", "email_claim": "preferred_username"},
            True,
        ),
        ({"groups": [ANN, "slack:channel:C1", "slack:user:U1"]}, {}, False),
    ],
)
async def test_a_provider_proves_an_address_that_it_verified(
    provider: Provider, tmp_path: Path, claims: dict[str, Any], keys: dict[str, Any], address: bool
) -> None:
    grants = {"slack:user:U1": Granted(members=(ANN,), verified_at=time.time()),
              "slack:channel:C1": Granted(members=("slack:user:U1",), verified_at=time.time())}  # fmt: skip
    write_table(membership_file(tmp_path, "chat"), MembershipTable(origin="x", tried_at=0.0, grants=grants))
    oidc = OidcSettings(issuer=provider.issuer, audience=("api",), **keys)
    known = Memberships(tmp_path, ["chat"])
    door = Door("service", AccessSettings(oidc=oidc), tmp_path, memberships=known)
    token = provider.signed(provider.claims(aud="api", **claims))
    entry = await door.enter(token, "here")
    assert entry is not None
    hers = {ANN, "slack:user:U1", "slack:channel:C1"} if address else set()
    subject = account("subject", provider.claims()["sub"])
    assert entry.viewer.groups - frozenset(provider.claims().get("groups", ())) == {subject} | hers
    plain = await Door("service", AccessSettings(oidc=oidc), tmp_path / "plain").enter(token, "here")
    assert plain is not None
    assert not any(name.startswith(("account:", "slack:")) for name in plain.viewer.groups)
