"""Dagster's files are made whole or not at all, and a sync that cannot use them publishes without a history."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
from command_line import HASHED, nornweave
from configurations import files, write_config
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import TickData, TickStatus
from dagster._core.storage.schedules.schema import JobTickTable

from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.core.errors import HistoryError
from nornweave.core.types import Domain
from nornweave.ingest.records import SyncOptions, SyncReport, no_progress
from orchestration.history import DATABASES, make_whole
from orchestration.instance import home_of, open_instance
from orchestration.runs import sync_here
from orchestration.storage import KeptScheduleStorage

CODE = [Domain.CODE]


def run_sql(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def keep_tables(file: Path, count: int) -> None:
    """Leave of a database what a process leaves that ends after so many tables, of which the version's is the last."""
    with closing(sqlite3.connect(file)) as connection:
        named = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by rowid"
        names = [name for (name,) in connection.execute(named)]
    run_sql(file, *(f"drop table {name}" for name in names[count:]))


def test_a_database_that_is_not_made_to_its_end_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "runs" / "runs.db"

    def is_killed(folder: str) -> None:
        Path(folder).mkdir()
        run_sql(Path(folder) / file.name, "create table runs (id)")
        raise KeyboardInterrupt

    def make(folder: str) -> None:
        Path(folder).mkdir()
        run_sql(Path(folder) / file.name, "pragma journal_mode = wal", "create table runs (id)")
        run_sql(Path(folder) / file.name, "create table alembic_version (version_num)", "insert into runs values (7)")

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            make_whole(file, is_killed)
        assert not file.exists()
    file.with_name("runs.db-wal").write_bytes(b"of a file that somebody removed")
    make_whole(file, make)
    make_whole(file, is_killed)  # it is whole: nothing is made
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("select id from runs").fetchall() == [(7,)]
    assert {each.name for each in file.parent.iterdir()} == {"runs.db", ".creating"}


@pytest.mark.parametrize("tables", [(0, 5, 1), (1, 3, 0)])
def test_a_sync_over_half_made_databases_begins_them_anew(
    settings: Settings, empty_home: Path, tables: tuple[int, ...]
) -> None:
    home = home_of(settings)
    shutil.copytree(empty_home, home, dirs_exist_ok=True)
    for name, count in zip(DATABASES, tables, strict=True):
        keep_tables(home / name, count)
    done = sync_here(settings, CODE, SyncOptions(), no_progress)
    assert done.unrecorded == ""
    assert isinstance(done.outcomes[Domain.CODE], SyncReport)
    with open_instance(settings) as instance:
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.SUCCESS
        assert instance.all_logs(run.run_id)
    assert all((home / f"{name}.half-made").exists() for name in DATABASES)


def fill_with_noise(file: Path) -> None:
    file.write_bytes(b"noise" * 10_000)


def make_a_folder_of(file: Path) -> None:
    file.unlink()
    file.mkdir()


def lose_a_table(file: Path) -> None:
    run_sql(file, "drop table event_logs")


def refuse_the_tenth_event(file: Path) -> None:
    counted = "when (select count(*) from event_logs) >= 9 begin select raise(abort, 'the tenth'); end"
    run_sql(file, f"create trigger tenth before insert on event_logs {counted}")


@pytest.mark.parametrize(("name", "damage"), [
    (DATABASES[0], make_a_folder_of), (DATABASES[1], fill_with_noise),
    (DATABASES[1], lose_a_table), (DATABASES[1], refuse_the_tenth_event),
])  # fmt: skip
def test_a_sync_publishes_without_a_history_that_can_be_used(
    settings: Settings, empty_home: Path, name: str, damage: Callable[[Path], None]
) -> None:
    home = home_of(settings)
    shutil.copytree(empty_home, home, dirs_exist_ok=True)
    damage(home / name)
    done = sync_here(settings, CODE, SyncOptions(), no_progress)
    assert str(home) in done.unrecorded
    assert "move that folder away" in done.unrecorded
    assert "\n" not in done.unrecorded
    (report,) = done.outcomes.values()
    assert isinstance(report, SyncReport)
    assert store_of(settings, Domain.CODE).current() == report.generation is not None


def test_what_needs_the_history_says_that_it_cannot_be_used(settings: Settings) -> None:
    home_of(settings).parent.mkdir(parents=True, exist_ok=True)
    home_of(settings).write_text("no folder")
    with pytest.raises(HistoryError, match="move that folder away"):
        open_instance(settings)


def test_doctor_names_what_is_wrong_with_the_history(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nThe limit is 7.\n")
    write_config(tmp_path, files("docs"), domains={"documentation": HASHED})
    assert nornweave(tmp_path, "sync").returncode == 0

    def said(code: int) -> list[tuple[str, str]]:
        done = nornweave(tmp_path, "doctor", "--json")
        assert done.returncode == code, done.stdout + done.stderr
        found = [each for each in json.loads(done.stdout) if each["check"] == "history"]
        return [(each["level"], each["text"]) for each in found]

    home = tmp_path / "var" / "dagster"
    assert [level for level, _ in said(0)] == ["ok"]
    keep_tables(home / DATABASES[1], 3)
    ((level, text),) = said(0)
    assert (level, "event_log.db was left half made" in text) == ("warning", True)
    assert nornweave(tmp_path, "sync").returncode == 0
    fill_with_noise(home / DATABASES[0])
    assert said(1) == [("error", "runs/runs.db: file is not a database; syncs are not recorded")]
    synced = nornweave(tmp_path, "sync")
    assert synced.returncode == 0
    assert "this sync is in no history" in synced.stderr
    assert "runs/runs.db: file is not a database" in synced.stderr
    home.rename(home.with_name("aside"))  # as it advises
    assert nornweave(tmp_path, "sync").stderr == ""


def test_the_newest_ticks_are_found_and_the_oldest_forgotten_without_sorting_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestration.storage.FORGET_AT_ONCE", 2)
    storage = KeptScheduleStorage.from_config_value(None, {"base_dir": str(tmp_path)})
    for number in range(12):
        sensor, status = f"sensor-{number % 2}", TickStatus.SKIPPED if number < 10 else TickStatus.STARTED
        storage.create_tick(
            TickData("origin", sensor, InstigatorType.SENSOR, status, 1_700_000_000.0 + number, selector_id=sensor)
        )

    def times() -> list[int]:
        return [int(tick.timestamp) % 100 for tick in storage.get_ticks("origin", "sensor-0")]

    assert times() == [10, 8, 6, 4, 2, 0]
    assert [tick.timestamp for tick in storage.get_ticks("origin", "sensor-0", limit=1)] == [1_700_000_010.0]
    query = storage._ticks_query([JobTickTable.c.tick_body], "origin", "sensor-0", limit=1)
    with storage.connect() as connection:
        compiled = query.compile(connection.engine, compile_kwargs={"literal_binds": True})
        plan = str(connection.execute(sa.text(f"explain query plan {compiled}")).fetchall())
    assert "idx_tick_selector_timestamp" in plan
    assert "TEMP B-TREE" not in plan
    left = []
    for _ in range(3):
        storage.purge_ticks("origin", "sensor-0", before=1_700_000_099.0, tick_statuses=[TickStatus.SKIPPED])
        left.append(len(times()))
    assert (left, times(), len(storage.get_ticks("origin", "sensor-1"))) == ([4, 2, 1], [10], 6)
    storage.dispose()
