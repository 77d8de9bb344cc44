"""Who may confirm removals: a person at the command line, by a confirmation on disk; never a run's configuration."""

import json
import shutil
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner

from nornweave.carry.wiring import domain_folder
from nornweave.cli.main import app
from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.index.outcomes import read_status
from nornweave.ingest.confirmations import ConfirmationSubject
from nornweave.ingest.diff import HeldRemovals, held_state
from nornweave.ingest.records import SyncOptions, SyncReport, no_progress
from nornweave.ingest.wiring import confirmations_of
from orchestration.assets import domain_keys
from orchestration.automation import SYNC_JOB
from orchestration.definitions import build_definitions
from orchestration.resources import RESOURCE
from orchestration.runs import confirmed, materialize

DOCS = Domain.DOCUMENTATION


@pytest.fixture
def held(settings: Settings, instance: dg.DagsterInstance) -> Settings:
    """Return a workspace whose documentation is stored and then emptied: two removals are held."""
    materialize(settings, [DOCS], SyncOptions(), no_progress, instance)
    for file in folder_of(settings).iterdir():
        file.unlink()
    return settings


def folder_of(settings: Settings) -> Path:
    return settings.file.parent / "docs"


def execute(settings: Settings, instance: dg.DagsterInstance, **config: bool) -> dict[str, object]:
    """Run the domain as the UI and the daemon do; return what its status says afterwards."""
    build_definitions(settings).resolve_job_def(SYNC_JOB).execute_in_process(
        instance=instance,
        asset_selection=domain_keys(DOCS),
        run_config={"resources": {RESOURCE: {"config": config}}},
    )
    latest: dict[str, object] = read_status(domain_folder(settings, DOCS))["latest"]
    return latest


def confirm(settings: Settings, *paths: str) -> Path:
    """Confirm the removal of documents as the command line does; return the file."""
    state = held_state([HeldRemovals(settings.sources_of(DOCS)[0].id, "", paths)])
    confirmations_of(settings).issue(DOCS, ConfirmationSubject.REMOVALS, state)
    return settings.data_dir / "confirmations" / "documentation.removals.json"


@pytest.mark.parametrize("name", ["confirm_deletes", "accept_quality"])
def test_the_configuration_of_a_run_confirms_nothing(held: Settings, instance: dg.DagsterInstance, name: str) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match=f'unexpected config entry "{name}"'):
        execute(held, instance, **{name: True})
    assert execute(held, instance, full=True)["documents"] == 2


def test_a_run_uses_the_confirmation_of_what_is_held_up(held: Settings, instance: dg.DagsterInstance) -> None:
    file = confirm(held, "faq.md", "guide.md")
    kept = file.read_bytes()

    report = execute(held, instance)

    assert (report["removed"], report["held"], report["documents"]) == (2, [], 0)
    assert not file.exists()

    for name in ("faq.md", "guide.md"):
        (folder_of(held) / name).write_text(f"# {name} is back\n")
    execute(held, instance)
    shutil.rmtree(folder_of(held))
    folder_of(held).mkdir()
    file.write_bytes(kept)
    again = execute(held, instance)
    assert (again["removed"], again["documents"]) == (0, 2)
    assert "has been used already" in str(again["held"])
    assert "confirm again" in str(again["held"])


def test_a_confirmation_of_other_removals_removes_nothing(held: Settings, instance: dg.DagsterInstance) -> None:
    confirm(held, "faq.md")
    report = execute(held, instance)
    assert (report["removed"], report["documents"]) == (0, 2)
    assert "what is held has changed since it was made" in str(report["held"])


def test_the_command_line_confirms_for_its_own_run_only(held: Settings, instance: dg.DagsterInstance) -> None:
    asked = SyncOptions(confirm_deletes=True, accept_quality=True)
    with confirmed(held, [DOCS], asked):
        waiting = {file.name for file in (held.data_dir / "confirmations").glob("*.json")}
    assert waiting == {"documentation.removals.json", "documentation.quality.json"}
    assert not list((held.data_dir / "confirmations").glob("*.json")), "nobody used them"

    (report,) = materialize(held, [DOCS], asked, no_progress, instance).outcomes.values()
    assert isinstance(report, SyncReport)
    assert (report.removed, report.held, report.published) == (2, (), True)
    assert not list((held.data_dir / "confirmations").glob("*.json"))
    config = json.dumps(instance.get_runs(limit=1)[0].run_config)
    assert "confirm" not in config, "who starts that run again in the UI confirms nothing"


def test_the_option_removes_what_it_did_before(held: Settings) -> None:
    command = ["--config", str(held.file), "sync", "--domain", "documentation", "--json"]
    runner = CliRunner()

    waiting = json.loads(runner.invoke(app, command).stdout)["documentation"]
    assert (waiting["removed"], len(waiting["held"][0]["paths"])) == (0, 2)

    done = json.loads(runner.invoke(app, [*command, "--confirm-deletes"]).stdout)["documentation"]
    assert (done["removed"], done["held"], done["published"]) == (2, [], True)
