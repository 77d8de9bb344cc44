"""Who may join and where, for how long an agent is known, and what a restart keeps."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from remote_hub import ForeignServer, Hub
from waiting import Clock, until

from nornweave.ask.agents.registry import FILE, MOST_REGISTRATIONS, REMEMBERED_S, Registry, RemoteState
from nornweave.config.base import checked_pattern, checked_server, is_allowed
from nornweave.core.errors import ConfigError, ConflictingAgentError, StoreError
from nornweave.core.types import Domain

Start = Callable[..., ForeignServer]
Serve = Callable[..., Hub]
Join = Callable[..., tuple[Hub, ForeignServer]]
URL = "http://10.0.0.5:8082"


@pytest.mark.parametrize(("url", "pattern"), [
    ("http://10.0.0.5:8082", "http://10.0.0.5:8082"),
    ("https://a.example.org", "https://*.example.org"),
    ("https://a.b.example.org/x/y", "https://*.example.org/x"),
    ("https://A.Example.org:443/", "https://*.example.org"),
    ("http://[::1]:8082", "http://[::1]:8082"),
])  # fmt: skip
def test_an_address_at_or_below_an_entry_is_allowed(url: str, pattern: str) -> None:
    assert is_allowed(checked_server(url), checked_pattern(pattern))


@pytest.mark.parametrize(("url", "pattern"), [
    ("http://10.0.0.5:8083", "http://10.0.0.5:8082"),
    ("http://a.example.org", "https://*.example.org"),
    ("https://example.org", "https://*.example.org"),
    ("https://badexample.org", "https://*.example.org"),
    ("https://a.example.org.evil.com", "https://*.example.org"),
    ("https://a.example.org/xy", "https://*.example.org/x"),
    ("http://127.0.0.1:8082", "http://localhost:8082"),
    ("https://a.example.org:8443", "https://*.example.org"),
])  # fmt: skip
def test_an_address_elsewhere_is_not_allowed(url: str, pattern: str) -> None:
    assert not is_allowed(checked_server(url), checked_pattern(pattern))


@pytest.mark.parametrize("url", [
    "ftp://10.0.0.5", "http://user:secret@10.0.0.5", "http://10.0.0.5@evil.com", "https://a.example.org/../x",
    "https://a.example.org/%2e%2e/x", "https://a.example.org\\@evil.com", "https://a.example.org?x=1",
    "https://a.example.org#x", "https://*.example.org", "https://", "https://a.example.org:99999",
    "10.0.0.5:8082",
])  # fmt: skip
def test_what_is_no_plain_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"address|expected"):
        checked_server(url)


@pytest.mark.parametrize("pattern", ["https://*", "https://*.org", "https://*.10.0.0.5", "https://a.*.org"])
def test_an_entry_for_any_host_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\*|expected"):
        checked_pattern(pattern)


def test_a_lease_that_ran_out_is_shown_and_forgotten_after_a_day(tmp_path: Path) -> None:
    clock = Clock()
    registry = Registry(tmp_path, 30, clock)
    assert registry.register("vault", Domain.DOCUMENTATION, URL, {})[0]
    assert not registry.register("vault", Domain.DOCUMENTATION, URL, {})[0]
    clock.now += 20
    assert registry.beat("vault", URL, RemoteState.DEGRADED) == 1
    (known,) = registry.registrations()
    assert known.state_at(clock() - 3_600) is RemoteState.STOPPED, "the clock was wrong when it was heard of"
    clock.now += 29
    (known,) = registry.registrations()
    assert known.state_at(clock()) is RemoteState.DEGRADED
    clock.now += 1
    (known,) = registry.registrations()
    assert known.state_at(clock()) is RemoteState.STOPPED
    clock.now += REMEMBERED_S
    assert registry.registrations() == ()


def test_the_registry_is_bounded_and_makes_room_for_the_living(tmp_path: Path) -> None:
    clock = Clock()
    registry = Registry(tmp_path, 30, clock)
    for place in range(MOST_REGISTRATIONS):
        registry.register(f"vault-{place}", Domain.CODE, f"{URL}/{place}", {})
    with pytest.raises(ConflictingAgentError, match="no more are taken"):
        registry.register("new", Domain.CODE, f"{URL}/new", {})
    clock.now += 31
    assert registry.register("new", Domain.CODE, f"{URL}/new", {})[0]
    assert len(registry.registrations()) == 1


def test_an_agent_is_at_one_address_and_moves_when_its_lease_has_run_out(tmp_path: Path) -> None:
    clock = Clock()
    registry = Registry(tmp_path, 30, clock)
    registry.register("vault", Domain.CODE, URL, {})
    for domain in (Domain.CODE, Domain.RESEARCH):
        with pytest.raises(ConflictingAgentError, match="registered at another address"):
            registry.register("vault", domain, f"{URL}/other", {})
    assert not registry.register("vault", Domain.RESEARCH, URL, {})[0], "at its address it may say what it is"
    clock.now += 30
    assert registry.register("vault", Domain.CODE, f"{URL}/other", {})[0]
    assert [one.url for one in registry.registrations()] == [f"{URL}/other"]
    assert (registry.beat("vault", URL), registry.remove("vault", URL)) == (0, 0), "the old one ends nothing"
    assert registry.beat("vault", f"{URL}/other") == 1


def test_a_damaged_registry_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(StoreError, match="cannot be used"):
        Registry(tmp_path, 30).registrations()


def test_several_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    def write(place: int) -> None:
        Registry(tmp_path, 30).register(f"agent-{place}", Domain.CODE, f"{URL}/{place}", {})

    threads = [threading.Thread(target=write, args=[place]) for place in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Registry(tmp_path, 30).registrations()) == 12


def test_an_address_that_is_not_allowed_cannot_join(foreign: Start, hub: Serve) -> None:
    server = foreign()
    served = hub(f"{server.url}/below")
    refused = served.register(server.url)
    assert refused.status_code == 409
    assert "agents.allow" in refused.json()["detail"]
    assert served.listed() == {}
    assert served.register("http://user:secret@127.0.0.1:1").status_code == 422


def test_other_processes_and_a_restart_know_who_joined(foreign: Start, hub: Serve) -> None:
    server = foreign()
    served = hub(server.url)
    served.register(server.url)
    again = hub(server.url)
    assert again.listed()[server.url]["state"] == "READY"
    assert len(again.query()["items"]) == 3
    assert again.http.delete("/agents/vault").json() == {"agent_id": "vault", "removed": 1}
    assert again.http.delete("/agents/vault").json() == {"agent_id": "vault", "removed": 0}
    until(lambda: served.listed() == {})
    assert served.http.post("/agents/vault/heartbeat", json={}).status_code == 404


def test_an_entry_that_was_taken_out_ends_a_registration(foreign: Start, hub: Serve) -> None:
    server = foreign()
    hub(server.url).register(server.url)
    assert hub("https://*.example.org").listed() == {}


def test_an_agent_that_drains_is_not_asked(joined: Join) -> None:
    served, server = joined()
    assert served.http.post("/agents/vault/heartbeat", json={"state": "DRAINING"}).status_code == 200
    answer = served.query(domains=["documentation"])
    assert "is DRAINING" in answer["coverage_gaps"][0]["reason"]
    assert server.asked == []


def test_a_silent_agent_is_a_gap_that_says_so(joined: Join) -> None:
    served, server = joined(agents={"lease_s": 1})
    until(lambda: served.listed()[server.url]["lease_expired"])
    assert served.listed()[server.url]["state"] == "STOPPED"
    answer = served.query(domains=["documentation"])
    assert "is STOPPED" in answer["coverage_gaps"][0]["reason"]
    served.http.post("/agents/vault/heartbeat", json={})
    assert len(served.query()["items"]) == 3


def test_agents_register_with_a_token_that_does_nothing_else(foreign: Start, hub: Serve) -> None:
    server = foreign()
    served = hub(
        server.url, agents={"registration_token_env": "JOIN"}, environment={"JOIN": "registers-agents"},
        token="operates-the-service",
    )  # fmt: skip
    token = {"authorization": "Bearer registers-agents"}
    body = {"agent_id": "vault", "domain_id": "documentation", "url": server.url}
    assert served.http.post("/agents/register", json=body, headers={"authorization": "Bearer x"}).status_code == 401
    joined = served.http.post("/agents/register", json=body, headers=token)
    assert joined.status_code == 201
    token["nornweave-agent-token"] = joined.json()["token"]
    assert served.http.post("/agents/vault/heartbeat", json={}, headers=token).status_code == 200
    assert served.http.post("/query", json={"query": "vault"}, headers=token).status_code == 403
    assert served.http.get("/agents", headers=token).status_code == 403
    assert served.http.delete("/agents/vault", headers=token).status_code == 200


def test_a_token_that_is_not_set_is_an_error_at_the_start(hub: Serve) -> None:
    with pytest.raises(ConfigError, match="VAULT_TOKEN"):
        hub({"url": "https://vault.example.org", "token_env": "VAULT_TOKEN"})


def test_an_agent_is_shown_the_token_of_its_entry(joined: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT_TOKEN", "opens-the-vault")
    served, server = joined(entry={"token_env": "VAULT_TOKEN"})
    served.query()
    assert server.asked[0]["headers"]["authorization"] == "Bearer opens-the-vault"
    assert server.asked[0]["headers"]["nornweave-viewer-groups"] == ""
