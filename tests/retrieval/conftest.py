"""The small workspace, published once for every test here that only reads it."""

from collections.abc import Iterator

import pytest
from held_encoder import Held
from recall_workspace import publish, write_workspace

from nornweave.config import Settings


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = write_workspace(tmp_path_factory.mktemp("workspace"))
    publish(settings)
    return settings


@pytest.fixture
def held() -> Iterator[Held]:
    encoder = Held()
    yield encoder
    encoder.go.set()
