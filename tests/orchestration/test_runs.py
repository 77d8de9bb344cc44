"""The document path through Dagster: real runs over real files, recorded in a real instance."""

import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import dagster as dg
import forked
import pytest
from waiting import until
from workspace_support import Configure, write_workspace

from nornweave.carry.lease import DOMAIN_TAG
from nornweave.carry.ledger_file import ledger_file
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.cli.sync import _sync_failed
from nornweave.config import Settings
from nornweave.core.files.lock import WriterLock
from nornweave.core.types import Domain
from nornweave.index.connection import connect_writer
from nornweave.index.outcomes import read_status
from nornweave.ingest.records import INVARIANTS, Progress, SyncOptions, SyncReport, no_progress
from orchestration.assets import STEPS, asset_key, domain_keys
from orchestration.automation import SYNC_JOB
from orchestration.checks import QUALITY
from orchestration.definitions import build_definitions
from orchestration.instance import open_instance
from orchestration.resources import run_config
from orchestration.runs import materialize

BOTH = (Domain.CODE, Domain.DOCUMENTATION)


def sync(
    settings: Settings,
    instance: dg.DagsterInstance,
    *domains: Domain,
    progress: Progress = no_progress,
    **options: bool,
) -> Mapping[Domain, SyncReport | str]:
    return materialize(settings, domains or BOTH, SyncOptions(wait_s=0, **options), progress, instance).outcomes


def metadata_of(instance: dg.DagsterInstance, domain: Domain, step: str) -> dict[str, object]:
    event = instance.get_latest_materialization_event(asset_key(domain, step))
    assert event and event.asset_materialization
    return {name: value.value for name, value in event.asset_materialization.metadata.items()}


def last_run(instance: dg.DagsterInstance) -> dg.DagsterRun:
    return instance.get_runs(limit=1)[0]


def events_of(instance: dg.DagsterInstance, run_id: str, kind: dg.DagsterEventType) -> list[dg.DagsterEvent]:
    entries = instance.all_logs(run_id, of_type=kind)
    return [entry.dagster_event for entry in entries if entry.dagster_event]


def generation_files(settings: Settings, domain: Domain) -> set[str]:
    folder = domain_folder(settings, domain) / "generations"
    return {file.name for file in folder.iterdir()} if folder.exists() else set()


@dataclass(frozen=True)
class Run:
    """A run of both domains, and what it told while it ran; for looking at."""

    settings: Settings
    instance: dg.DagsterInstance
    outcomes: Mapping[Domain, SyncReport | str]
    told: set[str]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    settings, told = write_workspace(tmp_path_factory.mktemp("done")), set[str]()
    with open_instance(settings) as instance:
        outcomes = sync(settings, instance, progress=lambda step, done, total: told.add(step))
        yield Run(settings, instance, outcomes, told)


def test_a_run_publishes_every_domain_and_says_what_it_did(done: Run) -> None:
    assert list(done.outcomes) == list(BOTH)
    for domain, report in done.outcomes.items():
        assert isinstance(report, SyncReport)
        assert (report.published, report.added, report.failed) == (True, 2, ())
        assert store_of(done.settings, domain).current() == report.generation
        assert read_status(domain_folder(done.settings, domain))["latest"]["generation"] == report.generation
    run = last_run(done.instance)
    assert (run.job_name, run.status) == (SYNC_JOB, dg.DagsterRunStatus.SUCCESS)
    assert all(isinstance(report, SyncReport) and report.run_id == run.run_id for report in done.outcomes.values())


def test_what_the_assets_say_is_numbers_that_plot(done: Run) -> None:
    documents = metadata_of(done.instance, Domain.CODE, "documents")
    chunks = metadata_of(done.instance, Domain.CODE, "chunks")
    index = metadata_of(done.instance, Domain.CODE, "index")
    generation = metadata_of(done.instance, Domain.CODE, "generation")
    assert {name: documents[name] for name in ("listed", "to_read", "to_remove", "held_removals")} == {
        "listed": 2,
        "to_read": 2,
        "to_remove": 0,
        "held_removals": 0,
    }
    assert (chunks["added"], chunks["failed"]) == (2, 0)
    assert index["vectors"] == index["chunks"] == chunks["chunks"]
    assert metadata_of(done.instance, Domain.CODE, "embeddings")["embedded"] == index["vectors"]
    assert (generation["published"], generation["new_generations"], generation["added"]) == (True, 1, 2)
    for step in STEPS:
        seconds = metadata_of(done.instance, Domain.CODE, step)["sync_seconds" if step == "generation" else "seconds"]
        assert isinstance(seconds, float)


