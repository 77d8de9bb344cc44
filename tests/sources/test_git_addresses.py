"""Addresses of repositories, refs, links into the web, the command line of ssh."""

from pathlib import Path

import pytest
from git_repository import Repository
from hypothesis import given
from hypothesis import strategies as st

from nornweave.connect.git.address import file_url, parse_address, template_of
from nornweave.connect.git.network import Network, choose, reason_of, ssh_command
from nornweave.connect.git.source import GitSource
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain, SourceId

COMMIT = "a" * 40


@pytest.mark.parametrize(("url", "protocol", "host", "port", "user", "path"), [
    ("https://git.example.org/team/api.git", "https", "git.example.org", None, "", "/team/api.git"),
    ("https://deploy@Git.Example.org:8443/api", "https", "git.example.org", 8443, "deploy", "/api"),
    ("ssh://git@git.example.org:2222/team/api.git", "ssh", "git.example.org", 2222, "git", "/team/api.git"),
    ("git@github.com:team/api.git", "ssh", "github.com", None, "git", "team/api.git"),
    ("host:api.git", "ssh", "host", None, "", "api.git"),
    ("file:///srv/git/api.git", "file", "", None, "", "/srv/git/api.git"),
    ("http://127.0.0.1:8080/api.git", "http", "127.0.0.1", 8080, "", "/api.git"),
    ("http://[::1]/api.git", "http", "::1", None, "", "/api.git"),
])  # fmt: skip
def test_the_usual_forms_are_read(url: str, protocol: str, host: str, port: int | None, user: str, path: str) -> None:
    address = parse_address(url)
    assert (address.protocol, address.host, address.port, address.user, address.path) == (
        protocol, host, port, user, path,
    )  # fmt: skip
    assert user == "" or f"{user}@" not in address.shown


@pytest.mark.parametrize(("url", "reason"), [
    ("ext::sh -c 'touch /tmp/x'", "expected https://HOST/PATH"),
    ("evil::https://example.org/x", "expected https://HOST/PATH"),
    ("git://example.org/x.git", "'git' is not a protocol that is read"),
    ("ftp://example.org/x.git", "'ftp' is not a protocol that is read"),
    ("http://example.org/x.git", "http would be read unencrypted"),
    ("https://user:secret@example.org/x.git", "it holds a password"),
    ("ssh://-oProxyCommand=evil/x", "characters that are not allowed"),
    ("ssh://-l@example.org/x", "characters that are not allowed"),
    ("-oProxyCommand=evil:x", "expected https://HOST/PATH"),
    ("/srv/git/api.git", "may also be named by 'path'"),
    ("C:/repo", None),
    ("https://example.org/", "the path of the repository is missing"),
    ("https://example.org/x?a=b", "begins with '\\?' or '#'"),
    ("file://example.org/x", "a file of another host"),
    ("https://example.org:99999/x", "expected https://HOST/PATH"),
    ("https://example.org/x\n", "control characters"),
    ("--upload-pack=evil", "expected https://HOST/PATH"),
    ("host:-oProxyCommand=evil", "could be read as an option"),
    ("git@host:--upload-pack=evil", "could be read as an option"),
])  # fmt: skip
def test_other_forms_are_refused(url: str, reason: str | None) -> None:
    if reason is None:
        assert parse_address(url).protocol == "ssh"  # as git reads it
        return
    with pytest.raises(ConfigError, match=reason) as caught:
        parse_address(url)
    assert "secret" not in str(caught.value)


@given(st.text(max_size=40))
def test_no_address_is_an_option_or_a_program(url: str) -> None:
    try:
        address = parse_address(url)
    except ConfigError:
        return
    assert not address.url.startswith("-")
    assert not address.host.startswith("-")
    assert not address.user.startswith("-")
    assert address.protocol != "http" or address.host in {"localhost", "::1"} or address.host.startswith("127.")
    assert "::" not in address.url.partition("/")[0] or address.protocol != "ssh"


def test_spellings_of_one_repository_share_a_clone() -> None:
    urls = ("https://Example.org/team/api.git", "https://user@example.org/team/api", "https://example.org/team/api/")
    assert len({parse_address(url).key for url in urls}) == 1
    assert parse_address(urls[0]).key != parse_address("https://example.org/team/web").key


def test_a_branch_goes_before_a_tag_and_a_tag_is_its_commit() -> None:
    listing = f"{COMMIT}\trefs/heads/v1\n{'b' * 40}\trefs/tags/v1\n{'c' * 40}\trefs/tags/v1^{{}}\n"
    assert choose("v1", listing) == ("refs/heads/v1", COMMIT)
    assert choose("refs/tags/v1", listing) == ("refs/tags/v1", "c" * 40)
    assert choose("v2", listing) is None


# ssh ------------------------------------------------------------------------------------------------------------------


def test_ssh_may_neither_ask_nor_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    command = ssh_command({})
    assert command.startswith("ssh -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15")
    assert "StrictHostKeyChecking" not in command  # as the user has it
    assert ssh_command({"core.sshcommand": "ssh -i ~/.ssh/deploy"}).startswith("ssh -i ~/.ssh/deploy -o BatchMode=yes")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -p 2222")
    assert ssh_command({"core.sshcommand": "ssh"}).startswith("ssh -p 2222 -o BatchMode=yes")


