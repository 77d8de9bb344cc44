"""What a replica makes of a store that is slow, unavailable, stale or damaged, and of a publisher that goes on."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from publishers import DOCUMENTATION, Publisher, Replica
from s3_proxy import PART, Call, Proxy

from lab.small_segments import small_segments
from nornweave.ask.engine import Engine
from nornweave.carry import parts
from nornweave.carry.publishing import WorkspaceDocument, replica_configuration
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.errors import PublicationError, SourceUnavailableError

To = dict[str, object]
NOBODY = Viewer(name="somebody")


@pytest.fixture
def replica(tmp_path: Path, publisher: Publisher, publish_to: To) -> Replica:
    publisher.number()
    made = Replica(tmp_path / "replica", publish_to)
    assert made.look() == "gen-000001"
    return made


def _at(method: str, part: str, answer: Any) -> Any:
    """Return a fault of the requests of a method whose path has a part, an expression."""
    return lambda call: answer(call) if call.method == method and re.search(part, call.path) else call.answer()


def _damaged(call: Call) -> Any:
    status, headers, content = call.answer()
    return status, headers, content[:100] + bytes([content[100] ^ 1]) + content[101:]


def test_a_replica_has_what_was_published_byte_by_byte(replica: Replica, publisher: Publisher) -> None:
    for name in ("gen-000001.json", *(f"gen-000001-000.duckdb{each}" for each in ("", ".crc32", ".arrays"))):
        assert (replica.files.folder / name).read_bytes() == (publisher.files.folder / name).read_bytes()
    made = (replica.files.folder / "gen-000001-000.duckdb.arrays").stat().st_ino
    assert any("100 requests per second" in one for one in replica.answers("rate limits of merchants"))
    assert (replica.files.folder / "gen-000001-000.duckdb.arrays").stat().st_ino == made  # it did not have to be made


def test_looking_costs_a_request_each_for_the_domain_and_the_workspace_while_nothing_changes(
    replica: Replica, proxy: Proxy
) -> None:
    before = len(proxy.seen)
    replica.look()
    assert len(proxy.seen) == before + 2


def test_a_replica_follows_and_keeps_few_generations(replica: Replica, publisher: Publisher) -> None:
    for number in range(2, 7):
        publisher.change(f"Edition {number} is out.")
        publisher.number()
        assert replica.look() == f"gen-{number:06d}"
    assert len(replica.files.all()) == 3
    assert any("Edition 6" in one for one in replica.answers("edition"))


def test_a_part_that_arrives_damaged_is_read_again(replica: Replica, publisher: Publisher, proxy: Proxy) -> None:
    publisher.change("Second.")
    publisher.number()
    damaged: list[str] = []

    def once(call: Call) -> Any:
        if call.path in damaged:
            return call.answer()
        damaged.append(call.path)
        return _damaged(call)

    proxy.fault = _at("GET", PART, lambda call: once(call) if len(call.answer()[2]) > 100 else call.answer())
    assert replica.look() == "gen-000002"
    assert damaged


def test_what_is_damaged_in_the_store_is_named_and_the_last_good_one_answers(
    replica: Replica, publisher: Publisher, proxy: Proxy
) -> None:
    publisher.change("Second.")
    publisher.number()
    whole = proxy.fault
    proxy.fault = _at("GET", PART, lambda call: _damaged(call) if len(call.answer()[2]) > 100 else call.answer())
    assert replica.look() == "gen-000001"
    assert "damaged in the store" in replica.problem
    assert "publish --full" in replica.problem
    assert any("100 requests" in one for one in replica.answers("rate limits"))
    proxy.fault = whole
    assert publisher.number(full=True) == 3
    assert replica.look() == "gen-000003"
    assert not replica.problem


def test_a_damaged_commit_is_named(replica: Replica, publisher: Publisher, proxy: Proxy) -> None:
    publisher.change("Second.")
    publisher.number()
    proxy.fault = _at("GET", "/CURRENT", lambda call: (*call.answer()[:2], b"{" + call.answer()[2][1:-3] + b"!!!"))
    assert replica.look() == "gen-000001"
    assert "CURRENT: is damaged" in replica.problem
    proxy.fault = None
    assert replica.look() == "gen-000002"


def test_an_old_pointer_takes_nothing_back(replica: Replica, publisher: Publisher, proxy: Proxy) -> None:
    old: list[Any] = []
    proxy.fault = _at("GET", "/CURRENT", lambda call: old.append(call.answer()) or old[-1])
    replica.follower._read.clear()
    replica.look()
    publisher.change("Second.")
    proxy.fault = None
    publisher.number()
    assert replica.look() == "gen-000002"
    proxy.fault = _at("GET", "/CURRENT", lambda _: old[0])
    before = replica.follower._standing.checked_at
    assert replica.look() == "gen-000002"
    assert "older than gen-000002" in replica.problem
    assert replica.follower._standing.checked_at == before, "nornweave_store_unreached_seconds grows"
    proxy.fault = None
    assert replica.look() == "gen-000002"
    assert not replica.problem


def test_while_the_store_is_down_the_last_good_one_answers_and_says_how_far_it_is_behind(
    replica: Replica, publisher: Publisher, proxy: Proxy
) -> None:
    publisher.change("Second.")
    publisher.number()
    proxy.fault = lambda _: (503, [("Content-Length", "0")], b"")
    assert replica.look() == "gen-000001"
    assert "503" in replica.problem
    assert any("100 requests" in one for one in replica.answers("rate limits"))
    proxy.fault = _at("GET", PART, lambda _: (503, [("Content-Length", "0")], b""))
    replica.look()
    time.sleep(0.1)  # the health shows tenths of a second
    with Engine(replica.follower.settings, watch=False) as engine:
        health = engine.agents[DOCUMENTATION].health(OPERATOR)
    following: Any = health["replica"]
    assert (following["published"], health["generation"]) == ("gen-000002", "gen-000001")
    assert health["behind_s"] > 0  # type: ignore[operator]
    assert health["state"] == "DEGRADED"
    proxy.fault = None
    assert replica.look() == "gen-000002"


def test_a_broken_download_goes_on_with_what_is_missing(
    publisher: Publisher, publish_to: To, tmp_path: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 16 << 10)
    publisher.number()
    (commit,) = (stored.key for stored in publisher.store.list("domains") if stored.key.endswith("CURRENT"))
    every = sum(stored.key != commit for stored in publisher.store.list("domains"))
    replica, came = Replica(tmp_path / "replica", publish_to), list[str]()

    def few(call: Call) -> Any:
        if len(came) < 7:
            came.append(call.path)
            return call.answer()
        return None

    proxy.fault = _at("GET", PART, few)
    assert replica.look() is None
    assert every > len(came) == 7
    proxy.fault = None
    reads = proxy.count("GET", PART)
    assert replica.look() == "gen-000001"
    assert proxy.count("GET", PART) - reads == every - 7
    assert not list(replica.files.folder.glob(".*.arriving"))


def test_a_reader_that_is_slower_than_the_grace_period_says_so_and_goes_on_with_the_next(
    replica: Replica, publisher: Publisher, proxy: Proxy
) -> None:
    publisher.change("Second.")
    publisher.number()

    proxy.fault = _at("GET", PART, lambda _: (404, [("Content-Length", "0")], b""))
    assert replica.look() == "gen-000001"
    assert "replaced and removed" in replica.problem
    proxy.fault = None
    publisher.change("Third.")
    publisher.number()
    assert replica.look() == "gen-000003"
    assert not replica.problem


def test_a_replica_takes_over_filters_and_other_settings(replica: Replica, publisher: Publisher) -> None:
    replica.look()
    domains = json.loads(publisher.file.read_text(encoding="utf-8"))["domains"]
    domains["documentation"]["filters"] = [{"key": "team", "type": "keyword", "from": ["front_matter.team"]}]
    domains["documentation"]["plan"] = {"document_share": 0.42}
    publisher.configure(domains=domains)
    publisher.number()
    replica.look()
    assert (replica.follower.has_new_settings(), replica.follower.has_new_settings()) == (True, False)
    taken_over = replica.follower.settings.domains[DOCUMENTATION]
    assert "team" in {each.key for each in taken_over.filters}
    assert taken_over.plan.document_share == 0.42


def test_no_secret_and_no_path_of_the_publisher_travels(publisher: Publisher, tmp_path: Path) -> None:
    publisher.configure(
        access={"tokens": str(tmp_path / "tokens.yaml")}, webhook="https://hooks.example.org/secret-path"
    )
    publisher.number()
    stored = publisher.store.read("WORKSPACE")
    assert stored
    for secret in (b"tokens.yaml", b"secret", str(tmp_path).encode()):
        assert secret not in stored.content


def test_where_questions_are_sent_and_files_are_read_is_said_at_the_replica(
    publisher: Publisher, publish_to: To, tmp_path: Path
) -> None:
    publisher.configure(fusion={"synthesis_model": "oobabooga/http://127.0.0.1:9", "synthesis_top_k": 7})
    publisher.number()
    stored = publisher.store.read("WORKSPACE")
    assert stored and b"oobabooga" not in stored.content
    forged = json.loads(stored.content)
    forged["configuration"]["fusion"]["synthesis_model"] = "oobabooga/http://127.0.0.1:9"
    forged["configuration"]["domains"]["documentation"]["evaluation"] = {"judgments": ["/etc"]}
    document = WorkspaceDocument.model_validate(forged)
    for said, model in (({}, ""), ({"fusion": {"synthesis_model": "openai/own"}}, "openai/own")):
        file = tmp_path / "nornweave.yaml"
        file.write_text(replica_configuration(document, publisher.store.url, said), encoding="utf-8")
        settings = load_settings(file)
        assert (settings.fusion.synthesis_model, settings.fusion.synthesis_top_k) == (model, 7)
        assert settings.domains[DOCUMENTATION].evaluation.judgments == ()


def test_documents_for_groups_stay_hidden_at_a_replica_that_knows_no_groups(
    publisher: Publisher, publish_to: To, tmp_path: Path
) -> None:
    sources = json.loads(publisher.file.read_text(encoding="utf-8"))["sources"]
    publisher.configure(sources=[{**one, "access": ["staff"]} for one in sources])
    publisher.number()
    replica = Replica(tmp_path / "replica", publish_to)
    replica.look()
    assert replica.answers("rate limits of merchants")
    assert replica.answers("rate limits of merchants", NOBODY) == []
    staff = Viewer(name="one", groups=frozenset({"staff"}))
    assert replica.answers("rate limits of merchants", staff)


def test_a_replica_takes_no_documents(replica: Replica) -> None:
    with (
        Engine(replica.follower.settings, watch=False) as engine,
        pytest.raises(SourceUnavailableError, match="replica of s3://"),
    ):
        engine.as_seen_by(OPERATOR).documents.deposit(DOCUMENTATION, [])


def test_a_workspace_document_of_another_version_is_named(publisher: Publisher, publish_to: To, tmp_path: Path) -> None:
    publisher.number()
    publisher.store.write("WORKSPACE", b'{"format": 9}')
    with pytest.raises(PublicationError, match="another version"):
        Replica(tmp_path / "replica", publish_to).follower.prepare()
    with pytest.raises(PublicationError, match="another version"):
        publisher.copy()
    kept = publisher.store.read("WORKSPACE")
    assert kept and kept.content == b'{"format": 9}', "replicas of that version go on with it"


def test_a_replica_has_no_sources_of_its_own(replica: Replica) -> None:
    settings = load_settings(replica.folder / "nornweave.yaml", {})
    assert settings.replica_of
    assert [source.path for source in settings.sources] == [replica.folder / "nowhere"]


@pytest.fixture
def tiered() -> Iterator[None]:
    with small_segments(worn=1):
        yield


@pytest.mark.usefixtures("tiered")
def test_only_segments_that_are_new_travel(publisher: Publisher, publish_to: To, tmp_path: Path) -> None:
    first = publisher.change("Edition 1 is out.")
    assert publisher.files.manifest(first)
    publisher.number()
    replica = Replica(tmp_path / "replica", publish_to)
    assert replica.look() == first
    second = publisher.change("Edition 2 is out.")
    publisher.number()
    shared = {file.name for file in publisher.files.parts(first)} & {
        file.name for file in publisher.files.parts(second)
    }
    assert any(name.endswith(".duckdb") for name in shared)
    before = {name: (replica.files.folder / name).stat().st_ino for name in shared}
    assert replica.look() == second
    assert {name: (replica.files.folder / name).stat().st_ino for name in shared} == before
    for path in publisher.files.parts(second):
        assert (replica.files.folder / path.name).read_bytes() == path.read_bytes()
    assert any("Edition 2" in one for one in replica.answers("edition"))
    assert not any("Edition 1" in one for one in replica.answers("edition"))


def test_a_store_that_was_emptied_is_not_reached(replica: Replica, publisher: Publisher) -> None:
    for stored in list(publisher.store.list("")):
        publisher.store.remove(stored.key)
    reached = replica.follower._standing.checked_at
    replica.look()
    assert replica.follower._standing.checked_at == reached > 0
    assert "there is no such object" in replica.problem
    assert any("100 requests per second" in one for one in replica.answers("rate limits of merchants"))
