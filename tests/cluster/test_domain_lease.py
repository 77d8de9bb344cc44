"""A domain that machines take in turns: processes with data folders of their own, PostgreSQL and object storage."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
import yaml
from dagster import DagsterRun
from dagster._core.launcher import WorkerStatus
from postgres_server import new_database
from syncing_process import SyncingProcess

from nornweave.config.publish import ObjectStoreSettings
from nornweave.core.errors import DomainBusyError, LeaseLostError, StoreError
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.leases.domain_lease import DomainLease, pull_generations
from nornweave.index.leases.lease import Lease
from nornweave.index.object_store import ObjectStore
from orchestration.launcher import WorkerRunLauncher

pytestmark = pytest.mark.slow
NOBODY = "postgresql://nobody:secret-password@127.0.0.1:1/none"


def lease_of(database: str, *, seconds: float = 60, name: str = "code") -> Lease:
    return Lease(database, name, purpose="test", seconds=seconds)


def domain_lease(database: str, tmp_path: Path, machine: str, *, seconds: float = 60) -> DomainLease:
    objects, folder = ObjectStore(ObjectStoreSettings(url=f"file://{tmp_path}/objects")), tmp_path / machine / "code"
    return DomainLease(lease_of(database, seconds=seconds), objects, folder, purpose="test", wait_s=0)


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


def test_whoever_lost_a_lease_commits_nothing(database):
    late, quick = lease_of(database, seconds=60), lease_of(database)
    late.take(0)
    late.commit({"files": "of the first"})
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update nornweave_leases set expires_at = '-infinity'")
    assert quick.take(0) == {"files": "of the first"}
    with pytest.raises(LeaseLostError, match="another machine has taken over"):
        late.commit({"files": "too late"})
    with pytest.raises(LeaseLostError):
        late.confirm()
    late.release()  # which does not release the other's
    with pytest.raises(DomainBusyError):
        lease_of(database).take(0)
    assert quick.state() == {"files": "of the first"}
    quick.release()


def test_a_holder_renews_its_lease(database):
    holder = lease_of(database, seconds=1)
    holder.take(0)
    with pytest.raises(DomainBusyError):
        lease_of(database).take(3)  # three times the life of a lease
    holder.release()


def test_a_run_is_lost_when_its_lease_has_ended_at_two_looks(database, tmp_path, monkeypatch):
    config = tmp_path / "nornweave.yaml"
    config.write_text(yaml.safe_dump({"workers": {"objects": f"file://{tmp_path}/objects", "leases": True}}))
    monkeypatch.setenv("NORNWEAVE_CONFIG", str(config))
    monkeypatch.setenv("NORNWEAVE_DAGSTER_POSTGRES_URL", database)
    launcher, lease = WorkerRunLauncher("dagster"), lease_of(database, name="run 1")

    def looks(*, database: str = database) -> WorkerStatus:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NORNWEAVE_DAGSTER_POSTGRES_URL", database)
            return launcher.check_run_worker_health(DagsterRun("sync", run_id="1")).status

    def end() -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("update nornweave_leases set expires_at = clock_timestamp() - interval '1 s'")

    lease.take(0)
    end()  # PostgreSQL was away
    assert [looks(), looks(database=NOBODY)] == [WorkerStatus.RUNNING] * 2  # Dagster fails a run of unknown health
    lease.confirm()
    assert looks() is WorkerStatus.RUNNING
    end()
    assert [looks(), looks()] == [WorkerStatus.RUNNING, WorkerStatus.FAILED]
    lease.release()  # at its end, before the row goes
    assert [looks(), looks()] == [WorkerStatus.RUNNING] * 2


def test_rows_of_runs_that_were_killed_do_not_stay_for_ever(database):
    killed, alive = lease_of(database, name="run 1"), lease_of(database, name="run 2")
    for lease in (killed, alive):
        lease.take(0)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "update nornweave_leases set expires_at = clock_timestamp() - interval '31 days' where name = 'run 1'"
        )
    last = lease_of(database, name="run 3")
    last.take(0)
    last.forget()
    with psycopg.connect(database) as connection:
        assert connection.execute("select name from nornweave_leases").fetchall() == [("run 2",)]
    for lease in (killed, alive):
        lease.forget()


def test_without_postgresql_nobody_writes_and_the_password_is_not_told():
    with pytest.raises(StoreError, match="PostgreSQL cannot be asked") as caught:
        lease_of(NOBODY).take(0)
    assert "secret-password" not in str(caught.value)


def test_the_files_of_a_domain_move_with_its_lease(database, tmp_path):
    with domain_lease(database, tmp_path, "one"):
        (tmp_path / "one/code/working.duckdb").write_bytes(b"working, 1")
        (tmp_path / "one/code/generations").mkdir()
        (tmp_path / "one/code/generations/CURRENT").write_bytes(b"gen-000001\n")
    (tmp_path / "two/code").mkdir(parents=True)
    (tmp_path / "two/code/left-over.duckdb").write_bytes(b"of an earlier time")
    with domain_lease(database, tmp_path, "two"):
        assert (tmp_path / "two/code/working.duckdb").read_bytes() == b"working, 1"
        assert not (tmp_path / "two/code/left-over.duckdb").exists()
        (tmp_path / "two/code/working.duckdb").write_bytes(b"working, 2")
        (tmp_path / "objects/domains/code/1-late").write_bytes(b"of a writer that lost its lease")
        (tmp_path / "objects/domains/code/9-early").write_bytes(b"of a writer that has taken it since")
    (tmp_path / "objects/domains/code/9-early").unlink()
    with domain_lease(database, tmp_path, "one"):
        assert (tmp_path / "one/code/working.duckdb").read_bytes() == b"working, 2"
        assert (tmp_path / "one/code/generations/CURRENT").read_bytes() == b"gen-000001\n"
    assert len(list((tmp_path / "objects/domains/code").iterdir())) == 2  # what nobody names is removed


def test_a_damaged_object_is_not_checked_out(database, tmp_path):
    with domain_lease(database, tmp_path, "one"):
        (tmp_path / "one/code/working.duckdb").write_bytes(b"working, 1")
    (stored,) = (tmp_path / "objects/domains/code").iterdir()
    stored.write_bytes(b"working, X")
    with pytest.raises(StoreError, match="is damaged"), domain_lease(database, tmp_path, "two"):
        pass
    assert not (tmp_path / "two/code/working.duckdb").exists()
    lease = lease_of(database)
    lease.take(0)  # the one that failed gave its lease back
    lease.release()


def test_generations_can_be_pulled_without_the_lease(database, tmp_path):
    with domain_lease(database, tmp_path, "one"):
        (tmp_path / "one/code/working.duckdb").write_bytes(b"working")
        (tmp_path / "one/code/generations").mkdir()
        (tmp_path / "one/code/generations/CURRENT").write_bytes(b"gen-000001\n")
    folder = tmp_path / "two/code"
    with domain_lease(database, tmp_path, "one"):  # somebody is writing meanwhile
        assert pull_generations(
            lease_of(database), ObjectStore(ObjectStoreSettings(url=f"file://{tmp_path}/objects")), folder
        )
    assert GenerationFiles(folder / "generations").current() == "gen-000001"
    assert not (folder / "working.duckdb").exists()


@pytest.fixture
def sync(database: str, tmp_path: Path) -> Iterator[Callable[..., SyncingProcess]]:
    """Starts a sync on a machine: a configuration and a data folder of its own over the same documents."""
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/refunds.md").write_text("# Refunds\n\nA refund is paid within five days.\n")
    started: list[SyncingProcess] = []

    def start(machine: str, *, wait_s: float = 60, lease_s: float = 2) -> SyncingProcess:
        config = tmp_path / machine / "nornweave.yaml"
        config.parent.mkdir(exist_ok=True)
        document = {
            "data_dir": "./var",
            "sources": [{"id": "docs", "domain": "documentation", "type": "files", "path": "../documents"}],
            "domains": {"documentation": {"embedding": {"model": "hash:64"}}},
            "workers": {"objects": f"file://{tmp_path}/objects", "leases": True, "lease_s": lease_s},
        }
        config.write_text(yaml.safe_dump(document), encoding="utf-8")
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


def test_a_second_machine_goes_on_where_the_first_one_ended(sync, tmp_path):
    first = sync("one")
    assert first.line() == "measuring"
    first.go_on()
    assert first.line() == "published gen-000001"
    first.process.wait()

    assert sync("two").line() == "nothing"  # nothing changed: it has the first one's working file
    (tmp_path / "documents/fees.md").write_text("# Fees\n\nA fee is two per cent.\n")
    third = sync("one")
    assert third.line() == "measuring"
    third.go_on()
    assert third.line() == "published gen-000002"


def test_a_writer_that_was_killed_holds_nobody_up_for_longer_than_its_lease(sync, database):
    killed = sync("one")
    assert killed.line() == "measuring"
    killed.end()
    assert _state(database) == {}
    other = sync("two")
    assert other.line() == "measuring"
    other.go_on()
    assert other.line() == "published gen-000001"


def _state(database: str) -> object:
    with psycopg.connect(database) as connection:
        row = connection.execute("select state from nornweave_leases").fetchone()
    assert row is not None
    return row[0]
