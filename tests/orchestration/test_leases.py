"""Runs are known by their leases: renewed from before they are made, judged by looks, named where somebody looks."""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.launcher import WorkerStatus

from nornweave.ask.views.status import status_document
from nornweave.carry.lease import DOMAIN_TAG, LEASE_KEY, silent_runs
from nornweave.cli.checks import look_at_index
from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.ingest.records import SyncOptions
from orchestration import leases
from orchestration.instance import home_of
from orchestration.leases import (
    HereRunLauncher,
    LeaseWatch,
    fail_abandoned_runs,
    hold_lease,
    leased_executor,
    process_mark,
)
from orchestration.runs import materialize


@dg.job(executor_def=leased_executor)
def idle() -> None: ...


def begun(instance: dg.DagsterInstance, *, is_started: bool = True, domain: Domain = Domain.CODE) -> dg.DagsterRun:
    """Record a run that began and never ended."""
    run = instance.create_run_for_job(idle, tags={DOMAIN_TAG: domain.value})
    if is_started:
        instance.report_run_canceling(run)
    return run


def lease(instance: dg.DagsterInstance, run: dg.DagsterRun, *, age_s: float = 0, mark: str = "") -> str:
    at = (datetime.now(UTC) - timedelta(seconds=age_s)).isoformat()
    value = {"at": at, "by": "pid 7 on cron-1", "mark": mark}
    instance.daemon_cursor_storage.set_cursor_values({LEASE_KEY + run.run_id: json.dumps(value)})
    return at


def lease_rows(instance: dg.DagsterInstance, *runs: dg.DagsterRun) -> int:
    return len(instance.daemon_cursor_storage.get_cursor_values({LEASE_KEY + run.run_id for run in runs}))


LOOKS = (
    ([("a", 0), ("a", 10), ("a", 20), ("b", 30), ("b", 40)], [0, 10, 20, 0, 10]),
    ([(None, 0), (None, 10), ("a", 20), (None, 30)], [0, 10, 0, 0]),  # never taken; taken; forgotten
    ([("a", 0), ("a", 3600), ("a", 3610)], [0, 20, 30]),  # whoever looks was paused, and the run perhaps with it
)


@pytest.mark.parametrize(("looks", "silences"), LOOKS)
def test_silence_is_what_was_seen_from_look_to_look(
    looks: Sequence[tuple[str | None, float]], silences: list[float]
) -> None:
    watch = LeaseWatch()
    assert [watch.silence("run", value, now) for value, now in looks] == silences


PRINT_MARK = "import sys; sys.path[:0] = {}; from orchestration.leases import process_mark; print(process_mark())"


def test_runs_that_are_over_are_failed_and_those_that_live_are_not(instance: dg.DagsterInstance) -> None:
    command = [sys.executable, "-c", PRINT_MARK.format(sys.path)]
    dead = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    mine = process_mark()
    elsewhere = f"{dead.split('@')[0]}@another-kernel/1@7"
    cases = {
        "killed": (dead, 5.0, True, True),
        "killed before it started": (dead, 5.0, False, True),
        "its number is used again": (mine[:-1] + str(9 - int(mine[-1])), 5.0, True, True),
        "of a container that is gone": (elsewhere, 300.0, True, True),
        "launched, never begun": ("", 300.0, True, True),
        "lives": (mine, 5.0, True, False),
        "lives, the clock was set forward": (mine, 100.0, True, False),
        "lives, the clock was set back": (elsewhere, -5_000.0, True, False),
        "lives elsewhere": (elsewhere, 5.0, True, False),
        "waits for a worker": ("", 300.0, False, False),
    }
    runs = {name: begun(instance, is_started=is_started) for name, (_, _, is_started, _) in cases.items()}
    without = begun(instance)
    for name, (mark, age_s, _, _) in cases.items():
        lease(instance, runs[name], age_s=age_s, mark=mark)

    count = fail_abandoned_runs(instance)

    failed = {run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))}
    expected = {name for name, (*_, is_over) in cases.items() if is_over}
    assert {name for name, run in runs.items() if run.run_id in failed} == expected
    assert count == lease_rows(instance, *runs.values()) == 5
    assert without.run_id not in failed


