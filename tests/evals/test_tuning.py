"""Tuning on a real index: a plan that is wrong for its corpus is repaired, a good one is left alone."""

import json
import math
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tuning_workspace import DEAF, GOOD, PAGES, page, path_of, publish, questions, write_workspace

from evals.judgments import HiddenText, JudgedQuery, JudgedSet, Judgment, JudgmentError, JudgmentOrigin
from evals.results import ResultScope
from evals.runs import SetToRun, evaluate
from evals.searching import PathSearcher
from evals.targets import locate
from evals.tuning.cases import TuningCase, cases_of
from evals.tuning.results import TuningResult, as_markdown
from evals.tuning.search import Values
from evals.tuning.tune import MEASURED, Objective, TuningError, keep, tune
from nornweave.ask.engine import Engine
from nornweave.config import PlanSettings, Settings
from nornweave.config.tuned_plans import plan_files, plan_in_force
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain, freeze


def anywhere(*judged: JudgedSet) -> list[SetToRun]:
    return [SetToRun(one) for one in judged]


DOCS, PAPERS = Domain.DOCUMENTATION, Domain.RESEARCH


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    publish(write_workspace(folder, GOOD))
    return folder


@contextmanager
def serving(settings: Settings) -> Iterator[Engine]:
    engine = Engine(settings)
    engine.start(watch=False)
    try:
        yield engine
    finally:
        engine.close()


@pytest.fixture
def settings(folder: Path) -> Iterator[Settings]:
    """The workspace with a plan that listens to an encoder which confuses everything."""
    yield write_workspace(folder, DEAF)
    for domain in (DOCS, PAPERS):
        for file in sorted(plan_files(write_workspace(folder, DEAF), domain).folder.glob("*")):
            file.unlink()


@pytest.fixture(scope="module")
def repaired(folder: Path) -> TuningResult:
    settings = write_workspace(folder, DEAF)
    with serving(settings) as engine:
        return tune(engine, DOCS, anywhere(questions("docs"), questions("papers")), rounds=1)


# What is measured.


def objective_of(
    engine: Engine, cases: Sequence[TuningCase], plan: PlanSettings, scope: ResultScope = ResultScope.DOMAIN
) -> Values:
    """Return what a plan of the documentation reaches."""
    return Objective(engine, DOCS, cases, scope)([plan])[plan]


def test_the_objective_is_what_evaluations_measure(settings: Settings) -> None:
    judged = questions("docs")
    with serving(settings) as engine:
        cases = cases_of([locate(PathSearcher(engine.path), judged)])
        values = objective_of(engine, cases, engine.agents[DOCS].settings.plan)
        stage = evaluate(PathSearcher(engine.path), judged, scopes=[ResultScope.DOMAIN]).scopes[0].stage("merged")
    assert stage is not None
    assert 0.05 < values.mean() < 0.95
    assert list(values) == [
        pytest.approx(math.fsum(stage.metrics[name].values[one.id.rpartition("/")[2]] for name in MEASURED) / 3)
        for one in cases
    ]


def test_what_a_query_was_taken_from_is_hidden(settings: Settings) -> None:
    judged = questions("docs", count=8)
    text = page("docs", 0)
    queries = tuple(replace(one, hidden=HiddenText(path_of("docs", at), 8, len(text) + 99))
                    for at, one in enumerate(judged.queries))  # fmt: skip
    plan = PlanSettings.model_validate(GOOD)
    with serving(settings) as engine:
        seen, unseen = (
            cases_of([locate(PathSearcher(engine.path), replace(judged, queries=one))])
            for one in (judged.queries, queries)
        )
        assert objective_of(engine, seen, plan).mean() == 1
        assert objective_of(engine, unseen, plan).mean() < 0.6
        with_it, without_it = (objective_of(engine, each, plan, ResultScope.EVERYWHERE).mean()
                               for each in (seen, unseen))  # fmt: skip
        assert without_it < 0.6 * with_it


def test_a_refused_query_counts_nothing_and_a_missing_generation_is_an_error(
    settings: Settings, tmp_path: Path
) -> None:
    judged = questions("docs", count=3)
    wrong = replace(judged.queries[0], filters=freeze({"colour": "red"}))
    blank = replace(judged.queries[1], text="  ")
    plan = PlanSettings.model_validate(GOOD)
    with serving(settings) as engine:
        cases = cases_of(
            [locate(PathSearcher(engine.path), replace(judged, queries=(wrong, blank, judged.queries[2])))]
        )
        assert list(objective_of(engine, cases, plan)) == [0, 0, 1]
        assert list(objective_of(engine, cases, plan, ResultScope.EVERYWHERE))[1:] == [0, 1]
    with serving(write_workspace(tmp_path, GOOD)) as empty, pytest.raises(StoreError, match="nothing is published"):
        objective_of(empty, cases, plan)


# Plans.


