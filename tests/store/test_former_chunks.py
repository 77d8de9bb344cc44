"""Where a chunk stood that is not published any more: its place, never its text."""

from functools import partial
from pathlib import Path

import pytest
from recall_workspace import publish, write_workspace

from nornweave.ask.engine import Engine
from nornweave.config import Settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import Domain
from nornweave.index.generations.former_chunks import former_place, place_in_files
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.wiring import store_of

DOCS = Domain.DOCUMENTATION


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, GenerationFiles, str, str]:
    """A corpus whose page on the API changed, and the ids of a chunk that went and of one that is served."""
    folder = tmp_path_factory.mktemp("changed")
    settings = write_workspace(folder)
    publish(settings, DOCS)
    before = ids(settings)
    api = folder / "docs" / "api.md"
    api.write_text(api.read_text("utf-8").replace("100 requests", "200 requests"), "utf-8")
    publish(settings, DOCS)
    after = ids(settings)
    (gone,) = before - after
    return settings, store_of(settings, DOCS).files, gone, sorted(before & after)[0]


def ids(settings: Settings) -> set[str]:
    with Engine(settings, [DOCS], watch=False) as engine:
        texts = engine.as_seen_by(OPERATOR).texts
        paths = ("api.md", "operations/runbook.md")
        documents = [texts.document(DOCS, "handbook", path) for path in paths]
        return {chunk for document in documents if document for chunk in document["chunks"]}


def test_a_chunk_that_changed_stood_in_its_document(changed: tuple[Settings, GenerationFiles, str, str]) -> None:
    settings, files, gone, served = changed
    place = former_place(files, gone, partial(place_in_files, files, {}))
    assert place is not None
    assert (place.source_id, place.path, place.generation) == ("handbook", "api.md", "gen-000001")
    with Engine(settings, [DOCS], watch=False) as engine:
        texts = engine.as_seen_by(OPERATOR).texts
        assert texts.chunk(gone) is None
        assert texts.former_document(gone) == {
            "domain_id": "documentation",
            "source_id": "handbook",
            "source_path": "api.md",
            "generation": "gen-000001",
        }
        assert texts.chunk(served) is not None


@pytest.mark.parametrize("name", ["", "x", "0" * 32, "0" * 33, "' or 1=1", "0" * 32 + "\n"])
def test_nobody_knows_what_never_was(changed: tuple[Settings, GenerationFiles, str, str], name: str) -> None:
    assert former_place(changed[1], name, partial(place_in_files, changed[1], {})) is None


def test_a_damaged_generation_is_passed_over(tmp_path: Path) -> None:
    settings = write_workspace(tmp_path)
    publish(settings, DOCS)
    files = store_of(settings, DOCS).files
    (tmp_path / "docs" / "api.md").unlink()
    publish(settings, DOCS)
    file = files.data_files(files.all()[0])[0].path
    file.write_bytes(file.read_bytes()[:-100])
    assert former_place(files, "0" * 32, partial(place_in_files, files, {})) is None
