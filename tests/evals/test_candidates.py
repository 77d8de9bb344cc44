"""A candidate measured beside what is published: real generations, no orchestration."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from configurations import HASHED, configured, files

from evals.evaluation import GenerationReport, evaluate_candidate, evaluate_published
from evals.judgments import JudgmentError
from evals.results import ResultScope
from evals.runs import SetToRun, evaluate_all
from evals.searching import PathSearcher
from evals.sets import configured_sets, read_sets
from nornweave.ask.engine import Engine
from nornweave.ask.search.query import read_query
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.core.errors import StoreError
from nornweave.core.text import analyzer
from nornweave.core.types import Domain
from nornweave.improve.history import history_of
from nornweave.improve.records import Verdict
from nornweave.index.port import Candidate
from nornweave.ingest.pipeline import DomainSync, run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

DOCS = Domain.DOCUMENTATION
FIRST, SECOND = "gen-000001", "gen-000002"
TOPICS = ("settlement", "chargeback", "dispute", "invoice", "ledger", "mandate", "payout", "reversal", "voucher")


def write_pages(folder: Path, *, good: bool = True) -> None:
    for number, topic in enumerate(TOPICS):
        text = f"# When somebody breaks the {topic}\n\n" + f"The {topic} is paid by whoever asked for it first. " * 4
        (folder / "docs" / f"{number}.md").write_text(text if good else "# Soon\n\nCome back later.\n")


def write_golden(folder: Path, name: str = "golden") -> Path:
    target = folder / name
    target.mkdir(exist_ok=True)
    queries = [json.dumps({"id": topic, "text": f"who pays for the {topic}"}) for topic in TOPICS]
    (target / "queries.jsonl").write_text("\n".join(queries))
    rows = [f"{topic}\t{number}.md\t1" for number, topic in enumerate(TOPICS)]
    (target / "qrels.tsv").write_text("\n".join(["query_id\tdoc_id\tgrade", *rows]))
    return target


def workspace(folder: Path, **evaluation: object) -> Settings:
    domain = {**HASHED, "evaluation": {"judgments": ["golden"], **evaluation}}
    return configured(folder, files("handbook", path="docs"), domain=domain)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine pages, published without having been measured."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "docs").mkdir()
    write_pages(folder)
    write_golden(folder)
    run(domain_parts(workspace(folder), DOCS), SyncOptions(wait_s=0))
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return tmp_path


@contextmanager
def candidate_of(settings: Settings) -> Iterator[Candidate]:
    """Build a candidate of everything as it is now; it is not published."""
    with DomainSync(domain_parts(settings, DOCS), SyncOptions(full=True, wait_s=0)) as sync:
        sync.store_changes()
        sync.embed()
        candidate = sync.build().candidate
        assert candidate
        yield candidate


def measured(settings: Settings, *, accepted: bool = False) -> GenerationReport:
    with candidate_of(settings) as candidate:
        report = evaluate_candidate(settings, DOCS, candidate, run_id="test", accept=lambda: accepted)
    assert report
    return report


def verdicts(settings: Settings) -> list[tuple[str, str, str]]:
    return [(one.set_name, one.generation, one.verdict.value) for one in history_of(settings).evaluations()]


def test_what_is_published_is_measured_beside_the_first_candidate_and_then_known(folder: Path) -> None:
    settings = workspace(folder)
    first, second = measured(settings), measured(settings)

    assert [report.refused for report in (first, second)] == [False, False]
    assert verdicts(settings) == [
        ("golden", SECOND, "passed"),
        ("golden", SECOND, "passed"),
        ("golden", FIRST, "published"),
    ]
    (evaluated,) = first.evaluated
    comparison = evaluated.comparison(ResultScope.DOMAIN, "fused", "RR@10")
    assert comparison is not None
    assert (comparison.queries, comparison.difference, evaluated.generation) == (len(TOPICS), 0, SECOND)


def test_a_worse_candidate_is_refused_unless_accepted(folder: Path) -> None:
    settings = workspace(folder)
    write_pages(folder, good=False)

    refused, accepted = measured(settings), measured(settings, accepted=True)

    assert (refused.refused, accepted.refused, accepted.accepted) == (True, False, True)
    assert refused.reasons == accepted.reasons
    assert "RR@10 of fused: 1.000 → 0.0" in " ".join(refused.reasons)
    assert [verdict for _, _, verdict in verdicts(settings)] == ["passed", "refused", "published"]


def test_what_changed_in_the_judged_set_is_measured_anew(folder: Path) -> None:
    """Most queries are new to the history; what is published is asked them now."""
    settings = workspace(folder)
    measured(settings)
    text = (folder / "golden" / "queries.jsonl").read_text().replace("who pays for the", "who has to pay for the")
    (folder / "golden" / "queries.jsonl").write_text(text)
    write_pages(folder, good=False)

    report = measured(settings)

    assert report.refused
    assert [verdict for _, _, verdict in verdicts(settings)].count("published") == 2


def test_queries_out_of_the_corpus_come_from_what_is_published(folder: Path) -> None:
    """Of a candidate that lost half of its chunks nobody would ask for that half."""
    settings = workspace(folder, judgments=[], generated=20)
    with DomainSync(domain_parts(settings, DOCS), SyncOptions(full=True, wait_s=0)) as sync:
        sync.store_changes()
        sync.embed()
        sync._writer._connection.execute("delete from chunks where hash(chunk_id) % 2 = 0")  # type: ignore[attr-defined]
        candidate = sync.build().candidate
        assert candidate
        report = evaluate_candidate(settings, DOCS, candidate, run_id="test")

    assert report
    (evaluated,) = report.evaluated
    assert (evaluated.result.name, evaluated.result.measured) == ("generated", len(TOPICS))


def test_documents_that_say_something_else_now_are_not_asked_for(folder: Path) -> None:
    settings = workspace(folder, judgments=[], generated=20)
    (folder / "docs" / "1.md").write_text("# When somebody breaks the chargeback\n\n" + "Nobody pays for it. " * 9)
    (folder / "docs" / "4.md").unlink()

    (evaluated,) = measured(settings).evaluated
    assert evaluated.result.measured == len(TOPICS) - 2
    assert evaluated.result.missing == ()


def test_a_domain_without_sets_or_with_its_gate_off_is_not_measured(folder: Path) -> None:
    with candidate_of(workspace(folder)) as candidate:
        for settings in (workspace(folder, judgments=[]), workspace(folder, gate=False)):
            assert evaluate_candidate(settings, DOCS, candidate, run_id="test") is None
    assert verdicts(settings) == []


def test_a_candidate_that_cannot_be_read_is_an_error_and_not_an_older_generation(folder: Path) -> None:
    settings = workspace(folder)
    with candidate_of(settings) as candidate:
        (file, *_) = store_of(settings, DOCS).files.folder.glob(".build-000002-*.duckdb")
        file.write_bytes(file.read_bytes()[:4096])
        with pytest.raises(StoreError, match=r"\.build-000002-000\.duckdb: cannot be opened"):
            evaluate_candidate(settings, DOCS, candidate, run_id="test")
    assert verdicts(settings) == []


def forget_analyses() -> None:
    """Forget what this process remembers of words and queries: another analyzer is another process."""
    analyzer._terms_of.cache_clear()
    read_query.cache_clear()


def test_what_newer_code_makes_of_a_generation_is_no_excuse(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nightly evaluation measures what is published, which newer code reads wrongly: not what it is worth."""
    settings = workspace(folder)
    measured(settings)
    monkeypatch.setattr(analyzer, "VERSION", "other")
    monkeypatch.setattr(analyzer, "_spans", lambda word: iter([("same", 0, len(word))]))
    forget_analyses()
    try:
        with Engine(settings, [DOCS], watch=False) as engine:
            evaluate_published(settings, engine, configured_sets(settings, engine, [DOCS]), run_id="night")
        worse = [one for one in history_of(settings).evaluations() if one.verdict is Verdict.OUTDATED]
        assert {one.scope for one in worse} == {"domain", "all domains"}
        assert all((metric := one.metric("sparse", "RR@10")) and metric.mean == 0 for one in worse)
        report = measured(settings)
    finally:
        forget_analyses()

    assert report.refused
    assert "of sparse: 1.000 → " in " ".join(report.reasons)


