"""A ``data_dir`` that may not be written costs a sentence, and what is published still answers."""

import errno
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import nornweave
from configurations import files, write_config

from nornweave.core.files.writing import not_writable

WITHOUT = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
"""Root passes every permission unless this capability is taken from it."""


def read_only(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "deal.md").write_text("# Deal\n\nThe deal is in May.\n")
    write_config(tmp_path, files("kb"))
    assert nornweave(tmp_path, "sync").returncode == 0
    read_only(tmp_path / "var")
    return tmp_path


# Imports once, and runs each command in a fork, which loses the capability as its parent did.
EACH = """
import os, sys
from nornweave.cli.main import main

for number, command in enumerate(sys.argv[1:]):
    child = os.fork()
    if not child:
        said = os.open(f"said-{number}", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.argv = ["nornweave", *command.split()]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
COMMANDS = {
    "sync": 1,
    "sync --dry-run": 1,
    "rollback documentation": 1,
    "conflicts": 0,
    "doctor": 0,
    "query deal": 0,
    "status": 0,
}


@pytest.mark.slow
def test_every_command_says_what_may_not_be_written(published: Path) -> None:
    prefix = WITHOUT if os.geteuid() == 0 else []
    arguments = [*prefix, sys.executable, "-c", EACH, *COMMANDS]
    ended = subprocess.run(arguments, cwd=published, capture_output=True, text=True, check=True)
    for number, (command, code) in enumerate(COMMANDS.items()):
        said = (published / f"said-{number}").read_text()
        assert int(ended.stdout.split()[number]) == code, (command, said)
        assert "Traceback" not in said, command
        assert code == 0 or "may not be written: give this user the right" in said, command


def test_what_may_not_be_written_is_recognised_in_any_error() -> None:
    assert "'/x/writer.lock' may not be written" in str(
        not_writable(PermissionError(errno.EACCES, "no", "/x/writer.lock"))
    )
    assert "'/x' may not be written" in str(not_writable(OSError(errno.EROFS, "Read-only file system", "/x")))
    assert not_writable(sqlite3.OperationalError("attempt to write a readonly database")) is not None
    assert not_writable(FileNotFoundError(errno.ENOENT, "no such file", "/x")) is None
