"""Versioned plans on disk: what is kept, what is in force, and that nothing in these files stops serving."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nornweave.config import FieldWeights, PlanSettings, Settings, SourceWeights
from nornweave.config.fusion import CALIBRATED_WEIGHTS, FusionSettings, RankWeights
from nornweave.config.plans.active import (
    plan_digest,
    plan_files,
    plan_in_force,
    ranking_digest,
    ranking_in_force,
    read_plan,
    read_ranking,
)
from nornweave.config.plans.versioned_files import CONFIGURED, PlanFiles
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain

TUNED = PlanSettings(weights=SourceWeights(dense=0.6, sparse=0.4, fulltext=0, structured=0), function_words=0.6)
WEIGHTS = RankWeights(score=0.9, corroboration=0.05, recency=0.02, domain=0.02, length=0.01)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return configured(tmp_path)


def configured(folder: Path, **keys: Any) -> Settings:
    (folder / "nornweave.yaml").write_text(json.dumps({"data_dir": "var", **keys}))
    return load_settings(folder / "nornweave.yaml", {})


def save(settings: Settings, plan: PlanSettings = TUNED, **evidence: Any) -> int:
    base = plan_digest(settings.domains[Domain.CODE].plan)
    return plan_files(settings, Domain.CODE).save(plan.model_dump(mode="json"), base=base, evidence=evidence).number


def save_ranking(settings: Settings, weights: RankWeights = WEIGHTS) -> int:
    base = ranking_digest(settings.fusion.rank_weights("calibrated"))
    return plan_files(settings, None).save(asdict(weights), base=base, evidence={}).number


def test_without_files_the_configured_plan_answers(settings: Settings) -> None:
    found = plan_in_force(settings, Domain.CODE)
    assert (found.plan, found.name, found.problem) == (settings.domains[Domain.CODE].plan, CONFIGURED, None)
    ranking = ranking_in_force(settings)
    assert (ranking.weights, ranking.name, ranking.problem) == (None, CONFIGURED, None)
    assert not (settings.data_dir / "plans").exists()


def test_a_saved_plan_answers_once_it_is_activated(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    base = plan_digest(settings.domains[Domain.CODE].plan)
    evidence: dict[str, Any] = {"sets": [{"name": "gold", "queries": 50}], "p_gain": 0.01}
    plan = files.save(TUNED.model_dump(mode="json"), base=base, evidence=evidence, now=now)
    assert (plan.number, plan.name, plan.made_at, plan.replaces) == (1, "plan-1", "2026-03-01T12:00:00Z", None)
    assert plan_in_force(settings, Domain.CODE).name == CONFIGURED
    files.activate(1)
    found = plan_in_force(settings, Domain.CODE)
    assert (found.plan, found.name, found.problem) == (TUNED, "plan-1", None)
    assert plan_in_force(settings, Domain.RESEARCH).name == CONFIGURED
    loaded = files.load(1)
    assert loaded == plan
    assert dict(loaded.evidence) == evidence
    assert sorted(file.name for file in files.folder.iterdir()) == ["CURRENT", "LAST", "LOCK", "plan-000001.json"]


def test_one_step_back_leads_to_what_was_replaced(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    files.activate(save(settings))
    files.activate(save(settings, TUNED.model_copy(update={"expand": True})))
    assert files.load(2).replaces == 1
    assert plan_in_force(settings, Domain.CODE).plan.expand
    assert files.back() == 1
    assert plan_in_force(settings, Domain.CODE).plan == TUNED
    assert files.back() is None
    assert plan_in_force(settings, Domain.CODE).name == CONFIGURED
    with pytest.raises(StoreError, match="nothing to go back to"):
        files.back()
    # What was saved while the configured plan was in force goes back to the configured one.
    files.activate(save(settings))
    assert files.load(3).replaces is None
    assert files.back() is None


def test_numbers_are_never_given_twice(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    assert [save(settings), save(settings)] == [1, 2]
    files.path(2).unlink()
    assert save(settings) == 3
    for file in (files.path(1), files.path(3), files.folder / "LAST"):
        file.unlink()
    files.activate(None)
    assert save(settings) == 1  # nothing is left that could be mistaken for it
    (files.folder / "LAST").write_bytes(b"\xff\xfe")
    assert save(settings) == 2
    (files.folder / "CURRENT").write_text("plan-000007\n")
    assert save(settings) == 8
    assert files.all() == (1, 2, 8)


def test_an_edited_configuration_wins(settings: Settings, tmp_path: Path) -> None:
    plan_files(settings, Domain.CODE).activate(save(settings))
    edited = configured(tmp_path, domains={"code": {"plan": {"document_share": 0.2}}})
    found = plan_in_force(edited, Domain.CODE)
    assert (found.plan, found.name) == (edited.domains[Domain.CODE].plan, CONFIGURED)
    assert found.problem is not None
    assert "plan-1 was fitted to another configuration; tune again" in found.problem
    # The same configuration written in another way is the same.
    same = configured(tmp_path, domains={"code": {"plan": {"document_share": 0.1, "function_words": 1.0}}})
    assert plan_in_force(same, Domain.CODE).name == "plan-1"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("null", "damaged or another's"),
        ("[]", "damaged or another's"),
        ({"schema": 2}, "damaged or another's"),
        ({"subject": "research"}, "damaged or another's"),
        ({"number": 2}, "damaged or another's"),
        ({"values": []}, "'values'"),
        ({"base": None}, "'base'"),
        ({"replaces": "1"}, "'replaces'"),
        ({"values": {"colour": "red"}}, "colour"),
        ({"values": {"document_share": 2}}, "document_share"),
        ({"values": {"fields": {"path": 0, "title": 0, "section": 0, "content": 0}}}, "all fields count 0"),
        ({"values": {"weights": {"dense": 0, "sparse": 0, "fulltext": 0, "structured": 0}}}, "all weights are 0"),
    ],
)
def test_a_damaged_plan_never_stops_serving(settings: Settings, damage: str | dict[str, Any], said: str) -> None:
    files = plan_files(settings, Domain.CODE)
    files.activate(save(settings))
    whole = json.loads(files.path(1).read_text())
    files.path(1).write_text(damage if isinstance(damage, str) else json.dumps({**whole, **damage}))
    found = plan_in_force(settings, Domain.CODE)
    assert (found.plan, found.name) == (settings.domains[Domain.CODE].plan, CONFIGURED)
    assert found.problem is not None
    assert said in found.problem
    with pytest.raises(StoreError):
        files.activate(1)
    assert files.back() is None
    assert plan_in_force(settings, Domain.CODE).problem is None


def test_numbers_that_are_none_are_refused(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    files.activate(save(settings))
    text = files.path(1).read_text()
    files.path(1).write_text(text.replace('"function_words": 0.6', '"function_words": NaN'))
    assert "NaN" in str(plan_in_force(settings, Domain.CODE).problem)
    with pytest.raises(ValueError, match="JSON"):
        save(settings, p=math.nan)
    with pytest.raises(ValueError, match="JSON"):
        save(settings, p={1, 2})
    with pytest.raises(ValueError, match="colour"):
        files.save({"colour": "red"}, base="", evidence={})
    assert files.all() == (1,)


def test_a_foreign_pointer_or_a_missing_plan_is_a_problem(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    files.activate(save(settings))
    for pointer in (b"../../etc/passwd", b"plan-1", b"\xff\xfe\x00", b"plan-000009"):
        (files.folder / "CURRENT").write_bytes(pointer)
        found = plan_in_force(settings, Domain.CODE)
        assert (found.name, found.plan) == (CONFIGURED, settings.domains[Domain.CODE].plan)
        assert found.problem
        assert files.back() is None
    with pytest.raises(StoreError, match="no plan-9; there are: plan-1"):
        files.activate(9)
    assert files.current() is None


def test_a_copy_of_another_domains_plan_is_foreign(settings: Settings) -> None:
    save(settings)
    files = plan_files(settings, Domain.RESEARCH)
    files.folder.mkdir(parents=True)
    files.path(1).write_bytes(plan_files(settings, Domain.CODE).path(1).read_bytes())
    with pytest.raises(StoreError, match="another's"):
        files.activate(1)


def test_ranking_weights_are_kept_the_same_way(settings: Settings, tmp_path: Path) -> None:
    files = plan_files(settings, None)
    files.activate(save_ranking(settings))
    found = ranking_in_force(settings)
    assert (found.weights, found.name, found.problem) == (WEIGHTS, "plan-1", None)
    stated = configured(tmp_path, fusion={"rank_weight_recency": CALIBRATED_WEIGHTS.recency})
    refused = ranking_in_force(stated)
    assert (refused.weights, refused.name) == (None, CONFIGURED)
    assert "rank_weight_recency" in str(refused.problem)
    other = configured(tmp_path, fusion={"rank_weight_score": 0.5})
    assert ranking_in_force(other).weights is None
    assert files.back() is None
    assert ranking_in_force(settings).problem is None
    assert ranking_in_force(stated).problem is None


@pytest.mark.parametrize(
    "values",
    [
        {},
        {**asdict(WEIGHTS), "colour": 1.0},
        {**asdict(WEIGHTS), "score": None},
        {**asdict(WEIGHTS), "score": 1.5},
        {**asdict(WEIGHTS), "score": "much"},
        dict.fromkeys(asdict(WEIGHTS), 0.0),
    ],
)
def test_wrong_ranking_weights_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"weight"):
        read_ranking(values)


def test_a_killed_writer_leaves_the_old_state(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    files.activate(save(settings))
    (files.folder / ".plan-000002.json").write_text('{"schema": 1, "num')
    (files.folder / ".CURRENT").write_text("plan-0000")
    assert plan_in_force(settings, Domain.CODE).name == "plan-1"
    assert files.all() == (1,)
    files.activate(save(settings))
    assert plan_in_force(settings, Domain.CODE).name == "plan-2"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_a_store_error(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    save(settings)
    files.folder.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            save(settings)
    finally:
        files.folder.chmod(0o700)


def test_a_file_in_place_of_the_folder_is_a_store_error(settings: Settings) -> None:
    (settings.data_dir / "plans").mkdir(parents=True)
    (settings.data_dir / "plans" / "code").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        save(settings)
    assert plan_in_force(settings, Domain.CODE).name == CONFIGURED


def _save_some(folder: Path) -> None:
    for _ in range(5):
        PlanFiles(folder, read_plan).save({"expand": True}, base="b", evidence={"pid": os.getpid()})


def test_processes_that_save_at_once_get_numbers_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_save_some, args=(folder,)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    files = PlanFiles(folder, read_plan)
    assert files.all() == tuple(range(1, 16))
    assert len({files.load(number).evidence["pid"] for number in files.all()}) == 3


SHARES = st.floats(0, 1, allow_nan=False)
PLANS = st.builds(
    PlanSettings,
    combine=st.sampled_from(["convex", "rrf"]),
    weights=st.builds(SourceWeights, dense=st.floats(0.01, 1), sparse=SHARES, fulltext=SHARES, structured=SHARES),
    fields=st.builds(FieldWeights, path=SHARES, title=SHARES, section=SHARES),
    document_share=SHARES,
    function_words=SHARES,
    expand=st.booleans(),
    rerank=st.booleans(),
    heuristics=st.booleans(),
)


@given(plan=PLANS, other=PLANS)
def test_a_plan_comes_back_as_it_was_and_has_a_digest_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, plan: PlanSettings, other: PlanSettings
) -> None:
    files = PlanFiles(tmp_path_factory.mktemp("plans") / "code", read_plan)
    saved = files.save(plan.model_dump(mode="json"), base=plan_digest(plan), evidence={})
    loaded = read_plan(files.load(saved.number).values)
    assert loaded == plan
    assert plan_digest(loaded) == saved.base
    assert (plan_digest(plan) == plan_digest(other)) == (plan == other)


@hypothesis_settings(max_examples=40)
@given(text=st.binary(max_size=200), pointer=st.binary(max_size=40))
def test_whatever_stands_in_the_files_the_domain_answers(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, pointer: bytes
) -> None:
    settings = configured(tmp_path_factory.mktemp("workspace"))
    for files in (plan_files(settings, Domain.CODE), plan_files(settings, None)):
        files.folder.mkdir(parents=True)
        files.path(1).write_bytes(text)
        (files.folder / "CURRENT").write_bytes(pointer)
    assert plan_in_force(settings, Domain.CODE).plan == settings.domains[Domain.CODE].plan
    assert ranking_in_force(settings).weights is None
    for files in (plan_files(settings, Domain.CODE), plan_files(settings, None)):
        (files.folder / "CURRENT").write_text("plan-000001")
    assert plan_in_force(settings, Domain.CODE).problem
    assert ranking_in_force(settings).problem


def test_every_rank_weight_is_a_setting() -> None:
    assert {f"rank_weight_{name}" for name in asdict(WEIGHTS)} <= set(FusionSettings.model_fields)
