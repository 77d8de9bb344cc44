"""A domain that machines take in turns: processes with data folders of their own, PostgreSQL and object storage."""

import hashlib
import json
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import duckdb
import psycopg
import pytest
import yaml
from postgres_server import new_database
from syncing_process import SyncingProcess
from waiting import until

from nornweave.carry.lease import Lease
from nornweave.carry.parts import Digests
from nornweave.carry.wiring import pull, store_of
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import DomainBusyError, StoreError
from nornweave.core.types import Domain
from nornweave.index import corpus
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.searching.generation_file import read_rows
from nornweave.ingest.records import SyncOptions, no_progress
from nornweave.ingest.wiring import domain_sync

pytestmark = pytest.mark.slow
NOBODY = "postgresql://nobody:secret-password@127.0.0.1:1/none"


def lease_of(database: str, *, seconds: float = 60, name: str = "code") -> Lease:
    return Lease(database, name, purpose="test", seconds=seconds)


def test_one_holds_a_lease_and_the_next_one_has_a_higher_fence(database):
    first, second = lease_of(database), lease_of(database)
    first.take(0)
    with pytest.raises(DomainBusyError, match=r"code is being written: test \(pid \d+ on .*\), lease ends in \d+ s"):
        second.take(0)
    first.release()
    second.take(0)
    assert second.fence == first.fence + 1
    second.release()


def test_machines_that_begin_at_once_make_the_table_once():
    for _ in range(4):
        database, together = new_database(), Barrier(8)

        def taken(number: int, database: str = database, together: Barrier = together) -> int:
            together.wait()
            lease = lease_of(database, name=f"domain {number}")
            lease.take(0)
            lease.release()
            return lease.fence

        with ThreadPoolExecutor(8) as machines:
            assert set(machines.map(taken, range(8))) == {1}


def test_a_holder_renews_its_lease(database):
    holder = lease_of(database, seconds=1)
    holder.take(0)
    with pytest.raises(DomainBusyError):
        lease_of(database).take(3)  # three times the life of a lease
    holder.release()


def test_without_postgresql_nobody_writes_and_the_password_is_not_told():
    with pytest.raises(StoreError, match="PostgreSQL cannot be asked") as caught:
        lease_of(NOBODY).take(0)
    assert "secret-password" not in str(caught.value)


@pytest.fixture
def sync(database: str, tmp_path: Path) -> Iterator[Callable[..., SyncingProcess]]:
    """Starts a sync on a machine: a configuration and a data folder of its own over the same documents."""
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/refunds.md").write_text("# Refunds\n\nA refund is paid within five days.\n")
    started: list[SyncingProcess] = []

    def start(machine: str, *, wait_s: float = 60, lease_s: float = 2) -> SyncingProcess:
        config = settings_of(tmp_path, machine, lease_s=lease_s).file
        process = SyncingProcess(config, {"NORNWEAVE_DAGSTER_POSTGRES_URL": database}, wait_s=wait_s)
        started.append(process)
        return process

    yield start
    for process in started:
        process.end()


def test_a_writer_that_was_paused_past_its_lease_publishes_nothing(sync, database, tmp_path):
    paused = sync("one")
    assert paused.line() == "measuring"
    paused.process.send_signal(signal.SIGSTOP)
    other = sync("two")
    assert other.line() == "measuring"
    other.go_on()
    assert other.line() == "published gen-000001"
    other.process.wait()
    state = _state(database)

    paused.process.send_signal(signal.SIGCONT)
    paused.go_on()

    assert paused.line().startswith("LeaseLostError: ")
    paused.process.wait()
    assert _state(database) == state
    assert GenerationFiles(tmp_path / "one/var/domains/documentation/generations").current() is None


def test_a_writer_that_was_killed_holds_nobody_up_for_longer_than_its_lease(sync, database):
    killed = sync("one")
    assert killed.line() == "measuring"
    killed.end()
    assert _state(database) == {}
    other = sync("two")
    assert other.line() == "measuring"
    other.go_on()
    assert other.line() == "published gen-000001"


@pytest.fixture
def synced(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str | None]:
    """Syncs on a machine, in this process; returns what was published."""
    monkeypatch.setenv("NORNWEAVE_DAGSTER_POSTGRES_URL", database)
    (tmp_path / "documents").mkdir()
    for name in "abcdefghijkl":
        (tmp_path / f"documents/{name}.md").write_text(f"# Fees of {name}\n\nA fee of {name} is two per cent.\n")

    def run(machine: str, model: str = "hash:64") -> str | None:
        with domain_sync(
            settings_of(tmp_path, machine, model=model),
            Domain.DOCUMENTATION,
            SyncOptions(),
            no_progress,
            gate=lambda *_, **__: None,
        ) as sync:
            sync.store_changes()
            sync.embed()
            publication = sync.publish()
            assert sync.report().documents == len(list((tmp_path / "documents").iterdir()))
        return publication.generation if publication else None

    return run


def settings_of(tmp_path: Path, machine: str, *, lease_s: float = 60, model: str = "hash:64") -> Settings:
    config = tmp_path / machine / "nornweave.yaml"
    config.parent.mkdir(exist_ok=True)
    document = {
        "data_dir": "./var",
        "sources": [{"id": "docs", "domain": "documentation", "type": "files", "path": "../documents"}],
        "domains": {"documentation": {"embedding": {"model": model}}},
        "workers": {"objects": f"file://{tmp_path}/objects", "leases": True, "lease_s": lease_s},
    }
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load_settings(config)


def folder_of(tmp_path: Path, machine: str) -> Path:
    return tmp_path / machine / "var/domains/documentation"


