"""What commits teach: learnt, tested through the whole path, put in force or not with a reason, rolled back, shown."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import httpx
import numpy as np
import pytest
from git_repository import Repository
from live_server import live
from pydantic import ValidationError

from api.app import create_app
from evals.query_map import LEAST, fit, hits_of, learn_published, lessons_of, trial, why_due
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.ask.views.status import query_map_document, status_document
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import Domain, present
from nornweave.improve.comparison import compare
from nornweave.index.manifest import NAME, QueryMap, factors_of, read_report
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts
from orchestration.definitions import build_definitions

# How people call what the code calls otherwise: no word of a question stands in the file that answers it.
SPOKEN = [
    ("gizmo wobble", "invoice"), ("flux bloop", "ledger"), ("zork nimbus", "cursor"), ("quark dapple", "tokenizer"),
    ("mango tundra", "scheduler"), ("pixel harbor", "renderer"), ("velvet comet", "mailer"), ("copper fjord", "router"),
    ("amber lagoon", "archive"), ("walnut prism", "session"), ("cobalt meadow", "parser"), ("saffron dune", "queue"),
]  # fmt: skip
TWISTS = ["", "again", "for good", "at night", "once more", "in tests", "properly", "when idle", "at last"]
CODE = Domain.CODE


def lettered(number: int) -> str:
    """Return a word of its own for a number: commits that say the same but for numbers count once."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number)) + "x"


def commit_all(repository: Repository, count: int) -> None:
    """Make so many commits, each in the words of people about one file, and one by a program after every tenth."""
    for number in range(count):
        words, name = SPOKEN[number * 7 % len(SPOKEN)]
        file = repository.root / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def run_{name}(value):\n    total_{name} = value + {number}\n    return total_{name}\n")
        repository.git("add", "-A")
        author = "dependabot[bot] <bot@example.com>" if number % 10 == 9 else "Ann <ann@example.com>"
        date = f"2024-01-01T{number // 60:02}:{number % 60:02}:00Z"
        message = f"mend {words} {TWISTS[number % len(TWISTS)]} {lettered(number)}".strip()
        repository.git("commit", "-qm", message, "--author", author, "--date", date, GIT_COMMITTER_DATE=date)


def workspace(folder: Path, plan: str = "{}") -> Settings:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nornweave.yaml").write_text(
        "data_dir: var\n"
        "sources: [{id: repo, domain: code, type: git, path: repo}]\n"
        "domains: {code: {embedding: {model: 'hash:96', dimensions: 96}, plan: " + plan + "}}\n"
    )
    return load_settings(folder / "nornweave.yaml", {})


