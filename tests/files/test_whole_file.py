"""Files that are replaced in one step: by several writers at once, by killed ones, on a full disk."""

import os
import resource
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import MemorySource, memory_parts, sync
from typer.testing import CliRunner

from nornweave.cli.main import app
from nornweave.core.errors import NoGenerationError
from nornweave.core.files.writing import ABANDONED_S, write_whole
from nornweave.core.types import GenerationId
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.outcomes import read_status
from nornweave.ingest.run_status import KEEP_RUNS, record_failure


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_runs_recorded_at_once_are_all_in_the_status(tmp_path: Path) -> None:
    start = threading.Barrier(5)

    def record(writer: int) -> None:
        start.wait()
        for number in range(KEEP_RUNS // 5):
            record_failure(tmp_path, f"{writer}-{number}", "failed")

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(record, range(5)))

    recorded = {run["run_id"] for run in read_status(tmp_path)["runs"]}
    assert recorded == {f"{writer}-{number}" for writer in range(5) for number in range(KEEP_RUNS // 5)}
    assert names(tmp_path) == ["status.json", "status.lock"]


def test_writers_at_once_do_not_mix_and_leave_nothing(tmp_path: Path) -> None:
    file, start = tmp_path / "file", threading.Barrier(4)

    def write(letter: str) -> None:
        start.wait()
        for _ in range(20):
            write_whole(file, letter * 10_000)
            assert len(set(file.read_text())) == 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    assert names(tmp_path) == ["file"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_a_killed_writer_left_is_removed_later(tmp_path: Path) -> None:
    abandoned, living, other = (tmp_path / name for name in (".file.abandoned", ".file.living", ".other.x"))
    for left in (abandoned, living, other):
        left.write_text("begun")
    for left in (abandoned, other):
        os.utime(left, (time.time() - 2 * ABANDONED_S,) * 2)

    write_whole(tmp_path / "file", "whole")

    assert names(tmp_path) == [".file.living", ".other.x", "file"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, "old")

    def fill_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    module = "nornweave.core.files.writing"
    program = f"import sys, pathlib, {module} as w; w.write_whole(pathlib.Path(sys.argv[1]), 300 * 'n')"
    failed = subprocess.run([sys.executable, "-c", program, str(file)], preexec_fn=fill_disk, capture_output=True)

    assert b"OSError" in failed.stderr
    assert (file.read_text(), names(tmp_path)) == ("old", ["file"])


@pytest.fixture
def files(tmp_path: Path) -> GenerationFiles:
    for number in (9, 999_998, 999_999, 1_000_000):
        (tmp_path / f"gen-{number:06d}.json").touch()
    return GenerationFiles(tmp_path)


def test_generations_are_ordered_by_number(files: GenerationFiles) -> None:
    files.point_at(GenerationId("gen-1000000"))
    assert files.previous() == "gen-999999"
    files.point_at(GenerationId("gen-999998"))
    assert files.previous() == "gen-000009"
    assert files.next() == "gen-1000001"


def test_only_generations_can_be_pointed_at(files: GenerationFiles) -> None:
    (files.folder / ".build-000001.json").touch()
    for name in ("gen-000008", ".build-000001", "../gen-000009"):
        with pytest.raises(NoGenerationError, match="there are: gen-000009, gen-999998"):
            files.point_at(GenerationId(name))


def test_a_rollback_mends_a_damaged_pointer(tmp_path: Path) -> None:
    source = MemorySource()
    parts = memory_parts(tmp_path / "var" / "domains" / "documentation", source)
    for text in ("alpha", "beta"):
        source.write("a.txt", text)
        sync(parts)
    config = tmp_path / "nornweave.yaml"
    config.write_text("sources: [{id: docs, domain: documentation, type: files, path: .}]\n")
    (parts.store.folder / "generations" / "CURRENT").write_bytes(b"\0" * 11)

    done = CliRunner().invoke(app, ["--config", str(config), "rollback", "documentation", "--json"])

    assert done.exit_code == 0, done.output
    assert parts.store.current() == "gen-000002"
