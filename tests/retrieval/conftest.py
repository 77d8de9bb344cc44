"""The small workspace, published once for every test here that only reads it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from held_encoder import Held
from recall_workspace import opened, publish, write_workspace

from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.index.index import Index


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


@pytest.fixture(scope="module")
def domains(workspace: Settings) -> Iterator[dict[Domain, Index]]:
    generations = {domain: opened(workspace, domain) for domain in Domain}
    yield generations
    for generation in generations.values():
        generation.close()


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool
