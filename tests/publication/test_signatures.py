"""A replica with a public key believes what its publisher has signed, and nothing that others write to the store."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import nornweave
from publishers import DOCUMENTATION, Publisher, Replica
from pydantic import ValidationError

from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.ask.views.answer import answer_document
from nornweave.carry.publication import commit_key
from nornweave.carry.wiring import domain_folder
from nornweave.config import PublishSettings
from nornweave.core.access import OPERATOR
from nornweave.core.errors import ConfigError, PublicationError, SignatureError
from nornweave.core.signatures import NEXT, check_signed, own_keys, read_signed, rotate, signer_of
from nornweave.core.types import present
from nornweave.index.outcomes import Verified, VerifiedSource, write_verified

CURRENT, WORKSPACE = commit_key(DOCUMENTATION.value), "WORKSPACE"


def replica_of(folder: Path, publisher: Publisher, *keys: str) -> Replica:
    """Return a replica that believes what one of these keys has signed."""
    publish = publisher.settings.publish
    assert publish
    return Replica(folder, {"url": publish.url}, keys=keys)


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    made = Publisher(tmp_path / "publisher", {"url": f"file://{tmp_path}/bucket"})
    assert made.number() == 1
    return made


def key_of(publisher: Publisher) -> str:
    return signer_of(publisher.settings.data_dir).public_key


def rewrite(publisher: Publisher, key: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Write a document of the store as somebody would who has no key but may write there."""
    stored = publisher.store.read(key)
    assert stored
    publisher.store.write(key, json.dumps(change(json.loads(stored.content))).encode())


def test_only_this_user_can_read_the_key(publisher: Publisher) -> None:
    folder = publisher.settings.data_dir / "keys"
    key = folder / "signing.pem"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, key)] == [0o700, 0o600]
    key.chmod(0o640)
    with pytest.raises(ConfigError, match="other users can read"):
        signer_of(publisher.settings.data_dir)


def test_what_is_signed_is_taken_over(publisher: Publisher, tmp_path: Path) -> None:
    replica = replica_of(tmp_path / "replica", publisher, key_of(publisher))
    assert replica.look() == "gen-000001"
    publisher.change("a settlement takes nine days")
    assert publisher.number() == 2
    assert replica.look() == "gen-000002"
    for key in (CURRENT, WORKSPACE):
        stored = publisher.store.read(key)
        assert stored
        check_signed(json.loads(stored.content), [key_of(publisher)])


