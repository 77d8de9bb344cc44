"""``nornweave agents``: entries in the files of agents, in their own forms; every other character stays."""

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from command_line import nornweave
from hypothesis import given

from nornweave.cli.agents import (
    MARKDOWN,
    TOML,
    MarkedBlock,
    NotEditableError,
    agents_of,
    edited,
    is_ours,
    member_at,
    own_command,
    with_member,
    without_member,
)

COMMAND = ["/opt/nw/bin/nornweave", "--config", "/srv/my team/nornweave.yaml", "mcp"]
PLAIN = {"command": COMMAND[0], "args": COMMAND[1:]}
TYPED = {"type": "stdio", **PLAIN}
LOCAL = {"type": "local", "command": COMMAND, "enabled": True}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.text(max_size=5).filter(lambda name: name not in {"mcpServers", "nornweave"})
LAYOUTS: st.SearchStrategy[Callable[[Any], str]] = st.sampled_from(
    [
        lambda value: json.dumps(value),
        lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        lambda value: json.dumps(value, indent=2) + "\n",
        lambda value: json.dumps(value, indent=4, ensure_ascii=False),
        lambda value: json.dumps(value, indent="\t") + "\n\n",
        lambda value: " \n" + json.dumps(value, indent=2).replace("\n", "\r\n"),
    ]
)


@given(
    others=st.dictionaries(NAMES, VALUES, max_size=3),
    servers=st.none() | st.dictionaries(NAMES, VALUES, min_size=1, max_size=3),
    place=st.integers(0, 3),
    layout=LAYOUTS,
)
def test_an_entry_is_put_into_json_and_taken_out_and_nothing_else_changes(
    others: dict[str, Any], servers: dict[str, Any] | None, place: int, layout: Callable[[Any], str]
) -> None:
    members = list(others.items())
    if servers is not None:
        members.insert(place, ("mcpServers", servers))
    text, path = layout(dict(members)), ["mcpServers", "nornweave"]
    put = with_member(text, path, PLAIN)
    assert json.loads(put) == {**dict(members), "mcpServers": {**(servers or {}), "nornweave": PLAIN}}
    assert list(json.loads(put))[: len(members)] == [key for key, _ in members]
    assert member_at(put, path) == PLAIN
    assert without_member(put, path) == (text if members else "")
    again = with_member(put, path, TYPED)
    assert member_at(again, path) == TYPED and without_member(again, path) == (text if members else "")
    assert without_member(text, path) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, // remark\n}',
        '{"a": 1,}',
        "[]",
        '{"mcpServers": []}',
        '{"a": 1, "a": 2}',
        "\ufeff{}",
        "{",
        "[" * 100_000,
    ],
)
def test_what_is_not_plain_json_is_for_a_person(text: str) -> None:
    with pytest.raises(NotEditableError):
        with_member(text, ["mcpServers", "nornweave"], PLAIN)


@given(before=st.text(alphabet="ab#\n <!->", max_size=20), lines=st.sampled_from(("one", "one\n\ntwo\n")))
@pytest.mark.parametrize("block", [TOML, MARKDOWN])
def test_a_marked_block_is_put_and_taken_out(block: MarkedBlock, before: str, lines: str) -> None:
    put = block.put(before, lines)
    assert block.removed(put) == before
    assert block.put(put, lines) == put
    moved = block.put(put + "behind\n", "other")
    assert block.removed(moved) == f"{before}behind\n" and "other" in moved
    with pytest.raises(NotEditableError):
        block.removed(put + put)
    assert block.removed(put.replace("\n", "\r\n")) == before.replace("\n", "\r\n")


def files_of(folder: Path) -> dict[str, Path]:
    home, project = folder / "home", folder / "project"
    return {
        "claude": home / ".claude.json",
        "codex": home / ".codex/config.toml",
        "cursor": home / ".cursor/mcp.json",
        "vscode": project / ".vscode/mcp.json",
        "opencode": home / ".config/opencode/opencode.json",
        "gemini": home / ".gemini/settings.json",
    }


# As each program writes or documents its own.
THERE = {
    "claude": '{\n  "numStartups": 3,\n  "mcpServers": {\n    "other": {"type": "http", "url": "https://x"}\n  },\n'
    '  "projects": {"/srv/a": {"mcpServers": {}}}\n}',
    "codex": '# mine\nmodel = "m"   # large\n\n[mcp_servers.docs]\ncommand = "npx"\nargs = ["-y", "docs"]\n\n'
    '[projects."/srv/a"]\ntrust_level = "trusted"\n',
    "cursor": '{"mcpServers":{"time":{"command":"uvx","args":["mcp-server-time"]}}}\n',
    "vscode": '{\n\t"inputs": [],\n\t"servers": {}\n}\n',
    "opencode": '{\n    "$schema": "https://opencode.ai/config.json",\n    "theme": "x"\n}\n',
    "gemini": '{\n  "security": {"auth": {"selectedType": "gemini-api-key"}}\n}\n',
}
EXPECTED = {"claude": TYPED, "codex": PLAIN, "cursor": PLAIN, "vscode": TYPED, "opencode": LOCAL, "gemini": PLAIN}
KEYS = {"claude": "mcpServers", "codex": "mcp_servers", "cursor": "mcpServers", "vscode": "servers", "opencode": "mcp",
        "gemini": "mcpServers"}  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    for folder in ("home", "project"):
        (tmp_path / folder).mkdir()
    (tmp_path / "project" / "nornweave.yaml").write_text("sources: []\n")
    return tmp_path


