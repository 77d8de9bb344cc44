"""When domains are synced by themselves: the schedule and the sensors, evaluated over real folders."""

import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from workspace_support import Configure

from nornweave.carry.lease import DOMAIN_TAG
from nornweave.carry.wiring import INBOX
from nornweave.config import Settings
from nornweave.connect.files.source import FilesSource
from nornweave.core.types import Domain, SourceId
from orchestration.assets import LEDGER_KEY
from orchestration.automation import Watched, look_at, write_watched
from orchestration.definitions import build_definitions
from orchestration.leases import process_mark

TAGS = {"code", "documentation"}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def tick(settings: Settings, instance: dg.DagsterInstance, name: str, cursor: str | None = None) -> dg.SensorResult:
    """Evaluate a sensor as the daemon does."""
    definitions = build_definitions(settings)
    repository, sensor = definitions.get_repository_def(), definitions.resolve_sensor_def(name)
    with dg.build_sensor_context(
        instance=instance, cursor=cursor, repository_def=repository, sensor_name=name
    ) as context:
        result = sensor.evaluate_tick(context)
    return dg.SensorResult(
        run_requests=result.run_requests, cursor=result.cursor, skip_reason=result.skip_message or None
    )


def asked_at_noon(schedule: dg.ScheduleDefinition, instance: dg.DagsterInstance) -> Any:
    """Evaluate a schedule; the context is closed, for as garbage it would set Dagster's storage back later."""
    with dg.build_schedule_context(instance=instance, scheduled_execution_time=NOON) as context:
        return schedule.evaluate_tick(context)


def domains_of(result: dg.SensorResult) -> set[str]:
    return {request.tags[DOMAIN_TAG] for request in result.run_requests or ()}


def unfinished_run(instance: dg.DagsterInstance, domain: Domain) -> None:
    @dg.op
    def nothing() -> None: ...

    @dg.job
    def idle() -> None:
        nothing()

    instance.create_run_for_job(idle, tags={DOMAIN_TAG: domain.value})


def test_the_schedule_asks_for_a_run_per_domain(settings: Settings, instance: dg.DagsterInstance) -> None:
    schedule = build_definitions(settings).resolve_schedule_def("corpus_refresh")
    requests = asked_at_noon(schedule, instance).run_requests

    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    assert {request.tags[DOMAIN_TAG] for request in requests} == TAGS
    for request in requests:
        groups = {key.path[0] for key in request.asset_selection or ()}
        assert groups == {request.tags[DOMAIN_TAG], "ledger", "evaluation"}, "they follow every publication"


