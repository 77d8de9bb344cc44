"""Clones of remote repositories: shared, locked, repaired, made anew, removed."""

import os
import random
import shutil
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import forked
import pytest
from git_server import serve_git
from waiting import until

from lab.campaigns.upstream import Upstream
from nornweave.connect.connectors import GitSettings, open_source
from nornweave.connect.git import remote as clones
from nornweave.connect.git.remote import RemoteGitSource, remove_leftovers, remove_unused
from nornweave.core.errors import SourceUnavailableError, TransientDocumentError
from nornweave.core.files.paths import OwnFiles
from nornweave.core.types import Domain

SEED = 20_261_123


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "served/pages.git", random.Random(SEED))


def source(tmp_path: Path, url: str, *, id: str = "pages", ref: str = "HEAD") -> RemoteGitSource:  # noqa: A002
    settings = GitSettings(id=id, domain=Domain.DOCUMENTATION, url=url, ref=ref)
    opened = open_source(settings, OwnFiles(tmp_path / "var"))
    assert isinstance(opened, RemoteGitSource)
    return opened


def texts(opened: RemoteGitSource) -> dict[str, str]:
    try:
        return {entry.path: opened.fetch(entry).decode() for entry in opened.list().entries}
    finally:
        opened.close()


def repository_of(tmp_path: Path) -> Path:
    (repository,) = (tmp_path / "var/git").glob("*/repository.git")
    return repository


# Histories ------------------------------------------------------------------------------------------------------------


# Together -------------------------------------------------------------------------------------------------------------


def test_sources_that_read_one_address_at_once_wait_for_each_other(tmp_path: Path, upstream: Upstream) -> None:
    sources = [source(tmp_path, upstream.url, id=f"pages-{number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(texts, sources))
    assert read == [upstream.documents()] * 4


def test_a_clone_that_another_sync_reads_for_too_long_is_named(
    tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clones, "LOCK_WAIT_S", 0.2)
    opened = source(tmp_path, upstream.url)
    with opened._clone.writing(), pytest.raises(SourceUnavailableError, match="another sync has been reading"):
        opened.list()
    assert texts(opened) == upstream.documents()


# Kills and damage -----------------------------------------------------------------------------------------------------


def test_git_that_outlives_a_killed_sync_holds_the_clone_until_it_ends(tmp_path: Path, upstream: Upstream) -> None:
    with serve_git(upstream.root.parent) as server:
        server.drip = threading.Event()
        url = server.url("pages.git")
        script = (
            "from pathlib import Path; from test_git_clones import source; "
            f"source(Path({str(tmp_path)!r}), {url!r}).list()"
        )
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[:3]))}
        sync = forked.Popen([sys.executable, "-c", script], env=environment)
        until(lambda: any(request.endswith(" fetch") for request in server.requests))
        sync.send_signal(signal.SIGKILL)
        sync.wait()
        server.drip.set()  # the connection ends, and git with it
        server.drip = None
        assert texts(source(tmp_path, url)) == upstream.documents()


def test_leftovers_of_a_killed_git_are_removed_and_everything_else_stays(tmp_path: Path, upstream: Upstream) -> None:
    opened = source(tmp_path, upstream.url)
    opened.list()
    repository = repository_of(tmp_path)
    before = sorted(file for file in repository.rglob("*"))
    (index,) = [file.stem for file in repository.glob("objects/pack/*.idx")][:1]
    leftovers = [
        "config.lock", "shallow.lock", "refs/nornweave/x.lock", "objects/pack/tmp_pack_1", "objects/pack/.tmp-1-pack-2",
        "objects/pack/pack-0000.pack", "objects/pack/pack-0000.promisor", f"objects/pack/{index}.keep",
        "objects/tmp_objdir-incoming-1/pack/tmp_pack_1", "objects/ab/tmp_obj_1",
    ]  # fmt: skip
    for name in leftovers:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_bytes(b"x")
    remove_leftovers(repository)
    (repository / "objects/ab").rmdir()
    assert sorted(file for file in repository.rglob("*")) == before


@pytest.mark.parametrize("damage", ["pack", "index", "head", "ref", "config", "folder", "tree", "half removed"])
def test_a_damaged_clone_is_made_anew(tmp_path: Path, upstream: Upstream, damage: str) -> None:
    opened = source(tmp_path, upstream.url)
    assert texts(opened) == upstream.documents()
    repository = repository_of(tmp_path)
    for file in repository.glob("objects/pack/*"):
        file.chmod(0o600)
    packs = sorted(repository.glob("objects/pack/*.pack"))
    if damage == "pack":
        for pack in packs:
            pack.write_bytes(pack.read_bytes()[:20] + b"\0" * (pack.stat().st_size - 20))
    elif damage == "tree":
        max(packs, key=lambda pack: pack.stat().st_mtime_ns).unlink()
    elif damage == "index":
        for pack in packs:
            pack.with_suffix(".idx").write_bytes(b"nonsense")
    elif damage == "half removed":
        shutil.rmtree(repository / "objects/pack")
    elif damage == "folder":
        for pack in packs:
            pack.unlink()
    else:
        name = {"head": "HEAD", "config": "config"}.get(damage) or next(
            file.relative_to(repository) for file in repository.glob("refs/nornweave/*")
        )
        (repository / name).write_text("nonsense")
    upstream.change()
    try:
        read = texts(opened)
    except TransientDocumentError:  # a file that is there and cannot be read: the next sync clones anew
        read = texts(opened)
    assert read == upstream.documents()


def test_many_packs_become_one(tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clones, "MANY_PACKS", 4)
    opened = source(tmp_path, upstream.url)
    for _ in range(5):
        upstream.change()
        assert texts(opened) == upstream.documents()
    assert len(list(repository_of(tmp_path).glob("objects/pack/*.pack"))) <= 4


# Clones that nobody needs ---------------------------------------------------------------------------------------------


def test_clones_that_no_source_names_are_removed(tmp_path: Path, upstream: Upstream) -> None:
    opened = source(tmp_path, upstream.url)
    opened.list()
    with opened._clone.writing():
        remove_unused(tmp_path / "var", [])
        assert repository_of(tmp_path).is_dir()
    remove_unused(tmp_path / "var", [upstream.url])
    assert repository_of(tmp_path).is_dir()
    remove_unused(tmp_path / "var", ["https://git.example.org/other.git"])
    assert list((tmp_path / "var/git").glob("*/repository.git")) == []
    assert texts(opened) == upstream.documents()


def test_the_clone_cannot_be_led_to_the_network(tmp_path: Path, upstream: Upstream) -> None:
    source(tmp_path, upstream.url).list()
    config = (repository_of(tmp_path) / "config").read_text()
    assert "remote" not in config
    assert str(upstream.root) not in config
