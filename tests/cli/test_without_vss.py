"""NornWeave where the ``vss`` extension is not installed, or has no file for the DuckDB that is."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from command_line import HASHED
from configurations import files, write_config

pytestmark = pytest.mark.slow

WITHOUT = {"is not installed": "raise ModuleNotFoundError(name=__name__)\n", "has no extension for DuckDB": ""}
"""What is said → a package that stands before the installed one, and makes it so."""


@pytest.fixture(params=WITHOUT)
def said(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def without(tmp_path: Path, said: str) -> dict[str, str]:
    """Return the environment of processes that do not find the extension."""
    package = tmp_path / "path" / "duckdb_extension_vss"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(WITHOUT[said])
    path = os.pathsep.join(filter(None, [str(package.parent), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(parent: Path) -> Path:
    folder = parent / "workspace"
    (folder / "docs").mkdir(parents=True)
    for number in range(20):
        (folder / f"docs/{number}.md").write_text(f"# Page {number}\n\nThe guide to subject{number}.\n")
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return a workspace that was built with the extension, and the first result of a search with it."""
    folder = written(tmp_path_factory.mktemp("built"))
    configure(folder, "hnsw")
    assert nornweave(folder, "sync").returncode == 0
    assert finding(folder)["text"] == "can be loaded"
    return folder, nearest(folder)[0][0]


def configure(folder: Path, vector_index: str) -> None:
    write_config(folder, files("docs"), domain={**HASHED, "storage": {"vector_index": vector_index}})


def nornweave(
    folder: Path, *arguments: str, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that looks for the extension where ``PYTHONPATH`` says, when it needs it."""
    return forked.run([sys.executable, "-m", "nornweave.cli", *arguments], cwd=folder, env=variables, text=True)


def nearest(folder: Path, variables: dict[str, str] | None = None) -> tuple[list[Any], str]:
    """Return what a search by vectors finds, and what the process said beside it."""
    done = nornweave(folder, "query", "guide to subject7", "--domain", "documentation", "--json", variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return list(json.loads(done.stdout)["items"]), done.stderr


def finding(folder: Path, variables: dict[str, str] | None = None) -> dict[str, str]:
    done = nornweave(folder, "doctor", "--json", variables=variables)
    (found,) = (each for each in json.loads(done.stdout) if each["check"] == "vector index")
    return dict(found)


@pytest.mark.parametrize(("vector_index", "said"), [*zip(["auto", "exact"], WITHOUT, strict=True)])
def test_exact_search_does_not_need_it(workspace: Path, vector_index: str, without: dict[str, str]) -> None:
    configure(workspace, vector_index)
    synced = nornweave(workspace, "sync", variables=without)
    assert synced.returncode == 0, synced.stdout + synced.stderr
    found, _ = nearest(workspace, without)
    assert found and found == nearest(workspace)[0]
    state = finding(workspace, without)
    assert (state["level"], state["text"].partition(",")[0]) == ("ok", "cannot be loaded")


def test_what_was_built_with_it_is_searched_exactly(
    built: tuple[Path, Any], without: dict[str, str], said: str
) -> None:
    workspace, best = built
    found, beside = nearest(workspace, without)
    assert found and found[0] == best, "the index itself is approximate: the best are the same"
    assert said in beside and "searched exactly" in beside
    state = finding(workspace, without)
    assert state["level"] == "error"
    assert said in state["text"] and "documentation" in state["text"]
    assert "vector_index: auto" in state["remedy"]


def test_building_with_it_says_what_to_do(workspace: Path, without: dict[str, str], said: str) -> None:
    configure(workspace, "hnsw")
    done = nornweave(workspace, "sync", variables=without)
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0
    assert f"duckdb-extension-vss {said}" in told and "vector_index: auto" in told
    assert "Traceback" not in told