def test_a_second_run_publishes_nothing_and_writes_no_generation(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    sync(settings, instance)
    before = {domain: generation_files(settings, domain) for domain in BOTH}

    outcomes = sync(settings, instance)

    assert [report.published for report in outcomes.values() if isinstance(report, SyncReport)] == [False, False]
    assert {domain: generation_files(settings, domain) for domain in BOTH} == before
    assert metadata_of(instance, Domain.CODE, "index")["built"] == 0
    assert metadata_of(instance, Domain.CODE, "generation")["published"] is False
    assert last_run(instance).status is dg.DagsterRunStatus.SUCCESS


def test_every_invariant_is_a_check_that_passed(done: Run) -> None:
    run_id = last_run(done.instance).run_id
    evaluations = [
        event.asset_check_evaluation_data
        for event in events_of(done.instance, run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    ]
    found = {(one.asset_key.path[0], one.check_name): one for one in evaluations}
    assert set(found) == {(domain.value, name) for domain in BOTH for name in (*INVARIANTS, QUALITY)}
    assert all(one.passed and one.blocking for one in evaluations)
    vectors = found["code", "vectors_match_chunks"].metadata
    assert vectors["found"].value == vectors["expected"].value > 0


def test_a_failing_invariant_stops_the_publication_of_its_domain_only(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    first = sync(settings, instance)
    for folder in ("code", "docs"):
        (settings.file.parent / folder / "new.md").write_text("# New\n\nSomething else.\n", encoding="utf-8")
        (settings.file.parent / folder / "new.py").write_text("def new(): return 1\n", encoding="utf-8")
    files = generation_files(settings, Domain.CODE)

    with closing(connect_writer(domain_folder(settings, Domain.CODE) / "working.duckdb")) as connection:
        connection.execute(
            "insert into chunks from chunks where embedding_key = (select min(embedding_key) from chunks)"
        )

    outcomes = sync(settings, instance)

    error = outcomes[Domain.CODE]
    assert isinstance(error, str)
    assert "ids_unique" in error
    assert store_of(settings, Domain.CODE).current() == first[Domain.CODE].generation  # type: ignore[union-attr]
    assert generation_files(settings, Domain.CODE) == files, "the candidate is removed"
    other = outcomes[Domain.DOCUMENTATION]
    assert isinstance(other, SyncReport)
    assert other.published
    run = last_run(instance)
    assert run.status is dg.DagsterRunStatus.FAILURE
    started = {event.step_key for event in events_of(instance, run.run_id, dg.DagsterEventType.STEP_START)}
    assert "documentation__generation" in started
    assert "code__generation" not in started
    failed = {event.step_key for event in events_of(instance, run.run_id, dg.DagsterEventType.STEP_FAILURE)}
    assert failed == {"code__index"}
    assert read_status(domain_folder(settings, Domain.CODE))["runs"][0]["error"] == error

    assert "sync --full" in error
    healed = sync(settings, instance, Domain.CODE, full=True)[Domain.CODE]
    assert isinstance(healed, SyncReport)
    assert (healed.published, healed.embedded) == (True, 0)


def test_a_model_that_does_not_exist_stops_its_domain_only(configure: Configure) -> None:
    settings = configure(code={"embedding": {"model": "./no/such/model"}})
    with dg.DagsterInstance.ephemeral() as instance:
        outcomes = sync(settings, instance)

    assert isinstance(outcomes[Domain.CODE], str)
    assert "no/such/model" in outcomes[Domain.CODE]
    assert isinstance(outcomes[Domain.DOCUMENTATION], SyncReport)
    assert read_status(domain_folder(settings, Domain.CODE))["runs"][0]["error"] == outcomes[Domain.CODE]


def test_a_busy_domain_is_an_error_at_the_command_line(settings: Settings, instance: dg.DagsterInstance) -> None:
    lock = WriterLock(domain_folder(settings, Domain.CODE) / "writer.lock", purpose="test")
    with lock:
        outcomes = sync(settings, instance)

    assert isinstance(outcomes[Domain.CODE], str)
    assert "is being written: test" in outcomes[Domain.CODE]
    assert isinstance(outcomes[Domain.DOCUMENTATION], SyncReport)
    assert not events_of(instance, last_run(instance).run_id, dg.DagsterEventType.STEP_UP_FOR_RETRY)


def test_a_busy_domain_is_tried_again_in_the_background(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestration.resources.RETRY_DELAY_S", 0.05)
    config = run_config(SyncOptions(wait_s=0), retries=8)
    job = build_definitions(settings).resolve_job_def(SYNC_JOB)
    lock = WriterLock(domain_folder(settings, Domain.CODE) / "writer.lock", purpose="test")
    retried = dg.DagsterEventType.STEP_UP_FOR_RETRY

    def release_once_retried() -> None:
        until(lambda: any(events_of(instance, run.run_id, retried) for run in instance.get_runs()))
        lock.__exit__(None, None, None)

    lock.__enter__()
    with ThreadPoolExecutor(1) as threads:
        released = threads.submit(release_once_retried)
        result = job.execute_in_process(
            config, instance=instance, asset_selection=domain_keys(Domain.CODE), raise_on_error=False
        )
        released.result()

    assert result.success
    assert store_of(settings, Domain.CODE).current()


def test_a_generation_that_is_materialized_alone_publishes_what_is_stored(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    job = build_definitions(settings).resolve_job_def(SYNC_JOB)
    first, last = domain_keys(Domain.CODE)[:3], domain_keys(Domain.CODE)[5:]
    assert job.execute_in_process(instance=instance, asset_selection=first).success
    assert store_of(settings, Domain.CODE).current() is None

    assert job.execute_in_process(instance=instance, asset_selection=last).success

    assert store_of(settings, Domain.CODE).current() is not None


def test_an_index_without_its_generation_leaves_nothing_behind(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    job = build_definitions(settings).resolve_job_def(SYNC_JOB)

    result = job.execute_in_process(instance=instance, asset_selection=domain_keys(Domain.CODE)[:4])

    assert result.success
    assert generation_files(settings, Domain.CODE) == set()
    assert isinstance(sync(settings, instance, Domain.CODE)[Domain.CODE], SyncReport), "the lock is free"


def test_a_ledger_that_cannot_be_made_is_told_beside_the_publications(
    settings: Settings, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = ledger_file(settings)
    ledger.parent.mkdir(parents=True)
    ledger.write_text("{", encoding="utf-8")

    ended = materialize(settings, BOTH, SyncOptions(wait_s=0), no_progress, instance)
    assert all(isinstance(report, SyncReport) and report.published for report in ended.outcomes.values())
    assert list(ended.failed_after) == ["ledger/conflicts"]
    assert f"{ledger}: is damaged" in ended.failed_after["ledger/conflicts"]
    assert _sync_failed(ended.outcomes, ended.failed_after)
    assert f"ledger/conflicts: {ended.failed_after['ledger/conflicts']}" in capsys.readouterr().err


def test_one_domain_is_synced_alone_under_its_tag(settings: Settings, instance: dg.DagsterInstance) -> None:
    sync(settings, instance, Domain.DOCUMENTATION)

    assert last_run(instance).tags[DOMAIN_TAG] == "documentation"
    assert store_of(settings, Domain.DOCUMENTATION).current()
    assert store_of(settings, Domain.CODE).current() is None


def test_a_domain_without_sources_of_its_own_can_be_named(settings: Settings, instance: dg.DagsterInstance) -> None:
    hashed = settings.model_copy(
        update={"domains": {**settings.domains, Domain.RESEARCH: settings.domains[Domain.DOCUMENTATION]}}
    )

    report = sync(hashed, instance, Domain.RESEARCH)[Domain.RESEARCH]

    assert isinstance(report, SyncReport)
    assert (report.published, report.generation) == (False, None)


# A process of its own: a worker of the suite, in which other tests have left their handlers, may end by the signal.
INTERRUPTED = """
import os, signal, sys, threading
from pathlib import Path
import duckdb
from nornweave.connect.connectors import load_settings
from nornweave.ingest.records import SyncOptions
from orchestration.instance import open_instance
from orchestration.runs import materialize

def at_once():
    os.kill(os.getpid(), signal.SIGINT)

def in_a_query():
    threading.Timer(0.3, at_once).start()
    duckdb.sql("select count(*) from range(1000000000000)").fetchall()

def interrupt(step, done, total):
    if step == "code store":
        globals()[sys.argv[2]]()

signal.signal(signal.SIGINT, signal.default_int_handler)
settings = load_settings(Path(sys.argv[1]), {})
with open_instance(settings) as instance:
    try:
        materialize(settings, settings.served_domains, SyncOptions(), interrupt, instance)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("where", ["at_once", "in_a_query"])
def test_ctrl_c_releases_the_domain_and_the_next_run_finishes(
    settings: Settings, instance: dg.DagsterInstance, where: str
) -> None:
    process = forked.run([sys.executable, "-c", INTERRUPTED, settings.file, where], timeout=120)

    assert process.returncode == 130, process.stderr.decode()
    assert last_run(instance).status is dg.DagsterRunStatus.FAILURE
    assert "interrupted" in read_status(domain_folder(settings, Domain.CODE))["runs"][0]["error"]
    assert all(isinstance(report, SyncReport) for report in sync(settings, instance).values())


def test_failed_documents_are_shown_with_their_reasons(settings: Settings, instance: dg.DagsterInstance) -> None:
    (settings.file.parent / "docs" / "broken.md").write_bytes(b"# T\n\n\x00\x00|<b>`\x00")

    report = sync(settings, instance)[Domain.DOCUMENTATION]

    assert isinstance(report, SyncReport)
    metadata = metadata_of(instance, Domain.DOCUMENTATION, "chunks")
    assert metadata["failed"] == len(report.failed) == 1
    assert report.failed[0].reason[:20] in str(metadata["failed documents"])
