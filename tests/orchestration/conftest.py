"""A small configured workspace over real files, and the instance that its runs are recorded in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import dagster as dg
import pytest
from workspace_support import Configure, write_workspace

from nornweave.settings import Settings
from orchestration.instance import POSTGRES_VARIABLE, open_instance


@pytest.fixture(autouse=True)
def _sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(POSTGRES_VARIABLE, raising=False)


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    return partial(write_workspace, tmp_path)


@pytest.fixture
def settings(configure: Configure) -> Settings:
    return configure()


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with open_instance(settings) as opened:
        yield opened
