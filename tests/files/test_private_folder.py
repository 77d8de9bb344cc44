"""Nobody but the user who runs NornWeave reads what it writes."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from nornweave.core.errors import ConfigError
from nornweave.core.files.writing import check_folder, keep_private


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A data_dir as older versions made it: everybody may read."""
    data_dir = tmp_path / "var"
    data_dir.mkdir()
    return data_dir


def test_what_is_written_from_now_on_is_private(tmp_path: Path) -> None:
    keep_private(tmp_path / "var", tmp_path / "nornweave.yaml")
    (tmp_path / "var/dagster").mkdir(parents=True)
    (tmp_path / "var/dagster/runs.db").write_text("x")
    assert [mode(tmp_path / "var"), mode(tmp_path / "var/dagster")] == [0o700, 0o700]
    assert mode(tmp_path / "var/dagster/runs.db") == 0o600


def test_nobody_else_may_enter_an_existing_data_dir(older: Path) -> None:
    keep_private(older, older.parent / "nornweave.yaml")
    assert mode(older) == 0o700


def test_a_folder_that_holds_more_than_ours_stays_and_it_is_said(older: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        keep_private(older, older / "nornweave.yaml")
    assert mode(older) == 0o755
    assert "holds more than NornWeave's files and stays readable; name a folder of its own" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away, and root may change them all the same")
def test_a_data_dir_of_another_user_is_tightened_by_root(older: Path) -> None:
    os.chown(older, 65534, 65534)
    keep_private(older, older.parent / "nornweave.yaml")
    assert (mode(older), older.stat().st_uid) == (0o700, 65534)


@pytest.mark.parametrize(("place", "make", "said"), [
    ("file", False, "is not a folder"),
    ("file/below/it", False, "is not a folder"),
    ("link", False, "is not a folder"),
    ("file", True, "is not a folder"),
    ("x" * 300, True, "File name too long"),
    ("new/one", False, ""),
    ("new/two", True, ""),
])  # fmt: skip
def test_a_data_dir_that_can_be_none_is_said(tmp_path: Path, place: str, make: bool, said: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    if said:
        with pytest.raises(ConfigError, match=f"^data_dir: .* cannot be made: .*{said}"):
            check_folder(tmp_path / place, make=make)
    else:
        check_folder(tmp_path / place, make=make)
        assert (tmp_path / place).is_dir() == make