def read(name: str, file: Path) -> Any:
    text = file.read_text()
    return (tomllib.loads(text) if name == "codex" else json.loads(text))[KEYS[name]]


def test_all_agents_are_found_registered_and_taken_out_again(machine: Path) -> None:
    project = machine / "project"
    for name, file in files_of(machine).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(THERE[name])
        file.chmod(0o640)
    dotfile = machine / "dotfiles.json"
    files_of(machine)["cursor"].rename(dotfile)
    files_of(machine)["cursor"].symlink_to(dotfile)
    (project / "AGENTS.md").write_text("# Rules\n\nBe kind.")

    asked = nornweave(project, "agents", "install")
    assert asked.returncode == 1 and "--yes writes without asking" in asked.stderr
    assert '+      "nornweave": {' in asked.stdout or '+    "nornweave": {' in asked.stdout
    assert {name: file.read_text() for name, file in files_of(machine).items()} == THERE

    done = json.loads(nornweave(project, "agents", "install", "--yes", "--json").stdout)
    assert done["agents"] == list(THERE)
    assert {each["outcome"] for each in done["files"]} == {"written"}
    command = own_command(project / "nornweave.yaml")
    assert Path(command[0]).is_absolute() and command[-3:] == ["--config", str(project / "nornweave.yaml"), "mcp"]
    for name, file in files_of(machine).items():
        entry = read(name, file)["nornweave"]
        assert is_ours(entry)
        assert entry.keys() == EXPECTED[name].keys()  # type: ignore[attr-defined]
        assert (entry["command"] if name == "opencode" else [entry["command"], *entry["args"]]) == command
        assert file.stat().st_mode & 0o777 == 0o640
    assert "other" in read("claude", files_of(machine)["claude"])
    assert files_of(machine)["cursor"].is_symlink()
    assert (project / "AGENTS.md").read_text().startswith("# Rules\n\nBe kind.\n<!-- nornweave: begin")

    again = json.loads(nornweave(project, "agents", "install", "--yes", "--json").stdout)
    assert {each["outcome"] for each in again["files"]} == {"unchanged"}
    gone = nornweave(project, "agents", "uninstall", "--yes")
    assert gone.returncode == 0, gone.stderr
    left = {name: file.read_text() for name, file in files_of(machine).items()}
    assert left == THERE
    assert (project / "AGENTS.md").read_text() == "# Rules\n\nBe kind."


def test_files_that_are_not_there_are_made_and_removed(machine: Path) -> None:
    project = machine / "project"
    nothing = nornweave(project, "agents", "install", "--yes")
    assert nothing.returncode == 1 and "no agent was found here" in nothing.stderr
    named = [word for name in THERE for word in ("--agent", name)]
    done = nornweave(project, "agents", "install", "--yes", *named)
    assert done.returncode == 0, done.stderr
    for name, file in files_of(machine).items():
        assert read(name, file).keys() == {"nornweave"}
        assert file.stat().st_mode & 0o777 == 0o600
    assert nornweave(project, "agents", "uninstall", "--yes").returncode == 0
    assert not [file for file in files_of(machine).values() if file.exists()]
    assert not (project / "AGENTS.md").exists()
    wrong = nornweave(project, "agents", "install", "--agent", "emacs")
    assert wrong.returncode == 2 and "'emacs' is not one of claude, codex" in wrong.stderr


def everything_in(folder: Path) -> dict[str, str | None]:
    """Return the files with their texts, and the folders."""
    return {
        str(place.relative_to(folder)): place.read_text() if place.is_file() else None for place in folder.rglob("*")
    }


