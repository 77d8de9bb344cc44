"""Quality through Dagster: figures that plot, a regression that is held back with its reasons, the nightly job."""

import json
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
import yaml
from workspace_support import HASHED, Configure, write_workspace

from evals.evaluation import evaluate_published
from evals.sets import configured_sets
from nornweave.ask.engine import Engine
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.cli.checks import look_at_judged, look_at_judged_across
from nornweave.cli.sync import _sync_failed
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError
from nornweave.core.files.lock import WriterLock
from nornweave.core.types import Domain
from nornweave.improve.history import history_of
from nornweave.improve.records import Evaluation, Verdict
from nornweave.index.outcomes import read_status
from nornweave.ingest.alarms import AlarmKind, alarms_of
from nornweave.ingest.confirmations import ConfirmationSubject
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions, SyncReport, no_progress
from nornweave.ingest.wiring import confirmations_of, domain_parts
from orchestration.assets import ANSWERS_KEY, EVALUATION_JOB, STEPS, asset_key, domain_evaluation
from orchestration.automation import EVALUATION_CRON, SYNC_JOB
from orchestration.checks import QUALITY
from orchestration.definitions import build_definitions
from orchestration.runs import materialize

DOCS = Domain.DOCUMENTATION
EVALUATION = asset_key(DOCS, "evaluation")
GENERATION = asset_key(DOCS, "generation")
TOPICS = (
    "settlement", "chargeback", "dispute", "invoice", "ledger", "mandate", "payout", "reversal", "voucher", "escrow",
    "rounding", "webhook",
)  # fmt: skip
FIRST, SECOND = "gen-000001", "gen-000002"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def write_pages(folder: Path, topics: Sequence[str] = TOPICS) -> None:
    for number, topic in enumerate(topics):
        text = f"# Page {number}\n\nWhat a {topic} is, when the {topic} happens and who pays for the {topic}.\n"
        (folder / "docs" / f"page{number}.md").write_text(text, encoding="utf-8")


def worsen(folder: Path) -> None:
    """Let ten pages say something else, which nobody asks for."""
    for number in range(10):
        text = f"# Page {number}\n\nThis page is being rewritten; come back later.\n"
        (folder / "docs" / f"page{number}.md").write_text(text, encoding="utf-8")