def test_a_generation_that_was_never_measured_and_cannot_be_any_more_is_not_compared_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = workspace(folder)
    monkeypatch.setattr(analyzer, "VERSION", "other")

    report = measured(settings)

    assert not report.refused
    assert all("nothing to compare it with" in finding.text for finding in report.findings)
    assert verdicts(settings) == [("golden", SECOND, "passed")], "measuring it now would say nothing"


def without_qrels(golden: Path) -> str:
    (golden / "qrels.tsv").unlink()
    return "qrels.tsv"


def with_a_wrong_grade(golden: Path) -> str:
    (golden / "qrels.tsv").write_text("query_id\tdoc_id\tgrade\nledger\t4.md\tbest\n")
    return "qrels.tsv:2"


def without_queries(golden: Path) -> str:
    (golden / "queries.jsonl").write_text("")
    return "holds no query"


def with_an_id_twice(golden: Path) -> str:
    queries = (golden / "queries.jsonl").read_text()
    (golden / "queries.jsonl").write_text(queries + "\n" + queries.splitlines()[0])
    return "is used twice"


def of_another_corpus(golden: Path) -> str:
    (golden / "qrels.tsv").write_text("query_id\tdoc_id\tgrade\nledger\tcanteen.md\t1\nvoucher\tkitchen.md\t1\n")
    return "'golden': none of its 2 judged documents is in a published generation of documentation"