@pytest.mark.parametrize("agents", [("cursor", "gemini"), tuple(THERE)])
@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({}, None),
        ({"cursor": "", "gemini": "{}"}, ""),
        ({"cursor": "\n", "gemini": "  "}, "\n"),
        ({"cursor": "{ }\n", "gemini": '{"mcpServers": {\n}, "x": 1}', "vscode": '{"servers":{}}'}, "\n"),
        ({"claude": '{\n  "mcpServers": {},\n  "y": {}\n}', "codex": "", "opencode": '{"mcp":{"servers":{}}}'}, "# x"),
    ],
)
def test_uninstall_gives_back_what_was_there(
    machine: Path, agents: tuple[str, ...], texts: dict[str, str], said: str | None
) -> None:
    project = machine / "project"
    for name, text in texts.items():
        files_of(machine)[name].parent.mkdir(parents=True, exist_ok=True)
        files_of(machine)[name].write_text(text)
    if said is not None:
        (project / "AGENTS.md").write_text(said)
    before = everything_in(machine)
    named = [word for name in agents for word in ("--agent", name)]
    assert nornweave(project, "agents", "uninstall", "--yes", *named).returncode == 0
    assert everything_in(machine) == before, "nothing was installed"
    for _ in range(2):
        done = nornweave(project, "agents", "install", "--yes", *named)
        assert done.returncode == 0, done.stderr
    (machine / "other").mkdir()
    other = machine / "other" / "nornweave.yaml"
    other.write_text("sources: []\n")
    again = nornweave(project, "--config", str(other), "agents", "install", "--yes", *named)
    assert again.returncode == 0, again.stderr
    first = nornweave(project, "agents", "uninstall", "--yes", "--agent", agents[0])
    assert first.returncode == 0, first.stderr
    assert nornweave(project, "agents", "uninstall", "--yes", *named).returncode == 0
    other.unlink()
    other.parent.rmdir()
    assert everything_in(machine) == before


def test_what_somebody_added_since_stays(machine: Path) -> None:
    project, files = machine / "project", files_of(machine)
    for name in ("cursor", "gemini"):
        files[name].parent.mkdir(parents=True)
        files[name].write_text("{}")
    named = [word for name in ("cursor", "gemini", "codex") for word in ("--agent", name)]
    assert nornweave(project, "agents", "install", "--yes", *named).returncode == 0
    mine = json.loads(files["cursor"].read_text())
    files["cursor"].write_text(json.dumps({**mine, "x": 1}))
    files["gemini"].write_text(json.dumps(json.loads(files["gemini"].read_text())))  # in another layout
    (files["codex"].parent / "auth.json").write_text("theirs")
    assert nornweave(project, "agents", "uninstall", "--yes").returncode == 0
    assert (json.loads(files["cursor"].read_text()), files["gemini"].read_text()) == ({"x": 1}, "{}")
    assert [each.name for each in files["codex"].parent.iterdir()] == ["auth.json"]
    assert not (machine / "home" / ".local").exists()


def test_what_a_person_wrote_is_refused_with_the_lines_to_paste(machine: Path) -> None:
    project, files = machine / "project", files_of(machine)
    theirs = {
        "vscode": '{\n  // our servers\n  "servers": {}\n}\n',
        "cursor": '{"mcpServers": {"nornweave": {"url": "http://127.0.0.1:8082/mcp"}}}',
        "codex": '[mcp_servers.nornweave]\nurl = "http://127.0.0.1:8082/mcp"\n',
        "gemini": "{",
        "claude": '{"mcpServers": "none"}',
    }
    for name, text in theirs.items():
        files[name].parent.mkdir(parents=True, exist_ok=True)
        files[name].write_text(text)
    done = nornweave(project, "agents", "install", "--yes")
    assert done.returncode == 1
    assert {name: files[name].read_text() for name in theirs} == theirs
    assert done.stderr.count("put this there by hand:") == len(theirs)
    assert '"servers": {' in done.stderr and "[mcp_servers.nornweave]" in done.stderr
    removed = nornweave(project, "agents", "uninstall", "--yes")
    assert {name: files[name].read_text() for name in theirs} == theirs
    assert removed.returncode == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("opencode", '{"mcp": {"servers": {"x": {"type": "remote", "url": "https://x.example"}}}}'),
        ("codex", "mcp_servers.docs.command = 'npx'\n"),
        ("codex", ""),
    ],
)
def test_other_spellings_of_the_same_configuration(tmp_path: Path, name: str, text: str) -> None:
    agent = next(each for each in agents_of(tmp_path, tmp_path) if each.name == name)
    put = edited(agent, COMMAND, text)
    loaded = tomllib.loads(put) if name == "codex" else json.loads(put)
    servers = loaded[agent.key]["servers"] if name == "opencode" else loaded[agent.key]
    assert servers["nornweave"] == EXPECTED[name]
    assert edited(agent, None, put) == text
    with pytest.raises(NotEditableError):
        edited(
            next(each for each in agents_of(tmp_path, tmp_path) if each.name == "codex"), COMMAND, "mcp_servers = {}\n"
        )


def test_the_command_of_an_entry_is_one_that_agents_can_start(machine: Path) -> None:
    command = own_command(machine / "project" / "nornweave.yaml")
    assert os.access(command[0], os.X_OK)


def test_where_rights_are_configured_it_says_that_agents_see_everything(machine: Path) -> None:
    project = machine / "project"
    assert "operator" not in nornweave(project, "agents", "install", "--agent", "cursor").stderr
    (project / "nornweave.yaml").write_text("sources: []\naccess: {tokens: tokens.yaml}\n")
    assert "runs as the operator" in nornweave(project, "agents", "install", "--agent", "cursor").stderr
