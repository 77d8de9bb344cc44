"""A ``data_dir`` that may not be written costs a sentence, and what is published still answers."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import HASHED, nornweave

from nornweave.core.files.full_disk import not_writable

WITHOUT = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
"""Root passes every permission unless this capability is taken from it."""


def read_only(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "deal.md").write_text("# Deal\n\nThe deal is in May.\n")
    sources = [{"id": "kb", "domain": "documentation", "type": "files", "path": "kb"}]
    configured = {"data_dir": "var", "sources": sources, "domains": {"documentation": HASHED}}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(configured))
    assert nornweave(tmp_path, "sync").returncode == 0
    read_only(tmp_path / "var")
    return tmp_path


@pytest.mark.slow
def test_every_command_says_what_may_not_be_written(published: Path) -> None:
    prefix = WITHOUT if os.geteuid() == 0 else []
    for command, code in (("sync", 1), ("sync --dry-run", 1), ("rollback documentation", 1), ("conflicts", 1),
                          ("query deal", 0), ("status", 0)):  # fmt: skip
        arguments = [*prefix, sys.executable, "-m", "nornweave.cli.main", *command.split()]
        ended = subprocess.run(arguments, cwd=published, capture_output=True, text=True, check=False)
        assert ended.returncode == code, (command, ended.stderr)
        assert "Traceback" not in ended.stderr + ended.stdout, command
        assert code == 0 or "may not be written: give this user the right" in ended.stderr, command


def test_what_may_not_be_written_is_recognised_in_any_error() -> None:
    assert "'/x/writer.lock' may not be written" in str(
        not_writable(PermissionError(errno.EACCES, "no", "/x/writer.lock"))
    )
    assert "'/x' may not be written" in str(not_writable(OSError(errno.EROFS, "Read-only file system", "/x")))
    assert not_writable(sqlite3.OperationalError("attempt to write a readonly database")) is not None
    assert not_writable(FileNotFoundError(errno.ENOENT, "no such file", "/x")) is None
