"""Versioned plans on disk: what is kept, what is in force, and that nothing in these files stops serving."""

import json
import math
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nornweave.config import FieldWeights, PlanSettings, Settings, SourceWeights
from nornweave.config.tuned_plans import CONFIGURED, PlanFiles, TunedPlan, plan_digest, plan_files, plan_in_force
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain

TUNED = PlanSettings(weights=SourceWeights(dense=0.6, sparse=0.4, fulltext=0, structured=0), function_words=0.6)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return configured(tmp_path)


def configured(folder: Path, **keys: Any) -> Settings:
    (folder / "nornweave.yaml").write_text(json.dumps({"data_dir": "var", **keys}))
    return load_settings(folder / "nornweave.yaml", {})


def activate(settings: Settings, plan: PlanSettings = TUNED, **evidence: Any) -> TunedPlan:
    base = plan_digest(settings.domains[Domain.CODE].plan)
    return plan_files(settings, Domain.CODE).activate(plan, base=base, evidence=evidence)


def test_without_files_the_configured_plan_answers(settings: Settings) -> None:
    found = plan_in_force(settings, Domain.CODE)
    assert (found.plan, found.name, found.problem) == (settings.domains[Domain.CODE].plan, CONFIGURED, None)
    assert not (settings.data_dir / "plans").exists()


