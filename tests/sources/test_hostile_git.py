"""Repositories made to run programs, to read other repositories, or to list more than anybody has."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from git_repository import ENVIRONMENT, Repository

from nornweave.connect.git.blame import is_own_repository
from nornweave.connect.git.source import GitSource
from nornweave.core.errors import ConfigError, SourceUnavailableError, TransientDocumentError
from nornweave.core.types import Domain, SourceId
from nornweave.disagree.drift.files import Commit

DATE = "2024-01-01T00:00:00Z"


def source(root: Path) -> GitSource:
    return GitSource(SourceId("repo"), Domain.CODE, root)


def contents(root: Path) -> dict[str, bytes]:
    with source(root) as repository:
        return {entry.path: repository.fetch(entry) for entry in repository.list().entries}


def write_program(file: Path, script: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


# Programs ------------------------------------------------------------------------------------------------------------


PARTIAL = """
[core]
    repositoryFormatVersion = 1
    sshCommand = {program}
[extensions]
    partialClone = evil
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[protocol "evil"]
    allow = always
[remote "evil"]
    promisor = true
    uploadpack = {program}
    url = {url}
"""


@pytest.fixture(params=["", "GIT_NO_LAZY_FETCH"], ids=["this git", "a git without GIT_NO_LAZY_FETCH"])
def git_program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a git before the real one that does not know an environment variable, as older ones do not."""
    if request.param:
        write_program(tmp_path / "bin/git", f'unset {request.param}\nexec "{shutil.which("git")}" "$@"')
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = Repository(tmp_path_factory.mktemp("template"))
    repository.commit({"a.py": "x = 1\n", "b.py": "y = 1\n", "folder/c.py": "z = 1\n"}, DATE)
    return repository.root


@pytest.mark.usefixtures("git_program")
@pytest.mark.parametrize("missing", ["HEAD:a.py", "HEAD:folder"])
@pytest.mark.parametrize("transport", ["ext", "file", "ssh", "helper"])
def test_a_partial_clone_that_names_a_program_as_its_transport_runs_nothing(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, missing: str
) -> None:
    mark = tmp_path / "was-run"
    program = write_program(tmp_path / "program", f"touch '{mark}'\nexit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    shutil.copy(program, tmp_path / "git-remote-evil")
    repository = Repository(Path(shutil.copytree(template, tmp_path / "repo")))
    lost = repository.git("rev-parse", missing)
    url = {"ext": f"ext::{program}", "file": str(tmp_path / "repo"), "ssh": "ssh://h/x", "helper": "evil::x"}[transport]
    with (repository.root / ".git/config").open("a") as config:
        config.write(PARTIAL.format(program=program, url=url))
    (repository.root / ".git/objects" / lost[:2] / lost[2:]).unlink()
    try:
        with source(repository.root) as opened:
            for entry in opened.list().entries:
                try:
                    opened.fetch(entry)
                except TransientDocumentError as error:
                    assert (entry.path, lost in str(error)) == ("a.py", True)
    except SourceUnavailableError as error:
        assert "cannot be listed: a partial clone, or damaged" in str(error)
    assert not mark.exists()


@pytest.mark.parametrize("said", ["git version 2.25.1", "git version 1.9.3", "hello"])
def test_a_git_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    Repository(tmp_path / "repo").commit({"a.py": "x"}, DATE)
    write_program(tmp_path / "bin/git", f'case "$*" in *version) echo "{said}" ;; *) exit 1 ;; esac')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(SourceUnavailableError, match=rf"says '{said}'; expected version 2\.32 or newer"):
        source(tmp_path / "repo").list()


# Other repositories --------------------------------------------------------------------------------------------------


@pytest.fixture
def private(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "private")
    repository.commit({"secret.py": "password = 1\n"}, DATE)
    return repository


def refused(root: Path, reason: str) -> None:
    with pytest.raises(SourceUnavailableError, match=reason):
        source(root).list()
    assert not is_own_repository(root)


def test_a_git_file_that_points_out_of_the_source_is_refused(tmp_path: Path, private: Repository) -> None:
    root = tmp_path / "source"
    (root / "folder").mkdir(parents=True)
    (root / ".git").write_text(f"gitdir: {private.root / '.git'}\n")
    refused(root, r"its \.git leads out of the source, to '.*private/\.git'; clone the repository itself")
    refused(root / "folder", "leads out of the source")


def test_a_git_link_that_points_out_of_the_source_is_refused(tmp_path: Path, private: Repository) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/.git").symlink_to(private.root / ".git")
    refused(tmp_path / "source", "leads out of the source")


def test_a_repository_that_names_another_ones_files_as_its_own_is_refused(tmp_path: Path, private: Repository) -> None:
    own = tmp_path / "source/.git"
    own.mkdir(parents=True)
    (own / "commondir").write_text(f"{private.root / '.git'}\n")
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    refused(tmp_path / "source", "leads out of the source")


@pytest.mark.parametrize("link", ["alternates", "objects", "pack", "objects/00"])
def test_a_repository_that_borrows_the_objects_of_another_one_is_refused(
    tmp_path: Path, private: Repository, link: str
) -> None:
    private.git("gc", "-q")
    theirs = private.root / ".git/objects"
    own = Repository(tmp_path / "source").root / ".git"
    if link == "alternates":
        (own / "objects/info/alternates").write_text(f"{theirs}\n")
    elif link == "objects":
        shutil.rmtree(own / "objects")
        (own / "objects").symlink_to(theirs)
    elif link == "pack":
        for file in (theirs / "pack").iterdir():
            (own / "objects/pack" / file.name).symlink_to(file)
    else:
        (own / link).symlink_to(theirs / "info")
    (own / "refs/heads/main").write_text(private.git("rev-parse", "HEAD") + "\n")
    refused(tmp_path / "source", "its objects lie outside the repository")


def test_linked_work_trees_submodules_and_folders_are_their_own(tmp_path: Path, private: Repository) -> None:
    private.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    above = Repository(tmp_path / "above")
    above.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(private.root), "libs/sub")
    private.git("clone", "-q", "--bare", str(private.root), str(tmp_path / "bare.git"))
    for root in (private.root, tmp_path / "tree", tmp_path / "above/libs/sub", tmp_path / "bare.git"):
        assert contents(root) == {"secret.py": b"password = 1\n"}
        assert is_own_repository(root)


