"""``nornweave token``: what it prints is what the file takes; a server with a broken file does not start."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import nornweave
from typer.testing import CliRunner

from api.access.door import check_listening
from api.access.sessions import session_key
from nornweave.cli.main import app
from nornweave.connect.connectors import load_settings
from nornweave.core.access import hash_of, read_tokens
from nornweave.core.errors import ConfigError


def test_the_line_is_for_the_token_and_does_not_hold_it(tmp_path: Path) -> None:
    options = [
        "token", "--group", "staff", "--group", " board ", "--name", "alice", "--expires", "2027-01-31", "--json",
    ]  # fmt: skip
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    assert made["token"] not in made["line"]
    (tmp_path / "tokens.yaml").write_text(made["line"])
    entry = read_tokens(tmp_path / "tokens.yaml")[hash_of(made["token"])]
    assert (entry.groups, entry.name) == ({"staff", "board"}, "alice")
    assert entry.expires is not None and entry.expires.date().isoformat() == "2027-02-01"


def test_a_pipe_gets_the_token_alone_and_a_person_reads_what_is_what(tmp_path: Path) -> None:
    piped = nornweave(tmp_path, "token", "--group", "staff")
    token, line = piped.stdout.removesuffix("\n"), piped.stderr.splitlines()[-1]
    assert token.startswith("nw_") and token.split() == [token]
    assert "The token" not in piped.stderr and "access.tokens" in piped.stderr and token not in piped.stderr
    (tmp_path / "tokens.yaml").write_text(line)
    assert read_tokens(tmp_path / "tokens.yaml").keys() == {hash_of(token)}
    command = [sys.executable, "-m", "nornweave.cli", "token", "--group", "staff"]
    screen, terminal = pty.openpty()
    subprocess.run(command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path, check=True)
    os.close(terminal)
    shown = os.read(screen, 65_536).decode()
    os.close(screen)
    assert (
        shown.index("The token, for whoever")
        < shown.index("nw_")
        < shown.index("access.tokens")
        < shown.index("sha256")
    )


def test_a_server_does_not_start_with_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "nornweave.yaml"
    file.write_text(json.dumps({"data_dir": "var", "access": {"tokens": "tokens.yaml"}}))
    settings = load_settings(file, {})
    with pytest.raises(ConfigError, match=r"tokens\.yaml: it cannot be read"):
        check_listening("127.0.0.1", None, settings)
    (tmp_path / "tokens.yaml").write_text("")
    check_listening("0.0.0.0", None, settings)


def test_the_key_of_sessions_is_made_once_and_is_private(tmp_path: Path) -> None:
    key = session_key(tmp_path / "var")
    assert session_key(tmp_path / "var") == key and len(key) == 64
    assert (tmp_path / "var" / "session.key").stat().st_mode & 0o077 == 0
    assert session_key(tmp_path / "other") != key
    (tmp_path / "var" / "session.key").write_text("short")
    with pytest.raises(ConfigError, match="holds no key"):
        session_key(tmp_path / "var")