def test_the_launcher_gives_a_silent_run_up_and_no_other(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(leases.time, "monotonic", lambda: now)
    launcher = instance.run_launcher
    assert isinstance(launcher, HereRunLauncher)
    assert launcher.supports_check_run_worker_health
    silent, beating, unheard = (begun(instance) for _ in range(3))
    lease(instance, silent, age_s=-9_000)  # the clock of its machine is wrong
    ended: dict[str, float] = {}
    for look in range(12):
        now = 1000.0 + 10 * look
        lease(instance, beating, age_s=look)
        for name, run in (("silent", silent), ("beating", beating), ("unheard", unheard)):
            if launcher.check_run_worker_health(run).status is WorkerStatus.FAILED:
                ended.setdefault(name, 10 * look)
    assert ended == {"silent": 80, "unheard": 80}
    with monkeypatch.context() as patch:  # the server is away
        patch.setattr(leases, "_lease_of", lambda *_: 1 / 0)
        assert launcher.check_run_worker_health(silent).status is WorkerStatus.RUNNING
    assert "pid 7 on cron-1" in str(launcher.check_run_worker_health(silent).msg)


def test_a_run_holds_its_lease_from_before_it_is_made_to_its_end(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "BEAT_S", 0.01)
    values: list[str | None] = []

    def look(_step: str, _done: int, _total: int) -> None:
        values.append(leases._lease_of(instance, instance.get_runs(limit=1)[0].run_id))

    made: list[int] = []
    create = type(instance).create_run_for_job

    def creating(self: dg.DagsterInstance, *arguments: object, **options: object) -> object:
        made.append(lease_rows(self, dg.DagsterRun("sync", run_id=str(options["run_id"]))))
        return create(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(type(instance), "create_run_for_job", creating)
    materialize(settings, [Domain.CODE], SyncOptions(), look, instance)
    assert made == [1]
    assert all(value and json.loads(value)["mark"] == process_mark() for value in values)
    assert len(set(values)) > 1
    assert lease_rows(instance, *instance.get_runs()) == 0


def test_a_full_disk_under_a_lease_ends_no_run(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT_S", 0.001)
    with hold_lease(instance, "a"):
        monkeypatch.setattr(type(instance.run_storage), "set_cursor_values", lambda *_: 1 / 0)
        monkeypatch.setattr(type(instance.run_storage), "connect", lambda *_: 1 / 0)


def test_a_silent_run_is_named_where_somebody_looks(settings: Settings, instance: dg.DagsterInstance) -> None:
    mine, alive, other = begun(instance), begun(instance), begun(instance, domain=Domain.DOCUMENTATION)
    waiting = begun(instance, is_started=False)
    since = lease(instance, mine, age_s=300)
    for run, age_s in ((other, 300), (alive, 10), (waiting, 200)):
        lease(instance, run, age_s=age_s)
    said = status_document(settings, Domain.CODE)["silent"]
    assert said[0] == f"run {mine.run_id[:8]} (CANCELING, pid 7 on cron-1) has given no sign of life since {since}"
    assert [each.split()[1] for each in said] == [mine.run_id[:8], waiting.run_id[:8]]
    (found,) = [each for each in look_at_index(settings, Domain.DOCUMENTATION, can_sync=True) if each.check == "run"]
    assert (found.level, other.run_id[:8] in found.text) == ("warning", True)
    instance.report_run_failed(mine)
    assert [run.run_id for run in silent_runs(settings.data_dir, Domain.CODE, {})] == [waiting.run_id]
    (home_of(settings) / "runs" / "runs.db").write_bytes(b"noise" * 1000)
    assert silent_runs(settings.data_dir, Domain.CODE, {}) == []
