"""The process that watches folders: real files, the real process, runs in the real instance."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import numpy as np
import pytest
from configurations import HASHED, configured, files
from waiting import until
from watchfiles._rust_notify import WatchfilesRustInternalError

from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.core.types import Domain, GenerationId
from nornweave.ingest.records import SyncOptions
from orchestration.assets import asset_key
from orchestration.automation import NAME, Watched, read_watched
from orchestration.instance import home_of, open_instance
from orchestration.leases import is_gone
from orchestration.runs import materialize
from orchestration.watch import Watch, watched_sources

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WITHIN_S = 300.0
DOCS = "documentation/handbook"


class Workspace:
    """A published workspace whose data lies inside its only source, and the process that watches that."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for number in range(12):
            self.write(f"part/{number:02}.md", f"# Page {number}\n\nPayments settle in {number} days.\n")
        self.settings = configured(folder, files("handbook", path="."), domains={"documentation": HASHED})
        self.process: subprocess.Popen[bytes] | None = None
        with open_instance(self.settings) as instance:
            materialize(self.settings, [Domain.DOCUMENTATION], SyncOptions(), None, instance)

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "orchestration.watch"],
            env={**os.environ, "NORNWEAVE_CONFIG": str(self.settings.file)},
            stdin=subprocess.PIPE,
        )
        assert self.process.stdin
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.until(lambda: DOCS in self.watched.sources)

    def end(self) -> None:
        assert self.process
        assert self.process.stdin
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def stop(self) -> int:
        """End its standard input, as the end of its starter does."""
        assert self.process
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(WITHIN_S)
        return self.process.returncode

    @property
    def watched(self) -> Watched:
        return read_watched(self.settings)

    def current(self) -> GenerationId | None:
        return store_of(self.settings, Domain.DOCUMENTATION).current()

    def until(self, holds: Callable[[], bool]) -> None:
        until(holds, lambda: self.watched, within_s=WITHIN_S)

    def published(self) -> dict[str, str]:
        """Return the published texts by path; none while readers are pointed at another generation."""
        current = self.current()
        assert current
        with store_of(self.settings, Domain.DOCUMENTATION).files.open(current) as generation:
            chunks = generation.chunks(np.arange(generation.chunk_count, dtype=np.int32)).values()
        return {chunk.path: chunk.content for chunk in chunks}

    def publishes(self, expected: dict[str, str]) -> None:
        """Wait until exactly these documents are published."""
        self.until_published(lambda texts: texts == expected)

    def until_published(self, holds: Callable[[dict[str, str]], bool]) -> None:
        """Wait for a generation of which something holds; each is read once, because that takes a while."""
        read: GenerationId | None = None

        def is_published() -> bool:
            nonlocal read
            if read == (read := self.current()):
                return False
            return holds(self.published())

        self.until(is_published)

    def runs(self) -> list[int]:
        """Return how many documents each finished run was to read or remove, newest first."""
        with open_instance(self.settings) as instance:
            found = instance.fetch_materializations(asset_key(Domain.DOCUMENTATION, "documents"), limit=100).records
        said = [each.asset_materialization for each in found]
        return [sum(int(one.metadata[name].value) for name in ("to_read", "to_remove")) for one in said if one]  # type: ignore[arg-type]


@pytest.fixture
def workspace(tmp_path: Path, empty_home: Path) -> Iterator[Workspace]:
    folder = tmp_path / "workspace"
    shutil.copytree(empty_home, folder / "var" / "dagster")
    started = Workspace(folder)
    try:
        yield started
    finally:
        if started.process:
            started.end()


