"""How far a repository is ahead of what was read of it, and that asking starts no program of it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_repository import Repository, write

from nornweave.connect.connectors import FilesSettings, GitSettings, lag_of, repository_of
from nornweave.connect.git import source
from nornweave.connect.protocol import Lag
from nornweave.core.types import Domain

DATE = "2026-01-0{}T12:00:00Z"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "api")
    made.commit({"a.py": "A = 1\n", "sub/b.py": "B = 1\n", "run.sh": "#!/bin/sh\n"}, DATE.format(1))
    return made


def of(repository: Repository, folder: str = ".") -> GitSettings:
    return GitSettings(id="api", domain=Domain.CODE, path=repository.root / folder)


def test_commits_count_along_first_parents(repository: Repository) -> None:
    read = repository.git("rev-parse", "HEAD")
    assert lag_of(of(repository), read) == Lag(0, uncommitted=False)
    repository.git("checkout", "-q", "-b", "topic")
    for number in (2, 3):
        repository.commit({"a.py": f"A = {number}\n"}, DATE.format(number))
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "topic")
    repository.commit({"c.py": "C = 1\n"}, DATE.format(4))
    assert lag_of(of(repository), read) == Lag(2, uncommitted=False)
    assert lag_of(of(repository).model_copy(update={"ref": "topic"}), read) == Lag(2, uncommitted=False)
    assert lag_of(of(repository, "sub"), read) == Lag(2, uncommitted=False)
    repository.git("reset", "-q", "--hard", read)
    repository.commit({"d.py": "D = 1\n"}, DATE.format(5))
    assert lag_of(of(repository), repository.git("rev-parse", "topic")) == Lag(1, uncommitted=False)


CHANGES: dict[str, tuple[Callable[[Repository], object], bool]] = {
    "edited": (lambda it: write(it.root, {"a.py": "A = 2222\n"}), True),
    "edited, of the same size": (lambda it: (write(it.root, {"a.py": "A = 2\n"}), moved(it.root / "a.py")), True),
    "touched": (lambda it: moved(it.root / "a.py"), False),
    "removed": (lambda it: (it.root / "a.py").unlink(), True),
    "staged": (lambda it: (write(it.root, {"new.py": "N = 1\n"}), it.git("add", "new.py")), True),
    "not told to git": (lambda it: write(it.root, {"new.py": "N = 1\n"}), False),
    "left out of a sparse tree": (
        lambda it: (it.git("update-index", "--skip-worktree", "a.py"), (it.root / "a.py").unlink()),
        False,
    ),
}


def moved(file: Path) -> None:
    """Give a file another time."""
    os.utime(file, (1_000_000_000, 1_000_000_000))


@pytest.mark.parametrize("change", CHANGES)
def test_files_that_are_changed_and_not_committed_are_noticed(repository: Repository, change: str) -> None:
    happens, is_changed = CHANGES[change]
    read = repository.git("rev-parse", "HEAD")
    happens(repository)
    assert lag_of(of(repository), read) == Lag(0, uncommitted=is_changed)
    assert lag_of(of(repository, "sub"), read) == Lag(0, uncommitted=False), "below the folder nothing is"


def test_no_program_that_the_repository_names_is_started(repository: Repository, tmp_path: Path) -> None:
    repository.commit({".gitattributes": "*.py filter=own\n"}, DATE.format(2))
    repository.git("config", "filter.own.clean", f"touch {tmp_path / 'started'}; cat")
    repository.git("config", "core.fsmonitor", f"touch {tmp_path / 'started'}")
    write(repository.root, {"a.py": "A = 3\n"})
    moved(repository.root / "a.py")
    read = repository.git("rev-parse", "HEAD~1")
    (tmp_path / "started").unlink(missing_ok=True)  # this test's own git has started it
    assert lag_of(of(repository), read) == Lag(1, uncommitted=True)
    assert not (tmp_path / "started").exists()


def test_nothing_is_said_where_it_is_not_known(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = repository.git("rev-parse", "HEAD")
    for commit in ("0" * 40, "--all", "HEAD", ""):
        assert lag_of(of(repository), commit) is None
    assert lag_of(of(repository).model_copy(update={"ref": "gone"}), read) is None
    (tmp_path / "plain").mkdir()
    assert lag_of(FilesSettings(id="x", domain=Domain.CODE, path=tmp_path / "plain"), read) is None
    elsewhere = GitSettings(id="x", domain=Domain.CODE, url="https://git.example.org/a/b")
    assert repository_of(elsewhere) is None and lag_of(elsewhere, read) is None
    repository.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    assert lag_of(GitSettings(id="x", domain=Domain.CODE, path=tmp_path / "bare.git"), read) == Lag(0, None)
    monkeypatch.setattr(source, "MAX_FILES", 2)
    assert lag_of(of(repository), read) == Lag(0, None)