def test_an_activated_plan_answers_in_its_domain(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    evidence: dict[str, Any] = {"sets": [{"name": "gold", "queries": 50}], "p_gain": 0.01}
    plan = activate(settings, **evidence)
    assert (plan.number, plan.name, plan.replaces, plan.evidence) == (1, "plan-1", None, evidence)
    found = plan_in_force(settings, Domain.CODE)
    assert (found.plan, found.name, found.problem) == (TUNED, "plan-1", None)
    assert plan_in_force(settings, Domain.RESEARCH).name == CONFIGURED
    assert files.load(1) == plan
    assert sorted(file.name for file in files.folder.iterdir()) == ["CURRENT", "LOCK", "plan-000001.json"]


def test_one_step_back_leads_to_what_was_replaced(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    activate(settings)
    assert activate(settings, TUNED.model_copy(update={"expand": True})).replaces == 1
    assert plan_in_force(settings, Domain.CODE).plan.expand
    assert files.back() == 1
    assert plan_in_force(settings, Domain.CODE).plan == TUNED
    assert files.back() is None
    assert plan_in_force(settings, Domain.CODE).name == CONFIGURED
    with pytest.raises(StoreError, match="nothing to go back to"):
        files.back()
    # A plan that took the place of the configured one goes back to the configured one.
    assert activate(settings).replaces is None
    assert files.back() is None


def test_a_new_plan_takes_no_number_that_is_there_or_pointed_at(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    assert [activate(settings).number, activate(settings).number] == [1, 2]
    files.path(1).unlink()
    assert activate(settings).number == 3
    (files.folder / "CURRENT").write_text("plan-000007\n")
    assert activate(settings).number == 8
    assert files.all() == (2, 3, 8)


def test_an_edited_configuration_wins(settings: Settings, tmp_path: Path) -> None:
    activate(settings)
    edited = configured(tmp_path, domains={"code": {"plan": {"document_share": 0.2}}})
    found = plan_in_force(edited, Domain.CODE)
    assert (found.plan, found.name) == (edited.domains[Domain.CODE].plan, CONFIGURED)
    assert found.problem is not None
    assert "plan-1 was fitted to another configuration; tune again" in found.problem
    # The same configuration written in another way is the same.
    same = configured(tmp_path, domains={"code": {"plan": {"document_share": 0.1, "function_words": 1.0}}})
    assert plan_in_force(same, Domain.CODE).name == "plan-1"


@pytest.mark.parametrize(("damage", "said"), [
    ("", "EOF"), ("{", "EOF"), ("[" * 100_000, "recursion limit"), ("null", "damaged"), ("[]", "damaged"),
    ({"schema": 2}, "schema"), ({"subject": "research"}, "another domain's"), ({"number": 2}, "another domain's"),
    ({"values": []}, "values"), ({"base": None}, "base"), ({"replaces": "1"}, "replaces"),
    ({"values": {"colour": "red"}}, "colour"), ({"values": {"document_share": 2}}, "document_share"),
    ({"values": {"fields": {"path": 0, "title": 0, "section": 0, "content": 0}}}, "all fields count 0"),
    ({"values": {"weights": {"dense": 0, "sparse": 0, "fulltext": 0, "structured": 0}}}, "all weights are 0"),
])  # fmt: skip
def test_a_damaged_plan_never_stops_serving(settings: Settings, damage: str | dict[str, Any], said: str) -> None:
    files = plan_files(settings, Domain.CODE)
    activate(settings)
    whole = json.loads(files.path(1).read_text())
    files.path(1).write_text(damage if isinstance(damage, str) else json.dumps({**whole, **damage}))
    found = plan_in_force(settings, Domain.CODE)
    assert (found.plan, found.name) == (settings.domains[Domain.CODE].plan, CONFIGURED)
    assert found.problem is not None
    assert said in found.problem
    assert files.back() is None
    assert plan_in_force(settings, Domain.CODE).problem is None


def test_numbers_that_are_none_are_refused(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    activate(settings)
    text = files.path(1).read_text()
    files.path(1).write_text(text.replace('"function_words": 0.6', '"function_words": NaN'))
    assert "function_words" in str(plan_in_force(settings, Domain.CODE).problem)
    for evidence in (math.nan, {1, 2}):
        with pytest.raises(ValueError, match="JSON"):
            activate(settings, p=evidence)
    assert files.all() == (1,)


def test_a_foreign_pointer_or_a_missing_plan_is_a_problem(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    activate(settings)
    for pointer in (b"../../etc/passwd", b"plan-1", b"\xff\xfe\x00", b"plan-000009"):
        (files.folder / "CURRENT").write_bytes(pointer)
        found = plan_in_force(settings, Domain.CODE)
        assert (found.name, found.plan) == (CONFIGURED, settings.domains[Domain.CODE].plan)
        assert found.problem
        assert files.back() is None
    with pytest.raises(StoreError, match="no plan-9; there are: plan-1"):
        files.load(9)
    assert files.current() is None


def test_a_copy_of_another_domains_plan_is_foreign(settings: Settings) -> None:
    activate(settings)
    files = plan_files(settings, Domain.RESEARCH)
    files.folder.mkdir(parents=True)
    files.path(1).write_bytes(plan_files(settings, Domain.CODE).path(1).read_bytes())
    with pytest.raises(StoreError, match="another domain's"):
        files.load(1)


def test_a_killed_writer_leaves_the_old_state(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    activate(settings)
    (files.folder / ".plan-000002.json.x").write_text('{"schema": 1, "num')
    (files.folder / ".CURRENT.x").write_text("plan-0000")
    assert plan_in_force(settings, Domain.CODE).name == "plan-1"
    # Killed after the plan was written and before it was pointed at.
    files.path(2).write_bytes(files.path(1).read_bytes())
    assert plan_in_force(settings, Domain.CODE).name == "plan-1"
    activate(settings)
    assert plan_in_force(settings, Domain.CODE).name == "plan-3"
    assert files.load(3).replaces == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_a_store_error(settings: Settings) -> None:
    files = plan_files(settings, Domain.CODE)
    activate(settings)
    files.folder.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            activate(settings)
    finally:
        files.folder.chmod(0o700)


def test_a_file_in_place_of_the_folder_is_a_store_error(settings: Settings) -> None:
    (settings.data_dir / "plans").mkdir(parents=True)
    (settings.data_dir / "plans" / "code").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        activate(settings)
    assert plan_in_force(settings, Domain.CODE).name == CONFIGURED


def _activate_some(folder: Path) -> None:
    for _ in range(5):
        PlanFiles(folder).activate(TUNED, base="b", evidence={"pid": os.getpid()})


def test_processes_that_save_at_once_get_numbers_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_activate_some, args=(folder,)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    files = PlanFiles(folder)
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
    files = PlanFiles(tmp_path_factory.mktemp("plans") / "code")
    stored = files.activate(plan, base=plan_digest(plan), evidence={})
    loaded = files.load(stored.number).values
    assert loaded == plan
    assert plan_digest(loaded) == stored.base
    assert (plan_digest(plan) == plan_digest(other)) == (plan == other)


@hypothesis_settings(max_examples=40)
@given(text=st.binary(max_size=200), pointer=st.binary(max_size=40))
def test_whatever_stands_in_the_files_the_domain_answers(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, pointer: bytes
) -> None:
    settings = configured(tmp_path_factory.mktemp("workspace"))
    files = plan_files(settings, Domain.CODE)
    files.folder.mkdir(parents=True)
    files.path(1).write_bytes(text)
    (files.folder / "CURRENT").write_bytes(pointer)
    assert plan_in_force(settings, Domain.CODE).plan == settings.domains[Domain.CODE].plan
    (files.folder / "CURRENT").write_text("plan-000001")
    assert plan_in_force(settings, Domain.CODE).problem
