"""A small configured workspace over real files, and the instance that its runs are recorded in."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import dagster as dg
import pytest
from workspace_support import Configure, write_workspace

from nornweave.config import Settings
from orchestration.instance import POSTGRES_VARIABLE, home_of, open_instance


@pytest.fixture(autouse=True)
def _sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(POSTGRES_VARIABLE, raising=False)


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    return partial(write_workspace, tmp_path)


@pytest.fixture
def settings(configure: Configure) -> Settings:
    return configure()


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an instance's folder without runs: Dagster makes its databases in a third of a second."""
    settings = write_workspace(tmp_path_factory.mktemp("instance"))
    with open_instance(settings) as opened:
        assert opened.get_runs() == []
    return home_of(settings)


@pytest.fixture
def instance(settings: Settings, empty_home: Path) -> Iterator[dg.DagsterInstance]:
    shutil.copytree(empty_home, home_of(settings), dirs_exist_ok=True)
    with open_instance(settings) as opened:
        yield opened