def across_domains(golden: Path) -> str:
    (golden / "set.yaml").write_text("across_domains: true\n")
    return "judged in all domains"


def named_like_the_one_that_is_made(golden: Path) -> str:
    write_golden(golden.parent, "generated")
    shutil.rmtree(golden)
    golden.symlink_to("generated")
    return "'generated'"


SPOILERS = (
    without_qrels, with_a_wrong_grade, without_queries, with_an_id_twice, of_another_corpus, across_domains,
    named_like_the_one_that_is_made,
)  # fmt: skip


def test_a_set_that_cannot_be_run_speaks_against_publication(folder: Path) -> None:
    settings = workspace(folder)
    with candidate_of(settings) as candidate:
        for spoil in SPOILERS:
            shutil.rmtree(folder / "golden")
            expected = spoil(write_golden(folder))

            report = evaluate_candidate(settings, DOCS, candidate, run_id="test")

            assert report
            assert report.refused
            assert expected in " ".join(report.reasons)
            assert report.problems == report.reasons


def test_one_set_that_cannot_be_run_does_not_keep_the_others_from_being_run(folder: Path) -> None:
    other = write_golden(folder, "other")
    of_another_corpus(other)
    settings = workspace(folder, judgments=["golden", "other"])

    report = measured(settings)

    assert [one.result.name for one in report.evaluated] == ["golden"]
    assert len(report.problems) == 1
    assert verdicts(settings)[0] == ("golden", SECOND, Verdict.REFUSED.value)


def test_two_sets_of_one_name_are_told_before_anything_runs(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    write_golden(folder / "elsewhere")

    report = measured(workspace(folder, judgments=["golden", "elsewhere/golden"]))
    assert report.refused
    assert "two judged sets are named 'golden'" in report.reasons[0]


def test_a_mistake_in_the_last_set_is_found_before_the_first_one_runs(folder: Path) -> None:
    of_another_corpus(write_golden(folder, "other"))
    shown: list[str] = []
    with Engine(workspace(folder), [DOCS], watch=False) as engine:
        sets = [SetToRun(one) for one in read_sets([folder / "golden", folder / "other"])]
        with pytest.raises(JudgmentError, match="'other'"):
            evaluate_all(PathSearcher(engine.path), sets, progress=lambda step, done, total: shown.append(step))
        assert shown == []
        with pytest.raises(JudgmentError, match="no judged set to run"):
            evaluate_all(PathSearcher(engine.path), [])