def test_git_runs_ssh_for_the_host_of_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for ssh with a program that runs git-upload-pack here, as sshd would there."""
    upstream = Repository(tmp_path / "api.git")
    upstream.commit({"a.md": "alpha\n"}, "2024-01-01T00:00:00Z")
    said = tmp_path / "said"
    program = tmp_path / "ssh"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{said}"\nwhile [ $# -gt 1 ]; do shift; done\nexec sh -c "$1"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    listing = Network(parse_address(f"git@example.org:{upstream.root}")).list_refs("HEAD")
    assert upstream.git("rev-parse", "HEAD") in listing
    line = said.read_text().splitlines()[-1]
    assert line.startswith("-o BatchMode=yes")
    assert line.endswith(f"git@example.org git-upload-pack '{upstream.root}'")


# Failures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "reason"), [
    ("ssh: Could not resolve hostname nowhere: Name or service not known", "no connection"),
    ("git@x: Permission denied (publickey).\nfatal: Could not read from remote repository.", "of its ssh agent"),
    ("Host key verification failed.\nfatal: Could not read", "connect once by hand with ssh"),
    ("ERROR: Repository not found.\nfatal: Could not read", "there is no repository"),
    ("fatal: unable to access 'x': SSL certificate problem: self-signed certificate", "is not trusted"),
    ("fatal: write error: No space left on device", "no space is left"),
    ("fatal: something new", r"the next sync tries again \(git: fatal: something new"),
])  # fmt: skip
def test_failures_say_what_to_do(said: str, reason: str) -> None:
    import re

    assert re.search(reason, reason_of(said, parse_address("git@example.org:x"), None))


# Links ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("origin", "url"), [
    ("https://github.com/o/r.git", "https://github.com/o/r/blob/{}/docs/a%20b.md"),
    ("git@github.com:o/r.git", "https://github.com/o/r/blob/{}/docs/a%20b.md"),
    ("https://token@github.com/o/r", "https://github.com/o/r/blob/{}/docs/a%20b.md"),
    ("ssh://git@gitlab.com:22/g/s/r.git", "https://gitlab.com/g/s/r/-/blob/{}/docs/a%20b.md"),
    ("https://gitlab.example.org:8443/g/r", "https://gitlab.example.org:8443/g/r/-/blob/{}/docs/a%20b.md"),
    ("https://bitbucket.org/o/r.git", "https://bitbucket.org/o/r/src/{}/docs/a%20b.md"),
    ("https://codeberg.org/o/r.git", "https://codeberg.org/o/r/src/commit/{}/docs/a%20b.md"),
])  # fmt: skip
def test_files_of_known_hosts_have_an_address(origin: str, url: str) -> None:
    template = template_of(origin)
    assert template is not None
    assert file_url(template, COMMIT, "docs/a b.md") == url.format(COMMIT)


@pytest.mark.parametrize(
    "origin",
    ["", "https://git.example.org/o/r.git", "/srv/git/r.git", "file:///srv/r.git", "git@github:o/r.git",
     "https://github.com/o", 'https://github.com/o/"onclick="x', "javascript:alert(1)", "https://u:p@github.com/o/r"],
)  # fmt: skip
def test_files_of_other_hosts_have_none(origin: str) -> None:
    assert template_of(origin) is None


def test_a_local_repository_takes_the_addresses_of_its_origin(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    commit = repository.commit({"docs/a.md": "alpha\n", "docs/b.md": "beta\n"}, "2024-01-01T00:00:00Z")
    repository.git("remote", "add", "origin", "git@github.com:o/r.git")

    def urls(root: Path, **options: str) -> list[object]:
        opened = GitSource(SourceId("repo"), Domain.DOCUMENTATION, root, **options)  # type: ignore[arg-type]
        return [entry.metadata.get("url") for entry in opened.list().entries]

    assert urls(tmp_path / "repo") == [f"https://github.com/o/r/blob/{commit}/docs/{name}.md" for name in "ab"]
    assert urls(tmp_path / "repo/docs") == urls(tmp_path / "repo")
    web_url = "https://git.example.org/r/-/blob/{commit}/{path}"
    assert urls(tmp_path / "repo", web_url=web_url)[0] == f"https://git.example.org/r/-/blob/{commit}/docs/a.md"
    repository.git("remote", "set-url", "origin", "/elsewhere")
    assert urls(tmp_path / "repo") == [None, None]


@pytest.mark.parametrize(
    "web_url", ["https://x/{commit}", "https://x/{path}", "javascript:{commit}{path}", "{commit}{path}"]
)
def test_an_address_without_commit_or_path_is_refused(tmp_path: Path, web_url: str) -> None:
    with pytest.raises(ConfigError, match="web_url: "):
        GitSource(SourceId("repo"), Domain.DOCUMENTATION, tmp_path, web_url=web_url)
