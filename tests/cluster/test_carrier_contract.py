"""A domain's folder moves alike with every claim: a lease, a lock in PostgreSQL, a commit on condition in a store."""

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import PostgresServer

from nornweave.carry.lease import Lease
from nornweave.carry.parts import (
    FORMAT,
    Claim,
    Digests,
    ObjectStore,
    StoredObject,
    files_in,
    parts_of,
    push,
    remove_unnamed,
)
from nornweave.carry.postgresql.carrier import PostgresCarrier
from nornweave.carry.postgresql.server import Server, close_idle
from nornweave.carry.publication import Publication, commit_key
from nornweave.carry.shared_folder import DomainLease, SharedFolder
from nornweave.config.workspace import ObjectStoreSettings
from nornweave.core.errors import LeaseLostError, PublicationError, PublisherConflictError, StoreError
from nornweave.core.signatures import signer_of
from nornweave.index.generations.publish import GenerationFiles

pytestmark = pytest.mark.slow
KINDS = ("lease", "postgresql", "publication")
LOST = (LeaseLostError, PublisherConflictError, StoreError)
SCHEMAS = (f"carried_{number}" for number in itertools.count())


class Place:
    """Where machines, folders below ``root``, share the domain ``code``."""

    def __init__(self, kind: str, database: str, root: Path) -> None:
        self.kind, self.root, self._database = kind, root, database
        self._store = ObjectStore(ObjectStoreSettings(url=f"file://{root}/objects"))
        self._server = Server(database, next(SCHEMAS))

    def folder(self, machine: str) -> Path:
        return self.root / machine / "code"

    def claim(self, machine: str) -> Claim:
        if self.kind == "postgresql":
            return PostgresCarrier(self._server, self.folder(machine), "test")
        if self.kind == "publication":
            return Publication(self._store, "code", signer_of(self.root / "keys"))
        return Lease(self._database, f"{self._server.schema} code", purpose="test", seconds=60)

    def shared(self, machine: str, claim: Callable[[], Claim] | None = None) -> SharedFolder:
        return SharedFolder(
            self.folder(machine),
            lambda _: claim() if claim else self.claim(machine),
            lambda claimed: claimed if isinstance(claimed, PostgresCarrier) else self._store,
        )

    def holding(self, machine: str) -> DomainLease:
        return self.shared(machine).lock("test", 0)

    def take_from_all(self) -> None:
        """Let those that hold it lose it, as after a pause or a cut."""
        with psycopg.connect(self._database, autocommit=True) as connection:
            if self.kind == "lease":
                connection.execute("update nornweave_leases set expires_at = '-infinity'")
            if self.kind == "postgresql":
                connection.execute(
                    "select pg_terminate_backend(pid, 10000) from pg_locks where locktype = 'advisory' and pid <> "
                    "pg_backend_pid()"
                )

    def parts(self) -> dict[str, bytes]:
        """Return the objects that are stored, but for the commit."""
        if self.kind == "postgresql":
            with self._connected() as connection:
                return dict(connection.execute("select key, content from objects").fetchall())
        keys = [found.key for found in self._store.list("domains/code")]
        return {key: (self.root / "objects" / key).read_bytes() for key in keys if key != commit_key("code")}

    def put(self, key: str, content: bytes | None) -> None:
        """Write or remove an object behind everybody's back."""
        if self.kind != "postgresql":
            self._store.remove(key) if content is None else self._store.write(key, content)
            return
        with self._connected() as connection:
            connection.execute("delete from objects where key = %s", [key])
            if content is not None:
                connection.execute("insert into objects values (%s, %s)", [key, content])

    def _connected(self) -> Any:
        return psycopg.connect(self._database, autocommit=True, options=f"-c search_path={self._server.schema}")

    def state(self) -> Any:
        return self.claim("reader").state()


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path) -> Iterator[Place]:
    yield Place(request.param, postgres.url, tmp_path)
    close_idle()


def write(folder: Path, **files: bytes) -> None:
    """Write files of a domain: ``working``, ``documents``, ``pointer``, ``segment``."""
    names = {
        "working": "working.duckdb", "documents": "documents.duckdb", "pointer": "generations/CURRENT",
        "segment": "generations/gen-000001-000.duckdb",
    }  # fmt: skip
    for name, content in files.items():
        (folder / names[name]).parent.mkdir(parents=True, exist_ok=True)
        (folder / names[name]).write_bytes(content)


def test_who_comes_next_has_what_was_committed_and_a_higher_fence(place: Place) -> None:
    first, second = place.claim("one"), place.claim("two")
    assert first.take(0) == {}
    first.confirm()
    first.commit({"format": 2, "files": {}, "commit": "first"})
    assert place.state()["commit"] == "first"
    first.commit({"format": 2, "files": {}, "commit": "second"})
    first.release()
    assert second.take(0)["commit"] == "second"
    assert second.fence > first.fence
    second.release()