# Size ----------------------------------------------------------------------------------------------------------------


def make_nested(repository: Repository, *, wide: int, levels: int, name: str = "") -> str:
    """Commit a tree of ``wide`` ** ``levels`` files that are all the same one; return the commit."""

    def ask(*arguments: str, given: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=repository.root,
            env=ENVIRONMENT,
            input=given.encode(),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    below, kind = ask("hash-object", "-w", "--stdin", given="x = 1\n"), "100644 blob"
    for _ in range(levels):
        suffix = ".py" if kind.endswith("blob") else ""
        below, kind = (
            ask("mktree", given="".join(f"{kind} {below}\t{i}{name}{suffix}\n" for i in range(wide))),
            "040000 tree",
        )
    commit = repository.git("commit-tree", below, "-m", "x", GIT_AUTHOR_DATE=DATE, GIT_COMMITTER_DATE=DATE)
    repository.git("update-ref", "refs/heads/main", commit)
    return commit


def test_a_small_repository_that_lists_a_million_files_is_refused(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    commit = make_nested(repository, wide=10, levels=6)
    with pytest.raises(SourceUnavailableError, match=r"more than 500,000 files.*make sources of its folders"):
        source(repository.root).list()
    (repository.root / "0/0/0").mkdir(parents=True)
    assert len(source(repository.root / "0/0/0").list().entries) == 1_000
    with pytest.raises(SourceUnavailableError, match=r"more than 500,000 files"):
        Commit(repository.root, commit).list()


def test_paths_that_are_long_together_are_refused(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    make_nested(repository, wide=7, levels=6, name="n" * 1_000)
    with pytest.raises(SourceUnavailableError, match=r"names them in more than 268,435,456 bytes"):
        source(repository.root).list()


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    make_nested(repository, wide=1, levels=1, name="n" * 70_000)
    with pytest.raises(SourceUnavailableError, match=r"a name in the repository is longer than 65,536 bytes"):
        source(repository.root).list()


def test_drift_names_a_commit_that_cannot_be_listed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="git ls-tree"):
        Commit(Repository(tmp_path / "repo").root, "0" * 40).list()
