"""A full disk is a sentence that says which disk, for whoever meets it."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from command_line import nornweave
from configurations import files, write_config

from nornweave.core.errors import DiskFullError, StoreError
from nornweave.core.files.writing import full_disk, no_memory, translate_full_disk
from nornweave.index.connection import connect_writer

Disk = Callable[[int], Path]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Make a disk of so many KiB, where this user may."""
    mounted: list[Path] = []

    def make(size: int) -> Path:
        folder = tmp_path / "var"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("disks of a chosen size can be mounted by root only")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def said(action: Callable[[], object], folder: Path) -> str:
    with pytest.raises(DiskFullError) as raised, translate_full_disk(folder):
        action()
    return str(raised.value)


def test_a_file_that_cannot_be_written_names_its_disk(disk: Disk) -> None:
    folder = disk(64)
    told = said(lambda: (folder / "status.json").write_bytes(b"x" * 100_000), folder)
    assert told.startswith(f"the disk that holds '{folder}' is full: 0 MiB of 0 MiB are free. Free some space there")


def test_a_database_of_sqlalchemy_is_said_without_statements(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'runs.db'}")

    def fill() -> None:
        with engine.begin() as connection:
            connection.execute(sa.text("pragma max_page_count = 2"))
            connection.execute(sa.text("create table a (b)"))
            connection.execute(sa.text("insert into a values (zeroblob(1000000))"))

    told = said(fill, tmp_path)
    engine.dispose()
    assert told.startswith(f"the disk that holds '{tmp_path}' is full")
    assert "insert" not in told
    assert "\n" not in told


def test_a_store_that_cannot_grow_names_its_disk(disk: Disk) -> None:
    folder = disk(1_500)

    def fill() -> None:
        try:
            with connect_writer(folder / "working.duckdb") as connection:
                connection.execute("create table a as select hash(range) as b, uuid() as c from range(1_000_000)")
        except Exception as error:
            raise StoreError("nothing of this step was stored") from error

    assert said(fill, folder).startswith(f"the disk that holds '{folder}' is full")


def test_a_limit_for_files_and_too_little_memory_are_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hinted = OSError(2, "No usable temporary directory found in ['/tmp']")
    assert full_disk(hinted, tmp_path) is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8192, 8192))
    for error in (OSError(27, "File too large"), StoreError("IO Error: File too large"), hinted):
        assert str(full_disk(error, tmp_path)).startswith("a file may have 8,192 bytes at most (`ulimit -f`)")
    assert full_disk(ValueError("x"), tmp_path) is None
    told = "there is too little memory: this process may have 0 MiB (`ulimit -v`)"
    for error in (MemoryError(), ImportError("libparquet.so: failed to map segment from shared object")):
        assert str(no_memory(error)).startswith(told)
    assert no_memory(ValueError("x")) is None


@pytest.mark.slow
def test_a_sync_that_may_write_no_file_ends_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A\n\ntext\n")
    write_config(tmp_path, files("docs"))
    program = (
        "import resource, sys; from nornweave.cli.main import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); sys.argv = ['nornweave', 'sync']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "documentation: a file may have 0 bytes at most" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_errors_stay_as_they_are(tmp_path: Path) -> None:
    assert full_disk(PermissionError(13, "Permission denied", str(tmp_path)), tmp_path) is None
    assert full_disk(StoreError("disk I/O error"), tmp_path) is None
    with pytest.raises(ValueError, match="x"), translate_full_disk(tmp_path):
        raise ValueError("x")


@pytest.mark.slow
@pytest.mark.parametrize("size", [64, 2_500], ids=["Dagster's tables", "the index"])
def test_a_sync_on_a_full_disk_ends_with_a_sentence(tmp_path: Path, disk: Disk, size: int) -> None:
    folder = disk(size)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A\n\ntext\n")
    write_config(tmp_path, files("docs"))
    done = nornweave(tmp_path, "sync")
    assert done.returncode == 1
    assert f"the disk that holds '{folder}" in done.stderr
    assert "is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert "sqlalche" not in done.stderr, done.stderr