def test_the_schedule_leaves_a_domain_alone_whose_run_has_not_ended(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    schedule = build_definitions(settings).resolve_schedule_def("corpus_refresh")
    unfinished_run(instance, Domain.CODE)
    requests = asked_at_noon(schedule, instance).run_requests
    assert [request.tags[DOMAIN_TAG] for request in requests] == ["documentation"]

    unfinished_run(instance, Domain.DOCUMENTATION)
    result = asked_at_noon(schedule, instance)
    assert result.run_requests == []
    assert "has not ended" in (result.skip_message or "")


def test_the_cron_expression_can_be_set(settings: Settings) -> None:
    schedule = build_definitions(settings, refresh_cron="*/5 * * * *").resolve_schedule_def("corpus_refresh")
    assert schedule.cron_schedule == "*/5 * * * *"


def test_the_sensor_is_on_and_looks_every_few_seconds(settings: Settings) -> None:
    sensor = build_definitions(settings).resolve_sensor_def("source_changes")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert sensor.minimum_interval_seconds == 5


def test_a_look_that_took_long_is_followed_by_a_rest(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestration.automation.REST", 1e9)
    definitions = build_definitions(settings)
    sensor, repository = definitions.resolve_sensor_def("source_changes"), definitions.get_repository_def()
    with dg.build_sensor_context(instance=instance, repository_def=repository, sensor_name="source_changes") as context:
        assert len(sensor.evaluate_tick(context).run_requests) == 2
        again = sensor.evaluate_tick(context)
    assert again.run_requests == []
    (seconds,) = re.findall(r"looks again in (\d+) s", str(again.skip_message))
    assert 0 < int(seconds) <= 60, "a source that hangs keeps the others waiting no longer"


def test_the_first_look_asks_for_every_domain_and_the_next_for_none(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    first = tick(settings, instance, "source_changes")
    second = tick(settings, instance, "source_changes", first.cursor)

    assert domains_of(first) == TAGS
    assert domains_of(second) == set()
    assert "no change" in str(second.skip_reason)


@pytest.mark.parametrize("change", ["added", "changed", "removed"])
def test_a_change_asks_for_its_domain_only(settings: Settings, instance: dg.DagsterInstance, change: str) -> None:
    before = tick(settings, instance, "source_changes")
    folder = settings.file.parent / "code"
    match change:
        case "added":
            (folder / "new.py").write_text("x = 1\n")
        case "changed":
            (folder / "ledger.py").write_text("x = 1\n")
        case "removed":
            (folder / "ledger.py").unlink()

    after = tick(settings, instance, "source_changes", before.cursor)

    assert domains_of(after) == {"code"}
    assert domains_of(tick(settings, instance, "source_changes", after.cursor)) == set()


def test_a_change_during_a_run_is_seen_after_it(settings: Settings, instance: dg.DagsterInstance) -> None:
    before = tick(settings, instance, "source_changes")
    unfinished_run(instance, Domain.CODE)
    (settings.file.parent / "code" / "new.py").write_text("x = 1\n")

    during = tick(settings, instance, "source_changes", before.cursor)
    assert domains_of(during) == set()

    instance.delete_run(instance.get_runs()[0].run_id)
    assert domains_of(tick(settings, instance, "source_changes", during.cursor)) == {"code"}


def test_a_watched_source_rests_until_the_process_that_watches_wants_it_listed(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestration.automation.REST", 0)
    definitions = build_definitions(settings)
    sensor, repository = definitions.resolve_sensor_def("source_changes"), definitions.get_repository_def()
    cursor: str | None = None

    def domains_due() -> set[str]:
        nonlocal cursor
        with dg.build_sensor_context(
            instance=instance, cursor=cursor, repository_def=repository, sensor_name="source_changes"
        ) as context:
            result = sensor.evaluate_tick(context)
        cursor = result.cursor
        return {request.tags[DOMAIN_TAG] for request in result.run_requests}

    def change(text: str) -> None:
        (settings.file.parent / "code" / "new.py").write_text(text)
        (settings.file.parent / "docs" / "new.md").write_text(text)

    write_watched(settings, Watched(process_mark(), {"code/payments": "1"}))
    assert domains_due() == TAGS, "what changed before it was watched"
    change("x")
    assert domains_due() == {"documentation"}, "the other is not watched"
    write_watched(settings, Watched(process_mark(), {"code/payments": "2"}))
    unfinished_run(instance, Domain.CODE)
    assert domains_due() == set()
    instance.delete_run(instance.get_runs()[0].run_id)
    assert domains_due() == {"code"}, "it was asked for while a run was under way"
    change("xy")
    with monkeypatch.context() as patch:
        patch.setattr("orchestration.automation.WATCHED_REST_S", 0)
        assert domains_due() == TAGS, "what nobody was told of is seen in the end"
    change("xyz")
    write_watched(settings, Watched("1@elsewhere@1", {"code/payments": "2"}))
    assert domains_due() == {"documentation"}, "nothing is known of processes of other machines"
    write_watched(settings, Watched(process_mark().replace("@", "0@", 1), {"code/payments": "2"}))
    assert domains_due() == {"code"}, "it is gone"


def test_the_ledger_follows_what_was_published_by_itself(settings: Settings, instance: dg.DagsterInstance) -> None:
    assert tick(settings, instance, "ledger_after_changes").run_requests == []
    write_watched(settings, Watched(process_mark(), ledger="1"))
    due = tick(settings, instance, "ledger_after_changes")
    assert [request.asset_selection for request in due.run_requests or ()] == [[LEDGER_KEY]]
    assert tick(settings, instance, "ledger_after_changes", due.cursor).run_requests == []


def test_a_source_that_cannot_be_listed_fails_nothing(configure: Configure, instance: dg.DagsterInstance) -> None:
    settings = configure()
    before = tick(settings, instance, "source_changes")
    code = settings.file.parent / "code"
    code.rename(code.with_name("elsewhere"))
    (settings.file.parent / "docs" / "new.md").write_text("# New\n")

    after = tick(settings, instance, "source_changes", before.cursor)
    assert domains_of(after) == {"documentation"}
    quiet = tick(settings, instance, "source_changes", after.cursor)
    assert "code/payments:" in str(quiet.skip_reason)

    code.with_name("elsewhere").rename(code)
    assert domains_of(tick(settings, instance, "source_changes", quiet.cursor)) == set(), "it is what it was"


def test_a_document_in_the_inbox_asks_for_its_domain(settings: Settings, instance: dg.DagsterInstance) -> None:
    empty = tick(settings, instance, "source_changes")
    assert domains_of(tick(settings, instance, "source_changes", empty.cursor)) == set()
    inbox = settings.data_dir / "inbox" / "documentation"
    inbox.mkdir(parents=True)
    (inbox / f"{'0' * 32}.json").write_text("{}")

    after = tick(settings, instance, "source_changes", empty.cursor)

    assert domains_of(after) == {"documentation"}
    assert domains_of(tick(settings, instance, "source_changes", after.cursor)) == set()


def test_what_is_looked_at_too_late_keeps_its_mark(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n")

    def source() -> FilesSource:
        return FilesSource(SourceId("docs"), Domain.DOCUMENTATION, tmp_path)

    openers = {Domain.DOCUMENTATION: {"docs": source}}
    seen = {"documentation/docs": "before"}

    sight = look_at(openers, seen, deadline=time.monotonic() - 1)

    assert (sight.marks, sight.changed) == (seen, set())
    assert "too long" in sight.problems[0]


def test_sources_that_were_never_seen_come_first(tmp_path: Path) -> None:
    order: list[str] = []

    def source(name: str) -> FilesSource:
        order.append(name)
        return FilesSource(SourceId(name), Domain.CODE, tmp_path)

    openers = {Domain.CODE: {name: lambda name=name: source(name) for name in ("old", INBOX)}}
    look_at(openers, {"code/old": "seen"}, deadline=time.monotonic() + 60)

    assert order == [INBOX, "old"]
