"""The wheel in an environment of its own: it takes no name but ours, and runs wherever its user stands."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from configurations import files, write_config
from forked import free_port
from test_interrupts import ignore_signals

ROOT = Path(__file__).parents[1]
PACKAGES = ("nornweave", "api", "evals", "orchestration")
# Judged sets of this repository's own examples.
LEFT_OUT = ("evals/golden/",)
OWN = ("api", "evals", "orchestration", "yaml", "typer")
"""Packages that the user has in the working directory."""
START_S = 120.0
LOCATION = "{ workspaceOrError { ... on Workspace { locationEntries { name locationOrLoadError { __typename } } } } }"

pytestmark = pytest.mark.slow


def tracked(*folders: str) -> list[str]:
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z", *folders]
    files = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    return [file for file in files if (ROOT / file).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build from a copy, so that nothing is left in the checkout and nothing old gets into the wheel."""
    copy, built = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheel")
    for file in tracked(*PACKAGES, "lab", "pyproject.toml", "setup.py", "README.md", "LICENSE", "NOTICE"):
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        (copy / file).write_bytes((ROOT / file).read_bytes())
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(built), str(copy))
    (file,) = built.iterdir()
    return file


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, env=variables(), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel where the dependencies can be imported and the checkout cannot; return its programs."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    programs = home / "bin"
    pip("--python", str(programs / "python"), "install", "--no-deps", "--no-index", str(wheel))
    # A line of a .pth file is a folder for the path; the .pth files in it, the editable installation's, are not read.
    (site,) = (home / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return programs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with one source, and with packages of the user's own that have the names of ours and others."""
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "limits.md").write_text(
        "# Limits\n\nThe webhook timeout is 30 seconds.\n", encoding="utf-8"
    )
    write_config(tmp_path, files("handbook"))
    for name in OWN:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('the {name} of the user')\n", encoding="utf-8")
    return tmp_path


def variables(**added: str) -> Mapping[str, str]:
    ours = ("NORNWEAVE_", "PYTHON", "DAGSTER_", "FUSION_", "AGENT_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | added


def run(installed: Path, folder: Path, *arguments: str) -> Any:
    command = [str(installed / "nornweave"), *arguments, "--json"]
    done = subprocess.run(
        command, cwd=folder, env=variables(), capture_output=True, text=True, check=False, timeout=START_S
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_wheel_holds_every_file_under_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0].removesuffix(".dist-info") for name in names} <= {
        "nornweave",
        wheel.name.split("-py3")[0],
    }
    wanted = [file for file in tracked(*PACKAGES) if not file.startswith(LEFT_OUT) and not file.endswith(".md")]
    placed = {file if file.startswith("nornweave/") else f"nornweave/_bundled/{file}" for file in wanted}
    assert placed <= names
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in names if ".dist-info/licenses/" in name}
    assert not [name for name in names if "golden" in name or "labelled" in name]


def test_a_users_own_names_stay_free(installed: Path, folder: Path) -> None:
    script = f"from importlib.util import find_spec; print([find_spec(name) for name in {PACKAGES[1:]}])"
    done = subprocess.run(
        [installed / "python", "-P", "-c", script],
        cwd=folder,
        env=variables(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[None, None, None]"


def test_sync_and_query_run_in_a_folder_with_the_same_names(installed: Path, folder: Path) -> None:
    assert run(installed, folder, "sync")["documentation"]["published"]
    answer = run(installed, folder, "query", "webhook timeout")
    assert [item["citation"]["source_path"] for item in answer["items"]] == ["limits.md"]


def test_agents_get_their_tools_in_a_folder_with_the_same_names(installed: Path, folder: Path) -> None:
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}
    done = subprocess.run(
        [str(installed / "nornweave"), "mcp"],
        cwd=folder,
        env=variables(),
        input=json.dumps(message) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=START_S,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "nornweave", done.stderr


@pytest.fixture
def served(installed: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Run ``nornweave up`` as a script does in the background; return the addresses of the API and the Dagster UI."""
    api, dagster = free_port(), free_port()
    command = [str(installed / "nornweave"), "up", "--dagster-port", str(dagster)]
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=variables(FUSION_PORT=str(api)), stderr=log, stdout=log, preexec_fn=ignore_signals
        )
    try:
        yield f"http://127.0.0.1:{api}", f"http://127.0.0.1:{dagster}"
    finally:
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_S) == 0, (folder / "up.log").read_text()
        assert not psutil.wait_procs(family, 60)[1], "it leaves no process"


def test_up_serves_and_loads_our_definitions(installed: Path, folder: Path, served: tuple[str, str]) -> None:
    api, dagster = served
    deadline = time.monotonic() + START_S
    assert answer_of("GET", f"{api}/health", deadline) is not None, (folder / "up.log").read_text()
    document = answer_of("POST", f"{dagster}/graphql", deadline, json={"query": LOCATION})
    assert document is not None, (folder / "up.log").read_text()
    (entry,) = document["data"]["workspaceOrError"]["locationEntries"]
    assert entry == {"name": "nornweave", "locationOrLoadError": {"__typename": "RepositoryLocation"}}


def answer_of(method: str, url: str, deadline: float, **options: Any) -> Any:
    """Ask until there is an answer; ``None`` when there is none in time."""
    while time.monotonic() < deadline:
        try:
            return httpx.request(method, url, timeout=START_S, **options).raise_for_status().json()
        except (httpx.TransportError, httpx.HTTPStatusError):
            time.sleep(0.2)
    return None