def judged_set(folder: Path, judgments: Mapping[str, str], **about: object) -> Path:
    """Write a set: query text → the document that answers it."""
    folder.mkdir(exist_ok=True)
    queries = [{"id": f"q-{text.replace(' ', '-')}", "text": text} for text in judgments]
    rows = [f"{query['id']}\t{path}\t1" for query, path in zip(queries, judgments.values(), strict=True)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries), encoding="utf-8")
    (folder / "qrels.tsv").write_text("\n".join(["query_id\tdoc_id\tgrade", *rows]), encoding="utf-8")
    if about:
        (folder / "set.yaml").write_text(yaml.safe_dump(about), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pages, judged by twelve queries and published; the code beside them is neither."""
    folder = tmp_path_factory.mktemp("published")
    judged_set(folder / "golden", {f"what is a {topic}": f"page{number}.md" for number, topic in enumerate(TOPICS)})
    settings = write_workspace(folder, documentation={**HASHED, "evaluation": {"judgments": ["golden"]}})
    write_pages(folder)
    with dg.DagsterInstance.ephemeral() as instance:
        assert publish(settings, instance).generation == FIRST
    return folder


@pytest.fixture
def settings(template: Path, tmp_path: Path) -> Settings:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return load_settings(tmp_path / "nornweave.yaml", {})


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def configured(settings: Settings, key: str, value: Mapping[str, object], *, top: bool = False) -> Settings:
    """Return the workspace with another setting: of the documentation, or at the top."""
    content = yaml.safe_load(settings.file.read_text(encoding="utf-8"))
    (content if top else content["domains"]["documentation"])[key] = dict(value)
    settings.file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return load_settings(settings.file, {})


def sync(settings: Settings, instance: dg.DagsterInstance, options: SyncOptions | None = None) -> SyncReport | str:
    return materialize(settings, [DOCS], options or SyncOptions(wait_s=0), no_progress, instance).outcomes[DOCS]


def publish(settings: Settings, instance: dg.DagsterInstance, options: SyncOptions | None = None) -> SyncReport:
    report = sync(settings, instance, options)
    assert isinstance(report, SyncReport), report
    return report


def refusal(settings: Settings, instance: dg.DagsterInstance) -> str:
    error = sync(settings, instance)
    assert isinstance(error, str)
    return error


def execute(
    settings: Settings,
    instance: dg.DagsterInstance,
    job: str,
    *selection: dg.AssetKey,
    config: dict[str, object] | None = None,
) -> dg.ExecuteInProcessResult:
    definition = build_definitions(settings).resolve_job_def(job)
    return definition.execute_in_process(
        config, instance=instance, asset_selection=selection or None, raise_on_error=False
    )


def metadata_of(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[Mapping[str, dg.MetadataValue]]:
    """Return what each materialisation said, oldest first."""
    records = instance.fetch_materializations(key, limit=20).records
    found = [record.asset_materialization for record in records]
    return [one.metadata for one in reversed(found) if one]


def summary_of(instance: dg.DagsterInstance, key: dg.AssetKey) -> str:
    return str(metadata_of(instance, key)[-1]["summary"].value)


def events_of(instance: dg.DagsterInstance, kind: dg.DagsterEventType) -> list[dg.DagsterEvent]:
    """Return those of the last run."""
    entries = instance.all_logs(instance.get_runs(limit=1)[0].run_id, of_type=kind)
    return [entry.dagster_event for entry in entries if entry.dagster_event]


def check_of(instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation:
    found = [
        event.asset_check_evaluation_data
        for event in events_of(instance, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        if event.asset_check_evaluation_data.check_name == QUALITY
    ]
    assert len(found) == 1
    return found[0]


def failures_of(instance: dg.DagsterInstance) -> dict[str | None, str]:
    """Return what failed in the last run, and what the UI says of it."""
    events = events_of(instance, dg.DagsterEventType.STEP_FAILURE)
    return {event.step_key: str(event.step_failure_data.error) for event in events}


def started_in(instance: dg.DagsterInstance) -> set[str | None]:
    return {event.step_key for event in events_of(instance, dg.DagsterEventType.STEP_START)}


def current(settings: Settings) -> str | None:
    return store_of(settings, DOCS).current()


def known(settings: Settings, **asked: str) -> tuple[Evaluation, ...]:
    return history_of(settings).evaluations(**asked)  # type: ignore[arg-type]


# --- what is measured ---------------------------------------------------------------------------------------------


def test_three_runs_plot_three_values_on_both_curves(settings: Settings, instance: dg.DagsterInstance) -> None:
    """A publication, a run without changes, the nightly measurement."""
    write_pages(settings.file.parent, (*TOPICS, "surcharge"))
    report = publish(settings, instance)
    passed = known(settings)[0]
    assert (passed.run_id, passed.generation, passed.verdict) == (report.run_id, SECOND, Verdict.PASSED)
    assert (passed.domain, passed.set_name, passed.scope) == ("documentation", "golden", "domain")
    assert (passed.queries, passed.measured, passed.missing, passed.failed) == (12, 12, 0, 0)

    publish(settings, instance)
    assert len(known(settings)) == 2, "what did not change is not measured again"
    assert execute(settings, instance, EVALUATION_JOB, EVALUATION).success
    assert known(settings)[0].verdict is Verdict.PUBLISHED

    said = metadata_of(instance, EVALUATION)
    assert len(said) == 3
    for name in ("Recall@10", "MRR"):
        values = [one[name] for one in (said[0], said[2])]
        assert all(isinstance(value, dg.FloatMetadataValue) for value in values), name
        assert all(isinstance(value.value, float) and 0.9 < value.value <= 1 for value in values), name
    assert isinstance(said[0]["p50_ms"], dg.FloatMetadataValue)
    assert [one["queries"].value for one in (said[0], said[2])] == [12, 12]
    assert said[1]["summary"].value == "nothing changed since the published generation"
    for name in ("Recall@10", "MRR", "queries"):
        assert said[1][name].value == said[0][name].value, "the figures of what answers are repeated"
    for name, held in {
        "measures": "golden | 12 | gen-000002 | 1.000 (1.000–1.000) |",
        "trend of golden": "![",
    }.items():
        assert isinstance(said[2][name], dg.MarkdownMetadataValue)
        assert held in str(said[2][name].value), name


def test_a_domain_without_judgments_is_published_unmeasured(settings: Settings, instance: dg.DagsterInstance) -> None:
    settings = configured(settings, "evaluation", {})
    worsen(settings.file.parent)

    assert publish(settings, instance).generation == SECOND
    assert "not measured" in summary_of(instance, EVALUATION)
    assert "Recall@10" not in metadata_of(instance, EVALUATION)[-1], "that would be another generation's"
    assert check_of(instance).passed


# --- what is held back --------------------------------------------------------------------------------------------


def test_a_regression_is_refused_with_its_queries_and_a_way_out(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    worsen(settings.file.parent)

    error = refusal(settings, instance)

    assert error.startswith("nothing is published: golden: RR@10 of fused: 1.000 → ")
    assert "worse: q-what-is-a-" in error
    assert "`nornweave sync --accept-quality` publishes it" in error
    assert current(settings) == FIRST
    assert read_status(domain_folder(settings, DOCS))["runs"][0]["error"] == error
    files = {file.name for file in (domain_folder(settings, DOCS) / "generations").iterdir()}
    assert {file for file in files if "000002" in file} == set(), "the candidate is removed"
    assert instance.get_runs(limit=1)[0].status is dg.DagsterRunStatus.FAILURE
    assert set(failures_of(instance)) == {"documentation__evaluation"}
    assert "documentation__generation" not in started_in(instance)
    check = check_of(instance)
    assert (check.passed, check.blocking) == (False, True)
    assert check.metadata["refusals"].value == 1
    assert check.metadata["worse_queries"].value == 10
    assert str(check.metadata["queries that got worse"].value).count("| golden | q-what-is-a-") >= 10
    assert "| refuses | golden: RR@10 of fused: 1.000 → " in str(check.metadata["what was compared"].value)
    assert [(one.verdict, one.generation) for one in known(settings)] == [
        (Verdict.REFUSED, SECOND),
        (Verdict.PASSED, FIRST),
    ]
    said = metadata_of(instance, EVALUATION)[-1]
    assert float(str(said["MRR"].value)) < 0.8, "the curve shows what was refused"

    # The next candidate lies in the file of this one: what is measured must be the next one.
    write_pages(settings.file.parent, (*TOPICS, "surcharge"))
    assert publish(settings, instance).generation == SECOND
    assert metadata_of(instance, EVALUATION)[-1]["MRR"].value == 1


def test_judged_documents_that_went_are_asked_about_and_named(
    settings: Settings, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(7):
        (settings.file.parent / "docs" / f"page{number}.md").unlink()

    held = publish(settings, instance)
    assert (held.published, held.held[0].reason, held.judged_gone) == (False, "7 of 14 documents are gone", ())

    report = publish(settings, instance, SyncOptions(wait_s=0, confirm_deletes=True))
    gone = tuple(("golden", f"page{number}.md") for number in range(7))
    assert (report.published, report.removed, report.judged_gone) == (True, 7, gone)
    check = check_of(instance)
    assert check.passed
    assert "; 7 judged documents went: page0.md, page1.md, page2.md, page3.md, page4.md, …" in str(check.description)
    assert check.metadata["judged_documents_gone"].value == 7
    assert "| golden | page6.md |" in str(check.metadata["judged documents that went"].value)
    told = {alarm.subject for alarm in alarms_of(report) if alarm.kind is AlarmKind.JUDGED_DOCUMENT_GONE}
    assert told == {f"golden: page{number}.md" for number in range(7)}
    assert not _sync_failed({DOCS: report}, {})
    assert "judged set golden: page6.md: a judged document was removed" in capsys.readouterr().err
    again = publish(settings, instance)
    assert again.judged_gone == (), "once"
    (wrong,) = again.judged_wrong
    assert "7 of 12 judged paths match no document of documentation: page0.md, page1.md" in wrong
    assert {(alarm.text, alarm.lasts) for alarm in alarms_of(again)} == {(wrong, True)}
    assert _sync_failed({DOCS: again}, {}), "what nobody mended is an error"
    assert f"documentation: {wrong}" in capsys.readouterr().err


def test_what_got_worse_by_chance_perhaps_is_published_with_a_warning(
    settings: Settings, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(2):
        (settings.file.parent / "docs" / f"page{number}.md").write_text("# Other\n\nNothing of it.\n", encoding="utf-8")
    report = publish(settings, instance)
    assert report.published
    assert any("2 of 12 questions fell out of the first ten: q-what-is-a-" in each for each in report.quality_warnings)
    assert not _sync_failed({DOCS: report}, {})
    assert "documentation: published, and worse: golden: " in capsys.readouterr().err
    check = check_of(instance)
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "| warns | golden: " in str(check.metadata["what was compared"].value)
    told = {alarm.text for alarm in alarms_of(report) if alarm.kind is AlarmKind.QUALITY_DROPPED and not alarm.lasts}
    assert told == set(report.quality_warnings)


def test_judgments_move_with_their_documents(settings: Settings, instance: dg.DagsterInstance) -> None:
    docs = settings.file.parent / "docs"

    def move(old: str, new: str) -> SyncReport:
        (docs / new).parent.mkdir(exist_ok=True)
        (docs / old).rename(docs / new)
        report = publish(settings, instance)
        assert (report.published, report.judged_gone, report.judged_wrong, report.quality_warnings) == (
            True,
            (),
            (),
            (),
        )
        passed = known(settings)[0]
        assert (passed.measured, passed.missing, passed.verdict) == (12, 0, Verdict.PASSED)
        return report

    move("page0.md", "guide/page0.md")
    move("guide/page0.md", "again.md")  # it is still judged as page0.md
    (docs / "again.md").write_text((docs / "again.md").read_text() + "\nOne more word.\n", encoding="utf-8")
    assert publish(settings, instance).judged_wrong == ()
    move("page1.md", "page1-moved.md")
    (docs / "twice.md").write_bytes((docs / "page2.md").read_bytes())
    (docs / "page2.md").rename(docs / "once.md")
    assert publish(settings, instance).judged_gone == (("golden", "page2.md"),), "two have its content"
    with Engine(settings, [DOCS], watch=False) as engine:
        sets = configured_sets(settings, engine, [DOCS])
        (evaluated,) = evaluate_published(settings, engine, sets, run_id="r")
    assert evaluated.result.moved == (("page0.md", "again.md"), ("page1.md", "page1-moved.md"))
    assert evaluated.result.missing == ("page2.md",)


def test_places_of_sets_across_domains_that_match_nothing_fail_the_answers(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    judged_set(settings.file.parent / "all", {"what is a refund": "page0.md", "no": "typo.md"}, across_domains=True)
    settings = configured(settings, "evaluation", {"judgments": ["all"]}, top=True)
    ended = materialize(settings, [DOCS], SyncOptions(wait_s=0), no_progress, instance)
    wrong = "judged set all: 1 of 2 judged paths match no document of any domain: typo.md"
    assert wrong in ended.failed_after["evaluation/answers"]
    found = [each for each in look_at_judged_across(settings) if each.level == "error"]
    assert [wrong in each.text for each in found] == [True]


def test_doctor_says_from_when_on_judged_sets_hold_back(settings: Settings) -> None:
    def said(settings: Settings, domain: Domain = DOCS) -> list[tuple[str, str]]:
        return [(each.level, each.text) for each in look_at_judged(settings, domain)]

    expected = "4 of them fell out of the first ten or 5 of them, or more, got worse beyond chance"
    assert said(settings) == [("ok", f"golden, 12 questions: holds a generation back if {expected}")]
    smallest = "no judged set, so nothing is held back; the smallest set that can hold a generation back has 1 question"
    assert said(settings, Domain.CODE) == [("ok", smallest)]
    few = judged_set(settings.file.parent / "few", {"what is a refund": "page0.md", "no": "typo.md"})
    settings = configured(settings, "evaluation", {"judgments": [few.name], "lost_share": 1})
    (level, wrong), weak = said(settings)
    assert (level, "1 of 2 judged paths match no document of documentation: typo.md" in wrong) == ("error", True)
    assert weak == ("warning", "few, 2 questions: can hold nothing back")
    (few / "qrels.tsv").unlink()
    assert [level for level, _ in said(settings)] == ["error"]


@pytest.mark.slow
def test_a_generation_that_is_materialised_without_what_comes_before_is_refused_too(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    worsen(settings.file.parent)
    assert execute(settings, instance, SYNC_JOB, *(asset_key(DOCS, step) for step in STEPS[:3])).success

    assert not execute(settings, instance, SYNC_JOB, GENERATION).success
    (said,) = failures_of(instance).values()
    assert "RR@10 of fused" in said
    assert "--accept-quality" in said
    assert not execute(settings, instance, SYNC_JOB, EVALUATION, GENERATION).success
    assert set(failures_of(instance)) == {"documentation__evaluation"}
    assert current(settings) == FIRST
    with WriterLock(domain_folder(settings, DOCS) / "writer.lock", purpose="test"):
        pass  # nobody holds it any more

    confirmations_of(settings).issue(DOCS, ConfirmationSubject.QUALITY, FIRST)
    assert execute(settings, instance, SYNC_JOB, EVALUATION, GENERATION).success
    assert str(check_of(instance).description).startswith("a person has asked for it: golden: ")
    assert current(settings) == SECOND


@pytest.mark.parametrize("missing", [True, False])
def test_a_set_that_cannot_be_run_holds_publication_back(
    settings: Settings, instance: dg.DagsterInstance, missing: bool
) -> None:
    golden = settings.file.parent / "golden"
    write_pages(settings.file.parent, (*TOPICS, "surcharge"))
    if missing:
        shutil.rmtree(golden)
        expected = "golden/queries.jsonl"
    else:
        judged_set(golden, {"lunch": "canteen.md", "dinner": "kitchen.md"})
        expected = "'golden': none of its 2 judged documents is in a published generation of documentation"

    assert expected in refusal(settings, instance)

    assert current(settings) == FIRST
    assert expected in str(check_of(instance).metadata["problems"].value)


# --- the job, the schedule, the answers ---------------------------------------------------------------------------


def test_the_job_measures_what_is_published_while_somebody_writes(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    worsen(settings.file.parent)
    with WriterLock(domain_folder(settings, DOCS) / "writer.lock", purpose="test"):
        result = execute(settings, instance, EVALUATION_JOB)

    assert result.success
    assert current(settings) == FIRST, "nothing is synced"
    assert metadata_of(instance, EVALUATION)[-1]["MRR"].value == 1
    (one, *_) = known(settings, scope="domain")
    assert (one.verdict, one.run_id, one.generation) == (Verdict.PUBLISHED, result.run_id, FIRST)
    assert {"code__evaluation", "documentation__evaluation", "evaluation__answers"} <= started_in(instance)
    assert not {key for key in started_in(instance) if str(key).endswith(("documents", "generation"))}
    assert summary_of(instance, asset_key(Domain.CODE, "evaluation")) == "nothing is published yet"


def test_where_nothing_can_be_measured_nothing_fails(configure: Configure, instance: dg.DagsterInstance) -> None:
    settings = configure()
    for file in (settings.file.parent / "docs").iterdir():
        file.write_text("plain\n", encoding="utf-8")
    run(domain_parts(settings, DOCS), SyncOptions(wait_s=0))

    assert execute(settings, instance, EVALUATION_JOB).success
    assert "none can be made" in summary_of(instance, EVALUATION)
    assert "none can be made" in summary_of(instance, ANSWERS_KEY)


def test_a_broken_set_or_history_fails_the_job_with_its_message(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    (settings.data_dir / "evaluations" / "history.duckdb").write_bytes(b"scribbled")
    assert not execute(settings, instance, EVALUATION_JOB, EVALUATION).success
    (said,) = failures_of(instance).values()
    assert "remove it: history starts afresh" in said
    assert said.startswith("dagster._core.definitions.events.Failure: "), "not a defect with a trace"

    (settings.file.parent / "golden" / "qrels.tsv").write_text("query_id\tdoc_id\n")
    assert not execute(settings, instance, EVALUATION_JOB, EVALUATION).success
    assert "qrels.tsv:1" in failures_of(instance)["documentation__evaluation"]


def test_what_is_published_below_its_floor_fails_the_nightly_check_and_is_told_until_it_is_not(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    missed = judged_set(
        settings.file.parent / "golden", {"what is a heron": "page0.md", "where is the moon": "page1.md"}
    )
    assert missed.is_dir()

    def night(floor: float) -> tuple[dg.AssetCheckEvaluation, list[str]]:
        evaluation = {"judgments": ["golden"], "floors": {"RR@10": floor}}
        told = configured(settings, "evaluation", evaluation)
        told = told.model_copy(update={"webhook": "http://127.0.0.1:9/nobody"})
        execute(told, instance, EVALUATION_JOB, asset_key(DOCS, "evaluation"))
        files = sorted((told.data_dir / "outbox").glob("[0-9]*.json"))
        return check_of(instance), [json.loads(file.read_text())["event"] for file in files]

    check, events = night(0.999)
    assert not check.passed and "the floor is 0.999" in str(check.description)
    assert events == ["quality_dropped"]
    check, events = night(0.999)
    assert not check.passed and events == ["quality_dropped"], "told once"
    check, events = night(0.001)
    assert check.passed and events == ["quality_dropped", "recovered"]


def test_the_schedule_measures_every_night(settings: Settings, instance: dg.DagsterInstance) -> None:
    schedule = build_definitions(settings).resolve_schedule_def("evaluation_schedule")
    with dg.build_schedule_context(instance=instance, scheduled_execution_time=NOON) as context:
        tick = schedule.evaluate_tick(context)

    assert (schedule.job_name, schedule.cron_schedule) == (EVALUATION_JOB, EVALUATION_CRON)
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    assert len(tick.run_requests or ()) == 1
    often = build_definitions(settings, evaluation_cron="*/5 * * * *").resolve_schedule_def("evaluation_schedule")
    assert often.cron_schedule == "*/5 * * * *"
    with pytest.raises(ConfigError, match="NORNWEAVE_EVALUATION_CRON: 'nightly' is not a cron expression"):
        build_definitions(settings, evaluation_cron="nightly")


def test_answers_are_measured_after_a_publication_and_not_again(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    run(domain_parts(settings, Domain.CODE), SyncOptions(wait_s=0))
    everywhere = {"what is a ledger": "page4.md", "post an entry to the ledger": "ledger.py"}
    judged_set(settings.file.parent / "answers", everywhere, across_domains=True)
    settings = configured(settings, "evaluation", {"judgments": ["answers"]}, top=True)
    write_pages(settings.file.parent, (*TOPICS, "surcharge"))

    publish(settings, instance)
    (said,) = metadata_of(instance, ANSWERS_KEY)
    assert isinstance(said["Recall@10"], dg.FloatMetadataValue)
    assert isinstance(said["MRR"], dg.FloatMetadataValue)
    assert (said["queries"].value, said["Recall@10"].value) == (2, 1)

    assert execute(settings, instance, SYNC_JOB, GENERATION, ANSWERS_KEY).success
    assert summary_of(instance, ANSWERS_KEY) == "nothing was published since the last evaluation"
    assert execute(settings, instance, EVALUATION_JOB, ANSWERS_KEY).success
    assert metadata_of(instance, ANSWERS_KEY)[-1]["Recall@10"].value == 1
    assert [one.scope for one in known(settings, domain="all")] == ["all domains"] * 2


def test_answers_without_a_set_of_their_own_are_measured_with_those_of_the_domains(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    assert execute(settings, instance, EVALUATION_JOB, ANSWERS_KEY).success

    said = metadata_of(instance, ANSWERS_KEY)[-1]
    assert (said["Recall@10"].value, said["queries"].value) == (1, 12)
    assert (known(settings)[0].scope, known(settings)[0].set_name) == ("all domains", "golden")


# --- at the same time ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_evaluation_beside_publications_fails_nothing(settings: Settings) -> None:
    settings = configured(settings, "storage", {"keep_generations": 1})
    published: list[str | None] = [FIRST]
    problems: list[BaseException] = []

    def publish_more() -> None:
        try:
            for number in range(3):
                write_pages(settings.file.parent, (*TOPICS, f"extra{number}"))
                published.append(run(domain_parts(settings, DOCS), SyncOptions(run_id="more", wait_s=0)).generation)
        except BaseException as error:
            problems.append(error)

    publishing = threading.Thread(target=publish_more)
    publishing.start()
    said = []
    while publishing.is_alive():
        said.append(domain_evaluation(settings, DOCS, "beside", no_progress)[0])
    publishing.join()

    assert problems == []
    assert published == [f"gen-{number:06}" for number in range(1, 5)]
    assert current(settings) == published[-1]
    assert said
    assert [one.get("Recall@10") for one in said] == [1.0] * len(said)
    assert {one.generation for one in known(settings)} <= set(published)
