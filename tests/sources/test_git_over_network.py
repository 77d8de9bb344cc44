"""Repositories with an address: real servers on loopback, real repositories, the real program."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from git_repository import Repository
from git_server import GitServer, serve_git

from nornweave.connect.connectors import GitSettings, open_source
from nornweave.connect.git import network
from nornweave.connect.git.remote import RemoteGitSource
from nornweave.core.errors import ConfigError, SourceUnavailableError, TransientDocumentError
from nornweave.core.files.paths import OwnFiles
from nornweave.core.types import Domain, Listing

DATE, LATER = "2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"
SECRET = "glpat-XyZ_secret.123"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give git a user's configuration that is empty."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def upstream(template: Path, tmp_path: Path) -> Repository:
    return Repository(Path(shutil.copytree(template, tmp_path / "served/team/api.git")))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = Repository(tmp_path_factory.mktemp("template"))
    for key in ("allowFilter", "allowAnySHA1InWant"):
        repository.git("config", f"uploadpack.{key}", "true")
    repository.git("config", "http.receivepack", "false")
    repository.commit({"docs/a.md": "alpha\n", "docs/b.md": "beta\n", "src/x.md": "x = 1\n" * 300}, DATE)
    return repository.root


@pytest.fixture
def server(upstream: Repository) -> Iterator[GitServer]:
    with serve_git(upstream.root.parents[1]) as running:
        yield running


def source(tmp_path: Path, url: str, **settings: Any) -> RemoteGitSource:
    values = {"id": "api", "domain": Domain.DOCUMENTATION, "type": "git", "url": url, **settings}
    opened = open_source(GitSettings(**values), OwnFiles(tmp_path / "var"))
    assert isinstance(opened, RemoteGitSource)
    return opened


def texts(opened: RemoteGitSource, listing: Listing | None = None) -> dict[str, str]:
    try:
        entries = (listing or opened.list()).entries
        return {entry.path: opened.fetch(entry).decode() for entry in entries}
    finally:
        opened.close()


def refused(opened: RemoteGitSource) -> str:
    with pytest.raises(SourceUnavailableError) as caught:
        opened.list()
    return str(caught.value)


def repository_of(tmp_path: Path) -> Path:
    (repository,) = (tmp_path / "var/git").glob("*/repository.git")
    return repository


def has(repository: Path, name: str) -> bool:
    """Tell whether a clone has an object; it may not fetch one."""
    done = subprocess.run(
        ["git", "--git-dir", str(repository), "cat-file", "-e", name], capture_output=True, check=False
    )
    return done.returncode == 0


# What is read ---------------------------------------------------------------------------------------------------------


def test_only_the_files_that_the_rules_take_are_fetched(
    tmp_path: Path, upstream: Repository, server: GitServer
) -> None:
    former = upstream.git("rev-parse", "HEAD:docs/a.md")
    upstream.commit({"docs/a.md": "alpha 2\n"}, LATER)
    opened = source(tmp_path, server.url("team/api.git"), only=["docs/*.md"])
    listing = opened.list()
    assert texts(opened, listing) == {"docs/a.md": "alpha 2\n", "docs/b.md": "beta\n"}
    assert [entry.updated_at.isoformat()[:10] for entry in listing.entries if entry.updated_at] == [
        LATER[:10],
        DATE[:10],
    ]
    clone = repository_of(tmp_path)
    assert has(clone, upstream.git("rev-parse", "HEAD:docs/a.md"))
    assert not has(clone, former)
    assert not has(clone, upstream.git("rev-parse", "HEAD:src/x.md"))


def test_a_repository_that_did_not_change_costs_one_listing_of_refs(tmp_path: Path, server: GitServer) -> None:
    opened = source(tmp_path, server.url("team/api.git"))
    first = opened.list()
    server.take_requests()
    assert opened.list() == first
    assert server.take_requests() == ["GET /team/api.git/info/refs", "POST /team/api.git/git-upload-pack ls-refs"]


def test_a_check_asks_for_the_ref_alone(tmp_path: Path, server: GitServer) -> None:
    source(tmp_path, server.url("team/api.git")).check()
    assert [request.split()[-1] for request in server.take_requests()] == ["/team/api.git/info/refs", "ls-refs"]
    assert not (tmp_path / "var").exists()
    with pytest.raises(SourceUnavailableError, match="has no branch or tag 'next'"):
        source(tmp_path, server.url("team/api.git"), ref="next").check()


def test_only_what_is_new_is_asked_for(tmp_path: Path, upstream: Repository, server: GitServer) -> None:
    opened = source(tmp_path, server.url("team/api.git"))
    opened.list()
    upstream.commit({"docs/c.md": "gamma\n"}, LATER)
    server.take_requests()
    assert texts(opened)["docs/c.md"] == "gamma\n"
    asked = server.take_requests()
    assert sum("git-upload-pack fetch" in request for request in asked) == 2  # commits and folders, then one file


def test_branches_of_one_address_share_a_clone(tmp_path: Path, upstream: Repository, server: GitServer) -> None:
    upstream.git("checkout", "-q", "-b", "next")
    upstream.commit({"docs/c.md": "gamma\n"}, LATER)
    url = server.url("team/api.git")
    both = [source(tmp_path, url, id=ref, ref=ref) for ref in ("main", "next")]
    assert [len(texts(opened)) for opened in both] == [3, 4]
    assert len(list((tmp_path / "var/git").iterdir())) == 1


@pytest.mark.parametrize("ref", ["v1", "light", "HEAD", "refs/tags/v1"])
def test_tags_and_the_default_branch_are_read(
    tmp_path: Path, upstream: Repository, server: GitServer, ref: str
) -> None:
    upstream.git("tag", "-a", "-m", "one", "v1")
    upstream.git("tag", "light")
    assert set(texts(source(tmp_path, server.url("team/api.git"), ref=ref))) == {"docs/a.md", "docs/b.md", "src/x.md"}


def test_a_commit_is_read_once_and_needs_no_network_then(
    tmp_path: Path, upstream: Repository, server: GitServer
) -> None:
    first = upstream.git("rev-parse", "HEAD")
    upstream.commit({"docs/a.md": "alpha 2\n"}, LATER)
    opened = source(tmp_path, server.url("team/api.git"), ref=first)
    assert texts(opened)["docs/a.md"] == "alpha\n"
    server.take_requests()
    assert texts(opened)["docs/a.md"] == "alpha\n"
    assert server.take_requests() == []


# What happens upstream ------------------------------------------------------------------------------------------------


def test_a_force_push_is_followed(tmp_path: Path, upstream: Repository, server: GitServer) -> None:
    opened = source(tmp_path, server.url("team/api.git"))
    upstream.commit({"docs/c.md": "gamma\n"}, LATER)
    assert "docs/c.md" in texts(opened)
    upstream.git("reset", "-q", "--hard", "HEAD~1")
    upstream.commit({"docs/d.md": "delta\n"}, LATER)
    assert {"docs/d.md"} == texts(opened).keys() - {"docs/a.md", "docs/b.md", "src/x.md"}


def test_a_branch_that_is_gone_is_named(tmp_path: Path, upstream: Repository, server: GitServer) -> None:
    opened = source(tmp_path, server.url("team/api.git"), ref="main")
    opened.list()
    upstream.git("branch", "-m", "main", "trunk")
    assert "has no branch or tag 'main' (any more)" in refused(opened)
    assert len(texts(source(tmp_path, server.url("team/api.git")))) == 3  # HEAD follows


def test_a_branch_becomes_a_folder_of_branches(tmp_path: Path, upstream: Repository, server: GitServer) -> None:
    upstream.git("branch", "next")
    url = server.url("team/api.git")
    source(tmp_path, url, ref="next").list()
    upstream.git("branch", "-D", "next")
    upstream.git("branch", "next/one")
    assert len(texts(source(tmp_path, url, ref="next/one"))) == 3


# Servers that cannot do everything ------------------------------------------------------------------------------------


def test_a_server_that_cannot_leave_files_out_sends_all(
    tmp_path: Path, upstream: Repository, server: GitServer
) -> None:
    upstream.git("config", "uploadpack.allowFilter", "false")
    opened = source(tmp_path, server.url("team/api.git"), only=["docs/*.md"])
    assert len(texts(opened)) == 2
    assert has(repository_of(tmp_path), upstream.git("rev-parse", "HEAD:src/x.md"))
    upstream.commit({"docs/c.md": "gamma\n"}, LATER)
    assert len(texts(opened)) == 3


def test_a_web_server_that_gives_out_files_is_read(tmp_path: Path, upstream: Repository, server: GitServer) -> None:
    server.is_dumb = True
    bare = server.root / "plain.git"
    upstream.git("clone", "-q", "--bare", str(upstream.root), str(bare))
    subprocess.run(["git", "--git-dir", str(bare), "update-server-info"], check=True)
    opened = source(tmp_path, server.url("plain.git"))
    assert len(texts(opened)) == 3
    server.take_requests()
    opened.list()
    assert server.take_requests() == ["GET /plain.git/info/refs", "GET /plain.git/HEAD"]


def test_a_file_that_the_server_has_lost_fails_alone(tmp_path: Path, upstream: Repository, server: GitServer) -> None:
    lost = upstream.git("rev-parse", "HEAD:docs/a.md")
    (upstream.root / ".git/objects" / lost[:2] / lost[2:]).unlink()
    opened = source(tmp_path, server.url("team/api.git"))
    entries = {entry.path: entry for entry in opened.list().entries}
    with pytest.raises(TransientDocumentError, match=f"the server has no blob {lost}, though a commit names it"):
        opened.fetch(entries["docs/a.md"])
    assert opened.fetch(entries["docs/b.md"]) == b"beta\n"
    opened.close()


# Troubles on the way --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "reason"), [
    (403, r"not allowed to read it: name the variable that holds a token in 'credentials_env'.*error: 403"),
    (404, r"there is no repository.*correct 'url'.*not found"),
    (429, r"the next sync tries again.*error: 429"),
    (503, r"the next sync tries again.*error: 503"),
])  # fmt: skip
def test_refusals_say_what_to_do(tmp_path: Path, server: GitServer, status: int, reason: str) -> None:
    server.status = status
    with pytest.raises(SourceUnavailableError, match=reason):
        source(tmp_path, server.url("team/api.git")).list()


def test_a_server_that_is_not_there_is_named(tmp_path: Path, server: GitServer) -> None:
    url = server.url("team/api.git").replace(str(server.port), "1")
    assert f"{url}: no connection" in refused(source(tmp_path, url))


def test_a_transfer_that_breaks_off_leaves_a_clone_that_goes_on(
    tmp_path: Path, upstream: Repository, server: GitServer
) -> None:
    opened = source(tmp_path, server.url("team/api.git"))
    for cut_after in (0, 60, 300):
        server.cut_after = cut_after
        assert "the next sync tries again (git: " in refused(opened)
    server.cut_after = None
    assert len(texts(opened)) == 3
    upstream.commit({"docs/c.md": "gamma\n"}, LATER)
    server.cut_after = 60
    assert "the next sync tries again (git: " in refused(opened)
    server.cut_after = None
    assert len(texts(opened)) == 4
    assert not list(repository_of(tmp_path).rglob("tmp_*"))


def test_a_server_that_drips_is_given_up(tmp_path: Path, server: GitServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "STALL_S", 1)
    monkeypatch.setattr(network, "STALL_BYTES", 1_000)
    server.drip = threading.Event()
    opened = source(tmp_path, server.url("team/api.git"))
    assert "too slow" in refused(opened)
    server.drip = None
    assert len(texts(opened)) == 3


def test_a_fetch_that_takes_too_long_is_ended(
    tmp_path: Path, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nornweave.connect.git.remote.FETCH_S", 0.5)
    server.drip = threading.Event()
    assert "no end within 0.5 s" in refused(source(tmp_path, server.url("team/api.git")))


def test_what_is_too_large_is_ended(tmp_path: Path, upstream: Repository, server: GitServer) -> None:
    (upstream.root / "docs/noise.md").write_bytes(os.urandom(1_500_000))
    upstream.commit({}, LATER)
    url = server.url("team/api.git")
    opened = source(tmp_path, url, max_megabytes=1)
    assert "more than 1 MB; raise 'max_megabytes', or narrow 'include'" in refused(opened)
    assert len(texts(source(tmp_path, url, max_megabytes=1, exclude=["**/noise.md"]))) == 3
    assert len(source(tmp_path, url, max_megabytes=3).list().entries) == 4


def test_former_files_do_not_fill_the_clone(tmp_path: Path, upstream: Repository, server: GitServer) -> None:
    opened = source(tmp_path, server.url("team/api.git"), max_megabytes=1)
    for _ in range(3):
        (upstream.root / "docs/noise.md").write_bytes(os.urandom(600_000))
        upstream.commit({}, LATER)
        assert len(opened.list().entries) == 4


# Where it leads -------------------------------------------------------------------------------------------------------


def test_a_redirect_is_not_followed(tmp_path: Path, server: GitServer) -> None:
    with serve_git(server.root) as other:
        for address in (server.url("team"), other.url("team")):
            server.lead_to = {"old": address}
            reason = refused(source(tmp_path, server.url("old/api.git")))
            assert "it leads to another address, which is not followed; correct 'url'" in reason
        assert other.requests == []


# Secrets --------------------------------------------------------------------------------------------------------------


def test_a_token_from_the_environment_is_given_to_the_server_and_kept_nowhere(
    tmp_path: Path, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TOKEN", SECRET)
    server.login = f"x-access-token:{SECRET}"
    opened = source(tmp_path, server.url("team/api.git"), credentials_env="GIT_TOKEN")
    assert len(texts(opened)) == 3
    assert set(server.logins) == {server.login}
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]


def test_no_command_line_has_the_token_or_the_address(
    tmp_path: Path, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = tmp_path / "lines"
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{lines}"\nexec "{real}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_TOKEN", SECRET)
    server.login = f"deploy:{SECRET}"
    url = server.url("team/api.git").replace("//", "//deploy@")
    source(tmp_path, url, credentials_env="GIT_TOKEN").list()
    said = lines.read_text()
    assert " fetch " in said
    assert SECRET not in said
    assert "deploy" not in said


def test_a_refused_token_is_named_by_its_variable(
    tmp_path: Path, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TOKEN", SECRET)
    server.login = "x-access-token:another"
    url = server.url("team/api.git").replace("//", "//ghp_user@")
    reason = refused(source(tmp_path, url, credentials_env="GIT_TOKEN"))
    assert "not allowed to read it: renew the token in GIT_TOKEN" in reason
    assert SECRET not in reason
    assert "ghp_user" not in reason


@pytest.mark.parametrize(
    ("value", "reason"), [("", "is not set where this runs"), ("a\nb", "holds control characters")]
)
def test_a_variable_without_a_token_is_named(
    tmp_path: Path, server: GitServer, monkeypatch: pytest.MonkeyPatch, value: str, reason: str
) -> None:
    monkeypatch.setenv("GIT_TOKEN", value)
    assert reason in refused(source(tmp_path, server.url("team/api.git"), credentials_env="GIT_TOKEN"))
    assert server.requests == []


def test_without_a_token_nobody_is_asked(tmp_path: Path, server: GitServer) -> None:
    server.login = "user:password"
    reason = refused(source(tmp_path, server.url("team/api.git")))
    assert "it: name the variable that holds a token in 'credentials_env', or set up git's credential" in reason


def test_the_users_credential_helper_is_asked(tmp_path: Path, home: Path, server: GitServer) -> None:
    server.login = f"ann:{SECRET}"
    helper = f'!f() {{ echo "username=ann"; echo "password={SECRET}"; }}; f'
    subprocess.run(["git", "config", "--global", "credential.helper", helper], check=True)
    assert len(texts(source(tmp_path, server.url("team/api.git")))) == 3


# What the user's configuration may not do -----------------------------------------------------------------------------


def test_the_users_hooks_templates_and_other_addresses_count_for_nothing(
    tmp_path: Path, home: Path, server: GitServer
) -> None:
    mark = tmp_path / "was-run"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-checkout", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{mark}'\n")
        (hooks / name).chmod(0o755)
    (tmp_path / "template/hooks").mkdir(parents=True)
    for key, value in {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(hooks / "post-checkout"),
        "init.templateDir": str(tmp_path / "template"),
        "url.http://127.0.0.1:1/.insteadOf": server.url(""),
        "protocol.ext.allow": "always",
        "fetch.fsckObjects": "bogus",
    }.items():
        subprocess.run(["git", "config", "--global", key, value], check=True)
    assert len(texts(source(tmp_path, server.url("team/api.git")))) == 3
    assert not mark.exists()
    assert "url" not in (repository_of(tmp_path) / "config").read_text()


def test_the_users_proxy_is_used(tmp_path: Path, home: Path, server: GitServer) -> None:
    subprocess.run(["git", "config", "--global", "http.proxy", "http://127.0.0.1:1"], check=True)
    assert "no connection" in refused(source(tmp_path, server.url("team/api.git")))


@pytest.mark.parametrize("ref", ["-x", "a..b", "a b", "a:b", "HEAD^", "a\nb", "", "refs/heads/*"])
def test_a_ref_that_git_would_read_otherwise_is_refused(tmp_path: Path, ref: str) -> None:
    with pytest.raises(ConfigError, match="expected a branch, a tag or all digits of a commit"):
        source(tmp_path, "https://example.org/x.git", ref=ref)


def test_one_module_lets_git_use_the_network() -> None:
    folder = Path(network.__file__).parent
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.py")}
    assert {name for name, text in texts.items() if '"GIT_ALLOW_PROTOCOL"' in text} == {"program.py", "network.py"}
    assert {name for name, text in texts.items() if "subprocess" in text} == {"program.py"}
    assert '"GIT_ALLOW_PROTOCOL": ""' in texts["program.py"]