def test_a_plan_that_is_wrong_for_its_corpus_is_repaired(repaired: TuningResult) -> None:
    assert repaired.kept, repaired.reason
    assert "better beyond chance" in repaired.reason
    best, before = repaired.best["weights"], repaired.in_force["weights"]
    assert isinstance(best, dict)
    assert isinstance(before, dict)
    assert best["dense"] < before["dense"] - 0.05
    held_out = repaired.held_out
    assert held_out.queries == PAGES == repaired.queries
    assert held_out.difference > 0.02
    assert held_out.p_gain < 0.05
    assert [one.name for one in repaired.sets] == ["documentation/docs"]
    names = [one.name for one in repaired.all_domains]
    assert names == ["all domains, queries of documentation", "all domains, queries of others"]
    assert [one.queries for one in repaired.all_domains] == [PAGES, PAGES]
    assert all(one.p_drop >= 0.05 for one in repaired.all_domains)


def test_nothing_is_written_before_it_is_kept_and_then_it_answers_with_its_evidence(
    repaired: TuningResult, settings: Settings
) -> None:
    files = plan_files(settings, DOCS)
    assert files.all() == ()
    plan = keep(settings, repaired)
    assert plan is not None
    found = plan_in_force(settings, DOCS)
    assert (found.name, found.problem) == ("plan-1", None)
    assert found.plan.model_dump(mode="json") == repaired.best
    evidence: Mapping[str, Any] = files.load(1).evidence
    assert evidence["held_out"]["p_gain"] < 0.05
    assert (evidence["queries"], evidence["sets"][0]["name"]) == (PAGES, "documentation/docs")
    assert evidence["code"]
    assert "documentation gen-" in evidence["generation"]
    judged = questions("docs")
    with serving(settings) as engine:
        answer = evaluate(PathSearcher(engine.path), judged, scopes=[ResultScope.DOMAIN]).scopes[0].stage("merged")
    assert answer is not None
    assert answer.metrics["Recall@10"].mean > 0.9
    assert files.back() is None
    assert plan_in_force(settings, DOCS).plan == settings.domains[DOCS].plan


def test_a_good_plan_is_left_alone_and_a_tuned_one_is_what_has_to_be_beaten(
    repaired: TuningResult, settings: Settings
) -> None:
    keep(settings, repaired)
    with serving(settings) as engine:
        again = tune(engine, DOCS, anywhere(questions("docs")), rounds=0)
    assert again.in_force == repaired.best
    assert not again.kept
    assert again.best == repaired.best
    good = write_workspace(settings.file.parent, GOOD)
    with serving(good) as engine:
        result = tune(engine, DOCS, anywhere(questions("docs")), rounds=1)
    assert not result.kept
    assert keep(good, result) is None
    assert plan_files(good, DOCS).all() == (1,)
    assert any("no judged set is about another domain" in note for note in result.notes)


def test_a_plan_of_another_configuration_does_not_keep_anyone_from_tuning(
    repaired: TuningResult, settings: Settings
) -> None:
    keep(settings, repaired)
    edited = write_workspace(settings.file.parent, {**DEAF, "document_share": 0.2})
    with serving(edited) as engine:
        assert engine.agents[DOCS].state == "DEGRADED"
        result = tune(engine, DOCS, anywhere(questions("docs", count=24)), rounds=0)
    assert result.in_force == edited.domains[DOCS].plan.model_dump(mode="json")


def test_tuning_the_same_gives_the_same_whatever_the_order(repaired: TuningResult, settings: Settings) -> None:
    docs, papers = questions("docs"), questions("papers")
    turned = replace(docs, queries=docs.queries[::-1], judgments=docs.judgments[::-1])
    with serving(settings) as engine:
        again = tune(engine, DOCS, anywhere(papers, turned), rounds=1)
    assert replace(again, seconds=0) == replace(repaired, seconds=0)


def test_what_people_judged_counts_before_what_was_generated(settings: Settings) -> None:
    people = questions("docs", name="people", count=24)
    generated = questions("docs", name="generated", origin=JudgmentOrigin.GENERATED)
    few = questions("docs", name="people", count=10)
    feedback = questions("docs", name="feedback", origin=JudgmentOrigin.FEEDBACK, count=12)
    with serving(settings) as engine:
        result = tune(engine, DOCS, anywhere(people, generated), rounds=0)
        assert (result.queries, [one.name for one in result.sets]) == (24, ["documentation/people"])
        assert any(f"{PAGES} generated queries are left out" in note for note in result.notes)
        both = tune(engine, DOCS, anywhere(few, generated), rounds=0)
        assert both.queries == PAGES + 10
        asked = tune(engine, DOCS, anywhere(few, feedback, generated), rounds=0)
        assert [one.name for one in asked.sets] == ["documentation/feedback", "documentation/people"]


