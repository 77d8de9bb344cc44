"""What a store that cannot be used says to people, how soon, and what a reader of one that is slow gets."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from publishers import Publisher, Replica
from s3_proxy import Proxy
from waiting import SOON_S, until

from nornweave.carry import parts
from nornweave.carry.parts import ObjectStore
from nornweave.carry.publication import DomainStanding
from nornweave.config import PublishSettings
from nornweave.core.errors import MissingObjectError, PublicationError

To = dict[str, object]


@pytest.fixture
def silent() -> Iterator[str]:
    """Give the address of what accepts and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def _problem(publish_to: To, **changed: object) -> str:
    with pytest.raises(PublicationError) as caught:
        ObjectStore(PublishSettings.model_validate({**publish_to, **changed})).read("WORKSPACE")
    assert not isinstance(caught.value, MissingObjectError)
    return str(caught.value)


def test_each_reason_why_a_store_cannot_be_used_is_a_sentence(publish_to: To) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refusing = f"http://127.0.0.1:{closed.getsockname()[1]}"
        assert f"{refusing} cannot be reached: Connection refused" in _problem(publish_to, endpoint=refusing)
    assert "no bucket 'elsewhere'" in _problem(publish_to, url="s3://elsewhere/team")
    assert "AWS_ALLOW_HTTP=true" in _problem(publish_to, allow_http=False)
    encrypted = str(publish_to["endpoint"]).replace("http://", "https://")
    assert "does not speak TLS" in _problem(publish_to, endpoint=encrypted)


def test_a_store_that_refuses_is_named_with_the_variables(publish_to: To, proxy: Proxy) -> None:
    proxy.fault = lambda _: (403, [("Content-Length", "0")], b"")
    assert "AWS_ACCESS_KEY_ID" in _problem(publish_to)


def test_a_silent_store_and_a_cloud_without_credentials_are_named_soon(
    publish_to: To, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SILENT_S", 1)
    assert f"{silent} did not answer" in _problem(publish_to, endpoint=silent)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", silent)
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set" in _problem(publish_to)


def test_a_part_that_takes_longer_than_a_store_may_be_silent_arrives(
    publisher: Publisher, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "SILENT_S", 1)
    store, key = publisher.store, f"domains/documentation/1-{'0' * 64}"
    store.write(key, bytes(100_000))
    pieces: list[int] = []
    proxy.bytes_per_s = 50_000
    stored = store.read(key, arrived=pieces.append)
    assert stored and stored.content == bytes(100_000)
    assert sum(pieces) == 100_000
    assert len(pieces) > 1


def test_a_slow_download_ends_with_its_replica(
    publisher: Publisher, publish_to: To, tmp_path: Path, proxy: Proxy
) -> None:
    publisher.number()
    replica = Replica(tmp_path / "replica", publish_to)
    assert replica.follower.prepare()
    proxy.bytes_per_s = 100_000
    following = threading.Thread(target=replica.follower.poll)
    following.start()
    until(lambda: _noted(replica).published == "gen-000001")
    assert _noted(replica).behind_since
    replica.follower.stop()
    following.join(SOON_S)
    assert not following.is_alive()
    assert not replica.files.all()


def _noted(replica: Replica) -> DomainStanding:
    standing = replica.standing
    return standing.domains.get("documentation", DomainStanding()) if standing else DomainStanding()
