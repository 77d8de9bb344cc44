"""``nornweave doctor``: what it says about things that are wrong, and that what it advises mends them."""

import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import HASHED, nornweave

from lab.apis.github import REPOSITORY, TOKEN, GithubServer
from lab.apis.server import serving
from nornweave.cli.checks import look_at_clock, look_at_port, space_finding

GIB = 1024**3


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A\n\nThe guide.\n")
    configure(tmp_path, [{"id": "docs", "domain": "documentation", "type": "files", "path": "docs"}])
    return tmp_path


def configure(folder: Path, sources: list[dict[str, Any]], **keys: Any) -> None:
    config = {
        "data_dir": "var",
        "sources": sources,
        "domains": {"documentation": HASHED, "conversations": HASHED},
        **keys,
    }
    (folder / "nornweave.yaml").write_text(json.dumps(config), encoding="utf-8")


def examined(folder: Path, code: int, **variables: str) -> dict[str, dict[str, str]]:
    """Return the findings by check and subject."""
    done = nornweave(folder, "doctor", "--json", variables={**os.environ, **variables})
    assert done.returncode == code, done.stdout + done.stderr
    return {f"{each['check']} {each['subject']}": each for each in json.loads(done.stdout)}


def test_a_new_workspace_lacks_a_sync_and_nothing_else(workspace: Path) -> None:
    found = examined(workspace, 0)
    assert found["source docs"]["text"] == "lists 1 document"
    assert found["model hash:64"]["text"] == "encodes, 64 dimensions"
    index = found["index documentation"]
    assert (index["level"], index["remedy"]) == ("warning", "run `nornweave sync`")
    assert nornweave(workspace, "sync").returncode == 0
    (workspace / "var/plans/documentation").mkdir(parents=True)
    (workspace / "var/plans/documentation/plan-000001.json").write_text("{}")
    found = examined(workspace, 0)
    assert found["index documentation"]["level"] == "ok"
    assert found["plan documentation"]["text"] == "a tuned plan of an earlier version is not read"
    shown = nornweave(workspace, "doctor").stdout
    assert "ok      source docs: lists 1 document" in shown


def test_sources_that_are_missing_or_empty(workspace: Path) -> None:
    files = {"domain": "documentation", "type": "files"}
    (workspace / "empty").mkdir()
    configure(workspace, [{"id": "gone", "path": "gone", **files}, {"id": "empty", "path": "empty", **files}])
    found = examined(workspace, 1)
    assert (found["source gone"]["level"], found["source empty"]["level"]) == ("error", "warning")
    assert "'gone' cannot be read" in found["source gone"]["text"].replace(f"{workspace}/", "")
    assert "include" in found["source empty"]["remedy"]


def test_tokens_are_tried_by_one_request(workspace: Path) -> None:
    server = GithubServer(needs_token=True)
    with serving(server):
        for number in range(300):
            server.open(f"T{number}")
        api = {"repository": REPOSITORY, "api_url": server.url, "token_env": "ISSUES_TOKEN"}
        configure(workspace, [{"id": "issues", "domain": "conversations", "type": "github", **api}])
        missing = examined(workspace, 1)["source issues"]
        assert "ISSUES_TOKEN, which is not set" in missing["text"]
        assert "export ISSUES_TOKEN=" in missing["remedy"]
        assert server.requests == []
        wrong = examined(workspace, 1, ISSUES_TOKEN="wrong-secret")["source issues"]
        assert "renew ISSUES_TOKEN" in wrong["text"]
        assert "wrong-secret" not in json.dumps(wrong)
        server.requests.clear()
        assert examined(workspace, 0, ISSUES_TOKEN=TOKEN)["source issues"]["text"] == "answers"
        assert len(server.requests) == 1


def test_a_data_dir_that_cannot_be_written(workspace: Path) -> None:
    (workspace / "file").write_text("no folder")
    configure(workspace, [], data_dir="file/var")
    found = examined(workspace, 1)[f"disk {workspace}/file/var"]
    assert (found["level"], "data_dir" in found["remedy"]) == ("error", True)


def test_a_model_that_is_not_there(workspace: Path) -> None:
    embedding = {"model": "litellm:nobody/nothing", "dimensions": 8}
    configure(
        workspace,
        [{"id": "docs", "domain": "documentation", "type": "files", "path": "docs"}],
        domains={"documentation": {"embedding": embedding}},
    )
    found = examined(workspace, 1)["model litellm:nobody/nothing"]
    assert "domains.<name>.embedding.model" in found["remedy"]


def test_groups_that_nobody_is_in(workspace: Path) -> None:
    docs = {"id": "docs", "domain": "documentation", "type": "files", "path": "docs", "access": ["staff"]}
    configure(workspace, [docs])
    assert "refuses to start" in examined(workspace, 1)["access docs"]["text"]
    configure(workspace, [docs], access={"tokens": "tokens.yaml"})
    file = f"{workspace}/tokens.yaml"
    assert "nornweave token" in examined(workspace, 1)[f"access {file}"]["remedy"]
    made = json.loads(nornweave(workspace, "token", "--group", "staff", "--json").stdout)
    (workspace / "tokens.yaml").write_text(made["line"] + "\n")
    assert examined(workspace, 0)[f"access {file}"]["text"] == "1 tokens"


def test_an_identity_provider_that_does_not_answer(workspace: Path) -> None:
    oidc = {"issuer": "http://127.0.0.1:9", "audience": "nornweave"}
    configure(workspace, [], access={"oidc": oidc})
    assert examined(workspace, 1)["access http://127.0.0.1:9"]["level"] == "error"
    configure(workspace, [], access={"oidc": {**oidc, "client_id": "team", "client_secret_env": "NOT_SET"}})
    assert "NOT_SET is not set" in examined(workspace, 1)["access sign-in as team"]["text"]
    configure(workspace, [], access={"oidc": {**oidc, "client_id": "team"}})
    assert "NORNWEAVE_URL is not set" in examined(workspace, 1)["access sign-in as team"]["text"]


def test_a_wrong_configuration_is_told_before_anything_else(workspace: Path) -> None:
    configure(workspace, [{"id": "docs", "domain": "documentation", "type": "files", "path": "docs", "pfad": "x"}])
    done = nornweave(workspace, "doctor")
    assert (done.returncode, "unknown key 'sources.0.pfad'" in done.stderr) == (2, True)


def test_space_is_judged_by_what_the_index_takes() -> None:
    assert space_finding("var", 100 * GIB, 1 * GIB).level == "ok"
    tight = space_finding("var", 2 * GIB, 3 * GIB)
    assert (tight.level, tight.text) == ("warning", "2.0 GiB are free, the index takes 3.0 GiB")
    assert space_finding("var", 100 * 1024**2, 0).level == "error"


def test_a_clock_that_is_behind_the_index() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert [each.level for each in look_at_clock({"code": "2026-02-28T00:00:00+00:00"}, now)] == ["ok"]
    (behind,) = look_at_clock({"code": "2026-03-02T00:00:00+00:00"}, now)
    assert behind.text == "it is 2026-03-01T00:00:00Z, but code was published at 2026-03-02T00:00:00Z"


def test_a_port_that_another_program_uses() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        assert look_at_port("the API", port, "take another").remedy == "take another"
    assert look_at_port("the API", port, "take another").level == "ok"
