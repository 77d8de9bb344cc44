"""What macOS does otherwise, forced here: nothing of it was ever run there."""

import fcntl
import os
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from nornweave.core import process as this_process
from nornweave.core import sandbox, supervisor
from nornweave.core.errors import ConfigError
from nornweave.core.files import paths
from nornweave.core.files.paths import OWN, OwnFiles, Withheld, check_place
from nornweave.core.files.writing import keep_private, sync_path, write_whole
from nornweave.index.searching.arrays import ArrayWriter


def test_files_are_flushed_to_the_drive_itself_where_the_system_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def full_fsync(_descriptor: int, command: int) -> None:
        asked.append(command)
        if len(asked) > 2:
            raise OSError(25, "a file system that cannot do it")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full_fsync)
    write_whole(tmp_path / "file", "text")
    assert asked == [51, 51], "the file, and the entry of its folder"
    sync_path(tmp_path)
    assert len(asked) == 3 and (tmp_path / "file").read_text() == "text"


def test_arrays_have_room_without_posix_fallocate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    with (tmp_path / "arrays").open("w+b") as file:
        array = ArrayWriter(file.fileno()).reserve("numbers", np.int64, (300_001,))
        assert not array.any()
        array[:] = np.arange(300_001)
        status = os.stat(file.fileno())
        assert status.st_blocks * 512 >= 300_001 * 8, "no hole: a full disk is an error, not the end of the process"
        assert file.read().endswith(np.int64(300_000).tobytes())


def test_the_group_of_a_process_that_ended_takes_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    def killpg(_group: int, _number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "killpg", killpg)
    assert supervisor._signal_group(os.getpid(), 0) is False


def test_processor_time_is_known_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere:
        def __init__(self, place: str) -> None:
            raise FileNotFoundError(place)

    work = "x = 0\nwhile True: x += 1"
    with subprocess.Popen([sys.executable, "-c", work]) as process:
        child = sandbox._Child.__new__(sandbox._Child)
        child.process = process
        monkeypatch.setattr(sandbox, "Path", Nowhere)
        monkeypatch.setattr(this_process, "Path", Nowhere)
        deadline = time.monotonic() + 60
        while not child._cpu_s() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert child._cpu_s() > 0
        process.kill()
    assert child._cpu_s() == 0, "it is gone"
    assert isinstance(this_process.has_grown(), bool)


def test_everybodys_folder_is_told_by_its_sticky_bit(tmp_path: Path) -> None:
    """On macOS ``/tmp`` is ``/private/tmp``."""
    (place := tmp_path / "everybodys").mkdir()
    place.chmod(0o1777)
    before = os.umask(0o022)
    try:
        keep_private(place, tmp_path / "nornweave.yaml")
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize("spelling", [str.upper, str.title, lambda name: unicodedata.normalize("NFD", name)])
def test_own_files_are_withheld_in_every_spelling_that_opens_them(
    spelling: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(spelling)
    files = {"données/store.duckdb": "", "schlüssel/straße.txt": "", "readme.md": ""}
    own = OwnFiles(tmp_path / spelling("données"), (tmp_path / spelling("schlüssel/straße.txt"),), tmp_path)
    monkeypatch.setattr(paths, "FOLDS", True)
    withheld = Withheld(tmp_path, own)
    assert [withheld.reason(path) for path in ("données", *files)] == [OWN, None, OWN, None]
    assert withheld.reason("schlüssel/.straße.txt.lock") == OWN
    for place in ("données", "données/store.duckdb", "schlüssel/straße.txt"):
        with pytest.raises(ConfigError, match="no source reads it"):
            check_place("sources", tmp_path / place, own)
    check_place("sources", tmp_path / spelling("docs"), own)
    assert own.led_out(tmp_path / "docs", str(tmp_path / "DOCS")) is None
    assert own.led_out(tmp_path / "docs", tempfile.gettempdir() + "/elsewhere") is not None
