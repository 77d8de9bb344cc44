"""The pre-commit hook and the GitHub action run the drift check as they say, in a repository of somebody else."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from drift_repository import CODE, page
from git_repository import Repository

ROOT = Path(__file__).parents[2]
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
PROGRAMS = Path(sys.executable).parent
DATES = ("2024-02-01T12:00:00Z", "2024-03-01T12:00:00Z")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = tmp_path / "theirs"
    folder.mkdir()
    repository = Repository(folder)
    repository.commit({"docs/settings.md": page(), "src/parcels.py": CODE}, DATES[0])
    return repository


def test_the_hook_fails_once_an_agreement_broke(repository: Repository) -> None:
    def hook() -> subprocess.CompletedProcess[str]:
        command = [str(PROGRAMS / words[0]), *words[1:]]
        return subprocess.run(command, cwd=repository.root, capture_output=True, text=True, check=False)

    words = shlex.split(HOOK["entry"])
    assert (HOOK["language"], HOOK["pass_filenames"]) == ("python", False)
    assert hook().returncode == 0, "the first run writes the lock"
    assert hook().returncode == 0
    (repository.root / "docs/settings.md").write_text(page(45))
    done = hook()
    assert done.returncode == 1
    assert "delivery timeout" in done.stdout


# Python finds nothing in a process that starts with this but what the lock of drift names, and NornWeave.
ONLY_LOCKED = """
import importlib.metadata, re, sys
from pathlib import Path
lock = re.findall(r"^([a-z0-9-]+)==", Path({lock!r}).read_text(), re.MULTILINE)
class Locked:
    names = importlib.metadata.packages_distributions()
    def find_spec(self, name, path=None, target=None):
        owners = {{each.lower().replace("_", "-") for each in self.names.get(name.partition(".")[0], ())}}
        if owners and owners.isdisjoint({{*lock, "nornweave-search"}}):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Locked())
import runpy
runpy.run_module("nornweave.cli.only_drift", run_name="__main__", alter_sys=True)
"""


def test_drift_alone_needs_no_more_than_its_lock_names(repository: Repository) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = ONLY_LOCKED.format(lock=str(ROOT / "requirements" / "drift.txt"))
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, cwd=repository.root, capture_output=True, text=True, check=False)

    repository.git("branch", "-q", "base")
    repository.commit({"docs/settings.md": page(45), "docs/index.html": "<title>t</title><p>45</p>"}, DATES[1])
    done = run("--diff", "base..HEAD")
    assert (done.returncode, "delivery timeout" in done.stdout) == (1, True), done.stderr


def action(repository: Repository, tmp_path: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the last step as a runner does, with NornWeave where the step before would have installed it."""
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner" / "nornweave").symlink_to(PROGRAMS.parent)
    step: dict[str, Any] = ACTION["runs"]["steps"][-1]
    names = {name: value.split("inputs.")[1].rstrip(" }") for name, value in step["env"].items()}
    assert set(names.values()) <= set(ACTION["inputs"])
    assert "${{" not in step["run"], "nothing of a workflow is pasted into the script"
    values = {variable: inputs.get(name, "") for variable, name in names.items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=repository.root, env={**os.environ, **values, "RUNNER_TEMP": str(tmp_path / "runner")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_action_warns_beside_the_line_that_changed(repository: Repository, tmp_path: Path) -> None:
    repository.git("branch", "-q", "base")
    repository.commit({"docs/settings.md": page(45)}, DATES[1])
    done = action(repository, tmp_path, path=".", base="base", options="--exclude 'vendored code/**'")
    assert done.returncode == 1, done.stderr
    assert "::warning file=docs/settings.md,line=5," in done.stdout


def test_the_action_is_silent_where_nothing_broke(repository: Repository, tmp_path: Path) -> None:
    done = action(repository, tmp_path, path=".")
    assert (done.returncode, "::warning" in done.stdout) == (0, False), done.stderr