def test_what_changes_is_published_by_a_run_of_these_paths_unless_a_person_must_confirm(workspace: Workspace) -> None:
    workspace.start()
    part, texts = workspace.folder / "part", workspace.published()

    workspace.write("part/00.md", "# Page\n\nSaved.")
    workspace.publishes(texts := {**texts, "part/00.md": "# Page\n\nSaved."})
    workspace.until(lambda: workspace.watched.ledger != "")
    (part / "00.md").rename(workspace.folder / "moved.md")
    texts["moved.md"] = texts.pop("part/00.md")
    workspace.publishes(texts)
    workspace.write("new/deep/page.md", "# New\n\nIn new folders.")
    workspace.publishes({**texts, "new/deep/page.md": "# New\n\nIn new folders."})
    (workspace.folder / "new").rename(workspace.folder / "old")
    workspace.publishes({**texts, "old/deep/page.md": "# New\n\nIn new folders."})
    shutil.rmtree(workspace.folder / "old")
    workspace.publishes(texts)

    # These are no documents: no run is begun for them, nor for what syncs write below the folder.
    workspace.write("node_modules/a.md", "x")
    workspace.write("part/page.md.swp", "x")
    workspace.write("part/02.md", "# Page\n\nAgain.")
    workspace.publishes({**texts, "part/02.md": "# Page\n\nAgain."})
    before, mark = workspace.current(), workspace.watched.sources[DOCS]
    shutil.rmtree(part)  # that is left to the sensors
    workspace.until(lambda: workspace.watched.sources[DOCS] != mark)
    assert workspace.current() == before

    assert workspace.stop() == 0
    assert workspace.watched == Watched(), "it is gone: sensors look as without it"
    *later, first = workspace.runs()
    assert first == 12
    assert 6 <= len(later) <= 8, "one for each change; a rename may be seen as two"
    assert {1, 2} >= set(later), "none is begun for nothing, and none compares more than these paths"


def test_a_sync_that_was_killed_is_finished_by_the_next_process_which_ends_when_settings_change(
    workspace: Workspace,
) -> None:
    workspace.start()
    workspace.write("part/00.md", "# Page\n\nSaved.")
    with dg.DagsterInstance.from_config(str(home_of(workspace.settings))) as instance:
        workspace.until(lambda: _unfinished(instance) != [] or workspace.current() == "gen-000002")
    workspace.end()
    assert is_gone(_said(workspace.settings).process)

    mark = _said(workspace.settings).sources[DOCS]
    workspace.start()
    assert workspace.watched.sources[DOCS] != mark, "the sensors look for what it did not finish"
    with dg.DagsterInstance.from_config(str(home_of(workspace.settings))) as instance:
        assert _unfinished(instance) == [], "its run is marked as failed"
    workspace.write("part/01.md", "# Page\n\nSaved.")
    workspace.until_published(lambda texts: texts["part/01.md"] == "# Page\n\nSaved.")

    text = workspace.settings.file.read_text()
    workspace.settings.file.write_text(text.replace("handbook", "manual"))
    workspace.write("part/00.md", "# Page\n\nSaved again.\n")
    assert workspace.process
    assert workspace.process.wait(WITHIN_S) == 0


@pytest.mark.parametrize("error", [
    OSError("OS file watch limit reached"), WatchfilesRustInternalError("Too many open files (os error 24)"),
])  # fmt: skip
def test_what_cannot_be_watched_is_said_once_and_listed_as_before(
    settings: Settings,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    def refuse(*_: object, **__: object) -> Iterator[None]:
        raise error
        yield

    monkeypatch.setattr("orchestration.watch.watch", refuse)  # the limits are those of the whole machine
    monkeypatch.setattr("orchestration.watch.AGAIN_S", 0)
    watching = Watch(settings, instance, tuple(watched_sources(settings)))
    assert len(watching._sources) == 2
    assert [*watching._rounds(), *watching._rounds()] == []
    assert [record.message for record in caplog.records if str(error) in record.message] != []
    assert len(caplog.records) == 1
    assert read_watched(settings).sources == {}


def _unfinished(instance: dg.DagsterInstance) -> list[str]:
    return [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))]


def _said(settings: Settings) -> Watched:
    return Watched(**json.loads((home_of(settings) / NAME).read_text()))