def test_whoever_lost_it_commits_nothing(place: Place) -> None:
    late, quick = place.claim("late"), place.claim("quick")
    late.take(0)
    place.take_from_all()
    quick.take(0)
    quick.commit({"format": 2, "files": {}, "commit": "of the quick one"})
    with pytest.raises(LOST):
        late.confirm()
    with pytest.raises(LOST):
        late.commit({"format": 2, "files": {}, "commit": "too late"})
    late.release()  # which does not release the other's
    quick.confirm()
    assert place.state()["commit"] == "of the quick one"
    quick.release()


def test_the_files_of_a_domain_move(place: Place) -> None:
    with place.holding("one"):
        write(place.folder("one"), working=b"working, 1", pointer=b"gen-000001\n")
    place.folder("two").mkdir(parents=True)
    (place.folder("two") / "left-over.duckdb").write_bytes(b"of an earlier time")
    with place.holding("two"):
        assert (place.folder("two") / "working.duckdb").read_bytes() == b"working, 1"
        assert not (place.folder("two") / "left-over.duckdb").exists()
        write(place.folder("two"), working=b"working, 2")
        place.put("domains/code/1-late", b"of a writer that lost its claim")
        place.put("domains/code/9-early", b"of a writer that has taken it since")
    assert "domains/code/9-early" in place.parts()
    place.put("domains/code/9-early", None)
    with place.holding("one"):
        assert (place.folder("one") / "working.duckdb").read_bytes() == b"working, 2"
        assert (place.folder("one") / "generations/CURRENT").read_bytes() == b"gen-000001\n"
    assert len(place.parts()) == 2  # what nobody names is removed


def test_who_was_killed_goes_on_where_it_was_unless_another_machine_has_committed(place: Place) -> None:
    one = place.folder("one")

    def killed(content: bytes) -> None:
        holder = place.holding("one")
        holder.__enter__()
        write(one, working=content)
        holder._lease.release()
        holder._local.__exit__()

    with place.holding("one"):
        write(one, working=b"working, 1", pointer=b"gen-000001\n")
    killed(b"working, 2")
    assert place.shared("one").pull()
    with place.holding("one"):
        assert (one / "working.duckdb").read_bytes() == b"working, 2"
    killed(b"working, 3")
    with place.holding("two"):
        write(place.folder("two"), working=b"working, 4")
    with place.holding("one"):
        assert (one / "working.duckdb").read_bytes() == b"working, 4"
    (one / "generations/CURRENT").unlink()
    with place.holding("one"):
        assert (one / "generations/CURRENT").is_file()


def test_what_is_damaged_or_lost_is_not_checked_out_and_is_stored_anew(place: Place) -> None:
    with place.holding("one"):
        write(place.folder("one"), working=b"working, 1")
    ((key, content),), state = place.parts().items(), place.state()
    for damaged, said in ((b"working, X", "is damaged"), (b"wor", "is damaged"), (None, "there is no such object")):
        place.put(key, damaged)
        with pytest.raises(StoreError, match=said), place.holding("two"):
            pass
        assert not (place.folder("two") / "working.duckdb").exists()
        assert place.state() == state
    with place.holding("one"):  # the one that failed gave its claim back
        pass
    assert [*place.parts().values()] == [content]
    (place.folder("two") / ".working.duckdb.arriving").write_bytes(b"work")  # of one that was killed
    with place.holding("two"):
        assert (place.folder("two") / "working.duckdb").read_bytes() == b"working, 1"


def test_generations_can_be_pulled_by_who_holds_nothing(place: Place) -> None:
    with place.holding("one"):
        write(place.folder("one"), working=b"working", pointer=b"gen-000001\n")
    with place.holding("one"):  # somebody is writing meanwhile
        assert place.shared("two").pull()
    assert GenerationFiles(place.folder("two") / "generations").current() == "gen-000001"
    assert not (place.folder("two") / "working.duckdb").exists()


def test_whoever_lost_it_fetches_nothing_of_the_next_holder(place: Place) -> None:
    with place.holding("one"):
        write(place.folder("one"), working=b"working, 1", documents=b"documents, 1")
    late, working = place.holding("late"), place.folder("late") / "working.duckdb"
    late.__enter__()
    assert not working.exists()
    place.take_from_all()
    with place.holding("two") as quick:
        quick.bring(place.folder("two") / "working.duckdb")
        assert (place.folder("two") / "working.duckdb").read_bytes() == b"working, 1"
        write(place.folder("two"), working=b"working, 2", documents=b"documents, 2")
    state = place.state()
    with pytest.raises(LOST):
        late.bring(working)
    with pytest.raises(LOST):
        late.__exit__(None, None, None)
    assert not working.exists()
    assert place.state() == state