def sync(settings: Settings) -> None:
    run(domain_parts(settings, CODE), SyncOptions(run_id="run"))


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace in which a map is in force, published as the second generation."""
    folder = tmp_path_factory.mktemp("learnt")
    commit_all(Repository(folder / "repo"), 110)
    settings = workspace(folder)
    sync(settings)
    assert learn_published(settings, CODE, "run").learnt_at
    return folder


@pytest.fixture
def settings(learnt: Path, tmp_path: Path) -> Settings:
    shutil.copytree(learnt, tmp_path / "copy")
    return workspace(tmp_path / "copy")


def test_a_map_moves_questions_to_their_answers_and_shuffled_ones_do_not() -> None:
    generator = np.random.default_rng(1)

    def unit(*shape: int) -> np.ndarray:
        drawn = generator.normal(size=shape)
        return (drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)).astype(np.float32)

    passages, turn = unit(60, 24), np.linalg.qr(generator.normal(size=(24, 24)))[0]
    rows = generator.integers(0, 60, 240)
    noisy = passages[rows] @ turn + 0.4 * unit(240, 24)
    queries = (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)
    answers = [np.array([row], np.int32) for row in rows]

    def found(change: np.ndarray) -> float:
        return float(np.mean((queries[200:] @ (np.eye(24) + change).T @ passages.T).argmax(axis=1) == rows[200:]))

    learnt, shuffled = (
        fit(queries[:200], passages, [answers[row] for row in order])
        for order in (range(200), generator.permutation(200))
    )
    assert np.array_equal(learnt, fit(queries[:200], passages, answers[:200]))
    assert found(learnt) > found(np.zeros((24, 24))) + 0.1
    assert found(shuffled) < found(learnt) - 0.1


@pytest.mark.parametrize("rows", [[[0]], [[0, 1, 2]], [[0], [0]]])
def test_nothing_to_tell_apart_changes_nothing_to_speak_of(rows: list[list[int]]) -> None:
    passages = np.eye(3, 4, dtype=np.float32)
    change = fit(np.eye(4, dtype=np.float32)[: len(rows)], passages, [np.array(row, np.int32) for row in rows])
    assert np.isfinite(change).all()


def test_a_mapped_vector_has_length_one_and_identity_changes_none() -> None:
    change = np.diag([0.0, 0.5, 0.0])
    shape, factors = factors_of(change, rank=1)
    query_map = QueryMap(encoder="e", shape=shape, factors=factors, examples=20, fitted_at="2024-01-01")
    mapped = query_map.apply(np.array([0.6, 0.8, 0.0], np.float32))
    assert mapped == pytest.approx(np.array([0.6, 1.2, 0.0]) / np.hypot(0.6, 1.2), abs=1e-3)
    shape, factors = factors_of(np.zeros((3, 3)))
    identity = QueryMap(encoder="e", shape=shape, factors=factors, examples=20, fitted_at="2024-01-01")
    assert identity.apply(np.array([0.6, 0.8, 0.0], np.float32)) == pytest.approx([0.6, 0.8, 0.0])


@pytest.mark.parametrize("factors", ["", "AAAA", "AHwAfA==", "no base64!"])
def test_a_damaged_map_is_refused(factors: str) -> None:
    with pytest.raises(ValidationError):
        QueryMap(encoder="e", shape=(1, 1), factors=factors, examples=20, fitted_at="2024-01-01")


def test_a_map_that_helps_is_in_force_and_commits_of_programs_teach_nothing(settings: Settings) -> None:
    said = query_map_document(settings, CODE)
    assert said["in_force"]
    assert said["gain"] is not None
    assert said["gain"] > 0.3
    assert said["examples"] == 99
    assert said["tested"] == 60
    assert status_document(settings, CODE)["query_map"] == said
    with Engine(settings, [CODE], watch=False) as engine:
        lessons = lessons_of(engine.agents[CODE])
        mapped = trial(engine, CODE, lessons)
        assert mapped == trial(engine, CODE, lessons)
        without = hits_of(engine, CODE, lessons, None, map(int, mapped))
        control = compare(without, trial(engine, CODE, lessons, shuffled=True))
        assert control
        assert control.difference < said["gain"] / 2
        question = Question(text="mend copper fjord", now=present(), viewer=OPERATOR, explain=True, top_k=3)
        items = engine.agents[CODE].recall(question).items
        plain = engine.agents[CODE].altered(query_map_of=lambda _: None).recall(question).items
    assert "router.py" in {item.citation.source_path for item in items}
    assert all(item.explanation and item.explanation.query_map for item in items)
    assert not any(item.explanation and item.explanation.query_map for item in plain)
    # A map decides who comes first; how near that is stays what other domains compare with.
    assert not plain or items[0].score <= plain[0].score + 1e-6


def test_a_map_is_published_kept_by_syncs_and_rolled_back_with_its_generation(settings: Settings) -> None:
    store = store_of(settings, CODE)
    first, second = store.generations()
    assert store.files.manifest(first).query_map is None
    assert store.files.manifest(second).query_map is not None
    (settings.file.parent / "repo" / "other.py").write_text("def other():\n    return 1\n")
    repository = Repository(settings.file.parent / "repo")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "one more file")
    sync(settings)
    third = store.current()
    assert third not in {first, second, None}
    assert store.files.manifest(third).query_map == store.files.manifest(second).query_map
    store.rollback(first)
    said = query_map_document(settings, CODE)
    assert not said["in_force"]
    assert said["reason"].startswith(f"{first} was published without it")
    with Engine(settings, [CODE], watch=False) as engine:
        question = Question(text="mend copper fjord", now=present(), viewer=OPERATOR, explain=True)
        assert not any(
            item.explanation.query_map for item in engine.agents[CODE].recall(question).items if item.explanation
        )
    report = learn_published(settings, CODE, "run")
    assert "an older generation answers" in report.reason
    assert store.current() == first


def test_a_plan_can_turn_it_off_and_it_is_taken_away_then(settings: Settings) -> None:
    off = workspace(settings.file.parent, plan="{query_map: false}")
    assert not query_map_document(off, CODE)["in_force"]
    with Engine(off, [CODE], watch=False) as engine:
        question = Question(text="mend copper fjord", now=present(), viewer=OPERATOR, explain=True)
        items = engine.agents[CODE].recall(question).items
    assert not any(item.explanation.query_map for item in items if item.explanation)
    assert why_due(off, CODE, now=datetime.now(UTC)) == ""
    assert "turns it off" in learn_published(off, CODE, "run").reason
    current = store_of(off, CODE).current()
    assert current
    assert store_of(off, CODE).files.manifest(current).query_map is None


def test_few_commits_teach_nothing_and_what_does_not_help_is_not_in_force(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    commit_all(repository, LEAST)  # two of them are by a program
    settings = workspace(tmp_path)
    assert why_due(settings, CODE, now=datetime.now(UTC)) == ""
    sync(settings)
    assert why_due(settings, CODE, now=datetime.now(UTC)) == "none was learnt yet"
    assert not query_map_document(settings, CODE)["in_force"]
    report = learn_published(settings, CODE, "run")
    assert report.reason == f"{LEAST - 2} commits say what they changed in files that are indexed; {LEAST} teach"
    assert query_map_document(settings, CODE)["reason"] == report.reason
    for number in range(30):  # what these say has nothing to do with what they change
        (repository.root / f"{SPOKEN[number % 5][1]}.py").write_text(f"def x():\n    return {number}\n")
        repository.git("commit", "-qam", f"{SPOKEN[(number * number + 3) % 12][0]} {lettered(number)}")
    sync(settings)
    report = learn_published(settings, CODE, "run")
    assert "not beyond chance" in report.reason
    assert report.tested
    assert not query_map_document(settings, CODE)["in_force"]
    assert len(store_of(settings, CODE).generations()) == 2  # nothing is published for it


def test_commits_that_say_the_same_but_for_numbers_count_once(settings: Settings) -> None:
    repository = Repository(settings.file.parent / "repo")
    for number in range(3):
        (repository.root / "queue.py").write_text(f"def x():\n    return {number}\n")
        date = f"2025-01-0{number + 1}T00:00:00Z"
        repository.git("commit", "-qam", f"Bump version to 2.{number}", "--date", date, GIT_COMMITTER_DATE=date)
    sync(settings)
    with Engine(settings, [CODE], watch=False) as engine:
        texts = [each.text for each in lessons_of(engine.agents[CODE]).examples]
    assert len(texts) == 100
    assert texts[-1] == "Bump version to 2.2"


def test_it_is_due_after_a_week_and_after_fifty_commits(settings: Settings) -> None:
    report = read_report(domain_folder(settings, CODE))
    assert report
    learnt_at = datetime.fromisoformat(report.at)
    assert why_due(settings, CODE, now=learnt_at + timedelta(days=6)) == ""
    assert why_due(settings, CODE, now=learnt_at + timedelta(days=7)) == "the last one was learnt a week ago"
    repository = Repository(settings.file.parent / "repo")
    for count, due in ((49, ""), (50, "50 commits are new")):
        while (made := int(repository.git("rev-list", "--count", "HEAD")) - 110) < count:
            (repository.root / "queue.py").write_text(f"def x():\n    return {made}\n")
            repository.git("commit", "-qam", f"count {lettered(made)}")
        sync(settings)
        assert why_due(settings, CODE, now=learnt_at) == due


def test_a_damaged_report_is_as_none(settings: Settings) -> None:
    file = domain_folder(settings, CODE) / NAME
    for damaged in ("", "[]", "{", json.dumps({"what": 1})):
        file.write_text(damaged)
        assert read_report(domain_folder(settings, CODE)) is None
        assert query_map_document(settings, CODE)["in_force"]


def test_a_judged_set_that_loses_keeps_a_map_out_of_force(settings: Settings) -> None:
    folder = settings.file.parent / "judged"
    folder.mkdir()
    # The words say one file; people who judged want the one that these words mean without what was learnt.
    with Engine(settings, [CODE], watch=False) as engine:
        agent = engine.agents[CODE]
        lost = []
        for words, _ in SPOKEN:
            question = Question(text=words, now=present(), viewer=OPERATOR, top_k=1)
            mapped, plain = (
                each.recall(question).items for each in (agent, agent.altered(query_map_of=lambda _: None))
            )
            if plain and mapped[0].citation.source_path != plain[0].citation.source_path:
                lost.append((words, plain[0].citation.source_path))
    assert lost
    (folder / "queries.jsonl").write_text("".join(json.dumps({"id": w, "text": w}) + "\n" for w, _ in lost))
    (folder / "qrels.tsv").write_text("query_id\tdoc_id\tgrade\n" + "".join(f"{w}\t{p}\t2\n" for w, p in lost))
    (folder / "set.yaml").write_text("{origin: people}\n")
    text = settings.file.read_text().replace("plan: {}", "evaluation: {judgments: [judged], gate: false}")
    settings.file.write_text(text)
    judged = load_settings(settings.file, {})
    report = learn_published(judged, CODE, "run")
    assert report.query_map is None
    assert "; but judged (domain) loses: " in report.reason
    current = store_of(judged, CODE).current()
    assert current
    assert store_of(judged, CODE).files.manifest(current).query_map is None


def test_dagster_learns_it_when_it_is_due_and_the_page_of_quality_says_so(settings: Settings) -> None:
    (domain_folder(settings, CODE) / NAME).unlink()
    definitions = build_definitions(settings)
    repository, sensor = definitions.get_repository_def(), definitions.resolve_sensor_def("query_map_due")
    with dg.DagsterInstance.ephemeral() as instance:

        def look() -> list[dg.RunRequest]:
            with dg.build_sensor_context(
                instance=instance, repository_def=repository, sensor_name="query_map_due"
            ) as context:
                return list(sensor.evaluate_tick(context).run_requests)

        (asked,) = look()
        assert (sensor.job_name, asked.tags["reason"]) == ("query_map", "none was learnt yet")
        result = definitions.resolve_job_def("query_map").execute_in_process(instance=instance)
        (materialised,) = result.asset_materializations_for_node("code__query_map")
        assert materialised.metadata["in_force"].value is True
        assert look() == []
    with live(create_app(settings)) as url:
        told = httpx.get(f"{url}/quality.json").json()["query_map"]
        page = httpx.get(f"{url}/quality", headers={"accept": "text/html"}).text
    assert told == query_map_document(settings, CODE)
    assert told["in_force"]
    assert "Learnt from commits" in page
    assert f"In force: {told['reason']}" in page