def large_files(tmp_path: Path, machine: str) -> set[str]:
    """Return the files on a machine's disk that grow with what is written in documents."""
    folder = folder_of(tmp_path, machine)
    return {
        file.name
        for file in (*folder.glob("working.*"), *folder.glob("generations/gen-*-*.duckdb*"))
        if not file.name.endswith(".crc32")
    }


def answers_on(tmp_path: Path, machine: str) -> dict[str, list[str]]:
    """Return the texts of each generation as a machine reads it, which may have to fetch them."""
    settings = settings_of(tmp_path, machine)
    pull(settings, Domain.DOCUMENTATION)
    files = store_of(settings, Domain.DOCUMENTATION).files
    texts = {}
    for generation in files.all():
        rows = [row for file in files.data_files(generation) for row in read_rows(file, "select content from chunks")]
        texts[generation] = sorted(content for (content,) in rows)
        with files.open(generation) as index:
            assert index.chunk_count == len(rows)
    return texts


def test_a_fresh_machine_fetches_what_its_step_reads(synced, database, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "SMALLEST", 2)  # so that a changed document does not write the others again
    assert synced("one") == "gen-000001"
    (tmp_path / "documents/a.md").write_text("# Fees of a\n\nA fee of a is three per cent.\n")
    assert synced("one") == "gen-000002"
    state = _state(database)

    assert synced("two") is None
    assert large_files(tmp_path, "two") == set()  # nothing changed: sources were compared with documents alone
    assert {*state["files"]} <= {*_state(database)["files"]}  # and what it did not fetch is still named

    (tmp_path / "documents/b.md").write_text("# Fees of b\n\nA fee of b is four per cent.\n")
    assert synced("three") == "gen-000003"
    assert large_files(tmp_path, "three") == {
        "working.duckdb",
        "gen-000001-000.duckdb",  # which of its documents are gone is asked there; its arrays nobody reads
        "gen-000003-000.duckdb",
        "gen-000003-000.duckdb.arrays",
    }
    assert synced("two") is None
    assert large_files(tmp_path, "two") == set()
    answers = answers_on(tmp_path, "one")
    assert [*answers] == ["gen-000001", "gen-000002", "gen-000003"]
    assert answers_on(tmp_path, "four") == answers
    assert "A fee of b is four per cent." in "".join(answers["gen-000003"])
    assert "A fee of b is two per cent." in "".join(answers["gen-000002"])


def test_generations_that_are_kept_no_more_leave_the_store_from_a_machine_that_never_had_them(
    synced, database, tmp_path, monkeypatch
):
    monkeypatch.setattr(corpus, "SMALLEST", 2)
    for number in range(5):
        (tmp_path / "documents/a.md").write_text(f"# Fees of a\n\nA fee of a is {number} per cent.\n")
        assert synced(f"machine {number}") == f"gen-00000{number + 1}"
    kept = GenerationFiles(folder_of(tmp_path, "machine 4") / "generations")
    named = {f"generations/{part.name}" for name in kept.all() for part in kept.parts(name)}
    stored = {name for name in _state(database)["files"] if "/gen-" in name and not name.endswith(".crc32")}
    assert len(kept.all()) == 3
    assert stored == named
    objects = {key for file in _state(database)["files"].values() for key in file["parts"]}
    assert {
        f"domains/documentation/{file.name}" for file in (tmp_path / "objects/domains/documentation").iterdir()
    } == objects


def test_a_machine_with_another_model_goes_on_with_the_working_file_that_there_is(synced, tmp_path):
    assert synced("one") == "gen-000001"
    assert synced("two", model="hash:32") == "gen-000002"
    with duckdb.connect(folder_of(tmp_path, "two") / "working.duckdb", read_only=True) as connection:
        assert connection.execute("select count(*) from publications").fetchone() == (2,)


def test_what_a_killed_writer_left_in_its_log_is_known_of_the_documents(synced, tmp_path):
    assert synced("one") == "gen-000001"
    working = folder_of(tmp_path, "one") / "working.duckdb"
    before, log = working.read_bytes(), working.with_name("working.duckdb.wal")
    with duckdb.connect(working) as connection:
        connection.execute("insert into meta values ('written', 'before it was killed')")
        left = log.read_bytes()
    working.write_bytes(before)
    log.write_bytes(left)
    assert synced("one") is None
    with duckdb.connect(working.with_name("documents.duckdb"), read_only=True) as connection:
        assert connection.execute("select value from meta where key = 'written'").fetchone() == (
            "before it was killed",
        )


def test_a_file_is_read_again_once_it_was_written(tmp_path):
    file, digests = tmp_path / "working.duckdb", Digests(tmp_path)
    for content in (b"one", b"two", b"twice"):
        file.write_bytes(content)
        assert digests.of(file) == Digests(tmp_path).of(file) == hashlib.sha256(content).hexdigest()
        digests.save()
    file.write_bytes(b"of old")
    until(lambda: digests.of(file) and "working.duckdb" in digests.known)  # nobody writes it at this moment
    digests.save()
    known = json.loads((tmp_path / ".digests.json").read_bytes())
    known["working.duckdb"][0] = "as it was noted"
    (tmp_path / ".digests.json").write_text(json.dumps(known))
    assert Digests(tmp_path).of(file) == "as it was noted"
    file.write_bytes(b"of now")
    assert Digests(tmp_path).of(file) == hashlib.sha256(b"of now").hexdigest()


def _state(database: str) -> Any:
    with psycopg.connect(database) as connection:
        row = connection.execute("select state from nornweave_leases").fetchone()
    assert row is not None
    return row[0]