def test_sets_of_one_name_are_told_apart_and_those_of_all_domains_only_guard(settings: Settings) -> None:
    docs, papers = questions("docs", name="generated"), questions("papers", name="generated")
    both = replace(questions("docs", name="both"), across_domains=True)
    with serving(settings) as engine:
        cases = cases_of([locate(PathSearcher(engine.path), one) for one in (docs, papers, both)])
        assert len({one.id for one in cases}) == 3 * PAGES
        assert {one.judged for one in cases} == {"documentation/generated", "research/generated", "all domains/both"}
        result = tune(engine, DOCS, anywhere(docs, papers, both), rounds=0)
        assert [one.name for one in result.sets] == ["documentation/generated"]
        assert not any("no judged set is about another domain" in note for note in result.notes)
        with pytest.raises(JudgmentError, match="about documentation"):
            tune(engine, DOCS, anywhere(both))


def test_progress_is_told_query_by_query(settings: Settings) -> None:
    told: list[tuple[str, int, int]] = []
    with serving(settings) as engine:
        tune(engine, DOCS, anywhere(questions("docs", count=24)), rounds=0, progress=lambda *one: told.append(one))
    assert [(done, total) for _, done, total in told] == [(done, 24) for done in range(1, 25)]


# Bad input.


def test_too_few_queries_are_refused(settings: Settings) -> None:
    with serving(settings) as engine, pytest.raises(TuningError, match=r"19 judged queries .* at least 20"):
        tune(engine, DOCS, anywhere(questions("docs", count=19)))


def test_sets_of_other_corpora_and_domains_are_refused(settings: Settings) -> None:
    elsewhere = JudgedSet("foreign", (JudgedQuery("q", "what"),), (Judgment("q", "no/such.md", None, None, 1),))
    with serving(settings) as engine:
        with pytest.raises(JudgmentError, match="foreign"):
            tune(engine, DOCS, anywhere(questions("docs"), elsewhere))
        with pytest.raises(JudgmentError, match=r"about research; there are: docs \(documentation\)"):
            tune(engine, PAPERS, anywhere(questions("docs")))
        with pytest.raises(JudgmentError, match="there are: none"):
            tune(engine, DOCS, [])
        with pytest.raises(JudgmentError, match="two judged sets are called 'documentation/docs'"):
            tune(engine, DOCS, anywhere(questions("docs"), questions("docs")))
        with pytest.raises(JudgmentError, match="empty"):
            tune(engine, DOCS, anywhere(JudgedSet("empty", (), ())))
        with pytest.raises(JudgmentError, match="about code"):
            tune(engine, Domain.CODE, anywhere(questions("docs")))


def test_too_little_time_is_said(settings: Settings) -> None:
    with serving(settings) as engine:
        result = tune(engine, DOCS, anywhere(questions("docs")), deadline_s=0.0)
    assert (result.kept, result.plans_tried, result.best) == (False, 1, result.in_force)
    assert "the search was cut short by the deadline; more time may find more" in result.notes


def test_a_publication_that_comes_in_between_is_noticed(settings: Settings, tmp_path: Path) -> None:
    other = write_workspace(tmp_path, DEAF)
    publish(other)
    with serving(other) as engine:
        published = False

        def publish_once(*_: object) -> None:
            nonlocal published
            if not published:
                published = True
                (tmp_path / "docs" / "d00.md").write_text("# Something else\n")
                publish(other)
                engine.agents[DOCS].refresh()

        with pytest.raises(TuningError, match="a publication came in between"):
            tune(engine, DOCS, anywhere(questions("docs")), rounds=0, progress=publish_once)


def test_an_agent_without_its_encoder_is_not_tuned(settings: Settings) -> None:
    broken = write_workspace(settings.file.parent, DEAF)
    domains = dict(broken.domains)
    embedding = domains[DOCS].embedding.model_copy(update={"model": "hash:16", "dimensions": 16})
    domains[DOCS] = domains[DOCS].model_copy(update={"embedding": embedding})
    other = broken.model_copy(update={"domains": domains})
    with serving(other) as engine, pytest.raises(TuningError, match="answers without dense"):
        tune(engine, DOCS, anywhere(questions("docs")))


def test_a_tuning_that_is_killed_leaves_nothing(settings: Settings) -> None:
    heard, said = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover - another process
        try:
            with serving(settings) as engine:
                tune(engine, DOCS, anywhere(questions("docs")), progress=lambda *_: os.write(said, b"."))
        finally:
            os._exit(0)
    assert os.read(heard, 1) == b".", "it is at work"
    os.kill(child, signal.SIGKILL)
    os.close(heard)
    os.close(said)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert plan_files(settings, DOCS).all() == ()
    assert plan_in_force(settings, DOCS).problem is None


# What people read.


def test_the_report_says_what_would_change_and_why(repaired: TuningResult) -> None:
    text = as_markdown(repaired)
    assert text.startswith("### Tuning documentation: kept\n\nOn queries that it was not fitted to, ")
    assert "| `weights.dense` | 0.9 | 0" in text
    assert f"| all domains, queries of others | {PAGES} |" in text
    assert f"{PAGES} queries, " in text
    assert json.loads(json.dumps(asdict(repaired), allow_nan=False))["kept"] is True
    refused = as_markdown(replace(repaired, kept=False, best=repaired.in_force, reason="No."))
    assert "not kept\n\nNo.\n" in refused
    assert "`weights.dense`" not in refused
