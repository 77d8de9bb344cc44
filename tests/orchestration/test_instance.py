"""The Dagster instance: SQLite that keeps up, PostgreSQL by environment, runs that nobody ended."""

import time
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
import yaml

from nornweave.config import Settings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain
from nornweave.ingest.records import SyncOptions, no_progress
from orchestration.instance import (
    KEEP_RUNS_DAYS,
    POSTGRES_VARIABLE,
    forget_old_runs,
    home_of,
    postgres_url,
    write_instance,
)
from orchestration.runs import materialize

HEADROOM_S = 10.0


def config_of(settings: Settings) -> dict[str, object]:
    loaded = yaml.safe_load((home_of(settings) / "dagster.yaml").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_the_instance_lies_in_data_dir_and_sends_nothing_home(settings: Settings) -> None:
    home = write_instance(settings, {})

    config = config_of(settings)
    assert home == settings.data_dir / "dagster"
    assert config["telemetry"] == {"enabled": False}
    assert config["concurrency"]["runs"]["tag_concurrency_limits"] == [  # type: ignore[index]
        {"key": "nornweave/domain", "value": {"applyLimitPerUniqueValue": True}, "limit": 1}
    ]
    assert not [file for file in home.iterdir() if file.name.startswith(".")], "no temporary file is left"


def test_an_unchanged_instance_file_is_not_written_again(settings: Settings) -> None:
    file = write_instance(settings, {}) / "dagster.yaml"
    before = file.stat()

    write_instance(settings, {})

    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_password_stays_in_the_environment(settings: Settings) -> None:
    environment = {POSTGRES_VARIABLE: "postgres://nw:s3cret@db.example:5432/dagster"}

    write_instance(settings, environment)

    assert config_of(settings)["storage"] == {"postgres": {"postgres_url": {"env": POSTGRES_VARIABLE}}}
    assert all("s3cret" not in file.read_text() for file in home_of(settings).iterdir() if file.is_file())
    assert environment[POSTGRES_VARIABLE] == "postgresql+psycopg2://nw:s3cret@db.example:5432/dagster"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2"])
def test_every_spelling_of_an_address_is_understood(scheme: str) -> None:
    assert postgres_url(f"{scheme}://u:p@h/d?sslmode=require") == "postgresql+psycopg2://u:p@h/d?sslmode=require"


@pytest.mark.parametrize("address", ["mysql://u:s3cret@h/d", "u:s3cret@h", "postgresql+asyncpg://u:s3cret@h/d"])
def test_another_address_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(ConfigError, match=POSTGRES_VARIABLE) as caught:
        postgres_url(address)
    assert "s3cret" not in str(caught.value)


def test_old_runs_are_forgotten_and_recent_ones_kept(settings: Settings, instance: dg.DagsterInstance) -> None:
    materialize(settings, [Domain.CODE], SyncOptions(), no_progress, instance)
    run_id = instance.get_runs()[0].run_id

    assert forget_old_runs(instance) == 0
    assert instance.all_logs(run_id)
    assert forget_old_runs(instance, now=datetime.now(UTC) + timedelta(days=KEEP_RUNS_DAYS + 1)) == 1

    assert instance.get_runs() == []
    assert instance.all_logs(run_id) == []


def test_a_run_can_be_followed_while_it_writes(settings: Settings, instance: dg.DagsterInstance) -> None:
    """Dagster's own class watches the database file, which a write-ahead log leaves alone."""
    seen: list[str] = []

    def follow(step: str, done: int, total: int) -> None:
        if not seen:
            run_id = instance.get_runs(limit=1)[0].run_id
            instance.watch_event_logs(run_id, None, lambda event, cursor: seen.append(event.message))
            deadline = time.monotonic() + HEADROOM_S
            while not seen and time.monotonic() < deadline:
                time.sleep(0.05)

    materialize(settings, [Domain.CODE], SyncOptions(), follow, instance)

    assert seen