def test_of_a_working_file_that_changed_in_one_place_one_part_is_sent_and_fetched(place: Place) -> None:
    content = bytearray(random.Random(1).randbytes(5 << 19))
    for machine in ("one", "two"):  # the second one fetches it, and has it from now on
        with place.holding(machine):
            write(place.folder(machine), working=content)
    first = place.parts()
    content[1 << 20] ^= 1
    with place.holding("one"):
        write(place.folder("one"), working=content, documents=b"documents, 2")
    (sent,) = (part for key, part in place.parts().items() if key not in first and len(part) > 100)
    assert sent == content[1 << 20 : 2 << 20]
    for key in first.keys() & place.parts().keys():
        place.put(key, None)  # what the second machine has already
    working = place.folder("two") / "working.duckdb"
    with place.holding("two") as holding:
        assert not working.exists()
        holding.bring(working)
        assert working.read_bytes() == content
    with place.holding("three") as holding:  # the second one has stored anew what was lost
        holding.bring(place.folder("three") / "working.duckdb")
    assert (place.folder("three") / "working.duckdb").read_bytes() == content


def test_a_reader_asks_again_only_when_a_file_is_not_where_it_was_said_to_be(place: Place) -> None:
    asked = []

    def claim() -> Claim:
        made = place.claim("reader")
        state = made.state
        made.state = lambda: asked.append(made) or state()
        return made

    def read(reader: SharedFolder, machine: str) -> bytes:
        file = place.folder(machine) / "generations/gen-000001-000.duckdb"
        reader.fetch(file)
        return file.read_bytes()

    with place.holding("one"):
        write(place.folder("one"), segment=b"1")
    assert read(place.shared("two", claim), "two") == b"1"
    assert len(asked) == 1
    reader = place.shared("three", claim)
    assert reader.has(place.folder("three") / "generations/gen-000001-000.duckdb")
    with place.holding("one"):
        write(place.folder("one"), segment=b"2")
    assert read(reader, "three") == b"2"
    assert len(asked) == 3


def test_what_another_version_stored_is_refused_by_name(place: Place) -> None:
    claim = place.claim("one")
    claim.take(0)
    claim.commit({"format": 1, "files": {"working.duckdb": {"sha256": "0" * 64, "object": "domains/code/1-x"}}})
    claim.release()
    with pytest.raises((StoreError, PublicationError), match=r"format 1.*(begin at another place|another address)"):
        place.holding("two").__enter__()
    with pytest.raises((StoreError, PublicationError), match="format 1"):
        place.shared("three").pull()


class Interleaved(ObjectStore):
    """A folder whose every request may be preceded by a step of another publisher."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    listed: tuple[StoredObject, ...] = ()

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield what there is, or as an outdated listing, what there was."""
        self.meanwhile()
        outdated, self.listed = self.listed, tuple(super().list(prefix))
        return iter(self.listed if len(self.listed) % 4 else outdated)

    def write(self, key: str, content: bytes) -> None:
        self.meanwhile()
        super().write(key, content)

    def remove(self, key: str) -> None:
        self.meanwhile()
        super().remove(key)


@pytest.mark.parametrize("seed", range(6))
def test_a_commit_names_what_is_there_whoever_publishes_and_dies_meanwhile(tmp_path: Path, seed: int) -> None:
    chance, signer, commits = random.Random(seed), signer_of(tmp_path / "keys"), []
    store = Interleaved(ObjectStoreSettings(url=f"file://{tmp_path}/objects"))

    def publisher(number: int) -> Iterator[None]:
        folder, claim = tmp_path / f"{number}", Publication(store, "code", signer)
        folder.mkdir()
        before = files_in(claim.take(), "store")
        yield
        for name in chance.sample("abcdef", 3):
            (folder / name).write_bytes(chance.choice([b"1", b"2", b"3"]) * 3)
        paths = {path.name: path for path in folder.iterdir()}
        files = push(store, "domains/code", claim.fence, paths, before.values(), Digests(folder))
        yield
        with suppress(PublisherConflictError):
            stated = {name: file.model_dump(mode="json") for name, file in files.items()}
            claim.commit({"format": FORMAT, "files": stated, "commit": str(number)})
            commits.append(number)
            yield
            remove_unnamed(store, "domains/code", claim.fence, parts_of(files.values()))

    working: list[Iterator[None]] = []

    def step() -> None:
        """Let a publisher that is not at work make a step; some die instead."""
        if working and chance.random() < 0.5:
            one = working.pop(chance.randrange(len(working)))
            if chance.random() > 0.1:
                next(one, None)
                working.append(one)

    store.meanwhile = step
    for number in range(100):
        working = [*working[-3:], publisher(number)]
        for _ in range(4):
            step()
            named = parts_of(files_in(Publication(store, "code").state(), "store").values())
            assert all(store.has(key) for key in named)
    assert len(commits) > 10
