"""No source reads NornWeave's own files or those that hold secrets by their name, whoever configured it."""

import subprocess
from pathlib import Path

import pytest

from nornweave.connect.connectors import load_settings, open_source
from nornweave.core.errors import ConfigError
from nornweave.core.files.paths import OWN, SECRET, is_secret
from nornweave.core.types import is_of_history

SECRETS = (
    *(".env", ".env.local", ".ENV", ".envrc", ".env-prod", "prod.env", "a.pem", "server.KEY", "x.p12", "id_rsa"),
    *("ID_ED25519", ".netrc", ".pgpass", ".npmrc", ".ssh", ".aws", "terraform.tfstate", "a.b.jks"),
)
ORDINARY = (
    "env",
    "key",
    "pem",
    "a.md",
    ".env.example",
    ".env.sample",
    "id_rsa.pub",
    "environment.md",
    "keys",
    "x.keys",
)
OF_WORKSPACE = ("nornweave.yaml", "who.yaml", "var/keys/signing.pem", "var/session.key", "var/notes.md")


def test_names_of_secrets() -> None:
    assert [name for name in SECRETS if not is_secret(name)] == []
    assert [name for name in ORDINARY if is_secret(name)] == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = (
        *SECRETS[:-4],
        ".ssh/config",
        ".aws/credentials",
        "deep/.ssh/id_new",
        "a.md",
        "deep/.env",
        *OF_WORKSPACE[2:],
    )
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# A\n\nSECRETWORD\n", encoding="utf-8")
    (tmp_path / "who.yaml").write_text("{}\n", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "var")
    return tmp_path


def configured(folder: Path, keys: str) -> Path:
    file = folder / "nornweave.yaml"
    file.write_text(f"data_dir: var\naccess: {{tokens: who.yaml}}\nsources:\n  - {{id: s, {keys}}}\n", encoding="utf-8")
    return file


WIDE = "include: ['**', '*.pem', '.env', 'nornweave.yaml', 'who.yaml', '.ssh', 'var/**', '!x']"


@pytest.mark.parametrize(
    "kind",
    [
        *(f"domain: {domain}, type: files" for domain in ("code", "documentation", "research")),
        *(f"domain: conversations, type: {kind}" for kind in ("messages", "transcripts", "github")),
        "domain: research, type: stackexchange",
        "domain: code, type: git",
    ],
)
def test_a_source_of_everything_lists_none_of_them(folder: Path, kind: str) -> None:
    settings = load_settings(configured(folder, f"path: ., {kind}, {WIDE}"))
    identity = ("-c", "user.email=a@example.org", "-c", "user.name=a")
    for command in (("init", "-q"), ("add", "-Af", "."), (*identity, "commit", "-qm", "all")):
        subprocess.run(["git", *command], cwd=folder, check=True)
    listing = open_source(settings.sources[0], settings.own_files).list()
    assert {entry.path for entry in listing.entries if not is_of_history(entry.gate)} <= {"a.md"}
    left_out = {skip.path: skip.reason for skip in listing.skipped}
    assert {path.partition("/")[0] for path, reason in left_out.items() if reason == OWN} == {*OF_WORKSPACE[:2], "var"}
    named = {"a.pem", "id_rsa", "prod.env"}
    if "conversations" not in kind:  # those leave out what is hidden, without a word
        named |= {".env", ".ssh", ".aws", "deep/.ssh", "deep/.env"}
    secret = {path.rstrip("/") for path, reason in left_out.items() if reason == SECRET}
    assert named <= secret | {path.rpartition("/")[0] for path in secret}


@pytest.mark.parametrize(
    "place", ["var", "./var/../var", "var/keys", "link", "link/keys", ".ssh", ".env", "deep/.ssh/id_new", *OF_WORKSPACE]
)
def test_a_place_that_is_one_of_them_is_not_opened(folder: Path, place: str) -> None:
    for keys in (
        f"domain: documentation, type: files, path: {place}",
        f"domain: documentation, type: files, path: a.md, metadata: {place}",
        f"domain: documentation, type: feed, path: {place}",
        f"domain: code, type: git, path: {place}",
        *(f"domain: conversations, type: {kind}, path: {place}" for kind in ("slack", "messages", "transcripts")),
    ):
        settings = load_settings(configured(folder, keys))
        with pytest.raises(ConfigError, match=r"sources\[s\]: (path|metadata): .*no source reads it"):
            open_source(settings.sources[0], settings.own_files)


def test_a_home_that_is_written_with_a_tilde_is_looked_at_as_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    settings = load_settings(configured(folder, "domain: documentation, type: files, path: ~/.ssh"))
    with pytest.raises(ConfigError, match="that of a secret"):
        open_source(settings.sources[0], settings.own_files)