@pytest.mark.parametrize("forge", [
    lambda document: {**document, "number": 9, "published_at": "2026-01-01T00:00:00Z"},
    lambda document: {name: value for name, value in document.items() if name not in {"signature", "signed_by"}},
    lambda document: {**document, "signature": document["signature"][::-1]},
    lambda document: {**document, "signed_by": "ed25519:" + "A" * 43 + "="},
    lambda document: {**document, "oldest": 99},
], ids=["changed", "unsigned", "another signature", "another key", "purging"])  # fmt: skip
@pytest.mark.parametrize("key", [CURRENT, WORKSPACE])
def test_what_others_write_is_refused_and_what_was_there_answers(
    publisher: Publisher, tmp_path: Path, key: str, forge: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    replica = replica_of(tmp_path / "replica", publisher, key_of(publisher))
    assert replica.look() == "gen-000001"
    before = replica.follower.config.read_text(encoding="utf-8")
    rewrite(publisher, key, forge)
    assert replica.look() == "gen-000001"
    assert "sign" in replica.problem
    assert replica.follower.config.read_text(encoding="utf-8") == before
    fresh = replica_of(tmp_path / "fresh", publisher, key_of(publisher))
    if key == CURRENT:
        assert fresh.look() is None, "nor does a new replica believe it"
    else:
        with pytest.raises(PublicationError, match="sign"):
            fresh.look()


def test_signed_json_is_read_in_one_way() -> None:
    assert read_signed(b'{"gone": [{"a": 1}, {"a": 1}], "b": {"gone": 2}}') == {
        "gone": [{"a": 1}] * 2,
        "b": {"gone": 2},
    }
    for repeated in (
        '{"gone": true, "gone": false}',
        '{"gone": 1, "g\\u006fne": 1}',
        '{"b": [{"gone": 1, "a": 1, "gone": 1}]}',
    ):
        with pytest.raises(ValueError, match="the key 'gone' stands twice"):
            read_signed(repeated)
    for deep in ("[" * 100_000, '{"a":' * 100_000, '{"a":' * 900 + "1" + "}" * 900):
        with pytest.raises((ValueError, SignatureError)):
            check_signed({**read_signed(deep), "signed_by": "k", "signature": ""}, ["k"])
    for other in ("[]", "3", "", "\0", b"\xff"):
        with pytest.raises(ValueError):
            read_signed(other)


def test_a_key_that_stands_twice_in_what_was_published_is_refused(publisher: Publisher, tmp_path: Path) -> None:
    stored = publisher.store.read(CURRENT)
    assert stored
    publisher.store.write(CURRENT, stored.content.replace(b"{", b'{"number": 99, ', 1))
    replica = replica_of(tmp_path / "replica", publisher, key_of(publisher))
    assert replica.look() is None
    assert "the key 'number' stands twice" in replica.problem


def test_a_key_is_rotated_while_replicas_follow(publisher: Publisher, tmp_path: Path) -> None:
    data_dir = publisher.settings.data_dir
    first, second = key_of(publisher), signer_of(data_dir, NEXT).public_key
    both = replica_of(tmp_path / "both", publisher, first, second)
    assert both.look() == "gen-000001"
    assert rotate(data_dir).public_key == second
    assert own_keys(data_dir) == (second, first)
    assert publisher.number() == 2, "what is published is signed anew"
    assert publisher.number() == 2, "once"
    assert both.look() == "gen-000002"
    new = replica_of(tmp_path / "new", publisher, second)
    assert new.look() == "gen-000002"
    with pytest.raises(ConfigError, match="--next"):
        rotate(data_dir)


def test_the_command_prints_and_rotates_keys(publisher: Publisher) -> None:
    folder, first = publisher.file.parent, key_of(publisher)
    assert nornweave(folder, "key").stdout.strip() == first
    coming = nornweave(folder, "key", "--next").stdout.strip()
    assert nornweave(folder, "key").stdout.strip() == first
    assert json.loads(nornweave(folder, "key", "--rotate", "--json").stdout) == {
        "public_key": coming,
        "former": [first],
    }
    assert nornweave(folder, "key", "--rotate").returncode == 2
    assert PublishSettings(url="file:///x", public_keys=(first, coming)).public_keys == (first, coming)
    for wrong in ("ed25519:AAAA", first.removeprefix("ed25519:"), "rsa:" + first):
        with pytest.raises(ValidationError):
            PublishSettings(url="file:///x", public_keys=(wrong,))


def test_what_sources_confirmed_travels_signed_with_the_settings(publisher: Publisher, tmp_path: Path) -> None:
    folder = domain_folder(publisher.settings, DOCUMENTATION)
    sources = {"handbook": VerifiedSource("2026-11-24T10:00:00Z", "2026-11-24T10:00:00Z", {"api.md": None})}
    write_verified(folder, Verified("gen-000001", sources))
    publisher.copy()
    replica = replica_of(tmp_path / "replica", publisher, key_of(publisher))
    assert replica.look() == "gen-000001"
    with Engine(replica.follower.settings, [DOCUMENTATION], watch=False) as engine:
        question = Question(text="rate limits of merchants or drain a queue", now=present(), viewer=OPERATOR)
        answered = answer_document(engine.as_seen_by(OPERATOR).answers.answer(question))
    told = answered["coverage"]["documentation"]["sources"]["handbook"]
    assert told["listed_at"] == "2026-11-24T10:00:00Z" and told["bound"]
    moments = {item["citation"]["source_path"]: item["citation"]["verified_at"] for item in answered["items"]}
    assert moments["api.md"] is None and set(moments.values()) <= {None, "2026-11-24T10:00:00Z"}

    def later(document: dict[str, Any]) -> dict[str, Any]:
        document["verified"]["documentation"]["sources"]["handbook"]["verified_at"] = "2027-01-01T00:00:00Z"
        return document

    rewrite(publisher, WORKSPACE, later)
    replica.look()
    assert "2027" not in (domain_folder(replica.follower.settings, DOCUMENTATION) / "verified.json").read_text()
